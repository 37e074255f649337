//! Histories of concurrent clients: is there an order of all operations that explains every reply?
//!
//! ```text
//!   clients ──▶ operations on few keys ──▶ history: call, return, reply ──▶ checker, for each key
//!                  ▲ kills: the outcome of what was under way is unknown
//! ```

pub mod checker;
pub mod operation;
pub mod record;

pub use checker::{Violation, check};
pub use operation::{Event, Operation};
pub use record::{Options, record};

#[cfg(test)]
mod tests;
