//! Proves that the records of a store agree with each other.
//!
//! ```text
//!   head ──▶ index of expiries      every head that expires has a record at a time of its own
//!     │
//!     └────▶ entries                as many as the head counts; the others belong to dead objects
//! ```

use super::disk::{FjallRecords, Records};
use super::journal::Inspection;
use super::keys::{self, Anchor, DueKey, Generation, Head, Place};
use super::layer::due_times;
use super::{Options, STATE_FOLDER, checked_anchor, checkpoints, open_log, read_dead, recover};
use crate::room::Room;
use crate::store::Fault;
use bytes::Bytes;
use hashbrown::HashMap;
use raingauge_ports::objects::Error;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// What a verification has found to be sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub keys: u64,
    /// Keys that expire.
    pub expiring: u64,
    /// Wide objects.
    pub wide: u64,
    /// Entries of wide objects.
    pub entries: u64,
    /// Dead wide objects whose entries still take room.
    pub dead: u64,
    /// Groups that the records lacked, as after a crash.
    pub behind: u64,
}

/// The first record that contradicts the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The record, for people.
    pub record: String,
    pub why: String,
}

/// What a head says of its object. Only the service that wrote it can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Milliseconds since 1970.
    pub expires_ms: Option<i64>,
    pub wide: Option<WideObject>,
}

/// A wide object as its head describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideObject {
    pub id: u64,
    /// How many entries it has.
    pub count: u64,
}

/// Reads a head. An error tells what is wrong with it.
pub type Describe<'a> = dyn Fn(&Bytes) -> Result<Description, String> + 'a;

/// Why a verification stops.
enum Stop {
    Different(Difference),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.into())
    }
}

