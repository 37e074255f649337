//! The service that answers counts.
//!
//! ```text
//!   key, from, to ──▶ counter ──▶ kept? ──▶ plan ──▶ generations ──┬──▶ tiles in memory ──▶ sum
//!                                                                  │        └─ missing ──▶ storage
//!                                     strategy of the counter ─────┤
//!                                                                  └──▶ result cache
//!                                                                           └─ missing ──▶ storage
//! ```
//!
//! A batch is answered from memory without waiting. What is missing goes to storage in one round,
//! through a gate that reads nothing twice at once and protects the engine ([`Options`]). Each
//! range fails alone. How a counter is cached is its strategy, which may change at any time
//! ([`CachePolicies`]).

mod breaker;
mod cache;
mod frequencies;
mod gate;
mod largest;
mod live;
mod range;
mod read_plan;
mod reader;
mod refusal;
mod series;
mod step;
mod storage;

pub use cache::CachePolicies;
pub use gate::Options;
pub use largest::{Key, LargestKeys};
pub use live::lease::keep_lease;
pub use live::{LiveOptions, LiveTiles, read_ahead};
pub use range::{Answer, Range};
pub use read_plan::tiles_of;
pub use reader::{Engines, Explanation, Reader, Sources};
pub use series::{Point, Series};
pub use step::{Step, midnight_s};
