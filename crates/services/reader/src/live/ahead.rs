//! Reading tiles before they are needed, so that the turn of a day causes no burst of reads.
//!
//! When the ends of a range that ends now pass midnight, it needs the tiles of other days. Without
//! preparation, all keys would read them at once. Instead, each key has a phase of up to six hours:
//! when a range that is answered from memory will need other tiles within that time, they are read
//! in the background. From then on they follow the stream as all others do.

use super::shard::{Shard, Token};
use parking_lot::Mutex;
use raingauge_core::bucket::{DAY_S, HOUR_S};
use raingauge_core::plan::Plan;
use raingauge_core::tile::id::{self, TileId};
use tokio::sync::mpsc;

/// The longest phase of a key.
const PHASE_S: i64 = 6 * HOUR_S;
/// Most keys that wait for their tiles. Later ones are tried again with their next count.
const WAITING_MAX: usize = 1_024;

/// Tiles of a key that are to be read, with the placeholders that wait for them.
pub struct Order {
    pub key: String,
    pub placeholders: Vec<(TileId, Token)>,
}

/// The queue of tiles that are to be read ahead.
pub struct Ahead {
    orders: mpsc::Sender<Order>,
    /// Until the task that reads takes it.
    waiting: Mutex<Option<mpsc::Receiver<Order>>>,
    tiles: metrics::Counter,
}

impl Default for Ahead {
    fn default() -> Self {
        let (orders, waiting) = mpsc::channel(WAITING_MAX);
        let tiles = metrics::counter!("raingauge_live_tiles_ahead_total");
        Self { orders, waiting: Mutex::new(Some(waiting)), tiles }
    }
}

impl Ahead {
    pub fn is_empty(&self) -> bool {
        self.orders.capacity() == WAITING_MAX
    }

    /// The orders, for the one task that reads them. `None` when a task has taken them.
    pub fn take(&self) -> Option<mpsc::Receiver<Order>> {
        self.waiting.lock().take()
    }

    /// Orders what a range will need soon, if it moves with the time.
    pub fn order(&self, shard: &Mutex<Shard>, key: &str, hash: u64, plan: &Plan, now_s: i64) {
        if plan.to_s < now_s - HOUR_S {
            return;
        }
        let phase_s = phase_s(hash);
        let Ok(soon) = Plan::new(plan.from_s + phase_s, plan.to_s + phase_s) else {
            return;
        };
        let Ok(place) = self.orders.try_reserve() else {
            return;
        };

        let placeholders = shard.lock().ahead(key, &id::of_plan(&soon));
        if !placeholders.is_empty() {
            self.tiles.increment(placeholders.len() as u64);
            place.send(Order { key: key.to_owned(), placeholders });
        }
    }
}

/// Whether an end of the range lies on another day by the phase of its key.
pub fn moves_on(plan: &Plan, hash: u64) -> bool {
    let phase_s = phase_s(hash);
    let moves = |time_s: i64| (time_s + phase_s) / DAY_S != time_s / DAY_S;
    moves(plan.from_s) || moves(plan.to_s)
}

fn phase_s(hash: u64) -> i64 {
    (hash % PHASE_S as u64) as i64
}
