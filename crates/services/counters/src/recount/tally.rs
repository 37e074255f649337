//! The buckets of one key, recounted from the log.

use raingauge_core::bucket::Granularity;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets::{Cell, Error};
use raingauge_ports::log::Partition;
use std::collections::{BTreeMap, BTreeSet};

/// The cells of each partition. A cell that overflowed holds `None`.
#[derive(Debug, Default)]
pub struct Tally {
    cells: BTreeMap<(Granularity, i64, Partition), Option<i64>>,
    set: BTreeSet<(Granularity, i64)>,
}

impl Tally {
    /// Adds an event to the buckets of its time that have not expired.
    pub fn add(&mut self, partition: Partition, time_s: i64, value: i64, horizons: &Horizons) {
        for granularity in Granularity::ALL {
            if horizons.keeps(granularity, time_s) {
                let place = (granularity, granularity.floor(time_s), partition);
                let count = self.cells.entry(place).or_insert(Some(0));
                *count = count
                    .and_then(|count| count.checked_add(value))
                    .filter(|count| *count != i64::MIN);
            }
        }
    }

    /// Sets a bucket, as `POST /v1/buckets` does.
    pub fn set(&mut self, partition: Partition, cell: Cell) {
        let Cell { granularity, time_s, count } = cell;
        self.set.insert((granularity, time_s));
        self.cells.insert((granularity, time_s, partition), Some(count));
    }

    /// Erases the counts of a partition, and forgets which buckets were set.
    pub fn erase(&mut self, partition: Partition) {
        self.set.clear();
        self.cells.retain(|(_, _, of), _| *of != partition);
    }

    /// Returns how many buckets from this time on were set.
    pub fn set_since(&self, from_s: i64) -> usize {
        self.set.iter().filter(|(_, time_s)| *time_s >= from_s).count()
    }

    /// Returns the cells of a slice, summed over all partitions, ordered by time.
    pub fn cells(&self, slice: Slice) -> Result<Vec<Cell>, Error> {
        let granularity = slice.granularity;
        let mut cells = Vec::<Cell>::new();

        for (time_s, count) in self.range(slice) {
            let count = count.ok_or(Overflow)?;
            match cells.last_mut().filter(|cell| cell.time_s == time_s) {
                Some(cell) => cell.count = cell.count.saturating_add(count),
                None => cells.push(Cell { granularity, time_s, count }),
            }
        }
        Ok(cells)
    }

    /// Returns the sum of a range over all partitions.
    pub fn sum(&self, plan: &Plan) -> Result<i128, Error> {
        let mut sum = 0;
        for (_, count) in plan.slices().flat_map(|slice| self.range(slice)) {
            sum += i128::from(count.ok_or(Overflow)?);
        }
        Ok(sum)
    }

    fn range(&self, slice: Slice) -> impl Iterator<Item = (i64, Option<i64>)> + '_ {
        let from = (slice.granularity, slice.from_s, Partition::MIN);
        let to = (slice.granularity, slice.to_s, Partition::MIN);
        self.cells.range(from..to).map(|((_, time_s, _), count)| (*time_s, *count))
    }
}
