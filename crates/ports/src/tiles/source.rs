//! Tiles in the store.

use super::Part;
use crate::buckets::Answer;
use raingauge_core::tile::id::TileId;

/// Where tiles are read from.
///
/// No contract suite: there is one adapter, whose tests compare tiles with the cells of the same
/// store.
pub trait TileSource: Send + Sync {
    /// Returns all existing parts of these tiles of a key.
    fn tiles(&self, key: String, ids: Vec<TileId>) -> Answer<'_, Vec<Part>>;
}
