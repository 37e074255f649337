//! The worker over engines in memory and on disk, with a clock that stands until it is moved.

mod example;
mod lookups;
pub(crate) mod stage;
mod states;
mod timers;
mod warming;

pub(crate) use stage::{HOUR_MS, Manual, START_MS};
