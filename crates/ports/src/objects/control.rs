//! The store as its operators use it.

use super::Error;
use crate::BoxFuture;

/// When the log is synced without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// With every group, as soon as it is submitted.
    #[default]
    Always,
    /// Within a second.
    EverySecond,
    /// When the kernel does.
    No,
}

impl SyncMode {
    const ALL: [SyncMode; 3] = [SyncMode::Always, SyncMode::EverySecond, SyncMode::No];
    /// The names of all modes, as `objects.sync` and `appendfsync` have them; the default first.
    pub const NAMES: &'static [&'static str] = &["always", "everysec", "no"];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The smallest number that no wide object has had.
    pub next_id: u64,
    /// Heads of all databases, about.
    pub keys: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes in memory that wait for a checkpoint.
    pub pending_bytes: u64,
    /// Bytes of memory that such changes may take beside those of the store.
    pub lent_bytes: u64,
    /// Bytes on disk, without the log.
    pub disk_bytes: u64,
    /// Killed wide objects whose entries still take room.
    pub dead_ids: u64,
    pub checkpoints: u64,
    /// How long the last checkpoint took, in milliseconds.
    pub checkpoint_ms: u64,
    /// When the last checkpoint was completed, in seconds since 1970; 0 before the first.
    pub checkpoint_s: i64,
    /// Syncs of the log since the start.
    pub syncs: u64,
    /// Why the store takes no more groups.
    pub closed: Option<String>,
}

/// The controls of a store.
pub trait ObjectControl: Send + Sync {
    fn status(&self) -> Status;

    fn sync_mode(&self) -> SyncMode;

    /// Changes the mode, from the next group on.
    fn set_sync_mode(&self, mode: SyncMode);

    /// Lets changes that wait for a checkpoint take memory that objects leave free for now. The
    /// next call says how much it is then.
    fn lend(&self, bytes: usize);

    /// Writes what changed since the last checkpoint to its place, and shortens the log.
    fn checkpoint(&self) -> BoxFuture<'_, Result<(), Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_name() {
        assert_eq!(SyncMode::NAMES[0], SyncMode::default().name());
        for (name, mode) in SyncMode::NAMES.iter().zip(SyncMode::ALL) {
            assert_eq!((mode.name(), SyncMode::from_name(name)), (*name, Some(mode)));
        }
        assert_eq!(SyncMode::from_name("ALWAYS"), None);
    }
}
