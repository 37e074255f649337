//! Queues on Amazon SQS, and on servers that speak its protocol.
//!
//! ```text
//!   retry  ──▶ queue {prefix}retry       ── 100 receives, by SQS itself ──┐
//!   bury   ──▶ queue {prefix}retry-dead  ◀────────────────────────────────┘
//! ```
//!
//! A letter is one message of a standard queue. It carries its id, its first error and, when dead,
//! its reason, because SQS forgets the attributes of a message that is sent to another queue. What
//! SQS does not offer is made of what it does: operators look at letters by receiving them for a
//! moment, and dead letters are redriven by sending them and deleting them, in this order.

mod batches;
mod calls;
mod control;
mod envelope;
mod names;
mod queues;
mod settings;

pub use names::Options;
pub use queues::RemoteQueues;
pub use settings::Settings;
