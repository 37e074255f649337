//! The same work, done the way it would be done today on a general store: buckets kept by key, granularity and time,
//! written by batches that are added up first, read by the plan of [`crate::plan`].
//!
//! The peers are given their events as values in memory; raingauge has to receive and parse them as JSON over HTTP.

pub mod drive;
pub mod postgres;
pub mod redis;
pub mod resp;
pub mod sqlite;

use crate::events::{Drop, Drops, Ids};
use crate::plan::{self, DAY_S, Granularity};
use crate::workload::{Bucket, Workload};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

/// Where `scripts/peers` started the servers.
#[derive(Debug, Clone, Deserialize)]
pub struct Servers {
    pub redis_port: u16,
    pub redis_durable_port: u16,
    pub postgres_port: u16,
    pub postgres_user: String,
    pub redis_version: String,
    pub postgres_version: String,
}

impl Servers {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not what scripts/peers prints", path.display()))
    }
}

/// What the writers of one measurement share. `counted` is what the store must hold more of afterwards.
pub struct Writes {
    pub drops: Rc<Drops>,
    pub dedupe: bool,
    ids: RefCell<Ids>,
    counted: Cell<u64>,
}

impl Writes {
    pub fn new(drops: Rc<Drops>, dedupe: bool) -> Rc<Self> {
        Rc::new(Self { drops, dedupe, ids: RefCell::new(Ids::new(rand::random())), counted: Cell::new(0) })
    }

    pub fn batch(&self, turn: u64) -> &[Drop] {
        let batches = &self.drops.batches;
        &batches[(turn % batches.len() as u64) as usize]
    }

    pub fn new_ids(&self, count: usize) -> Vec<u64> {
        let mut ids = self.ids.borrow_mut();
        (0..count).map(|_| ids.take()).collect()
    }

    pub fn count(&self, events: usize) -> u64 {
        self.counted.set(self.counted.get() + events as u64);
        events as u64
    }

    /// The daily totals of the store grew by what was written.
    pub fn check(&self, system: &str, before: i64, after: i64) -> Result<()> {
        ensure!(
            after - before == self.counted.get() as i64,
            "{system} counts {} more than before, written were {}",
            after - before,
            self.counted.get()
        );
        Ok(())
    }
}

/// What a batch adds to each bucket, in the order of the index, so that concurrent writers lock rows in one order.
pub fn aggregate<'a>(drops: impl Iterator<Item = &'a Drop>) -> Vec<Bucket> {
    let mut cells: Vec<(u32, Granularity, i64)> = Vec::new();
    for drop in drops {
        for granularity in Granularity::ALL {
            cells.push((drop.city, granularity, plan::floor(drop.time_s, granularity.width_s())));
        }
    }
    cells.sort_unstable();
    cells
        .chunk_by(|left, right| left == right)
        .map(|chunk| {
            let (city, granularity, time_s) = chunk[0];
            Bucket { city, granularity, time_s, count: chunk.len() as i64 }
        })
        .collect()
}

/// Live drops fall into this day or later.
pub fn live_from_day_s(workload: &Workload) -> i64 {
    plan::floor(workload.end_s - DAY_S, DAY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_adds_each_drop_once_to_every_granularity() {
        let drops = Drops::new(30, 1_000, 4, 1_795_000_000);
        let buckets = aggregate(drops.batches[0].iter());
        for granularity in Granularity::ALL {
            let of_granularity = buckets.iter().filter(|bucket| bucket.granularity == granularity);
            assert_eq!(of_granularity.map(|bucket| bucket.count).sum::<i64>(), 1_000);
        }
        assert!(buckets.is_sorted_by_key(|bucket| (bucket.city, bucket.granularity, bucket.time_s)));
    }
}
