//! The service that answers counts.
//!
//! ```text
//!   key, from, to ──▶ counter ──▶ kept? ──▶ plan ──▶ generations ──▶ tiles in memory ──▶ sum
//!                                                          └── what is not there ──▶ storage
//! ```
//!
//! A batch is answered from memory without waiting; what is missing goes to storage in one round. Each item fails alone.

mod answer;
mod series;

pub use answer::{Answer, Failure, Key, Range, Reader};
pub use series::{Point, Series};
