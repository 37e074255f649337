//! The event log in memory.

use parking_lot::{Condvar, Mutex};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{
    Answer, Appended, Batch, Block, Error, EventLog, EventSink, LogTimes, Needs, Offset, Partition,
};
use raingauge_ports::record::{self, Identity};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keeps every block and every identity forever.
#[derive(Default)]
pub struct Log {
    inner: Mutex<Inner>,
    grown: Condvar,
    /// `None` dates every entry to 1970.
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Debug, Default)]
struct Inner {
    blocks: Vec<Block>,
    known: HashSet<Identity>,
    end: Offset,
    /// Behind the last control entry.
    events_from: Offset,
}

impl Log {
    /// A log whose blocks carry the time of this clock.
    pub fn dated(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    fn push(&self, bytes: Vec<u8>, len: u64) -> Offset {
        let appended_ms = self.clock.as_ref().map_or(0, |clock| clock.now_ms());
        let mut inner = self.inner.lock();
        if len > 0 {
            let base = inner.end;
            inner.blocks.push(Block { base, appended_ms, len, bytes });
            inner.end += len;
        }
        self.grown.notify_all();
        inner.end
    }
}

impl EventSink for Log {
    fn partitions(&self) -> Partition {
        1
    }

    fn append(&self, batch: Batch) -> Answer<'_, Appended> {
        let mut bytes = Vec::new();
        let mut accepted = 0;
        let mut begin = 0;

        for (end, identity) in &batch.entries {
            if self.inner.lock().known.insert(*identity) {
                bytes.extend_from_slice(&batch.bytes[begin..*end]);
                accepted += 1;
            }
            begin = *end;
        }

        let end = self.push(bytes, accepted as u64);
        Box::pin(async move {
            Ok(Appended { accepted, duplicates: batch.len() - accepted, ends: vec![(0, end)] })
        })
    }

    fn append_control(&self, _: Partition, payload: Vec<u8>) -> Answer<'_, Offset> {
        let mut bytes = Vec::new();
        record::push_control(&payload, &mut bytes);
        // A reader that sees it already does not pass over it.
        self.inner.lock().events_from = Offset::MAX;
        let end = self.push(bytes, 1);
        self.inner.lock().events_from = end;
        Box::pin(async move { Ok(end) })
    }
}

impl EventLog for Log {
    fn partition(&self) -> Partition {
        0
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        let inner = self.inner.lock();
        let mut bytes = 0;
        let wanted = inner.blocks.iter().filter(|block| block.end() > from).take_while(|block| {
            let wanted = bytes == 0 || bytes + block.bytes.len() <= bytes_max;
            bytes += block.bytes.len();
            wanted
        });
        Ok(wanted.cloned().collect())
    }

    fn start(&self) -> Offset {
        0
    }

    fn end(&self) -> Offset {
        self.inner.lock().end
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        let deadline = Instant::now() + timeout;
        let mut inner = self.inner.lock();
        while inner.end <= offset && !self.grown.wait_until(&mut inner, deadline).timed_out() {}
        inner.end
    }
}

impl LogTimes for Log {
    fn start_ms(&self) -> i64 {
        0
    }

    fn events_until(&self, from: Offset) -> Offset {
        let inner = self.inner.lock();
        if from >= inner.events_from { inner.end } else { from }
    }

    fn trim(&self, _needs: Needs) -> Result<(), Error> {
        Ok(())
    }
}