/// Applies the end of the log and writes a checkpoint, as a start does it, and compares all records
/// with each other. The store must not be open.
pub fn verify(
    folder: &Path,
    options: &Options,
    describe: &Describe<'_>,
) -> Result<Result<Summary, Difference>, Error> {
    let inspection = Inspection::of(open_log(folder)?, options.segment_bytes)?;
    let (_, end) = inspection.stamps();
    let records = FjallRecords::open(&folder.join(STATE_FOLDER), options)?;
    let behind = end - checked_anchor(&inspection, &records)?.stamp;
    let room = Room::new(folder, options.reserve_bytes);
    let shared = recover(inspection, Box::new(records), room, options)?;
    checkpoints::checkpoint(&shared)?;

    let anchor = shared.state.lock().anchor.clone();
    match compare(&*shared.records, &anchor, describe) {
        Ok(found) => Ok(Ok(Summary { behind, ..found })),
        Err(Stop::Different(difference)) => Ok(Err(difference)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn compare(
    records: &dyn Records,
    anchor: &Anchor,
    describe: &Describe<'_>,
) -> Result<Summary, Stop> {
    check_index(records)?;
    let dead = read_dead(records, anchor)?;
    let mut found =
        Summary { dead: dead.values().map(|ids| ids.len() as u64).sum(), ..Summary::default() };

    let none = BTreeSet::new();
    let expiring = anchor.expiring.unwrap_or_default();
    for (number, ((generation, keys), expiring)) in
        (0..).zip(anchor.databases.into_iter().zip(expiring))
    {
        let dead = dead.get(&generation).unwrap_or(&none);
        let database =
            Database { records, number, generation, dead, next_id: anchor.next_id, describe };
        let before = found.clone();
        let wide = database.check_heads(&mut found)?;
        for (what, counted, stored) in [
            ("keys", keys, found.keys - before.keys),
            ("keys that expire", expiring, found.expiring - before.expiring),
        ] {
            if counted != stored {
                let why =
                    format!("it counts {counted} {what} of database {number}, which has {stored}");
                return Err(different("the position", why));
            }
        }
        database.check_entries(wide, &mut found)?;
    }
    Ok(found)
}

/// Records of the index that lead nowhere are removed later, but all of them can be read.
fn check_index(records: &dyn Records) -> Result<(), Stop> {
    visit(records, Place::Meta, keys::due_range(None, i64::MAX), &mut |key, _| {
        DueKey::decode(key).map(|_| ()).ok_or_else(|| malformed("the index of expiries"))
    })?;
    visit(records, Place::Meta, keys::all_dead(), &mut |key, _| {
        keys::dead_of(key).map(|_| ()).ok_or_else(|| malformed("the list of dead objects"))
    })
}

/// The records of one database.
struct Database<'a> {
    records: &'a dyn Records,
    number: u8,
    generation: Generation,
    /// Dead wide objects.
    dead: &'a BTreeSet<u64>,
    /// The smallest number that no wide object has had.
    next_id: u64,
    describe: &'a Describe<'a>,
}

/// How many entries a head counts, and where it lies.
struct CountedHead {
    count: u64,
    record: String,
}

impl Database<'_> {
    /// Checks all heads. Returns the wide objects to which they lead.
    fn check_heads(&self, found: &mut Summary) -> Result<HashMap<u64, CountedHead>, Stop> {
        let mut wide = HashMap::new();
        let place = Place::Heads(self.generation);
        visit(self.records, place, keys::heads(None, None), &mut |key, value| {
            let name = keys::name_of(key);
            let shown = String::from_utf8_lossy(name);
            let record = format!("the head of {shown:?} in database {}", self.number);
            let head = Head::decode(value).ok_or_else(|| malformed(&record))?;
            let counted = self.check_head(name, &head, &record)?;

            found.keys += 1;
            found.expiring += u64::from(head.expires_ms.is_some());
            if let Some(WideObject { id, count }) = counted {
                found.wide += 1;
                if let Some(other) = wide.insert(id, CountedHead { count, record: record.clone() })
                {
                    let why = format!("{} leads to the same wide object {id}", other.record);
                    return Err(different(&record, why));
                }
            }
            Ok(())
        })?;
        Ok(wide)
    }

    /// Checks a head. Returns the wide object to which it leads.
    fn check_head(
        &self,
        name: &[u8],
        head: &Head,
        record: &str,
    ) -> Result<Option<WideObject>, Stop> {
        let Description { expires_ms, wide } =
            (self.describe)(&head.bytes).map_err(|why| different(record, why))?;
        let id = wide.map(|wide| wide.id);
        if (expires_ms, id) != (head.expires_ms, head.wide) {
            let why = format!(
                "it expires at {expires_ms:?} and leads to {id:?}, but the store has it with {:?} \
                 and {:?}",
                head.expires_ms, head.wide
            );
            return Err(different(record, why));
        }

        if let Some(at_ms) = expires_ms
            && !self.is_indexed(at_ms, name)?
        {
            return Err(different(record, "no record of the index of expiries leads to it"));
        }
        if id.is_some_and(|id| id >= self.next_id) {
            return Err(different(record, "it leads to a number that was never given"));
        }
        if id.is_some_and(|id| self.dead.contains(&id)) {
            return Err(different(record, "it leads to a dead object"));
        }
        Ok(wide)
    }

    fn is_indexed(&self, expires_ms: i64, name: &[u8]) -> Result<bool, Fault> {
        let name = Bytes::copy_from_slice(name);
        for due_ms in due_times(expires_ms) {
            let key = DueKey { due_ms, generation: self.generation, name: name.clone() };
            if self.records.get(Place::Meta, &key.encode())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that each wide object has as many entries as its head counts.
    fn check_entries(
        &self,
        mut wide: HashMap<u64, CountedHead>,
        found: &mut Summary,
    ) -> Result<(), Stop> {
        let mut object: Option<WideObject> = None;
        let place = Place::Entries(self.generation);
        visit(self.records, place, keys::all_entries(), &mut |key, _| {
            let id = keys::id_of(key).ok_or_else(|| malformed("an entry"))?;
            if let Some(object) = object.as_mut().filter(|object| object.id == id) {
                object.count += 1;
                return Ok(());
            }
            if let Some(complete) = object.replace(WideObject { id, count: 1 }) {
                self.check_object(complete, &mut wide, found)?;
            }
            Ok(())
        })?;

        if let Some(complete) = object {
            self.check_object(complete, &mut wide, found)?;
        }
        match wide.into_values().find(|head| head.count > 0) {
            Some(head) => Err(miscounted(&head, 0)),
            None => Ok(()),
        }
    }

    /// Checks the number of entries that an object has.
    fn check_object(
        &self,
        stored: WideObject,
        wide: &mut HashMap<u64, CountedHead>,
        found: &mut Summary,
    ) -> Result<(), Stop> {
        let WideObject { id, count } = stored;
        match wide.remove(&id) {
            Some(head) if head.count != count => return Err(miscounted(&head, count)),
            Some(_) => found.entries += count,
            None if self.dead.contains(&id) => {}
            None => {
                let record = format!("the wide object {id} in database {}", self.number);
                return Err(different(&record, format!("no head leads to its {count} entries")));
            }
        }
        Ok(())
    }
}

/// Called with a key and its value.
type Check<'a> = dyn FnMut(&[u8], Bytes) -> Result<(), Stop> + 'a;

/// Visits a range until a record is different.
fn visit(
    records: &dyn Records,
    place: Place,
    range: Range<Vec<u8>>,
    check: &mut Check<'_>,
) -> Result<(), Stop> {
    let mut checked = Ok(());
    records.scan(place, range, &mut |key, value| {
        checked = check(key, value);
        Ok(if checked.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    checked
}

fn miscounted(head: &CountedHead, stored: u64) -> Stop {
    let why = format!("it counts {} entries, and {stored} are stored", head.count);
    different(&head.record, why)
}

fn malformed(record: &str) -> Stop {
    different(record, "it is malformed")
}

fn different(record: &str, why: impl Into<String>) -> Stop {
    Stop::Different(Difference { record: record.to_owned(), why: why.into() })
}
