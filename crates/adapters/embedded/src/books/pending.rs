//! The pending layer: what turns changed and what is not on fjall yet.
//!
//! ```text
//!   turn ──▶ current layer ──freeze──▶ frozen layer ──▶ sorted tables with the head, at once
//!   read ──▶ current layer, else the frozen one, else fjall
//! ```
//!
//! Turns never wait for fjall, unless it falls behind as far as the layers may grow. The tables of
//! a layer become durable together, with the head that says up to where they include the journal:
//! a start applies the entries behind it, of which there are at most as many as may be pending.

mod layer;

use super::keys;
use super::records::{Records, View, Visit, Write};
use crate::store::Fault;
use layer::Layer;
use parking_lot::{Condvar, Mutex, RwLock};
use raingauge_ports::points::Error;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Part of the limits that may fill up beside a layer that is being written before work that can
/// wait has to: the rest is for turns that cannot.
const SHARE_OF_WAITING: usize = 8;
/// Changes of due rows that are put between those of fjall at once.
const MERGED_LEN: usize = 1_024;
/// Fewest keys that are looked for in a pass over fjall instead of one by one.
const PASS_LEN_MIN: usize = 16;
/// Other records that a pass may meet for each key. More cost as much as looking keys up.
const OTHERS_PER_KEY_MAX: usize = 4;

/// How much may be pending. Half of it is due to be written, and turns wait at the whole.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Entries of the journal, which a start would have to apply.
    pub entries: usize,
    pub bytes: usize,
}

/// Records behind layers in memory.
pub struct Pending {
    records: Box<dyn Records>,
    limits: Limits,
    layers: RwLock<Layers>,
    /// Held while a layer is written.
    writing: Mutex<()>,
    progress: Mutex<Progress>,
    /// The thread has something to do, or is done with it.
    changed: Condvar,
}

#[derive(Default)]
struct Layers {
    current: Layer,
    /// What is being written.
    frozen: Option<Arc<Layer>>,
}

/// What the thread and those who wait for it share.
#[derive(Default)]
struct Progress {
    has_thread: bool,
    is_stopping: bool,
    /// Why nothing is written any more.
    failed: Option<Fault>,
}

/// The thread that writes frozen layers. When it is dropped, everything pending is written.
pub struct Writer {
    pending: Arc<Pending>,
    thread: Option<JoinHandle<()>>,
}

