//! The event log on Apache Kafka.
//!
//! ```text
//!   Sink ──CloudEvents──▶ topic of     ┌─ partition 0 ─▶ Log ─▶ worker 0 ┐ of the partitions
//!   others ─CloudEvents─▶ P partitions ┼─ partition 1 ─▶ Log ─▶ worker 1 ┤ that the Group gives
//!                                      └─ …                              ┘ this process
//!                                          └─ what cannot be counted ─▶ dead-letter topic
//! ```
//!
//! The partition of an event is `identity % P`, so an event and its repetitions share a partition.
//! Other producers must guarantee the same, with any partitioner by `source` and `id`. The sink
//! does not deduplicate: the *reader* recognizes repetitions. What it returns for an offset is a
//! function of the partition's content, the broker's append times and the options alone, so every
//! reader returns the same. It returns repetitions, refused messages and offsets without a message
//! as [`raingauge_ports::record::Entry::Void`].
//!
//! A reader needs the identities of the dedupe window before its position. It keeps them in chunks,
//! which it writes while it reads if the topic has a store for them, and reads them from the topic
//! where a chunk is missing: see [`raingauge_ports::dedupe`].
//!
//! Offsets of the ports are `epoch * 2^48 + Kafka's offset`. An operator who recreates a topic
//! raises the epoch.

mod changes;
mod context;
mod control;
mod cursor;
mod dead_letters;
mod ends;
mod entries;
mod error;
mod group;
mod keeper;
mod leases;
mod log;
mod message;
mod migrate;
mod options;
mod producer;
mod reader;
mod restore;
mod room;
mod settings;
mod shared;
mod sink;
mod stream;
mod topic;
mod topic_id;
mod transactions;

pub use changes::{Feed, listen};
pub use control::{ControlFault, ControlRules};
pub use entries::EntryTopic;
pub use error::Error;
pub use group::{Assigned, Group};
pub use leases::Leases;
pub use log::Log;
pub use migrate::{Migrated, Plan, migrate, migrate_entries};
pub use options::{EPOCH_STEP, Options, Sasl, SaslMechanism, Security, Tls};
pub use settings::Settings;
pub use sink::Sink;
pub use stream::Listening;
pub use topic::Topic;
