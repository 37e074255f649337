//! Options of the bucket store.

use raingauge_settings::settings;

/// Tables that are kept open when the limit of open files is unknown.
const OPEN_FILES_MAX: usize = 256;

settings! {
    /// Options of the store.
    pub struct Options in "storage" {
        /// Memory for decoded tiles of active keys.
        cache_bytes as "tile_cache_bytes": usize = bytes(256 * MIB, MIB..=TIB);
        /// Memory for blocks of the storage engine.
        block_cache_bytes: u64 = bytes(64 * MIB, MIB..=TIB);
    } with {
        /// Most table files that fjall keeps open.
        open_files_max: usize = OPEN_FILES_MAX;
    }
}

impl Options {
    /// An eighth of the cache, within the limits that keep fjall fast.
    pub fn memtable_bytes(&self) -> u64 {
        (self.cache_bytes as u64 / 8).clamp(4 << 20, 64 << 20)
    }
}
