//! What a count is, as pure functions: no clock, no input or output, no threads.
//!
//! ```text
//!   event ──▶ counters ──▶ (key, time, value) ──▶ tiles of cells
//!                                                     │
//!   key + range ──▶ plan ──▶ slices of days, hours and quarter hours ──▶ sum
//! ```
//!
//! Functions that need the time take it as an argument.

pub mod access;
pub mod bucket;
pub mod code;
pub mod counter;
pub mod decode;
pub mod event;
pub mod field;
pub mod filter;
pub mod json;
pub mod limits;
pub mod moment;
mod names;
pub mod number;
pub mod plan;
pub mod retention;
mod router;
pub mod ruleset;
pub mod template;
pub mod tile;
pub mod time;
pub mod value;
