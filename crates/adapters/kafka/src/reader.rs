//! Turns messages into blocks, as every reader of a partition does, without a broker.

use crate::dead_letters::Poison;
use crate::message::{self, Reading};
use crate::options::Options;
use raingauge_ports::dedupe::{Chunk, Recorder, Verdict, Window};
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::record;
use rdkafka::{Message, Timestamp};
use std::sync::Arc;

/// A block is closed at this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// Takes a partition's messages in order and makes entries of them. Offsets are Kafka's, except in
/// blocks.
pub struct Reader {
    recorder: Recorder,
    options: Arc<Options>,
    /// The port's offset of Kafka's offset 0.
    base: Offset,
    /// The offset of the next message.
    next: i64,
    /// Where answers begin; earlier messages are read for their identities only.
    answers_from: i64,
    /// Append time of the last message; 0 before the first one.
    last_ms: i64,
    blocks: Vec<Block>,
    /// Bytes in the blocks.
    bytes: usize,
    /// Refused messages are kept from this offset on; earlier ones only leave void entries.
    poison_from: i64,
    poison: Vec<Poison>,
    /// Bytes of the refused messages.
    poison_bytes: usize,
    repetitions: u64,
    /// Buffer for the entry under construction.
    entry: Vec<u8>,
    /// Offset and append time of the last message that the stored chunks include. It is read again,
    /// so that chunks of another log are noticed.
    expected: Option<(i64, i64)>,
}

/// Why a message cannot be counted after those before it.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It has no append time.
    NotAppendTime { offset: i64 },
    /// Its offset holds another message than before, or none.
    Replaced { offset: i64, appended_ms: i64 },
}

/// The blocks made of some messages.
#[derive(Default)]
pub struct Answer {
    pub blocks: Vec<Block>,
    /// Number of events that were repetitions.
    pub repetitions: u64,
}

impl Reader {
    /// Reads from `begin` and answers from `answers_from`. Stores chunks of the window if it
    /// `records`.
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

    /// The offset after the last message taken.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Where the next answer begins.
    pub fn answers_from(&self) -> i64 {
        self.answers_from
    }

    /// Append time of the last message; 0 before the first one.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// Bytes held in memory until they are returned.
    pub fn bytes(&self) -> usize {
        self.bytes + self.poison_bytes
    }

    /// The refused messages that wait to be sent to the dead letters.
    pub fn poison(&mut self) -> &mut Vec<Poison> {
        &mut self.poison
    }

    pub fn window(&mut self) -> &mut Window {
        self.recorder.window()
    }

    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Takes the chunks that are complete.
    pub fn take_full(&mut self) -> Vec<Chunk> {
        self.recorder.take_full()
    }

    /// The number of the chunk that could replace reading from here, once for each chunk.
    pub fn look_for(&mut self) -> Option<u64> {
        self.recorder.look_for(self.base + self.answers_from as Offset)
    }

    /// Continues after a stored chunk. Returns `false` if it is unusable.
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

    /// Where reading must begin: with the last known message, or at the partition's current start.
    pub fn resumes_at(&mut self, start: i64) -> i64 {
        self.expected = self.expected.filter(|(offset, _)| *offset >= start);
        self.expected.map_or(self.next, |(offset, _)| offset)
    }

    /// Keeps refused messages from this offset on.
    pub fn keep_poison_from(&mut self, offset: i64) {
        self.poison_from = offset;
    }

    /// Takes what has been made; its refused messages have been sent.
    pub fn answer(&mut self) -> Answer {
        let made = Answer {
            blocks: std::mem::take(&mut self.blocks),
            repetitions: std::mem::take(&mut self.repetitions),
        };
        (self.bytes, self.poison_bytes) = (0, 0);
        self.poison.clear();
        self.answers_from = self.answers_from.max(self.next);
        made
    }

    /// Takes a message. Ignores one before the next offset, which has been taken already.
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

        let answered = offset >= self.answers_from;
        let place = self.base + offset as Offset;
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
            Reading::Refused(refusal) => {
                self.recorder.pass(place, appended_ms);
                record::push_void(&mut entry);

                if answered && offset >= self.poison_from {
                    let poison = Poison::of(message, refusal);
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

    /// Fills offsets before `offset` that hold no message (those of transactions) with void
    /// entries. They get the time of the message before them, so that they never move it.
    pub fn skip_to(&mut self, offset: i64) {
        let mut void = Vec::new();
        record::push_void(&mut void);
        for missing in self.next.max(self.answers_from)..offset {
            self.push(missing, self.last_ms, &void);
        }
        self.next = self.next.max(offset);
        self.recorder.skip_to(self.base + self.next as Offset);
    }

    /// Appends an entry to its block; entries that were appended together share one.
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
