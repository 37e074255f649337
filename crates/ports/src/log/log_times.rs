//! The log by the times at which its entries were appended.

use super::{Error, Needs, Offset};

/// One partition of the log by time: what is kept of it, and since when.
pub trait LogTimes: Send + Sync {
    /// Looks whether what lies before `position` is what was counted, as far as times tell: none of
    /// it was appended later than `appended_ms`, in milliseconds since 1970. Blocks the thread.
    fn verify(&self, _position: Offset, _appended_ms: i64) -> Result<(), Error> {
        Ok(())
    }

    /// When the first entry that is kept was appended, in milliseconds since 1970; 0 while nothing
    /// was ever trimmed: every event that was accepted later than this is still in the log.
    fn start_ms(&self) -> i64;

    /// An offset before which everything was appended earlier than this, in milliseconds since
    /// 1970: a search for what came in since may begin there, or at the start when that is later.
    /// Blocks the thread.
    fn begin_since(&self, _appended_ms: i64) -> Offset {
        0
    }

    /// When the entry at an offset, or the first one behind it, was appended, in milliseconds since
    /// 1970; `None` when that is not known. Blocks the thread.
    fn appended_ms(&self, _offset: Offset) -> Option<i64> {
        None
    }

    /// Trims what is older than the retention and not needed. Blocks the thread.
    fn trim(&self, needs: Needs) -> Result<(), Error>;
}
