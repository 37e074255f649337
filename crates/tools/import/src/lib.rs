//! Turns files into events: CSV and NDJSON, plain or compressed with gzip, row by row and bound
//! only by the disk.
//!
//! ```text
//!   file ─▶ input ─▶ csv records │ ndjson lines ─▶ columns ─▶ event (id, time, subject, data as JSON)
//!           gunzip                  line numbers      │
//!                                                  mapping.toml
//! ```
//!
//! [`Mapping`] assigns columns to the parts of an event. [`Rows`] yields one [`Row`] at a time: an
//! event, or the reason for its rejection. A row borrows from buffers that the next row reuses, so
//! a file of any size needs the memory of one row. [`Rejected`] writes the rejected rows to a file,
//! and [`Progress`] records the position of an import.
//!
//! # What identifies an event
//!
//! `source` and `id` together. With `id = [columns]` in the mapping, the id consists of the values
//! of these columns; a row in which all of them are empty or null falls back to the default. The
//! default is `FINGERPRINT:ROW`, where the fingerprint is the XXH3 of the first 64 KiB of the
//! uncompressed file in hexadecimal, and the row is its number, from 1. The same file therefore
//! always yields the same ids, compressed or not and under any name, and a different file yields
//! different ones. A file of more than 64 KiB keeps its fingerprint when rows are appended to it:
//! rows that were counted earlier are then duplicates.

mod csv;
mod error;
mod input;
mod json;
mod limits;
pub mod mapping;
mod ndjson;
mod number;
mod plan;
mod progress;
mod rejected;
mod rows;
mod times;

pub use error::Error;
pub use mapping::Mapping;
pub use progress::{Identity, Progress};
pub use rejected::Rejected;
pub use rows::{Row, Rows};
