//! A partition as a worker reads it: through a window of its own, which detects repetitions and is
//! built from chunks that all workers store.

use super::engines::SimLog;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::dedupe::{
    CHUNK_OFFSETS, Chunk, ChunkStore, Recorder, Verdict, Window, begin_ms,
};
use raingauge_ports::log::{Block, Error, EventLog, LogTimes, Needs, Offset, Partition};
use raingauge_ports::record::{self, Entry, Identity};
use std::sync::Arc;
use std::time::Duration;

/// How long identities are remembered.
pub const WINDOW_MS: i64 = 600_000;
/// The share of a chunk's offsets that a message takes: few messages fill a chunk.
const STRIDE: u64 = CHUNK_OFFSETS / 6;

pub struct Deduped {
    log: Arc<SimLog>,
    chunks: Arc<memory::Chunks>,
    /// Whether a worker begins with an empty window, a defect that the simulator must find.
    forgets: bool,
    counting: Mutex<Option<Cursor>>,
    behind: Mutex<Option<Cursor>>,
    /// What is lost when the process dies.
    unstored: Mutex<Vec<Chunk>>,
}

/// A position, and the window before it.
struct Cursor {
    next: Offset,
    recorder: Recorder,
}

impl Deduped {
    pub fn new(log: Arc<SimLog>, chunks: Arc<memory::Chunks>, forgets: bool) -> Self {
        Self {
            log,
            chunks,
            forgets,
            counting: Mutex::default(),
            behind: Mutex::default(),
            unstored: Mutex::default(),
        }
    }

    /// Stores one of the waiting chunks, chosen by `which`.
    pub fn store_one(&self, which: u64) {
        let mut unstored = self.unstored.lock();
        if !unstored.is_empty() {
            let which = which as usize % unstored.len();
            self.chunks.put(self.partition(), &unstored.swap_remove(which)).expect("stored");
        }
    }

    /// The messages before an offset that the log still has.
    fn before(&self, from: Offset) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for block in self.log.read(self.log.start(), usize::MAX)? {
            each_message(&block, |message, _| messages.push(message))?;
        }
        messages.retain(|message| message.offset < from);
        Ok(messages)
    }

    /// Rebuilds the window before a position.
    fn open(&self, from: Offset, records: bool) -> Result<Cursor, Error> {
        let before = if self.forgets { Vec::new() } else { self.before(from)? };
        let since_ms =
            before.last().map_or(i64::MAX, |message| begin_ms(WINDOW_MS, message.appended_ms));
        let first = before.iter().find(|message| message.appended_ms >= since_ms);
        let begin = first.map_or(from, |message| message.offset);
        let window = Window::new(WINDOW_MS, usize::MAX);
        let mut recorder = Recorder::new(window, 0, begin * STRIDE, records);

        loop {
            if let Some(number) = recorder.look_for(from * STRIDE).filter(|_| !self.forgets) {
                let found = self
                    .chunks
                    .get(self.partition(), 0, number..number + 1)
                    .expect("read")
                    .remove(0);
                if found.is_some_and(|bytes| recorder.restore(&bytes).is_some()) {
                    continue;
                }
            }

            let Some(next) =
                before.iter().find(|message| message.offset * STRIDE >= recorder.next())
            else {
                break;
            };
            next.see(&mut recorder);
        }

        Ok(Cursor { next: from, recorder })
    }

    fn read_at(
        &self,
        cursor: &Mutex<Option<Cursor>>,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, Error> {
        let blocks = self.log.read(from, bytes_max)?;
        let mut kept = cursor.lock();
        let records = std::ptr::eq(cursor, &self.counting);
        let standing = kept.take().filter(|cursor| cursor.next == from);
        let mut cursor = standing.map_or_else(|| self.open(from, records), Ok)?;
        let recorder = &mut cursor.recorder;
        let judged = blocks
            .iter()
            .map(|block| judge(recorder, block, from))
            .collect::<Result<Vec<_>, _>>()?;

        cursor.next = judged.last().map_or(from, Block::end);
        self.unstored.lock().append(&mut cursor.recorder.take_full());
        *kept = Some(cursor);

        Ok(judged)
    }
}

struct Message {
    offset: Offset,
    appended_ms: i64,
    identity: Option<Identity>,
}

