//! How counts are cached, and what protects the engines: simulated clocks, the twins in memory, and
//! faults on demand.

mod gate;
mod live;
mod live_stream;
mod phased;
mod strategies;
mod support;
