//! Turns files into events, and sends them: CSV and NDJSON, plain or compressed with gzip, row by
//! row and bound only by the disk.
//!
//! ```text
//!   file ─▶ input ─▶ csv records │ ndjson lines ─▶ columns ─▶ event: id, time, subject, JSON data
//!           gunzip                  line numbers      │
//!                                                  mapping.toml
//! ```
//!
//! [`Mapping`] assigns columns to the parts of an event. [`Rows`] yields one [`Row`] at a time: an
//! event, or the reason for its rejection. A row borrows from buffers that the next row reuses, so
//! a file of any size needs the memory of one row.
//!
//! ```text
//!   rows ─▶ reader ─▶ batches ─▶ senders ─▶ receipts ─▶ account: in the order of the rows
//!           1 thread             a few       any order    rejected rows, progress file, bar
//! ```
//!
//! [`run`] sends the rows to a [`Sink`] and keeps account of them. An id depends only on its file
//! and row, so a batch whose outcome is unknown is sent again: the sink reports what it had counted
//! as duplicates. The progress file saves the work of sending everything again; it never decides
//! what is counted while the server still remembers the ids.
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

mod account;
mod bar;
mod csv;
mod error;
mod http;
mod input;
mod json;
mod limits;
mod lines;
pub mod mapping;
mod ndjson;
mod number;
mod pipeline;
mod plan;
mod progress;
mod rejected;
mod resume;
mod rows;
mod run;
mod sink;
mod times;

pub use account::Totals;
pub use bar::Bar;
pub use error::Error;
pub use http::Http;
pub use lines::EventLines;
pub use mapping::Mapping;
pub use rows::{Row, Rows};
pub use run::{Options, Outcome, run, run_once};
pub use sink::{Receipt, RejectedEvent, Sink};