impl Message {
    fn see(&self, recorder: &mut Recorder) -> Verdict {
        let place = self.offset * STRIDE;
        match self.identity {
            Some(identity) => recorder.see(place, self.appended_ms, identity),
            None => {
                recorder.pass(place, self.appended_ms);
                Verdict::New
            }
        }
    }
}

/// Shows each message of a block, and its bytes.
fn each_message(block: &Block, mut show: impl FnMut(Message, &[u8])) -> Result<(), Error> {
    let mut rest = &block.bytes[..];
    for entry in block.entries(block.base) {
        let (offset, entry) = entry?;
        let identity = match entry {
            Entry::Event(event) => Some(record::identity(&event.source, &event.id)),
            _ => None,
        };
        let bytes = rest;
        record::split_entry(&mut rest);

        let message = Message { offset, appended_ms: block.appended_ms, identity };
        show(message, &bytes[..bytes.len() - rest.len()]);
    }

    Ok(())
}

/// Returns a block as read from an offset on.
fn judge(recorder: &mut Recorder, block: &Block, from: Offset) -> Result<Block, Error> {
    let mut read = Vec::new();
    each_message(block, |message, bytes| {
        if message.offset >= from && message.see(recorder) == Verdict::Repetition {
            record::push_void(&mut read)
        } else {
            read.extend_from_slice(bytes)
        }
    })?;
    Ok(Block { bytes: read, ..block.clone() })
}

/// The events of a partition that repeat others, by a window that is never rebuilt.
pub struct Repetitions {
    window: Window,
    /// The offset of each event, and that of the first event with its id.
    ids: Vec<(Offset, Offset)>,
    /// The offset of each repetition, and that of the event before it.
    repeated: Vec<(Offset, Offset)>,
}

impl Default for Repetitions {
    fn default() -> Self {
        Self { window: Window::new(WINDOW_MS, usize::MAX), ids: Vec::new(), repeated: Vec::new() }
    }
}

impl Repetitions {
    /// Returns the id of an appended event, its own or that of an event that the log still has, and
    /// whether it counts.
    pub fn next(
        &mut self,
        offset: Offset,
        start: Offset,
        now_ms: i64,
        repeats: Option<u64>,
    ) -> (Offset, bool) {
        let kept = &self.ids[self.ids.partition_point(|(offset, _)| *offset < start)..];
        let before =
            repeats.filter(|_| !kept.is_empty()).map(|which| kept[which as usize % kept.len()].1);
        let id = before.unwrap_or(offset);
        let last = self.ids.iter().rfind(|(_, of)| *of == id).map(|(offset, _)| *offset);
        self.ids.push((offset, id));
        let identity = record::identity("s", &id.to_string());
        let is_new = self.window.see(now_ms, identity) == Verdict::New;
        self.repeated.extend(last.filter(|_| !is_new).map(|last| (offset, last)));
        (id, is_new)
    }

    /// The last block, no later than this offset, before which the log may be trimmed: the topic is
    /// kept for longer than the window, so that no repetition outlives what it repeats.
    pub fn trims_at(&self, offset: Offset, block_of: impl Fn(Offset) -> Offset) -> Offset {
        let mut at = block_of(offset);
        while let Some((_, last)) = self.repeated.iter().find(|(of, last)| *last < at && at <= *of)
        {
            at = block_of(*last);
        }
        at
    }
}

impl EventLog for Deduped {
    fn partition(&self) -> Partition {
        self.log.partition()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.read_at(&self.counting, from, bytes_max)
    }

    fn read_behind(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.read_at(&self.behind, from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.log.start()
    }

    fn end(&self) -> Offset {
        self.log.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.log.wait_beyond(offset, timeout)
    }
}

impl LogTimes for Deduped {
    fn start_ms(&self) -> i64 {
        self.log.start_ms()
    }

    fn begin_since(&self, appended_ms: i64) -> Offset {
        self.log.begin_since(appended_ms)
    }

    fn appended_ms(&self, offset: Offset) -> Option<i64> {
        self.log.appended_ms(offset)
    }

    fn trim(&self, needs: Needs) -> Result<(), Error> {
        self.log.trim(needs)
    }
}
