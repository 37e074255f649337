//! The service over objects in memory.

mod between;
mod blocking;
mod durability;
mod eviction;
mod expiry;
mod holds;
mod keys;
mod loads;
mod once;
mod overlay;
mod races;
mod refusals;
mod scans;
mod sizes;
mod stage;
mod transactions;
mod values;
