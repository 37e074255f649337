//! From messages to blocks: what every reader of a partition makes of it, without a broker.

use crate::dead_letters::Poison;
use crate::message::{self, Reading};
use crate::options::Options;
use raingauge_ports::dedupe::{Chunk, Recorder, Verdict, Window};
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::record;
use rdkafka::{Message, Timestamp};
use std::sync::Arc;

/// A block is closed when it has this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// Takes the messages of a partition in order and makes entries of them. Offsets are Kafka's, except in blocks.
pub struct Reader {
    recorder: Recorder,
    options: Arc<Options>,
    /// The port's offset of Kafka's offset 0.
    base: Offset,
    /// The offset of the next message.
    next: i64,
    /// Where answers begin; what lies before is read for its identities only.
    answers_from: i64,
    /// When the last message was appended; 0 before the first one.
    last_ms: i64,
    blocks: Vec<Block>,
    /// Bytes of the blocks.
    bytes: usize,
    /// Refused messages of the blocks from this offset on are kept; of others it is only known that they are void.
    poison_from: i64,
    poison: Vec<Poison>,
    /// Bytes that the refused messages take.
    poison_bytes: usize,
    repetitions: u64,
    /// Where an entry is put together.
    entry: Vec<u8>,
    /// The last message that the stored chunks include: its offset, and when it was appended. It is read again, so that
    /// chunks of another log are noticed.
    expected: Option<(i64, i64)>,
}

/// A message that cannot be counted after what was counted before it.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It tells no append time.
    NotAppendTime { offset: i64 },
    /// It is not the one that lay at its offset, or there is none any more.
    Replaced { offset: i64, appended_ms: i64 },
}

/// What was made of some messages.
#[derive(Default)]
pub struct Made {
    pub blocks: Vec<Block>,
    /// Events among them that were repetitions.
    pub repetitions: u64,
}

impl Reader {
    /// Reads from `begin` on, and answers from `answers_from` on. Makes chunks of the window when it `records`.
    pub fn new(options: &Arc<Options>, begin: i64, answers_from: i64, records: bool) -> Self {
        let window = Window::new(options.dedupe_window_ms, options.dedupe_ids_max);
        let first = options.base() + begin as Offset;
        Self {
            recorder: Recorder::new(window, options.dedupe_rules(), first, records),
            options: Arc::clone(options),
            base: options.base(),
            next: begin,
            answers_from,
            last_ms: 0,
            blocks: Vec::new(),
            bytes: 0,
            poison_from: i64::MAX,
            poison: Vec::new(),
            poison_bytes: 0,
            repetitions: 0,
            entry: Vec::new(),
            expected: None,
        }
    }

    /// The offset behind everything that has been taken.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Where the next answer begins.
    pub fn answers_from(&self) -> i64 {
        self.answers_from
    }

    /// When the last message was appended; 0 before the first one.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// Bytes in memory until they are answered.
    pub fn bytes(&self) -> usize {
        self.bytes + self.poison_bytes
    }

    /// The refused messages that wait to be dealt with.
    pub fn poison(&mut self) -> &mut Vec<Poison> {
        &mut self.poison
    }

    pub fn window(&mut self) -> &mut Window {
        self.recorder.window()
    }

    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// The chunks that have become full.
    pub fn take_full(&mut self) -> Vec<Chunk> {
        self.recorder.take_full()
    }

    /// The number of the chunk that would save reading on here, once for each.
    pub fn look_for(&mut self) -> Option<u64> {
        self.recorder.look_for(self.base + self.answers_from as Offset)
    }

