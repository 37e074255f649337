//! Tests of the service over engines in memory.

mod documents;
mod expiry_simulation;
mod faults;
mod inflow;
mod members;
mod metrics;
mod queues;
mod random;
mod rewards;
mod simulation;
mod stage;
mod turns;
mod walks;
