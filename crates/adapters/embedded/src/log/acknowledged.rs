//! The mark of how far the log was acknowledged.
//!
//! The mark is written after a block is durable and before its events are acknowledged. A log that
//! ends before its mark has lost acknowledged events, and is refused.

use super::note::Note;
use crate::files::Folder;
use raingauge_ports::log::{Error, Offset};
use std::sync::Arc;

const FILE_NAME: &str = "acknowledged";

pub struct Acknowledged(Note);

impl Acknowledged {
    /// Reads the mark.
    pub fn read(folder: Arc<dyn Folder>) -> Result<Self, Error> {
        Ok(Self(Note::read(folder, FILE_NAME)?))
    }

    /// Refuses a log that ends at `end`, before its acknowledged end.
    pub fn check(&self, end: Offset) -> Result<(), Error> {
        let mark = self.offset();
        if end >= mark {
            return Ok(());
        }
        Err(Error::Corrupt(format!(
            "it ends at offset {end}, but offsets up to {mark} were acknowledged: the last {} event(s) are missing",
            mark - end,
        )))
    }

    pub fn offset(&self) -> Offset {
        self.0.number()
    }

    /// Writes the mark. If that fails the old one stays, which covers less and is never wrong.
    pub fn note(&mut self, offset: Offset) {
        if let Err(error) = self.0.write(offset) {
            tracing::warn!(%error, "how far the log was acknowledged could not be noted");
        }
    }
}
