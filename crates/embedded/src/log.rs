//! The event log in segment files, with group commit and a window of known identities.

mod acknowledged;
mod appender;
mod known;
mod run;
mod segment;
mod segments;

use crate::room::Room;
use acknowledged::Acknowledged;
use appender::{Appender, Request};
use known::Known;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Appended, Batch, Block, Error, EventLog, EventSink, Offset, Partition};
use segments::Segments;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How the log is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// A segment that has grown beyond this is followed by a new one.
    pub segment_bytes: u64,
    /// Segments whose events are all older than this are removed.
    pub retention_ms: i64,
    /// The oldest segments are removed when the log has more bytes than this.
    pub retention_bytes: u64,
    /// Most bytes that wait to be written; whoever comes then is told to come back.
    pub queue_bytes_max: usize,
    /// How long `source` and `id` of an event are remembered, at least.
    pub dedupe_window_ms: i64,
    /// Most identities that are remembered; the oldest are forgotten early, with a warning.
    pub dedupe_ids_max: usize,
    /// Free bytes of the disk below which no events are taken.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            retention_ms: 7 * 86_400_000,
            retention_bytes: 64 << 30,
            queue_bytes_max: 64 << 20,
            dedupe_window_ms: 86_400_000,
            dedupe_ids_max: 64_000_000,
            reserve_bytes: 256 << 20,
        }
    }
}

/// The log of one data folder. One program has it open at a time.
pub struct SegmentLog {
    segments: Arc<Segments>,
    appender: Appender,
    clock: Arc<dyn Clock>,
    room: Room,
    options: Options,
}

impl SegmentLog {
    /// Opens the log in `folder`, or begins one. A tail that was never acknowledged is cut off;
    /// damage to anything that was acknowledged is an error.
    pub fn open(folder: &Path, options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let acknowledged = Acknowledged::open(folder)?;
        let segments = Arc::new(Segments::open(folder, options.segment_bytes)?);
        acknowledged.check(segments.end())?;
        let mut known = Known::open(folder, &options)?;
        known.learn(&segments, clock.now_ms())?;
        let appender = Appender::start(Arc::clone(&segments), known, acknowledged, Arc::clone(&clock), &options)?;
        let room = Room::new(folder, options.reserve_bytes);
        Ok(Self { segments, appender, clock, room, options })
    }
}

impl EventSink for SegmentLog {
    fn partitions(&self) -> Partition {
        1
    }

    fn check(&self) -> Result<(), Error> {
        self.appender.check()?;
        self.room.check()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>> {
        let answer = self.appender.send(Request::Events(batch));
        Box::pin(async move { answer?.await.map_err(|_| closed())? })
    }

    fn append_control(&self, _partition: Partition, payload: Vec<u8>) -> BoxFuture<'_, Result<Offset, Error>> {
        let answer = self.appender.send(Request::Control(payload));
        Box::pin(async move { answer?.await.map_err(|_| closed())?.map(|appended| appended.ends[0].1) })
    }
}

impl EventLog for SegmentLog {
    fn partition(&self) -> Partition {
        0
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.segments.read(from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.segments.start()
    }

    fn start_ms(&self) -> i64 {
        self.segments.start_ms()
    }

    fn begin_since(&self, appended_ms: i64) -> Offset {
        self.segments.base_since(appended_ms)
    }

    fn end(&self) -> Offset {
        self.segments.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.segments.wait_beyond(offset, timeout)
    }

    fn trim(&self, applied_to: Offset) -> Result<(), Error> {
        // An identity is needed while its window lasts, from its run or, until that is written, from the log.
        let now_ms = self.clock.now_ms();
        let forgotten_to = self.segments.base_since(now_ms - self.options.dedupe_window_ms);
        let keep_from = applied_to.min(self.appender.remembered_to().max(forgotten_to));
        let oldest_ms = now_ms - self.options.retention_ms;
        self.segments.trim(keep_from, oldest_ms, self.options.retention_bytes)
    }
}

fn closed() -> Error {
    Error::Closed("its writer has stopped; restart raingauge".to_owned())
}

#[cfg(test)]
mod tests;
