//! A disk in memory that tears, fills up, fails and forgets, for tests.
//!
//! It keeps two states: what processes see, and what survives a power cut. A sync moves writes and
//! changed names from the first state to the second. A power cut may also preserve any part of the
//! unsynced rest. A sync that fails forgets what it should have written, as Linux does: the pages
//! count as clean, and a later sync writes none of them.

use super::{File, Folder};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Longest piece of a write that is kept or lost as a unit, in bytes.
const PIECE_LEN_MAX: usize = 64;

/// A deterministic generator of random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies in the middle of the call. Every later call fails until [`Disk::restart`].
    Kill,
    /// The disk is full until [`Disk::relieve`].
    Full,
    /// No file can be opened or created until [`Disk::relieve`].
    NoHandles,
    /// The next sync fails and forgets what it should have written.
    SyncFails,
    /// One call fails.
    CallFails,
    /// One call panics.
    Panics,
}

/// What a sync makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// A block that was appended.
    Block,
    /// The header of a new segment.
    Header,
    /// A segment that was shortened because a block did not fit.
    TakenBack,
    /// A segment that an earlier process wrote.
    ReadSegment,
    /// Identities.
    Run,
    /// The name of a new segment.
    SegmentName,
    /// The name of a run.
    RunName,
    /// The removal of a segment.
    Removal,
    /// Names that an earlier process left.
    ReadNames,
}

impl Synced {
    pub const ALL: [Self; 9] = [
        Self::Block,
        Self::Header,
        Self::TakenBack,
        Self::ReadSegment,
        Self::Run,
        Self::SegmentName,
        Self::RunName,
        Self::Removal,
        Self::ReadNames,
    ];
}

#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

struct State {
    random: Random,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the last sync of the folder.
    renamed: Vec<(Process, NameChange)>,
    process: Process,
    nodes: Vec<Node>,
    faults: Faults,
    /// A sync that does nothing.
    left_out: Option<Synced>,
}

/// Current and scheduled faults.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// A fault, and the number of calls before it.
    coming: Option<(usize, Fault)>,
    is_dead: bool,
    is_full: bool,
    has_no_handles: bool,
    sync_fails: bool,
}

/// The number of a process.
type Process = usize;

#[derive(Clone)]
enum NameChange {
    Put(String, usize),
    Remove(String),
    Rename(String, String),
}

struct Node {
    is_segment: bool,
    bytes: Vec<u8>,
    durable: Vec<u8>,
    dirty: Vec<(Process, Change)>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Open,
    Create,
    Write,
    Sync,
    Other,
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(seed),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renamed: Vec::new(),
            process: 0,
            nodes: Vec::new(),
            faults: Faults::default(),
            left_out: None,
        })))
    }

    /// The same disk, on which one kind of sync does nothing, as if the program did not call it.
    pub fn without(self, left_out: Synced) -> Self {
        self.0.lock().left_out = Some(left_out);
        self
    }

    /// Schedules a fault after this number of calls.
    pub fn fail_after(&self, calls: usize, fault: Fault) {
        self.0.lock().faults.coming = Some((calls, fault));
    }

    /// Whether a fault is active or scheduled.
    pub fn is_troubled(&self) -> bool {
        let faults = self.0.lock().faults;
        faults.coming.is_some()
            || faults.is_dead
            || faults.is_full
            || faults.has_no_handles
            || faults.sync_fails
    }

    pub fn is_dead(&self) -> bool {
        self.0.lock().faults.is_dead
    }

    /// Inspects the disk without faults, then restores them.
    pub fn calmly<T>(&self, look: impl FnOnce() -> T) -> T {
        let held = {
            let mut state = self.0.lock();
            let faults = state.faults;
            state.faults = Faults::default();
            faults
        };
        let seen = look();
        self.0.lock().faults = held;
        seen
    }

    /// Clears all faults.
    pub fn relieve(&self) {
        let mut state = self.0.lock();
        state.faults = Faults { is_dead: state.faults.is_dead, ..Faults::default() };
    }

    /// Starts a new process, which sees what the previous one wrote, synced or not.
    pub fn restart(&self) {
        self.relieve();
        let mut state = self.0.lock();
        state.faults.is_dead = false;
        state.process += 1;
    }

    /// Cuts the power: unsynced changes survive in parts, or not at all.
    pub fn cut_power(&self) {
        self.restart();
        let mut guard = self.0.lock();
        let State { random, nodes, names, durable_names, renamed, .. } = &mut *guard;

        for node in nodes {
            for (_, change) in std::mem::take(&mut node.dirty) {
                survive(&mut node.durable, &change, random);
            }
            node.bytes.clone_from(&node.durable);
        }

        for (_, change) in std::mem::take(renamed) {
            if random.chance(50) {
                apply_name(durable_names, &change);
            }
        }

        names.clone_from(durable_names);
    }

    /// All files as processes see them.
    pub fn picture(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.lock();
        state
            .names
            .iter()
            .map(|(name, node)| (name.clone(), state.nodes[*node].bytes.clone()))
            .collect()
    }

    /// Flips bits of one byte; flipping them again restores it.
    pub fn damage(&self, name: &str, at: usize, bits: u8) {
        let mut state = self.0.lock();
        let node = state.names[name];
        let node = &mut state.nodes[node];
        node.bytes[at] ^= bits;

        if let Some(byte) = node.durable.get_mut(at) {
            *byte ^= bits;
        }

        for change in &mut node.dirty {
            if let (_, Change::Write(begin, bytes)) = change
                && let Some(byte) = at.checked_sub(*begin).and_then(|at| bytes.get_mut(at))
            {
                *byte ^= bits;
            }
        }
    }

    /// Triggers the scheduled fault when it is due. Returns the error of a call that fails.
    fn begin(state: &mut State, call: Call) -> io::Result<()> {
        if state.faults.is_dead {
            return Err(io::Error::other("the process is dead"));
        }
        let fault = match &mut state.faults.coming {
            Some((0, fault)) => Some(*fault),
            Some((calls, _)) => {
                *calls -= 1;
                None
            }
            None => None,
        };

        if let Some(fault) = fault {
            state.faults.coming = None;
            match fault {
                Fault::Kill => {
                    state.faults.is_dead = true;
                    return Err(io::Error::other("the process dies"));
                }
                Fault::Full => state.faults.is_full = true,
                Fault::NoHandles => state.faults.has_no_handles = true,
                Fault::SyncFails => state.faults.sync_fails = true,
                Fault::Panics => panic!("as the test wants it"),
                Fault::CallFails if call != Call::Sync => {
                    return Err(io::Error::other("an error of the disk"));
                }
                Fault::CallFails => state.faults.sync_fails = true,
            }
        }

        match call {
            Call::Create if state.faults.is_full => Err(ErrorKind::StorageFull.into()),
            Call::Open | Call::Create if state.faults.has_no_handles => {
                Err(io::Error::from_raw_os_error(24))
            }
            _ => Ok(()),
        }
    }
}

