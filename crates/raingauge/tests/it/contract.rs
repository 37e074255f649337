//! The public contract, call by call, as users and other tools rely on it: names, shapes, order,
//! errors.

pub mod backfill;
pub mod buckets;
mod conformance;
mod counters;
mod counts;
mod drafts;
pub mod events;
mod keys;
mod refusals;
mod retention;
mod series;
mod system;
