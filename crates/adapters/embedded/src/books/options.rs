//! Options of the books.

use super::pending::Limits;

/// Most entries whose effects are in memory alone: about a second of a start.
const PENDING_ENTRIES: usize = 128_000;
/// Fewest bytes of them. Smaller tables would be merged too often.
const PENDING_BYTES_MIN: usize = 16 << 20;

/// Options of the books of a data folder.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size at which the journal begins a new segment file. At most 1 GiB.
    pub segment_bytes: u64,
    /// Bytes of wallets in memory.
    pub cache_bytes: usize,
    /// Most entries whose effects are in memory and not yet in tables. A start applies them again.
    pub pending_entries: usize,
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
}

impl Options {
    /// What may be pending: entries as given, in at most a quarter of the cache.
    pub(super) fn pending(&self) -> Limits {
        Limits {
            entries: self.pending_entries,
            bytes: (self.cache_bytes / 4).max(PENDING_BYTES_MIN),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            cache_bytes: 256 << 20,
            pending_entries: PENDING_ENTRIES,
            block_cache_bytes: 64 << 20,
            open_files_max: 500,
            reserve_bytes: 0,
        }
    }
}