    /// Goes on behind a stored chunk. Answers `false` when it cannot be used.
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let Some(restored) = self.recorder.restore(bytes) else {
            return false;
        };
        self.next = (restored.next - self.base) as i64;
        if let Some((offset, appended_ms)) = restored.last {
            self.last_ms = appended_ms;
            self.expected = Some(((offset - self.base) as i64, appended_ms));
        }
        true
    }

    /// Where reading has to begin: with the last message that is known, or where the partition begins by now.
    pub fn resumes_at(&mut self, start: i64) -> i64 {
        self.expected = self.expected.filter(|(offset, _)| *offset >= start);
        self.expected.map_or(self.next, |(offset, _)| offset)
    }

    /// From which offset on refused messages are to be kept.
    pub fn keep_poison_from(&mut self, offset: i64) {
        self.poison_from = offset;
    }

    /// Hands over what has been made; the refused messages have been dealt with.
    pub fn answer(&mut self) -> Made {
        let made = Made {
            blocks: std::mem::take(&mut self.blocks),
            repetitions: std::mem::take(&mut self.repetitions),
        };
        (self.bytes, self.poison_bytes) = (0, 0);
        self.poison.clear();
        self.answers_from = self.answers_from.max(self.next);
        made
    }

    /// Takes a message. One that lies before the next offset has been taken already.
    pub fn take<M: Message>(&mut self, message: &M) -> Result<(), Unfit> {
        let offset = message.offset();
        let Timestamp::LogAppendTime(appended_ms) = message.timestamp() else {
            return Err(Unfit::NotAppendTime { offset });
        };
        let is_due = |(expected, _): &mut (i64, i64)| *expected <= offset;
        if self.expected.take_if(is_due).is_some_and(|expected| expected != (offset, appended_ms)) {
            return Err(Unfit::Replaced { offset, appended_ms });
        }
        if offset < self.next {
            return Ok(());
        }
        self.skip_to(offset);
        self.next = offset + 1;
        self.last_ms = appended_ms;
        let (answered, place) = (offset >= self.answers_from, self.base + offset as Offset);
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        let options = Arc::clone(&self.options);
        match message::read(message, appended_ms, &options) {
            Reading::Event(event) if answered => {
                let identity = record::push_event(&event, &mut entry);
                if self.recorder.see(place, appended_ms, identity) == Verdict::Repetition {
                    entry.clear();
                    record::push_void(&mut entry);
                    self.repetitions += 1;
                }
            }
            Reading::Event(event) => {
                self.recorder.see(place, appended_ms, record::identity(&event.source, &event.id));
            }
            Reading::Control(payload, identity) => {
                match identity.map(|identity| self.recorder.see(place, appended_ms, identity)) {
                    // A copy of a signed entry.
                    Some(Verdict::Repetition) => record::push_void(&mut entry),
                    Some(Verdict::New) => record::push_control(payload, &mut entry),
                    None => {
                        self.recorder.pass(place, appended_ms);
                        record::push_control(payload, &mut entry);
                    }
                }
            }
            Reading::Refused(rejection) => {
                self.recorder.pass(place, appended_ms);
                record::push_void(&mut entry);
                if answered && offset >= self.poison_from {
                    let poison = Poison::of(message, rejection);
                    self.poison_bytes += poison.bytes();
                    self.poison.push(poison);
                }
            }
        }
        if answered {
            self.push(offset, appended_ms, &entry);
        }
        self.entry = entry;
        Ok(())
    }

    /// Offsets without a message, before `offset`: those of transactions, and of what they took back. They are void, and
    /// as old as the message before them, so that they never move the time.
    pub fn skip_to(&mut self, offset: i64) {
        let mut void = Vec::new();
        record::push_void(&mut void);
        for missing in self.next.max(self.answers_from)..offset {
            self.push(missing, self.last_ms, &void);
        }
        self.next = self.next.max(offset);
        self.recorder.skip_to(self.base + self.next as Offset);
    }

    /// Appends the entry at an offset to its block: entries that were appended together lie in one.
    fn push(&mut self, offset: i64, appended_ms: i64, entry: &[u8]) {
        let base = self.base + offset as Offset;
        let fits =
            |block: &Block| block.appended_ms == appended_ms && block.bytes.len() < BLOCK_BYTES;
        if !self.blocks.last().is_some_and(fits) {
            self.blocks.push(Block { base, appended_ms, len: 0, bytes: Vec::new() });
        }
        let block = self.blocks.last_mut().expect("one was pushed if there was none");
        block.len += 1;
        block.bytes.extend_from_slice(entry);
        self.bytes += entry.len();
    }
}

#[cfg(test)]
mod tests;
