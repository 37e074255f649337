//! The log by the append times of its entries, and what else is known without reading them.

use super::{Error, Needs, Offset};

/// One partition of the log without its entries: its start, lookups by append time, and where there
/// are only events.
pub trait LogTimes: Send + Sync {
    /// Checks, as far as times can tell, that the log before `position` is the one that was
    /// counted: no entry there may have been appended later than `appended_ms`, in milliseconds
    /// since 1970. Blocks the thread.
    fn verify(&self, _position: Offset, _appended_ms: i64) -> Result<(), Error> {
        Ok(())
    }

    /// When the first entry still in the log was appended, in milliseconds since 1970; 0 if nothing
    /// was ever trimmed. Every event accepted later than this is still in the log.
    fn start_ms(&self) -> i64;

    /// Returns an offset before which everything was appended before this time, in milliseconds
    /// since 1970. A search for later entries may begin there, or at the start if that is higher.
    /// Blocks the thread.
    fn begin_since(&self, _appended_ms: i64) -> Offset {
        0
    }

    /// Returns when the entry at an offset, or the first one behind it, was appended, in
    /// milliseconds since 1970; `None` if unknown. Blocks the thread.
    fn appended_ms(&self, _offset: Offset) -> Option<i64> {
        None
    }

    /// Returns an offset up to which there are only events from this one on, so that a consumer
    /// that wants none may pass over them; the same offset if that is not known.
    fn events_until(&self, from: Offset) -> Offset {
        from
    }

    /// Removes entries that are older than the retention and not needed. Blocks the thread.
    fn trim(&self, needs: Needs) -> Result<(), Error>;
}
