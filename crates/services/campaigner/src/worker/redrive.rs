//! Events whose steps are decided again.

use super::Worker;
use crate::batch::Batch;
use crate::error::Error;
use crate::orders::RefusedStep;
use crate::timer::StoredEvent;
use crate::turn::RefusedEvent;
use raingauge_ports::log::Offset;
use raingauge_ports::record::Entry;

impl Worker {
    /// The steps that a batch wants decided again, with their events. Those whose events the log no
    /// longer has are left out.
    pub(super) fn refused_events(&self, batch: &Batch<'_>) -> Result<Vec<RefusedEvent>, Error> {
        let mut found = Vec::new();
        for RefusedStep { campaign, step, offset } in batch.redriven() {
            if let Some(event) = self.event_at(*offset)? {
                found.push(RefusedEvent { campaign: *campaign, step: step.clone(), event });
            }
        }
        Ok(found)
    }

    fn event_at(&self, offset: Offset) -> Result<Option<StoredEvent>, Error> {
        let log = &*self.deps.log;
        if offset < log.start() || offset >= self.checkpoint.position {
            return Ok(None);
        }
        let blocks = log.read_behind(offset, 1)?;
        let Some(entry) = blocks.iter().flat_map(|block| block.entries(offset)).next() else {
            return Ok(None);
        };
        match entry? {
            (found, Entry::Event(event)) if found == offset => {
                Ok(Some(StoredEvent { offset: Some(offset), ..StoredEvent::of(&event) }))
            }
            _ => Ok(None),
        }
    }
}
