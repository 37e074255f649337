//! Options of the object store.

use raingauge_ports::objects::SyncMode;
use std::time::Duration;

/// Options of the objects of a data folder.
#[derive(Clone, Debug)]
pub struct Options {
    /// When the log is synced without being asked.
    pub sync_mode: SyncMode,
    /// Memory of the whole door, of which the store takes parts.
    pub memory_bytes: usize,
    /// Longest time from a group to the checkpoint that includes it.
    pub checkpoint_interval: Duration,
    /// Bytes of the log for which a checkpoint is due: a start reads them again, and as many more
    /// that came while the checkpoint was written.
    pub log_bytes: usize,
    /// Size at which the log begins a new segment file. At most 1 GiB. A start reads the whole last
    /// segment, however little of it lies behind the last checkpoint.
    pub segment_bytes: u64,
    /// Size from which fjall keeps values apart from its tables.
    pub separate_bytes: u32,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
    /// Size from which a checkpoint becomes tables of its own; `None` for that of a memory table.
    pub tables_bytes: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync_mode: SyncMode::Always,
            memory_bytes: 256 << 20,
            checkpoint_interval: Duration::from_secs(10),
            log_bytes: 256 << 20,
            segment_bytes: 16 << 20,
            separate_bytes: 4 << 10,
            open_files_max: 500,
            reserve_bytes: 0,
            tables_bytes: None,
        }
    }
}

impl Options {
    /// Bytes of fjall's own cache of blocks: a quarter of the memory.
    pub fn block_cache_bytes(&self) -> u64 {
        self.memory_bytes as u64 / 4
    }

    /// Bytes of records that fjall holds before it writes a table. Large checkpoints do not pass
    /// through them.
    pub fn memtable_bytes(&self) -> u64 {
        (self.memory_bytes as u64 / 32).clamp(4 << 20, 16 << 20)
    }

    /// Bytes of changes from which a checkpoint becomes tables of its own. Smaller ones gather in
    /// fjall's memory first: many small tables would be merged again and again.
    pub fn tables_bytes(&self) -> usize {
        self.tables_bytes.unwrap_or(self.memtable_bytes() as usize)
    }

    /// Bytes of memory, held by changes alone, for which a checkpoint is due. Those whose buffers
    /// objects in memory have cost nothing. While it is written, as many again may gather: together
    /// a third of the memory.
    pub fn layer_bytes(&self) -> usize {
        (self.memory_bytes / 6).clamp(1 << 20, 64 << 20)
    }
    /// Bytes of heads that a checkpoint in tables writes together. Their memory is free afterwards,
    /// and each piece is a table of its own, which has to be merged.
    pub fn piece_bytes(&self) -> usize {
        (self.layer_bytes() * 2).min(32 << 20)
    }
}
