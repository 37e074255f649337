//! The keyspace behind the Redis door: live objects in memory, all of them in a store.
//!
//! ```text
//!   connection ── drain ──▶ Objects::run ── one hold of the lock ──▶ Keyspace ── group ──▶ store
//!        ▲                      │  ▲                                    │
//!        │                      │  └── heads, entries ◀── Loader ◀── keys that are missing
//!        └── replies, each with the stamp that it waits for ◀───────────┘
//! ```
//!
//! All live objects stand behind one lock. A connection parses the complete commands of its
//! buffer, takes the lock once, runs them in their order and releases it. What they changed is one
//! group of effects, which the store takes under the lock, so the order of groups is the order of
//! changes. Nothing reads a disk under the lock: a command whose keys are not in memory ends the
//! hold, the keys of the commands behind it are loaded together, and the connection goes on where
//! it stopped.
//!
//! No client sees what a crash could take back. An object carries the stamp of the group that
//! changed it last, a reply the greatest stamp among the objects that it was made from, and the
//! connection sends a reply when the store has made that stamp durable.

mod admission;
mod ahead;
mod answer;
mod blocking;
mod commands;
mod execute;
mod failures;
mod group;
mod keyspace;
pub mod limits;
mod loader;
mod lock;
mod notify;
mod objects;
mod once;
mod options;
mod pubsub;
mod run;
mod scan;
mod session;
mod settings;
mod stats;
mod sweeper;
mod transactions;
mod turn;
mod wake;

#[cfg(test)]
mod tests;

pub use objects::Objects;
pub use options::{Limits, Options};
pub use pubsub::{Closer, Message, PubSub, Space, Subscriber};
pub use run::{Ran, Segment};
pub use session::Session;
pub use settings::Settings;
pub use stats::Stats;
pub use wake::Unblocker;
