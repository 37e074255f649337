//! A window that turns the messages it sees into chunks, and that can be restored from chunks.

use super::chunk::{Chunk, Content};
use super::window::{Fingerprint, Verdict, Window};
use super::{CHUNK_OFFSETS, chunk_of};
use crate::log::Offset;
use crate::record::Identity;

/// The window of one reader of a partition. Messages come in the order of their offsets.
pub struct Recorder {
    window: Window,
    rules: u64,
    /// Whether chunks are made.
    records: bool,
    /// The offset of the next message.
    next: Offset,
    /// The chunk of `next` as read so far, if it was read from its beginning.
    open: Option<Content>,
    /// The last chunk that was requested.
    looked_for: Option<u64>,
    /// When the last message was appended.
    last_ms: i64,
    full: Vec<Chunk>,
}

/// The result of restoring a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredChunk {
    /// The offset at which to look for the next message.
    pub next: Offset,
    /// The last message of the chunk, if there is one: its offset and its append time.
    pub last: Option<(Offset, i64)>,
}

impl Recorder {
    /// Starts with an empty window before the message at `next`.
    pub fn new(window: Window, rules: u64, next: Offset, records: bool) -> Self {
        let is_whole = next.is_multiple_of(CHUNK_OFFSETS);
        let open = is_whole.then(Content::default);
        Self { window, rules, records, next, open, looked_for: None, last_ms: 0, full: Vec::new() }
    }

    pub fn window(&mut self) -> &mut Window {
        &mut self.window
    }

    pub fn rules(&self) -> u64 {
        self.rules
    }

    /// The offset of the next message.
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Notes a message and returns whether it is a repetition.
    pub fn see(&mut self, offset: Offset, appended_ms: i64, identity: Identity) -> Verdict {
        let fingerprint = Fingerprint::of(identity);
        self.note(offset, appended_ms, Some(fingerprint));
        self.window.see_fingerprint(appended_ms, fingerprint)
    }

    /// Notes a message without an identity.
    pub fn pass(&mut self, offset: Offset, appended_ms: i64) {
        self.note(offset, appended_ms, None);
        self.window.pass(appended_ms);
    }

    /// Notes that there are no further messages before this offset.
    pub fn skip_to(&mut self, offset: Offset) {
        while self.next < offset {
            let end = (chunk_of(self.next) + 1) * CHUNK_OFFSETS;
            if offset < end {
                self.next = offset;
                return;
            }

            let number = chunk_of(self.next);
            if let Some(content) = self.open.take().filter(|_| self.records) {
                let bytes = content.encode(self.rules, number);
                self.full.push(Chunk {
                    rules: self.rules,
                    number,
                    appended_ms: self.last_ms,
                    bytes,
                });
            }

            self.open = Some(Content::default());
            self.next = end;
        }
    }

    fn note(&mut self, offset: Offset, appended_ms: i64, fingerprint: Option<Fingerprint>) {
        self.skip_to(offset);
        if let Some(content) = &mut self.open {
            content.push(offset, appended_ms, fingerprint);
        }
        self.last_ms = appended_ms;
        self.skip_to(offset + 1);
    }

    /// Returns the chunks that have become full since the last call.
    pub fn take_full(&mut self) -> Vec<Chunk> {
        std::mem::take(&mut self.full)
    }

    /// Returns, once, the number of the chunk at `next` if all of it lies before `until`: if that
    /// chunk is stored, its messages need not be read.
    pub fn look_for(&mut self, until: Offset) -> Option<u64> {
        let number = chunk_of(self.next);
        let is_new = self.looked_for.is_none_or(|known| known < number);
        let wanted = (is_new && number < chunk_of(until)).then_some(number);
        self.looked_for = wanted.or(self.looked_for);
        wanted
    }

    /// Takes the rest of the chunk of `next` from its stored bytes, as if its messages had been
    /// read. Returns `None` if the bytes are not an intact chunk of the same rules, or begin
    /// differently from what was read already.
    ///
    /// A reader that begins in the middle of a chunk may restore the whole of it: the part before
    /// its offset is older than its window, or harmless in it.
    pub fn restore(&mut self, bytes: &[u8]) -> Option<RestoredChunk> {
        let number = chunk_of(self.next);
        let stored = Content::decode(bytes, self.rules, number)?;
        let read = self.open.as_ref().map_or(0, |content| content.fingerprints.len());
        let is_same = self
            .open
            .as_ref()
            .is_none_or(|content| stored.fingerprints.starts_with(&content.fingerprints));
        if !is_same {
            return None;
        }

        let mut fingerprints = stored.fingerprints.iter().enumerate();
        for run in &stored.runs {
            self.window.pass(run.appended_ms);
            for (place, fingerprint) in fingerprints.by_ref().take(run.count as usize) {
                if place >= read {
                    self.window.see_fingerprint(run.appended_ms, *fingerprint);
                }
            }
        }

        let last = stored.last_message();
        self.last_ms = last.map_or(self.last_ms, |(_, appended_ms)| appended_ms);
        self.next = (number + 1) * CHUNK_OFFSETS;
        self.open = Some(Content::default());

        Some(RestoredChunk { next: self.next, last })
    }
}
