//! The service that answers counts.
//!
//! ```text
//!   key, from, to ──▶ counter ──▶ kept? ──▶ plan ──▶ generations ──┬──▶ tiles in memory ──────────────▶ sum
//!                                                                  │        └─ what is not there ──▶ storage
//!                                     strategy of the counter ─────┤
//!                                                                  └──▶ result cache
//!                                                                           └─ what is not there ──▶ storage
//! ```
//!
//! A batch is answered from memory without waiting; what is missing goes to storage in one round, through a gate that
//! reads nothing twice at once and protects the engine ([`Options`]). Each item fails alone.
//! How a counter is cached is its strategy, which may change at any time ([`CachePolicies`]).

mod answer;
mod asked;
mod breaker;
mod cache;
mod explain;
mod live;
mod refusal;
mod resolve;
mod series;
mod storage;

pub use answer::{Answer, Key, LargestKeys, Range, Reader, Served};
pub use cache::{CachePolicies, PHASE_BOUND_S, RESULT_TTL, key as result_key};
pub use explain::Explained;
pub use live::{LiveOptions, LiveTiles, SILENCE_MAX_MS, keep_lease, read_ahead};
pub use series::{Point, Series};
pub use storage::Options;