/// Applies the parts of a change that survive a power cut.
fn survive(durable: &mut Vec<u8>, change: &Change, random: &mut Random) {
    match change {
        Change::Truncate(_) if random.chance(50) => apply(durable, change),
        Change::Truncate(_) => {}
        Change::Write(at, bytes) => {
            let percent = [0, 50, 90, 100][random.below(4)];
            let mut done = 0;
            while done < bytes.len() {
                let piece = (1 + random.below(PIECE_LEN_MAX)).min(bytes.len() - done);
                if random.chance(percent) {
                    apply(durable, &Change::Write(at + done, bytes[done..done + piece].to_vec()));
                }
                done += piece;
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Truncate(len) => bytes.resize(*len, 0),
        Change::Write(at, written) => {
            let end = at + written.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*at..end].copy_from_slice(written);
        }
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Put(name, node) => {
            names.insert(name.clone(), *node);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
    }
}

impl Disk {
    fn change_name(&self, change: NameChange) -> io::Result<()> {
        let mut state = self.0.lock();
        Self::begin(&mut state, Call::Other)?;

        let name = match &change {
            NameChange::Put(..) => None,
            NameChange::Remove(name) | NameChange::Rename(name, _) => Some(name),
        };
        if name.is_some_and(|name| !state.names.contains_key(name)) {
            return Err(ErrorKind::NotFound.into());
        }
        apply_name(&mut state.names, &change);

        let process = state.process;
        state.renamed.push((process, change));
        Ok(())
    }

    fn file(&self, node: usize) -> Arc<dyn File> {
        Arc::new(SimulatedFile { disk: self.clone(), node })
    }
}

impl Folder for Disk {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        Self::begin(&mut state, Call::Read)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.0.lock();
        Self::begin(&mut state, Call::Open)?;
        let node = state.names.get(name).copied().ok_or(ErrorKind::NotFound)?;
        Ok(self.file(node))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.0.lock();
        Self::begin(&mut state, Call::Create)?;

        let process = state.process;
        if let Some(node) = state.names.get(name).copied() {
            state.nodes[node].bytes.clear();
            state.nodes[node].dirty.push((process, Change::Truncate(0)));
            return Ok(self.file(node));
        }

        let node = state.nodes.len();
        let is_segment = is_segment(name);
        state.nodes.push(Node {
            is_segment,
            bytes: Vec::new(),
            durable: Vec::new(),
            dirty: Vec::new(),
        });
        state.names.insert(name.to_owned(), node);
        state.renamed.push((process, NameChange::Put(name.to_owned(), node)));

        Ok(self.file(node))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_name(NameChange::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_name(NameChange::Remove(name.to_owned()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut guard = self.0.lock();
        Self::begin(&mut guard, Call::Sync)?;
        let State { durable_names, renamed, process, faults, left_out, .. } = &mut *guard;
        if std::mem::take(&mut faults.sync_fails) {
            return Err(io::Error::from_raw_os_error(5));
        }
        if left_out.is_none_or(|left_out| what_names(renamed, *process) != Some(left_out)) {
            std::mem::take(renamed)
                .iter()
                .for_each(|(_, change)| apply_name(durable_names, change));
        }
        Ok(())
    }
}

fn is_segment(name: &str) -> bool {
    [".log", ".book", ".objects"].into_iter().any(|suffix| name.ends_with(suffix))
}

/// What the sync of a folder makes durable.
fn what_names(renamed: &[(Process, NameChange)], process: Process) -> Option<Synced> {
    if renamed.iter().any(|(by, _)| *by != process) {
        return Some(Synced::ReadNames);
    }
    renamed.iter().find_map(|(_, change)| match change {
        NameChange::Put(name, _) if is_segment(name) => Some(Synced::SegmentName),
        NameChange::Remove(name) if is_segment(name) => Some(Synced::Removal),
        NameChange::Rename(..) => Some(Synced::RunName),
        _ => None,
    })
}

/// What the sync of a file makes durable.
fn what_bytes(node: &Node, process: Process) -> Option<Synced> {
    if !node.is_segment {
        return Some(Synced::Run);
    }
    let any = |is_it: fn(&Change) -> bool| node.dirty.iter().any(|(_, change)| is_it(change));
    let has_header = any(|change| matches!(change, Change::Write(0, _)));
    let has_block = any(|change| matches!(change, Change::Write(1.., _)));
    let is_cut = any(|change| matches!(change, Change::Truncate(_)));
    match (has_header, has_block, is_cut) {
        (true, true, _) => Some(Synced::ReadSegment),
        (true, false, _) => Some(Synced::Header),
        (false, _, true) => Some(Synced::TakenBack),
        (false, true, false) if node.dirty.iter().all(|(by, _)| *by == process) => {
            Some(Synced::Block)
        }
        _ => None,
    }
}

struct SimulatedFile {
    disk: Disk,
    node: usize,
}

impl File for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        let state = self.disk.0.lock();
        Ok(state.nodes[self.node].bytes.len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        Disk::begin(&mut state, Call::Read)?;
        let there = &state.nodes[self.node].bytes;
        let read =
            there.get(at as usize..at as usize + bytes.len()).ok_or(ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(read);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut guard = self.disk.0.lock();
        if guard.faults.is_dead {
            return Err(io::Error::other("the process is dead"));
        }

        let begun = Disk::begin(&mut guard, Call::Write);
        let State { nodes, random, faults, process, .. } = &mut *guard;
        let node = &mut nodes[self.node];
        let grows = at as usize + bytes.len() > node.bytes.len();
        let failure = match begun {
            Err(error) => Some(error),
            Ok(()) if faults.is_full && grows => Some(ErrorKind::StorageFull.into()),
            Ok(()) => None,
        };

        // A call that fails has written a part.
        let len = if failure.is_some() { random.below(bytes.len() + 1) } else { bytes.len() };
        let change = Change::Write(at as usize, bytes[..len].to_vec());
        apply(&mut node.bytes, &change);
        node.dirty.push((*process, change));

        failure.map_or(Ok(()), Err)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        Disk::begin(&mut state, Call::Other)?;
        let process = state.process;
        let node = &mut state.nodes[self.node];
        let change = Change::Truncate(len as usize);
        apply(&mut node.bytes, &change);
        node.dirty.push((process, change));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut guard = self.disk.0.lock();
        Disk::begin(&mut guard, Call::Sync)?;

        let State { nodes, random, process, faults, left_out, .. } = &mut *guard;
        let node = &mut nodes[self.node];
        if left_out.is_some() && what_bytes(node, *process) == *left_out {
            return Ok(());
        }

        let dirty = std::mem::take(&mut node.dirty);
        if std::mem::take(&mut faults.sync_fails) {
            dirty.iter().for_each(|(_, change)| survive(&mut node.durable, change, random));
            return Err(io::Error::from_raw_os_error(5));
        }

        dirty.iter().for_each(|(_, change)| apply(&mut node.durable, change));

        // The length is stored apart from the contents and survives.
        node.durable.resize(node.bytes.len(), 0);
        Ok(())
    }
}
