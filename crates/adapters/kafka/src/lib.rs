//! The event log on Apache Kafka.
//!
//! ```text
//!   KafkaSink ──binary CloudEvents──▶ topic ──┬─ partition 0 ─▶ KafkaLog ─▶ worker 0 ─┐
//!   other producers ──CloudEvents──▶   of P   ├─ partition 1 ─▶ KafkaLog ─▶ worker 1  ├─ of the partitions that
//!                                 partitions  └─ …                                    ┘  the Group gives this process
//!                                      └── what cannot be counted ─▶ dead-letter topic
//! ```
//!
//! The partition of an event is `identity % P`, so that an event meets its repetitions in one partition; other producers
//! must see to that themselves, with any partitioner by `source` and `id`. Nothing is deduplicated on the way in: the
//! *reader* tells repetitions, and what it answers for an offset is a function of what the partition holds, of the time
//! at which the broker appended it and of the options, and of nothing else: whoever reads, from wherever, at any time,
//! reads the same. Repetitions, messages that are refused and offsets without a message are read as
//! [`raingauge_ports::record::Entry::Void`].
//!
//! A reader needs the identities of the dedupe window before its place. They are kept in chunks that it makes while it reads,
//! where the topic was given a store for them, and read from the topic where they are missing: see
//! [`raingauge_ports::dedupe`].
//!
//! Offsets of the ports are `epoch * 2^48 + offset in Kafka`. The epoch is raised by whoever recreates a topic.

mod changes;
mod context;
mod control;
mod cursor;
mod dead_letters;
mod ends;
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
mod sink;
mod stream;
mod topic;
mod topic_id;
mod transactions;

pub use changes::{KafkaFeed, listen};
pub use control::{ControlFault, ControlRules};
pub use error::Error;
pub use group::{Assigned, Group};
pub use leases::KafkaLeases;
pub use log::KafkaLog;
pub use migrate::{Migrated, Plan, migrate};
pub use options::{EPOCH_STEP, Options, Sasl, SaslMechanism, Security, Tls};
pub use sink::KafkaSink;
pub use stream::Listening;
pub use topic::KafkaTopic;
