//! raingauge beside the systems that one might count with instead: the same events and the same
//! questions in one run, each used as its own documentation recommends, and each checked for right
//! answers before it is measured.
//!
//! ```text
//!   run ──▶ servers: scripts/peers starts one at a time ──▶ peer: load │ settle │ total
//!    │                                                       client: ask │ write  ◀── drive: closed │ open loop
//!    └────▶ report: JSON, tables ──▶ figure: SVG, PNG
//! ```
//!
//! Systems that keep buckets (Redis, PostgreSQL, SQLite, Cassandra) have them by key, granularity
//! and time, written by batches that are added up first and read by the plan of [`crate::plan`];
//! the others get every event. Events are values in memory here, put into each system's own form as
//! they are sent; raingauge has to parse them as JSON.

pub mod cassandra;
pub mod clickhouse;
pub mod client;
pub mod drive;
pub mod duckdb;
pub mod embedded;
pub mod figure;
pub mod http;
pub mod postgres;
pub mod questdb;
pub mod question;
pub mod raingauge;
pub mod redis;
pub mod report;
pub mod resp;
pub mod run;
pub mod servers;
pub mod sqlite;
pub mod victoriametrics;

use crate::events::{Drop, Drops, Ids, Rendered};
use crate::plan::{self, DAY_S, Granularity};
use crate::workload::{Bucket, Workload};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What the writers of one measurement share. `counted` is what the store must hold more of
/// afterwards.
pub struct Writes {
    pub drops: Rc<Drops>,
    pub dedupe: bool,
    ids: RefCell<Ids>,
    counted: Cell<u64>,
}

impl Writes {
    pub fn new(drops: Rc<Drops>, dedupe: bool) -> Rc<Self> {
        Rc::new(Self {
            drops,
            dedupe,
            ids: RefCell::new(Ids::new(rand::random())),
            counted: Cell::new(0),
        })
    }

    pub fn batch(&self, turn: u64) -> &[Drop] {
        let batches = &self.drops.batches;
        &batches[(turn % batches.len() as u64) as usize]
    }

    pub fn new_ids(&self, count: usize) -> Vec<u64> {
        let mut ids = self.ids.borrow_mut();
        (0..count).map(|_| ids.take()).collect()
    }

    /// Makes every event of a body a new one.
    pub fn renew(&self, body: &mut Rendered) {
        body.renew(&mut self.ids.borrow_mut());
    }

    pub fn count(&self, events: u64) {
        self.counted.set(self.counted.get() + events);
    }

    pub fn counted(&self) -> u64 {
        self.counted.get()
    }
}

/// What a batch adds to each bucket, in the order of the index, so that concurrent writers lock
/// rows in one order.
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
        assert!(buckets.is_sorted_by_key(|bucket| (
            bucket.city,
            bucket.granularity,
            bucket.time_s
        )));
    }
}
