//! Files become events: CSV and NDJSON, plain or compressed with gzip, row by row and without
//! waiting for anything but the disk.
//!
//! ```text
//!   file ─▶ input ─▶ csv records │ ndjson lines ─▶ columns ─▶ event (id, time, subject, data as JSON)
//!           gunzip                  line numbers      │
//!                                                  mapping.toml
//! ```
//!
//! [`Mapping`] says which column becomes what, [`Rows`] yields one [`Row`] after the other, each an
//! event or the reason why it is none. A row borrows from buffers that the next row reuses, so that
//! a file of any size needs the memory of one row. [`Rejected`] keeps the rows that were refused,
//! and [`Progress`] remembers how far an import has come.
//!
//! # What identifies an event
//!
//! `source` and `id` together. With `id = [columns]` in the mapping the id is what the columns
//! hold; a row in which all of them are empty or null falls back to the default. The default is
//! `FINGERPRINT:ROW`, where the fingerprint is the XXH3 of the first 64 KiB of the uncompressed
//! file in hexadecimal, and the row is its number, from 1. So the same file gives the same ids
//! whenever it is read, compressed or not and under any name, and another file gives others. A file
//! of more than 64 KiB keeps its fingerprint when rows are added at its end: rows that were counted
//! before are then duplicates.

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
