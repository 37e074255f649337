//! The bucket store: counts by key and bucket, together with how far of the log they include.
//!
//! Writing has one caller for each partition of the log, its writer. What it adds is durable, and readable at the
//! latest, at the next checkpoint. After a crash the log is read again from the position of the last checkpoint, and what
//! is added a second time changes nothing: a store either moves its cells together with the checkpoint, or knows of each
//! cell up to which offset it includes the log.

use crate::BoxFuture;
use crate::log::Offset;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Overflow;

/// A body of counts of one counter. A backfill fills a new generation beside the one that answers.
pub type Generation = u32;

/// Generations that one counter may have.
pub const GENERATIONS_PER_COUNTER: u32 = 4_096;

/// The generation of a counter with this number: 0 is what it counts from the beginning, each backfill makes the next.
/// Everybody who knows the counter knows its generations, whatever order they learnt of the counters in.
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
    /// Another program has the data folder open.
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

/// What the store remembers of its writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log is included up to here.
    pub position: Offset,
    /// What the writer needs to go on, in a form of its own.
    pub state: Vec<u8>,
    /// The stamp of the last entry before the position: see [`BucketWriter::stamp_from`].
    pub stamp_us: i64,
    /// How far the backfill of the partition has come; `None` leaves what is stored as it is.
    pub progress: Option<Progress>,
}

/// How far a backfill has come, kept beside the state, which is a function of the log alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Progress of a higher rank replaces that of a lower one, whatever the order of the writes.
    pub rank: i64,
    /// In the writer's own form.
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
pub struct Added {
    pub offset: Offset,
    /// When it happened, in seconds since 1970.
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
    /// Whether every key was looked at: otherwise larger ones may be missing.
    pub is_complete: bool,
}

pub trait BucketReader: Send + Sync {
    /// The sum of a range, when everything it needs is in memory. Never waits for storage.
    fn sum_cached(
        &self,
        generation: Generation,
        key: &str,
        plan: &Plan,
    ) -> Option<Result<i128, Overflow>>;

    /// The sums of many ranges of one key, under the same condition.
    fn sums_cached(
        &self,
        generation: Generation,
        key: &str,
        plans: &[Plan],
    ) -> Option<Result<Vec<i128>, Overflow>> {
        let mut sums = Vec::with_capacity(plans.len());
        for plan in plans {
            match self.sum_cached(generation, key, plan)? {
                Ok(sum) => sums.push(sum),
                Err(overflow) => return Some(Err(overflow)),
            }
        }
        Some(Ok(sums))
    }

    /// Takes note of sums that were found in memory, many at once.
    fn note_hits(&self, _sums: usize) {}

    /// The sums of many ranges, in their order.
    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>>;

    /// The cells of a slice that exist, in the order of time.
    fn cells(
        &self,
        generation: Generation,
        key: String,
        slice: Slice,
    ) -> BoxFuture<'_, Result<Vec<Cell>, Error>>;

    /// The `len_max` keys with the largest sums over the whole days of a slice. Looks at `scan_max` tiles at
    /// most, or at as many as the store can read in a moment.
    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> BoxFuture<'_, Result<Largest, Error>>;
}

/// Which keys there are.
pub trait KeySource: Send + Sync {
    /// The [hashes](raingauge_core::event::key_hash) of all keys that a generation has counted, in order and each once. A
    /// store that lists keys by counter may know those of other generations, too.
    fn key_hashes(&self, generation: Generation) -> BoxFuture<'_, Result<Vec<u64>, Error>>;
}

/// Called by one thread, which it may block; [`BucketWriter::remove`] by another.
pub trait BucketWriter: Send + Sync {
    /// What the last checkpoint said.
    fn checkpoint(&self) -> Result<Checkpoint, Error>;

    /// Entries that follow have the stamps `base_us` + offset: microseconds since 1970 that grow with the offset and that
    /// every reader of the log computes alike. A store whose writes are ordered by timestamps uses them.
    fn stamp_from(&self, _base_us: i64) {}

    /// Adds what the entry at `offset` says to the buckets of its time, of the granularities that `horizons` keep.
    /// Entries of a generation come in the order of their offsets.
    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Added,
        horizons: &Horizons,
    ) -> Result<(), Error>;

    /// Sets one bucket, as the entry at `offset` says.
    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), Error>;

    /// Removes every bucket of a key, as the entry at `offset` says: what was added before is gone, and what follows is
    /// counted from nothing.
    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error>;

    /// Makes all changes since the last checkpoint durable, together with the position, the state and the progress of
    /// a backfill. The state is a function of the log up to the position: a store whose writes are ordered by
    /// timestamps writes both under the stamp, so that an older one never replaces a newer one.
    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error>;

    /// Whether so much has changed since the last checkpoint that the next one is due.
    fn wants_commit(&self) -> bool;

    /// The partition is somebody else's by now: whoever waits for a server gives up with an error, and what is not written
    /// is written by the other.
    fn give_up(&self) {}

    /// Lets what is stored of a generation live as long as these horizons say, which were moved back at `now_s` by
    /// a longer retention: for a store whose buckets go by themselves. All changes are committed when it is called.
    /// Fills the cursor while there is more to do, and empties it at the end.
    fn prolong(
        &self,
        _generation: Generation,
        _horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        *cursor = None;
        Ok(())
    }

    /// Looks at up to `scan_max` tiles, or rows, of a generation behind `cursor`, and removes the buckets that lie before
    /// the horizons. Moves the cursor on, or empties it at the end; a cursor that stays as it was says that a server is
    /// at work. Answers how many buckets or tiles went.
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error>;

    /// Removes up to `scan_max` tiles or keys of a generation behind `cursor`. Nothing adds to the generation or reads
    /// it any more, and a commit has followed the last change of it. May be called by any thread, also while another
    /// one counts. Moves the cursor on, or empties it at the end. What was removed is durable with the next commit.
    fn remove(
        &self,
        generation: Generation,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        let nothing = Horizons { quarter_s: i64::MAX, hour_s: i64::MAX, day_s: i64::MAX };
        self.expire(generation, &nothing, cursor, scan_max)
    }
}
