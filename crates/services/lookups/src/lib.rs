//! Answers of lookups: values that the rules and texts of campaigns read, and that are not part of
//! an event.
//!
//! ```text
//!   worker ──▶ Answers ──┬── segment, table ──▶ Tables
//!                        ├── counter ─────────▶ Counts: the reader, behind counting
//!                        └── http, db ──▶ cache ──▶ call under way ──▶ Caller
//!                                                          places, rate, breaker
//!                                                                  └──▶ Sender, DatabaseLookup
//! ```
//!
//! Equal keys are asked once, also by several batches at a time. A caller waits as long as its
//! patience lasts, and the call goes on: its answer is in the cache when the caller asks again.
//!
//! A service or a database is asked by more calls at a time while it answers fast, and by half as
//! many when it fails or is late.

mod answers;
mod cache;
mod caller;
mod counts;
mod engines;
mod places;

pub use answers::{Answers, Definitions, Deps, Options};
pub use counts::{CounterRange, Counts};
