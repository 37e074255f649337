//! Writes events straight into the log of this process.

use super::super::session::OwnServer;
use raingauge_core::event::Event;
use raingauge_import::{Receipt, RejectedEvent, Sink};
use raingauge_writer::ingest::{self, Intake};

/// Batches in flight: one is written while another one is filled, and one waits.
const SENDERS: usize = 3;
/// Bytes of the log's queue that [`SENDERS`] batches may need. A smaller queue gets a batch at a
/// time, which always fits.
const QUEUE_BYTES: u64 = 64 << 20;

pub struct Local<'a> {
    own: &'a OwnServer,
}

impl<'a> Local<'a> {
    pub fn new(own: &'a OwnServer) -> Self {
        Self { own }
    }

    /// Waits until everything in the log is counted.
    pub fn wait(&self) -> anyhow::Result<()> {
        let counted = &self.own.app().counted;
        let applied = self
            .own
            .runtime
            .block_on(counted.published.wait_applied(&[(0, counted.logs[0].end())]));
        applied.map_err(|reason| anyhow::anyhow!("counting has stopped: {reason}"))
    }
}

impl Sink for Local<'_> {
    type Payload = Intake;

    fn senders(&self) -> usize {
        if self.own.queue_bytes_max < QUEUE_BYTES { 1 } else { SENDERS }
    }

    fn begin(&self) -> anyhow::Result<Intake> {
        loop {
            match self.own.app().ingest.begin() {
                Err(ingest::Error::Lagging { retry_after, .. }) => std::thread::sleep(retry_after),
                result => return Ok(result?),
            }
        }
    }

    fn push(&self, payload: &mut Intake, event: Event<'_>) -> anyhow::Result<()> {
        Ok(payload.push(Ok(event))?)
    }

    fn send(&self, payload: Intake) -> anyhow::Result<Receipt> {
        let ingest = &self.own.app().ingest;
        let receipt = self.own.runtime.block_on(ingest.finish(payload, false))?;
        let refused = |refused: ingest::RejectedEvent| RejectedEvent {
            index: refused.index,
            code: refused.refusal.code.as_str().to_owned(),
            detail: refused.refusal.detail,
        };
        Ok(Receipt {
            accepted: receipt.accepted as u64,
            duplicates: receipt.duplicates as u64,
            rejected: receipt.rejected.into_iter().map(refused).collect(),
        })
    }

    fn wait_applied(&self, _: Option<Vec<u8>>) -> anyhow::Result<bool> {
        self.wait().map(|()| true)
    }

    fn last_event(_: &Intake) -> Option<Vec<u8>> {
        None
    }
}
