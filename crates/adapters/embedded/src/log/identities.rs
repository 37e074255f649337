//! The identities of recent events, which reveal duplicates.
//!
//! The newest are in a set in memory; a full set becomes a [`Run`]. Both are made from the log
//! itself, whose entries carry their identity. After a crash the log is read again from where the
//! runs end, so an identity is known exactly when its event is in the log.

use super::Options;
use super::run::{Run, Runs};
use super::segments::Segments;
use crate::files::Folder;
use hashbrown::HashSet;
use raingauge_ports::log::{Block, Error, Offset};
use raingauge_ports::record::{Identity, identity_of, split_entry};
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Identities in the set before it becomes a run: the capacity of a hash table of 2^21 places.
pub const SET_IDS_MAX: usize = (1 << 21) / 8 * 7;
/// Identities that are looked up together. Each waits for memory, and these waits overlap.
pub const LOOKUPS_TOGETHER: usize = 16;
/// Bytes of the log that are read at once to learn identities.
const LEARN_BYTES: usize = 8 << 20;
/// Delay before a set that could not be written is written again.
const RETRY_MS: i64 = 1_000;

type IdentitySet = HashSet<Identity, BuildHasherDefault<Unhashed>>;

/// Identities are hashes already.
#[derive(Default)]
pub struct Unhashed(u64);

