//! The worker, stepped by hand so that crashes fall where a test wants them.

mod exactly_once;
mod model;
mod upkeep;
mod world;
