//! Compares raingauge with alternative systems: the same events and questions in one run, each
//! system used as its own documentation recommends, and each verified for correct answers before it
//! is measured.
//!
//! ```text
//!   run ──▶ servers: scripts/peers starts one at a time ──▶ peer: load │ settle │ total
//!    │                       drive: closed │ open loop ──▶ client: ask │ write
//!    └────▶ report: JSON, tables ──▶ figure: SVG, PNG
//! ```
//!
//! Systems that keep buckets (Redis, PostgreSQL, SQLite, Cassandra) store them by key, granularity
//! and time, are written in batches that the client aggregates first, and are read by the plan of
//! [`crate::plan`]; the others receive every event. Events are values in memory here, converted
//! into each system's own format as they are sent; raingauge has to parse them as JSON.

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

use crate::events::{Drop, Drops, Ids, RenderedBody};
use crate::plan::{self, DAY_S, Granularity};
use crate::workload::{Bucket, Workload};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// State shared by the writers of one measurement. `counted` is the expected growth of the stored
/// total.
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

    /// Gives every event of a body a new id.
    pub fn renew(&self, body: &mut RenderedBody) {
        body.renew(&mut self.ids.borrow_mut());
    }

    pub fn count(&self, events: u64) {
        self.counted.set(self.counted.get() + events);
    }

    pub fn counted(&self) -> u64 {
        self.counted.get()
    }
}

/// Aggregates a batch into increments per bucket, in index order, so that concurrent writers lock
/// rows in the same order.
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

/// The first day that live drops may fall into.
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
