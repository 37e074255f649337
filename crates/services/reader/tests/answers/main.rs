//! The reader, against sums that are as plain as they can be.

mod counts;
mod keys;
mod series;
mod support;
