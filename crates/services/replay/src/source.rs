//! The events of a replay: those of the log, or lines that a caller sends.

use crate::Error;
use crate::progress::Progress;
use raingauge_core::event::Event;
use raingauge_core::limits::EVENT_LEN_MAX;
use raingauge_ports::log::{self, Block, EventLog, Offset};
use raingauge_ports::record::Entry;
use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes per read of the log.
const READ_BYTES: usize = 4 << 20;
/// How long a log that has more entries may return none, and the pause before it is asked again.
const SILENCE_MAX: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);
/// Lines after which a replay of a caller's events looks whether it is to stop.
const LINES_PER_STEP: u64 = 256;

/// Events that a caller sends, as lines of JSON.
pub type Lines = Box<dyn BufRead + Send>;

/// An entry of the stream, with its place.
pub struct Step<'a> {
    pub offset: Offset,
    /// When it was appended, in milliseconds since 1970. Never goes back.
    pub appended_ms: i64,
    pub entry: Entry<'a>,
}

/// The part of a log to read.
#[derive(Clone)]
pub struct Span {
    pub log: Arc<dyn EventLog>,
    pub from: Offset,
    pub to: Offset,
}

impl Span {
    /// What was appended from a time on, up to the end as it is now; all of it for `i64::MIN`.
    pub fn since(log: &Arc<dyn EventLog>, since_ms: i64) -> Self {
        let begin = if since_ms == i64::MIN { 0 } else { log.begin_since(since_ms) };
        Self { from: begin.max(log.start()), to: log.end(), log: Arc::clone(log) }
    }

    pub fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Visits the entries of several partitions in the order in which they were appended. Ends early
/// where `visit` answers `false`. Blocks the thread.
pub fn walk(
    spans: Vec<Span>,
    progress: &Progress,
    mut visit: impl FnMut(Step<'_>) -> Result<bool, Error>,
) -> Result<(), Error> {
    progress.begin(spans.iter().map(Span::len).sum());
    let mut cursors: Vec<Cursor> = spans.into_iter().map(Cursor::new).collect();
    let mut appended_ms = i64::MIN;
    loop {
        let mut earliest: Option<(i64, usize)> = None;
        for (place, cursor) in cursors.iter_mut().enumerate() {
            if let Some(block) = cursor.head(progress)? {
                let candidate = (block.appended_ms, place);
                earliest = Some(earliest.map_or(candidate, |found| found.min(candidate)));
            }
        }
        let Some((_, place)) = earliest else { return Ok(()) };

        let cursor = &mut cursors[place];
        let (from, to) = (cursor.first, cursor.span.to);
        let Some(block) = cursor.blocks.pop_front() else { continue };
        appended_ms = appended_ms.max(block.appended_ms);
        let mut entries = 0;
        for entry in block.entries(from) {
            let (offset, entry) = entry?;
            if offset >= to {
                break;
            }
            entries += 1;
            if !visit(Step { offset, appended_ms, entry })? {
                return Ok(());
            }
        }
        progress.step(entries)?;
    }
}

/// Reads one partition.
struct Cursor {
    span: Span,
    /// The first entry that is visited.
    first: Offset,
    next: Offset,
    blocks: VecDeque<Block>,
}

impl Cursor {
    fn new(span: Span) -> Self {
        Self { first: span.from, next: span.from, blocks: VecDeque::new(), span }
    }

    /// The next block; `None` at the end.
    fn head(&mut self, progress: &Progress) -> Result<Option<&Block>, Error> {
        let mut silent_since = None;
        while self.blocks.is_empty() && self.next < self.span.to {
            progress.step(0)?;
            let log = &self.span.log;
            let blocks = match log.read(self.next, READ_BYTES) {
                // The log was trimmed while it was read.
                Err(log::Error::Trimmed { start, .. }) if start > self.next => {
                    self.next = start;
                    continue;
                }
                blocks => blocks?,
            };

            if let Some(end) = blocks.last().map(Block::end) {
                self.next = end;
                self.blocks.extend(blocks);
                continue;
            }
            let log_end = log.end();
            if self.next >= log_end {
                break;
            }
            if silent_since.get_or_insert_with(Instant::now).elapsed() > SILENCE_MAX {
                let silent = std::io::Error::other("the event log does not answer: try again");
                return Err(log::Error::Io(silent).into());
            }
            log.wait_beyond(log_end, PAUSE);
        }
        Ok(self.blocks.front())
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.span.log.leave(self.next);
    }
}

/// Visits the events of a caller. Each counts as appended when it happened. Blocks the thread.
pub fn read_lines(
    mut lines: Lines,
    progress: &Progress,
    mut visit: impl FnMut(&Event<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let failed = |detail: String| Error::Event { line: number, detail };
        line.clear();
        let bounded = &mut (&mut lines).take(EVENT_LEN_MAX as u64 + 2);
        let len =
            bounded.read_until(b'\n', &mut line).map_err(|error| failed(error.to_string()))?;
        if len == 0 {
            return progress.step(number % LINES_PER_STEP);
        }

        let text = line.trim_ascii();
        if !text.is_empty() {
            let event = Event::from_json(text).map_err(|refusal| failed(refusal.detail))?;
            visit(&event)?;
        }
        if number % LINES_PER_STEP == 0 {
            progress.step(LINES_PER_STEP)?;
        }
    }
}
