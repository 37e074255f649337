//! The services of the writer, together, on ports in memory.

mod buckets;
mod counters;
mod drafts;
mod follow;
mod ingest;
mod keys;
mod observed;
mod preview;
mod recount;
mod support;
mod watchdog;
mod writer;
