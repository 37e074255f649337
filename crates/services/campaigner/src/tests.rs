//! The worker over engines in memory and on disk, with a clock that stands until it is moved.

mod allocations;
mod erasure;
mod example;
mod lookups;
mod memory;
mod redrive;
mod reduction;
mod simulation;
mod stage;
mod states;
mod timers;
mod warming;
