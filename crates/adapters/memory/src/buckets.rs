//! The bucket store in memory: a sorted map of cells, and a copy of it for each checkpoint.

use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::event::key_hash;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Overflow;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Addition, Answer, BucketReader, BucketRetention, BucketWriter, Cell, Checkpoint, Error,
    Generation, KeySource, Largest, Query, Sum,
};
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;

type Cells = BTreeMap<(Generation, String, Granularity, i64), Option<i64>>;

/// A cell that overflowed holds `None`.
#[derive(Debug, Default)]
pub struct Buckets {
    inner: Mutex<Inner>,
}

#[derive(Clone, Debug, Default)]
struct Inner {
    cells: Cells,
    committed: Cells,
    checkpoint: Checkpoint,
    prolonged: Vec<(Generation, Horizons)>,
}

impl Buckets {
    /// Drops uncommitted changes, as a crash would.
    pub fn crash(&self) {
        let mut inner = self.inner.lock();
        inner.cells = inner.committed.clone();
    }

    /// The generations whose life was prolonged, with the horizons.
    pub fn prolonged(&self) -> Vec<(Generation, Horizons)> {
        self.inner.lock().prolonged.clone()
    }

    fn sum(&self, generation: Generation, key: &str, plan: &Plan) -> Sum {
        let inner = self.inner.lock();
        let mut sum = 0;
        for slice in plan.slices() {
            let at = |time_s| (generation, key.to_owned(), slice.granularity, time_s);
            for (_, count) in inner.cells.range(at(slice.from_s)..at(slice.to_s)) {
                sum += i128::from(count.ok_or(Overflow)?);
            }
        }
        Ok(sum)
    }

    fn slice(&self, generation: Generation, key: &str, slice: Slice) -> Result<Vec<Cell>, Error> {
        let at = |time_s| (generation, key.to_owned(), slice.granularity, time_s);
        let inner = self.inner.lock();
        let cells = inner.cells.range(at(slice.from_s)..at(slice.to_s));
        cells
            .map(|((_, _, granularity, time_s), count)| {
                let count = count.ok_or(Overflow)?;
                Ok(Cell { granularity: *granularity, time_s: *time_s, count })
            })
            .collect()
    }
}

impl BucketReader for Buckets {
    fn sum_cached(&self, generation: Generation, key: &str, plan: &Plan) -> Option<Sum> {
        Some(self.sum(generation, key, plan))
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        let sum = |query: &Query| {
            self.sum(query.generation, &query.key, &query.plan).map_err(Error::from)
        };
        let sums = queries.iter().map(sum).collect();
        Box::pin(async move { sums })
    }

    fn cells(&self, generation: Generation, key: String, slice: Slice) -> Answer<'_, Vec<Cell>> {
        let cells = self.slice(generation, &key, slice);
        Box::pin(async move { cells })
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        _scan_max: usize,
    ) -> Answer<'_, Largest> {
        let mut sums = BTreeMap::<String, i64>::new();
        for ((of, key, granularity, time_s), count) in &self.inner.lock().cells {
            let inside = (slice.from_s..slice.to_s).contains(time_s);
            if *of == generation && *granularity == Granularity::Day && inside {
                *sums.entry(key.clone()).or_default() += count.unwrap_or_default();
            }
        }
        let mut sums: Vec<(String, i64)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        sums.truncate(len_max);
        Box::pin(async move { Ok(Largest { keys: sums, is_complete: true }) })
    }
}

impl KeySource for Buckets {
    fn key_hashes(&self, generation: Generation) -> Answer<'_, Vec<u64>> {
        let inner = self.inner.lock();
        let own = inner.cells.keys().filter(|(of, ..)| *of == generation);
        let mut hashes: Vec<u64> = own.map(|(_, key, ..)| key_hash(key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Box::pin(async move { Ok(hashes) })
    }
}

impl BucketWriter for Buckets {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        Ok(self.inner.lock().checkpoint.clone())
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        horizons: &Horizons,
    ) -> Result<(), Error> {
        let Addition { time_s, value, .. } = added;
        let mut inner = self.inner.lock();
        for granularity in
            Granularity::ALL.into_iter().filter(|granularity| horizons.keeps(*granularity, time_s))
        {
            let at = (generation, key.to_owned(), granularity, granularity.floor(time_s));
            let count = inner.cells.entry(at).or_insert(Some(0));
            *count =
                count.and_then(|count| count.checked_add(value)).filter(|count| *count != i64::MIN);
        }
        Ok(())
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        _offset: Offset,
        cell: Cell,
    ) -> Result<(), Error> {
        let at = (generation, key.to_owned(), cell.granularity, cell.time_s);
        self.inner.lock().cells.insert(at, Some(cell.count));
        Ok(())
    }

    fn erase(&self, generation: Generation, key: &str, _offset: Offset) -> Result<(), Error> {
        self.inner.lock().cells.retain(|(of, text, ..), _| *of != generation || text != key);
        Ok(())
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let mut inner = self.inner.lock();
        let progress = checkpoint.progress.clone().or_else(|| inner.checkpoint.progress.take());
        inner.checkpoint = Checkpoint { progress, ..checkpoint.clone() };
        inner.committed = inner.cells.clone();
        Ok(())
    }

    fn wants_commit(&self) -> bool {
        false
    }
}

impl BucketRetention for Buckets {
    fn prolong(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        *cursor = None;
        self.inner.lock().prolonged.push((generation, *horizons));
        Ok(())
    }

    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        _scan_max: usize,
    ) -> Result<u64, Error> {
        *cursor = None;
        let mut inner = self.inner.lock();
        let before = inner.cells.len();
        inner.cells.retain(|(of, _, granularity, time_s), _| {
            *of != generation || *time_s >= horizons.of(*granularity)
        });
        Ok((before - inner.cells.len()) as u64)
    }
}
