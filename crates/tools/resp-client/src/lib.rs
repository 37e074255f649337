//! A blocking client of the Redis protocol for tools, and the copying of objects between servers.
//!
//! ```text
//!   words ──▶ command: bytes ──▶ Connection ──▶ Reply: a tree that keeps every type of the wire
//!                                    │
//!   Scanner: where replies end ◀─────┘   (load generators, which parse nothing else)
//! ```
//!
//! Replies keep the difference between the two protocols (a null bulk string of RESP2, the null of
//! RESP3), so that equal replies are equal bytes. [`copy`] moves keys between two servers.

mod address;
mod connection;
pub mod copy;
mod error;
pub mod reply;
mod scanner;
pub mod slot;

pub use address::Address;
pub use connection::{Connection, command};
pub use error::Error;
pub use reply::Reply;
pub use scanner::Scanner;
