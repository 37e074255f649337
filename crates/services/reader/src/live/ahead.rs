//! Reading tiles before they are needed, so that the turn of a day is no boundary either.
//!
//! A range that ends now needs the tiles of other days when its ends pass midnight: all keys at once, if they were read then.
//! Each key has a phase instead, up to six hours: when a range that is answered from memory would need other tiles so much
//! later, they are read in the background. From then on they follow the stream as all others do.

use super::LiveTiles;
use super::shard::Token;
use parking_lot::Mutex;
use raingauge_core::bucket::{DAY_S, HOUR_S};
use raingauge_core::plan::Plan;
use raingauge_core::tile::id::{self, TileId};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The longest phase of a key.
const PHASE_S: i64 = 6 * HOUR_S;
/// Keys that wait for their tiles; what comes then is tried again when it is next asked for.
const WAITING_MAX: usize = 1_024;

/// Tiles of a key, with the placeholders that were put down for them.
struct Order {
    key: String,
    placeholders: Vec<(TileId, Token)>,
}

pub struct Ahead {
    orders: mpsc::Sender<Order>,
    /// Until somebody reads them.
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

fn phase_s(hash: u64) -> i64 {
    (hash % PHASE_S as u64) as i64
}

/// Whether an end of the range lies on another day by the phase of its key.
pub fn moves_on(plan: &Plan, hash: u64) -> bool {
    let phase_s = phase_s(hash);
    let moves = |time_s: i64| (time_s + phase_s) / DAY_S != time_s / DAY_S;
    moves(plan.from_s) || moves(plan.to_s)
}

impl LiveTiles {
    /// Whether tiles are to be read ahead that have not been taken up.
    pub fn has_orders(&self) -> bool {
        self.ahead.orders.capacity() < WAITING_MAX
    }

    /// Orders what a range will need soon, if it moves with the time.
    pub(super) fn order_ahead(&self, key: &str, hash: u64, plan: &Plan) {
        let phase_s = phase_s(hash);
        if plan.to_s < self.clock.now_s() - HOUR_S {
            return;
        }
        let (Ok(soon), Ok(place)) = (
            Plan::new(plan.from_s + phase_s, plan.to_s + phase_s),
            self.ahead.orders.try_reserve(),
        ) else {
            return;
        };
        let placeholders = self.shard_of(hash).lock().ahead(key, &id::of_plan(&soon));
        if !placeholders.is_empty() {
            self.ahead.tiles.increment(placeholders.len() as u64);
            place.send(Order { key: key.to_owned(), placeholders });
        }
    }
}

/// Reads what was ordered, key by key, for as long as it is polled. One reader for each [`LiveTiles`].
pub async fn read_ahead(live: Arc<LiveTiles>) {
    let Some(mut orders) = live.ahead.waiting.lock().take() else {
        return;
    };
    while let Some(Order { key, placeholders }) = orders.recv().await {
        let ids = placeholders.iter().map(|(id, _)| *id).collect();
        // What cannot be read now is read when it is asked for.
        if let Ok(parts) = live.source.tiles(key.clone(), ids).await {
            live.shard(&key).lock().fill(&key, &placeholders, &parts);
        }
    }
}
