//! The bucket store: counts by key and bucket, together with the position up to which they include
//! the log.
//!
//! Writing has one caller per partition of the log, its writer. What it adds becomes durable and
//! readable at the next checkpoint at the latest. After a crash the log is read again from the
//! position of the last checkpoint, and adding an entry a second time changes nothing: a store
//! either moves its cells together with the checkpoint, or records for each cell up to which offset
//! it includes the log.

mod keys;
mod reader;
mod retention;
mod writer;

pub use keys::KeySource;
pub use reader::BucketReader;
pub use retention::BucketRetention;
pub use writer::BucketWriter;

use crate::BoxFuture;
use crate::log::Offset;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::plan::Plan;
use raingauge_core::tile::Overflow;

/// The sum of a range.
pub type Sum = Result<i128, Overflow>;

/// What the store answers once it has read.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A set of counts of one counter. A backfill fills a new generation beside the one that answers.
pub type Generation = u32;

/// Most generations of one counter.
pub const GENERATIONS_PER_COUNTER: u32 = 4_096;

/// Returns the generation of a counter with this number: 0 is the one it counts into at first, each
/// backfill makes the next. Every process that knows the counter knows its generations, in whatever
/// order it learned of the counters.
pub const fn generation_of(counter: u32, number: u32) -> Generation {
    counter * GENERATIONS_PER_COUNTER + number % GENERATIONS_PER_COUNTER
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Overflow(#[from] Overflow),
    #[error("the bucket store is damaged: {0}")]
    Corrupt(String),
    #[error("the bucket store could not be read or written: {0}")]
    Io(String),
    /// Another process has the data folder open.
    #[error("the data folder is in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}

/// Why a range has no count.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Overflow(overflow) => overflow.into(),
            error => Self::new(Code::Unavailable, error.to_string()),
        }
    }
}

/// The stored state of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log is included up to here.
    pub position: Offset,
    /// What the writer needs to continue, in its own format.
    pub state: Vec<u8>,
    /// The stamp of the last entry before the position: see [`BucketWriter::stamp_from`].
    pub stamp_us: i64,
    /// Progress of the partition's backfill; `None` leaves the stored value unchanged.
    pub progress: Option<Progress>,
}

/// Progress of a backfill, stored beside the state, which is a function of the log alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Progress of a higher rank replaces that of a lower one, whatever the order of the writes.
    pub rank: i64,
    /// In the writer's own format.
    pub bytes: Vec<u8>,
}

/// One range of one key.
#[derive(Clone, Debug)]
pub struct Query {
    pub generation: Generation,
    pub key: String,
    pub plan: Plan,
}

/// What one entry of the log adds to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    pub offset: Offset,
    /// When the event happened, in seconds since 1970.
    pub time_s: i64,
    pub value: i64,
}

/// One bucket and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub granularity: Granularity,
    /// Start of the bucket, in seconds since 1970.
    pub time_s: i64,
    pub count: i64,
}

/// The keys of a generation with the largest sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Largest first.
    pub keys: Vec<(String, i64)>,
    /// Whether every key was examined; otherwise larger ones may be missing.
    pub is_complete: bool,
}
