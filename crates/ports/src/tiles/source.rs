//! Tiles as the store has them.

use super::Part;
use crate::BoxFuture;
use crate::buckets::Error;
use raingauge_core::tile::id::TileId;

/// Where tiles are read from.
///
/// No contract suite: one adapter has it, whose tests compare tiles with the cells of the same
/// store.
pub trait TileSource: Send + Sync {
    /// All parts of these tiles of a key that there are.
    fn tiles(&self, key: String, ids: Vec<TileId>) -> BoxFuture<'_, Result<Vec<Part>, Error>>;
}