impl Hasher for Unhashed {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(low) = bytes.first_chunk::<8>() {
            self.0 = u64::from_ne_bytes(*low);
        }
    }

    fn write_u128(&mut self, id: u128) {
        self.0 = id as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A full set, which answers lookups until it has become a run.
struct FullSet {
    ids: Arc<IdentitySet>,
    from: Offset,
    to: Offset,
    newest_ms: i64,
}

pub struct Identities {
    folder: Arc<dyn Folder>,
    window_ms: i64,
    ids_max: usize,
    set_ids_max: usize,
    recent: IdentitySet,
    /// The offset behind the last run. The set holds the identities from here on.
    recent_from: Offset,
    /// Full sets, oldest first.
    full: VecDeque<FullSet>,
    /// The memory of a set that became a run, reused for the next one. Returning it to the system
    /// and allocating it again would clear it each time.
    spare: Option<IdentitySet>,
    /// Writes the first of the full sets.
    sealing: Option<JoinHandle<io::Result<Run>>>,
    /// Writing failed, and is not tried again before this time.
    retry_ms: i64,
    runs: Arc<Runs>,
    /// The offset behind the newest run, even when that run has been dropped.
    sealed_to: Offset,
    /// Files that a crash left behind.
    leftovers: Vec<String>,
}

impl Identities {
    /// Opens the runs without changing anything.
    pub fn open(folder: Arc<dyn Folder>, options: &Options) -> Result<Self, Error> {
        let mut runs = Vec::new();
        let mut leftovers = Vec::new();
        for name in folder.list()? {
            if name.ends_with(".run") {
                runs.push(Run::open(&*folder, name)?);
            } else if name.ends_with(".unfinished") {
                leftovers.push(name);
            }
        }

        runs.sort_unstable_by_key(|run| run.from);
        Ok(Self {
            folder,
            window_ms: options.dedupe_window_ms,
            ids_max: options.dedupe_ids_max,
            set_ids_max: options.dedupe_set_ids.min(options.dedupe_ids_max / 2).max(1),
            recent: IdentitySet::default(),
            recent_from: runs.last().map_or(0, |run| run.to),
            sealed_to: runs.last().map_or(0, |run| run.to),
            full: VecDeque::new(),
            spare: None,
            sealing: None,
            retry_ms: 0,
            runs: Arc::new(Runs::new(runs)),
            leftovers,
        })
    }

    /// Reads the identities that are in the log but in no run, and changes nothing on disk. A
    /// damaged block is an error, unless the store includes all of its segment and the dedupe
    /// window has passed it, since the block is no longer needed then.
    pub fn learn(
        &mut self,
        segments: &Segments,
        applied_to: Offset,
        now_ms: i64,
    ) -> Result<(), Error> {
        let mut from = self.recent_from.max(segments.start());
        self.recent_from = from;

        let passed = segments.base_since(now_ms - self.window_ms).min(applied_to);
        loop {
            let blocks = match segments.read(from, LEARN_BYTES) {
                Ok(blocks) => blocks,
                Err(Error::Corrupt(reason)) => {
                    let behind = segments.base_behind(from).filter(|base| *base <= passed);
                    let Some(behind) = behind else {
                        return Err(Error::Corrupt(reason));
                    };
                    tracing::warn!(%reason, "a damaged part of the event log is passed over: all of it is counted, and older than the dedupe window");
                    from = behind;
                    continue;
                }
                Err(error) => return Err(error),
            };

            let Some(last) = blocks.last() else {
                return Ok(());
            };
            from = last.end();
            blocks.iter().for_each(|block| self.learn_block(block));
        }
    }

    fn learn_block(&mut self, block: &Block) {
        let mut rest = &block.bytes[..];
        while let Some(entry) = split_entry(&mut rest) {
            self.recent.extend(identity_of(entry));
        }
        self.set_aside_when_full(block.end(), block.appended_ms);
    }

    /// Removes what a crash left behind.
    pub fn tidy(&mut self) {
        for name in self.leftovers.drain(..) {
            if let Err(error) = self.folder.remove(&name) {
                tracing::warn!(file = %name, %error, "an unfinished file could not be removed");
            }
        }
    }

    /// The runs, for lookups outside the appender.
    pub fn runs(&self) -> Arc<Runs> {
        Arc::clone(&self.runs)
    }

    /// Returns which of the identities are in memory. The others are most likely new, and the
    /// memory that [`insert`](Self::insert) reads is then in the processor's caches.
    pub fn held(&self, ids: &[(usize, Identity)]) -> [bool; LOOKUPS_TOGETHER] {
        let mut held = [false; LOOKUPS_TOGETHER];
        let sets = std::iter::once(&self.recent).chain(self.full.iter().map(|set| &*set.ids));
        for set in sets {
            for (held, (_, id)) in held.iter_mut().zip(ids) {
                *held |= set.contains(id);
            }
        }
        held
    }

    /// Adds an identity. The runs before the offset `looked_to` are known not to hold it. Returns
    /// whether it is new.
    pub fn insert(&mut self, id: Identity, looked_to: Offset) -> io::Result<bool> {
        if self.full.iter().any(|set| set.ids.contains(&id)) {
            return Ok(false);
        }
        if self.sealed_to > looked_to && self.runs.now().contains(id, looked_to)? {
            return Ok(false);
        }
        Ok(self.recent.insert(id))
    }

    /// Removes identities that were inserted but did not get into the log.
    pub fn forget(&mut self, ids: &[Identity]) {
        for id in ids {
            self.recent.remove(id);
        }
    }

    /// Turns a full set into a run, in the background. `end` is the offset behind all known
    /// entries, and `now_ms` the time at which the last of them was appended.
    pub fn seal_when_full(&mut self, end: Offset, now_ms: i64) {
        self.set_aside_when_full(end, now_ms);
        // One set may wait while another is written; a third one waits for the disk.
        if self.full.len() > 2 || self.sealing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_sealing(now_ms);
        }
        if self.sealing.is_none() && now_ms >= self.retry_ms {
            self.begin_sealing(now_ms);
        }
    }

    fn set_aside_when_full(&mut self, to: Offset, newest_ms: i64) {
        if self.recent.len() >= self.set_ids_max {
            // The next set will be as large. Growing by doubling would move every identity once
            // more.
            let new =
                || IdentitySet::with_capacity_and_hasher(self.set_ids_max, Default::default());
            let next = self.spare.take().unwrap_or_else(new);
            let ids = Arc::new(std::mem::replace(&mut self.recent, next));
            self.full.push_back(FullSet { ids, from: self.recent_from, to, newest_ms });
            self.recent_from = to;
        }
    }

    fn begin_sealing(&mut self, now_ms: i64) {
        let Some(FullSet { ids, from, to, newest_ms }) = self.full.front() else {
            return;
        };
        let folder = Arc::clone(&self.folder);
        let ids = Arc::clone(ids);
        let range = (*from, *to);
        let newest_ms = *newest_ms;
        let write = move || Run::create(&*folder, ids.iter().copied().collect(), range, newest_ms);
        match std::thread::Builder::new().name("known-ids".to_owned()).spawn(write) {
            Ok(thread) => self.sealing = Some(thread),
            Err(error) => self.note_unsealed(&error, now_ms),
        }
    }

    /// Waits for the run that is being written, and drops runs that the window no longer covers.
    pub fn finish_sealing(&mut self, now_ms: i64) {
        let Some(thread) = self.sealing.take() else {
            return;
        };
        match thread.join() {
            Ok(Ok(run)) => {
                let sealed = self.full.pop_front().and_then(|set| Arc::into_inner(set.ids));
                self.spare = sealed.map(|mut ids| {
                    ids.clear();
                    ids
                });
                self.sealed_to = run.to;
                self.runs.push(run);
                self.remove_expired(now_ms);
            }
            Ok(Err(error)) => self.note_unsealed(&error, now_ms),
            Err(_) => {
                self.note_unsealed(&io::Error::other("the thread that wrote them panicked"), now_ms)
            }
        }
    }

    fn note_unsealed(&mut self, error: &io::Error, now_ms: i64) {
        tracing::warn!(%error, "identities could not be written and stay in memory; raingauge tries again");
        self.retry_ms = now_ms + RETRY_MS;
    }

    fn remove_expired(&mut self, now_ms: i64) {
        let oldest_ms = now_ms - self.window_ms;
        loop {
            let runs = self.runs.now();
            let Some(first) = runs.oldest() else { return };
            let crowded = self.len() > self.ids_max;
            if first.newest_ms >= oldest_ms && !crowded {
                break;
            }

            if first.newest_ms >= oldest_ms {
                tracing::warn!(
                    ids_max = self.ids_max,
                    "forgetting identities before their window has passed: raise dedupe.ids_max, or shorten the window"
                );
            }

            if let Err(error) = first.remove(&*self.folder) {
                tracing::warn!(%error, "a run of identities could not be removed; raingauge tries again");
                break;
            }

            self.runs.forget_oldest();
        }
    }

    /// Number of known identities.
    pub fn len(&self) -> usize {
        let full = self.full.iter().map(|set| set.ids.len()).sum::<usize>();
        self.recent.len() + full + self.runs.now().count()
    }

    /// The log may drop events before this offset without their identities being lost here.
    pub fn sealed_to(&self) -> Offset {
        self.sealed_to
    }

    /// When the oldest run ended, in milliseconds since 1970; `None` while everything is in memory.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.runs.now().oldest().map(|run| run.newest_ms)
    }
}

impl Drop for Identities {
    /// Waits for the thread that writes a set: it holds the folder, which the next process locks.
    fn drop(&mut self) {
        if let Some(thread) = self.sealing.take() {
            let _ = thread.join();
        }
    }
}
