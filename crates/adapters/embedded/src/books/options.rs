//! Options of the books.

/// Options of the books of a data folder.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size at which the journal begins a new segment file. At most 1 GiB.
    pub segment_bytes: u64,
    /// Bytes of wallets in memory.
    pub cache_bytes: usize,
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
}

impl Options {
    /// Half of the cache, within the limits that keep fjall fast: each award writes three records
    /// at random places, and fewer and larger tables are merged less often.
    pub(super) fn memtable_bytes(&self) -> u64 {
        (self.cache_bytes as u64 / 2).clamp(4 << 20, 64 << 20)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            cache_bytes: 256 << 20,
            block_cache_bytes: 64 << 20,
            open_files_max: 500,
            reserve_bytes: 0,
        }
    }
}
