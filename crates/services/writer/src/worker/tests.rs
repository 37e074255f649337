//! The worker, stepped by hand so that crashes fall where a test wants them.

mod cluster;
mod consumers;
mod exactly_once;
mod lost;
mod model;
mod stamps;
mod upkeep;
mod voids;
mod world;
