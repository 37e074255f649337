//! The identities of recent events, by which duplicates are told.
//!
//! The newest are in a set in memory; a full set becomes a [`Run`]. Both are made from the log itself, whose entries
//! carry their identity: after a crash the log is read again from where the runs end, so an identity is known exactly
//! when its event is in the log.

use super::Options;
use super::run::Run;
use super::segments::Segments;
use hashbrown::HashSet;
use raingauge_ports::log::{Error, Offset};
use raingauge_ports::record::{Identity, identity_of, split_entry};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Identities in the set before it becomes a run: what fits a hash table of 2^21 places.
const SET_IDS_MAX: usize = (1 << 21) / 8 * 7;
/// Bytes of the log that are read at once when it is learned.
const LEARN_BYTES: usize = 8 << 20;

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

/// The set, still asked, and the thread that writes it.
type Sealing = (Arc<IdentitySet>, JoinHandle<Result<Run, Error>>);

pub struct Known {
    folder: PathBuf,
    window_ms: i64,
    ids_max: usize,
    set_ids_max: usize,
    recent: IdentitySet,
    /// The offset behind the last run: the set holds the identities from here on.
    recent_from: Offset,
    /// A full set on its way to becoming a run.
    sealing: Option<Sealing>,
    runs: Vec<Run>,
}

impl Known {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        let mut runs = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("run") => runs.push(Run::open(path)?),
                Some("unfinished") => std::fs::remove_file(path)?,
                _ => {}
            }
        }
        runs.sort_unstable_by_key(|run| run.from);
        Ok(Self {
            folder: folder.to_owned(),
            window_ms: options.dedupe_window_ms,
            ids_max: options.dedupe_ids_max,
            set_ids_max: SET_IDS_MAX.min(options.dedupe_ids_max / 2).max(1),
            recent: IdentitySet::default(),
            recent_from: runs.last().map_or(0, |run| run.to),
            sealing: None,
            runs,
        })
    }

    /// Reads the identities that are in the log but in no run.
    pub fn learn(&mut self, segments: &Segments, now_ms: i64) -> Result<(), Error> {
        let mut from = self.recent_from.max(segments.start());
        self.recent_from = from;
        loop {
            let blocks = segments.read(from, LEARN_BYTES)?;
            let Some(last) = blocks.last() else { return Ok(()) };
            from = last.end();
            for block in &blocks {
                let mut rest = &block.bytes[..];
                while let Some(entry) = split_entry(&mut rest) {
                    self.recent.extend(identity_of(entry));
                }
                self.seal_when_full(block.end(), now_ms)?;
            }
        }
    }

    /// Remembers an identity. Answers whether it is new.
    pub fn insert(&mut self, id: Identity) -> Result<bool, Error> {
        if self.recent.contains(&id) || self.sealing.as_ref().is_some_and(|(set, _)| set.contains(&id)) {
            return Ok(false);
        }
        for run in &self.runs {
            if run.contains(id)? {
                return Ok(false);
            }
        }
        Ok(self.recent.insert(id))
    }

    /// Turns a full set into a run, in the background. `end` is the offset behind everything that is remembered.
    pub fn seal_when_full(&mut self, end: Offset, now_ms: i64) -> Result<(), Error> {
        if self.sealing.as_ref().is_some_and(|(_, thread)| thread.is_finished()) {
            self.finish_sealing(now_ms)?;
        }
        if self.recent.len() < self.set_ids_max {
            return Ok(());
        }
        self.finish_sealing(now_ms)?;
        let set = Arc::new(std::mem::take(&mut self.recent));
        let (folder, from) = (self.folder.clone(), self.recent_from);
        self.recent_from = end;
        let ids = Arc::clone(&set);
        let thread = std::thread::Builder::new()
            .name("known-ids".to_owned())
            .spawn(move || Run::create(&folder, ids.iter().copied().collect(), from, end, now_ms))?;
        self.sealing = Some((set, thread));
        Ok(())
    }

    /// Waits for the run that is being written, and forgets what the window no longer covers.
    fn finish_sealing(&mut self, now_ms: i64) -> Result<(), Error> {
        let Some((_, thread)) = self.sealing.take() else { return Ok(()) };
        let run = thread.join().map_err(|_| Error::Closed("the thread that seals identities failed".to_owned()))??;
        self.runs.push(run);
        let oldest_ms = now_ms - self.window_ms;
        while let Some(first) = self.runs.first() {
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
            self.runs.remove(0).remove()?;
        }
        Ok(())
    }

    /// Identities that are remembered.
    pub fn len(&self) -> usize {
        let sealing = self.sealing.as_ref().map_or(0, |(set, _)| set.len());
        self.recent.len() + sealing + self.runs.iter().map(|run| run.count).sum::<usize>()
    }

    /// Events before this offset can be forgotten by the log without being forgotten here.
    pub fn sealed_to(&self) -> Offset {
        self.runs.last().map_or(0, |run| run.to)
    }

    /// When the oldest run ended, in milliseconds since 1970; `None` while everything is in memory.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.runs.first().map(|run| run.newest_ms)
    }
}
