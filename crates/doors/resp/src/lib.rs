//! The door for clients of Redis: connections, logins, and the commands about both.
//!
//! ```text
//!   socket ─▶ Parser ─▶ Drain ─┬─▶ Objects::run      commands over objects, in one hold
//!      ▲                       ├─▶ Rain::run         counts and events
//!      │                       └─▶ commands::run     connections and the server
//!      └── Outgoing ◀── replies, each with the stamp that it waits for
//! ```
//!
//! A connection is one task. It runs the commands of a read in their order and sends their replies
//! in that order, each when what it tells of is durable; reading goes on while replies wait. A
//! client that does not read its replies is disconnected once too many of them wait, so that
//! neither side waits for the other for ever.

mod browser;
mod client;
mod commands;
mod connection;
mod desk;
mod door;
mod ending;
mod incoming;
pub mod limits;
mod login;
mod nodes;
mod observed;
mod outgoing;
mod parameters;
mod rain;
mod refusals;
mod server;
mod settings;
mod slowlog;
mod socket;
mod usage;

#[cfg(test)]
mod tests;

pub use door::Door;
pub use nodes::Node;
pub use observed::{HotKey, Observed};
pub use rain::Rain;
pub use server::Deps;
pub use settings::{ClusterMode, Settings};