impl Pending {
    pub fn new(records: Box<dyn Records>, limits: Limits) -> Self {
        Self {
            records,
            limits,
            layers: RwLock::default(),
            writing: Mutex::default(),
            progress: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The records without what is pending.
    pub fn written(&self) -> &dyn Records {
        &*self.records
    }

    /// Makes room for a turn: freezes what is due, and waits while too much is pending. Fails if
    /// something frozen could not be written.
    pub fn make_room(&self) -> Result<(), Fault> {
        loop {
            self.check()?;
            match self.need() {
                Need::Nothing => return Ok(()),
                Need::Freeze => self.freeze(),
                Need::Writing => self.wait_for_writer()?,
            }
        }
    }

    /// Whether there is room for work that can wait. Turns report what has failed.
    pub fn has_room(&self) -> bool {
        if self.check().is_err() {
            return true;
        }
        let Layers { current, frozen } = &*self.layers.read();
        frozen.is_none()
            || (current.entries() < self.limits.entries / SHARE_OF_WAITING
                && current.bytes() < self.limits.bytes / SHARE_OF_WAITING)
    }

    fn check(&self) -> Result<(), Fault> {
        self.progress.lock().failed.clone().map_or(Ok(()), Err)
    }

    fn need(&self) -> Need {
        let layers = self.layers.read();
        let Layers { current, frozen } = &*layers;
        let Some(frozen) = frozen else {
            let is_due = current.entries() >= (self.limits.entries / 2).max(1)
                || current.bytes() >= (self.limits.bytes / 2).max(1);
            return if is_due { Need::Freeze } else { Need::Nothing };
        };
        let is_full = current.entries() + frozen.entries() >= self.limits.entries
            || current.bytes() + frozen.bytes() >= self.limits.bytes;
        if is_full { Need::Writing } else { Need::Nothing }
    }

    /// Takes what a turn changed, which is durable in the journal, as entries of it.
    pub fn commit(&self, writes: &[Write], entries: usize) {
        let mut layers = self.layers.write();
        for (key, value) in writes {
            layers.current.put(key, value.as_deref());
        }
        layers.current.add_entries(entries);
    }

    /// Puts an empty layer in the place of the one that takes turns, unless another one is still
    /// being written.
    pub fn freeze(&self) {
        let mut layers = self.layers.write();
        if layers.frozen.is_none() && !layers.current.is_empty() {
            layers.frozen = Some(Arc::new(std::mem::take(&mut layers.current)));
            drop(layers);
            let _progress = self.progress.lock();
            self.changed.notify_all();
        }
    }

    /// Writes what is frozen as tables, durably. What could not be written stays pending, and
    /// nothing is written any more.
    pub fn write_frozen(&self) -> Result<(), Fault> {
        let _writing = self.writing.lock();
        self.check()?;
        let Some(frozen) = self.layers.read().frozen.clone() else {
            return Ok(());
        };
        let started = Instant::now();
        let written = self.records.write_tables(&mut |take| frozen.write(take));

        if written.is_ok() {
            self.layers.write().frozen = None;
            let took_ms = started.elapsed().as_millis();
            tracing::debug!(entries = frozen.entries(), took_ms, "wrote what turns had changed");
        }
        let mut progress = self.progress.lock();
        progress.failed = written.clone().err();
        self.changed.notify_all();
        written
    }

    /// Writes everything.
    pub fn write_all(&self) -> Result<(), Fault> {
        self.write_frozen()?;
        self.freeze();
        self.write_frozen()
    }

    /// Waits until nothing is frozen. Where no thread writes, the caller does.
    fn wait_for_writer(&self) -> Result<(), Fault> {
        let mut progress = self.progress.lock();
        if !progress.has_thread {
            drop(progress);
            return self.write_frozen();
        }
        while progress.failed.is_none() && self.layers.read().frozen.is_some() {
            self.changed.wait(&mut progress);
        }
        Ok(())
    }

    /// Records by their keys as they are at one moment: all that a turn changed, or nothing of it.
    pub fn get_all(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let (found, written) = {
            let layers = self.layers.read();
            let found: Vec<_> = keys.iter().map(|key| layers.get(key)).collect();
            let is_whole = found.iter().all(Option::is_some);
            (found, (!is_whole).then(|| self.records.view()))
        };
        let Some(written) = written else {
            return Ok(found.into_iter().flatten().collect());
        };
        let pairs = keys.iter().zip(found);
        pairs.map(|(key, found)| found.map_or_else(|| written.get(key), Ok)).collect()
    }

    /// Records of the first of these keys, in one pass over fjall for as long as they lie side by
    /// side there: none when the keys are few or in no order.
    pub fn get_neighbours(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut found = Vec::new();
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Ok(found) };
        if keys.len() < PASS_LEN_MIN || !keys.is_sorted() {
            return Ok(found);
        }

        // Before the pass, since what is frozen may get to fjall in between.
        let pending: Vec<_> = {
            let layers = self.layers.read();
            keys.iter().map(|key| layers.get(key)).collect()
        };
        let mut others = 0;
        let mut is_dense = true;
        let range = first.clone()..[&last[..], &[0]].concat();
        self.records.scan(range, false, &mut |key, value| {
            while keys.get(found.len()).is_some_and(|wanted| wanted[..] < *key) {
                found.push(None);
            }
            match keys.get(found.len()) {
                Some(wanted) if wanted[..] == *key => found.push(Some(value.to_vec())),
                _ => others += 1,
            }
            is_dense = others <= OTHERS_PER_KEY_MAX * (PASS_LEN_MIN + found.len());
            Ok(if is_dense { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;

        if is_dense {
            found.resize(keys.len(), None);
        }
        for (value, pending) in found.iter_mut().zip(pending) {
            if let Some(pending) = pending {
                *value = pending;
            }
        }
        Ok(found)
    }

    fn fail(&self, why: &str) {
        self.progress.lock().failed = Some(Fault::Io(why.to_owned()));
        self.changed.notify_all();
    }

    /// Writes what is frozen, whenever something is, until it is stopped or fails.
    fn work(&self) -> Result<(), Fault> {
        loop {
            self.write_frozen()?;
            let mut progress = self.progress.lock();
            while !progress.is_stopping && self.layers.read().frozen.is_none() {
                self.changed.wait(&mut progress);
            }
            let is_stopping = progress.is_stopping;
            drop(progress);
            if is_stopping {
                return self.write_all();
            }
        }
    }
}

/// What a turn has to do before it begins.
enum Need {
    Nothing,
    Freeze,
    Writing,
}

impl Layers {
    fn get(&self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.get(key));
        let found = self.current.get(key).or_else(frozen);
        found.map(|value| value.map(<[u8]>::to_vec))
    }

    /// The first changes of a range, or the last ones: about `len_max` of each layer. Returns as
    /// well where those end that are known, unless that is the end of the range.
    fn changes(&self, range: &Range<Vec<u8>>, is_backwards: bool, len_max: usize) -> Part {
        let mut changes = Changes::new();
        let mut end: Option<Vec<u8>> = None;
        for layer in self.frozen.as_deref().into_iter().chain([&self.current]) {
            let mut found = layer.range(range);
            let mut next = || if is_backwards { found.next_back() } else { found.next() };
            let mut last = None;
            for _ in 0..len_max {
                let Some((key, value)) = next() else {
                    last = None;
                    break;
                };
                changes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
                last = Some(key);
            }

            // The layer may have more behind its last one.
            let Some(last) = last else { continue };
            let is_nearer = |end: &Vec<u8>| (last < &end[..]) != is_backwards;
            if end.as_ref().is_none_or(is_nearer) {
                end = Some(last.to_vec());
            }
        }

        let Some(end) = end else {
            return Part { changes, range: range.clone(), rest: None };
        };
        let (before, behind) = if is_backwards {
            (range.start.clone()..end.clone(), end..range.end.clone())
        } else {
            let end = [&end[..], &[0]].concat();
            (range.start.clone()..end.clone(), end..range.end.clone())
        };
        let (range, rest) = if is_backwards { (behind, before) } else { (before, behind) };
        changes.retain(|key, _| range.contains(key));
        Part { changes, range, rest: Some(rest) }
    }
}

type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The changes of the first part of a range.
struct Part {
    changes: Changes,
    range: Range<Vec<u8>>,
    rest: Option<Range<Vec<u8>>>,
}

impl View for Pending {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let pending = self.layers.read().get(key);
        pending.map_or_else(|| self.records.get(key), Ok)
    }

    /// Visits records of one kind: rows of one wallet, due rows or sums. The sums of a programme
    /// are those of one moment.
    fn scan(
        &self,
        mut range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let len_max = if keys::is_total(&range.start) { usize::MAX } else { MERGED_LEN };
        loop {
            let (part, written) = {
                let layers = self.layers.read();
                (layers.changes(&range, is_backwards, len_max), self.records.view())
            };
            let merged = merge(&*written, part.range, part.changes, is_backwards, visit)?;
            match part.rest {
                Some(rest) if merged.is_continue() && rest.start < rest.end => range = rest,
                _ => return Ok(()),
            }
        }
    }
}

/// Visits the records of a range as changes have left them.
fn merge(
    written: &dyn View,
    range: Range<Vec<u8>>,
    mut changes: Changes,
    is_backwards: bool,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Error> {
    let next = |changes: &mut Changes| {
        if is_backwards { changes.pop_last() } else { changes.pop_first() }
    };
    let comes_first = |changes: &Changes, key: &[u8]| {
        let first = if is_backwards { changes.last_key_value() } else { changes.first_key_value() };
        first.is_some_and(
            |(first, _)| if is_backwards { first[..] > *key } else { first[..] < *key },
        )
    };

    let mut flow = ControlFlow::Continue(());
    written.scan(range, is_backwards, &mut |key, value| {
        while flow.is_continue() && comes_first(&changes, key) {
            if let Some((key, Some(value))) = next(&mut changes) {
                flow = visit(&key, &value)?;
            }
        }
        if flow.is_continue() {
            flow = match changes.remove(key) {
                None => visit(key, value)?,
                Some(Some(value)) => visit(key, &value)?,
                Some(None) => flow,
            };
        }
        Ok(flow)
    })?;

    while flow.is_continue()
        && let Some((key, value)) = next(&mut changes)
    {
        if let Some(value) = value {
            flow = visit(&key, &value)?;
        }
    }
    Ok(flow)
}

impl Writer {
    /// Starts the thread.
    pub fn start(pending: &Arc<Pending>) -> Result<Self, Error> {
        let own = Arc::clone(pending);
        let builder = std::thread::Builder::new().name("points-records".to_owned());
        let thread = builder.spawn(move || {
            let worked = std::panic::catch_unwind(AssertUnwindSafe(|| own.work()));
            match worked {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => tracing::error!(?fault, "the state of points was not written"),
                Err(_) => own.fail("writing them panicked, which is a defect of raingauge"),
            }
        });
        let thread = thread.map_err(|error| Error::Io(error.to_string()))?;
        pending.progress.lock().has_thread = true;
        Ok(Self { pending: Arc::clone(pending), thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.pending.progress.lock().is_stopping = true;
        self.pending.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
