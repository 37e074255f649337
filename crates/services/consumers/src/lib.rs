//! Several consumers of one event log.
//!
//! Each consumer has a name, and a position of its own up to which it has made something durable of
//! the log. Counting is the first one. The log is kept for all of them: counting is never
//! overtaken, the others when they are further behind than the log's bound.
//!
//! ```text
//!   event log ──▶ counting ──▶ bucket store          Registry: where each of them is
//!        ▲   └──▶ Consumer ──▶ ConsumerStore            │
//!        └────────────────── trim: what all need ◀──────┘──▶ metrics, alarm
//! ```
//!
//! A consumer reads blocks with [`Consumer::read`], which waits for new ones, and commits what it
//! makes of them together with its position: after a crash it goes on there, and reads every event
//! once. A [`Runner`] is the thread that does this. Entries of the log that control a consumer name
//! it: see [`control`].
//!
//! A consumer that commits elsewhere, such as to a journal of its own, registers a [`Place`] and
//! moves it; the embedded bucket store is the [`ConsumerStore`] of those that have none.
//!
//! # On a cluster
//!
//! Each partition of the topic is a log of its own, so a consumer has a [`Consumer`], a store and a
//! position for each partition that its process has. Reading, waiting, control entries and the
//! error of one that was overtaken are as here. The brokers trim by the retention of the topic,
//! which is the bound. Not there yet: a membership for each consumer, which is a Kafka group named
//! after it beside that of the writers; a store that commits records and position in one
//! transaction fenced by the position, which is MySQL, since CQL has none; and these metrics.
//!
//! [`ConsumerStore`]: raingauge_ports::consumers::ConsumerStore

mod consumer;
pub mod control;
mod registry;
mod runner;

pub use consumer::{Consumer, Error, Overtaken};
pub use registry::{Hold, Place, Registry};
pub use runner::Runner;
