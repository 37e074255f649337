//! Which keys a command needs, and whether they are in memory.

use crate::failures;
use crate::keyspace::{Keyspace, Miss};
use crate::loader::Luggage;
use raingauge_ports::objects::{DATABASES, INTERNAL_DATABASE, OBJECT_NAME_LEN_MAX};
use raingauge_resp::{Access, Arguments, Command, Failure, Id, Spec};
use smallvec::SmallVec;
use std::collections::HashSet;

/// Visits the keys of a command: their databases, their names, and how the command uses each.
/// `database` is that of the connection.
pub(crate) fn visit_keys<'a>(
    spec: &Spec,
    arguments: Arguments<'a>,
    database: u8,
    visit: &mut dyn FnMut(u8, &'a [u8], Lookup),
) {
    if spec.id == Id::RainOnce {
        visit(INTERNAL_DATABASE, arguments.at(1), Lookup::Silent);
        let inner = arguments.from(2);
        if let Ok(spec) = Command::of(inner).check()
            && spec.id != Id::RainOnce
        {
            visit_keys(spec, inner, database, visit);
        }
        return;
    }

    let reads = reads(spec.id, arguments);
    spec.key_positions(arguments, |at, access| {
        let used = if access.has(Access::RO) { Lookup::Read } else { Lookup::Silent };
        visit(database, arguments.at(at), reads.unwrap_or(used));
    });
    match spec.id {
        Id::Move => {
            if let Some(target) = database_of(arguments, 2) {
                visit(target, arguments.at(1), Lookup::Silent);
            }
        }
        Id::Copy => {
            // The last one counts.
            let option = (3..arguments.len()).rev().find(|at| arguments.is(*at, "db"));
            if let Some(target) = option.and_then(|at| database_of(arguments, at + 1)) {
                visit(target, arguments.at(2), Lookup::Silent);
            }
        }
        _ => {}
    }
}

/// Whether a key that a command looks for counts as a hit or a miss, as in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Read,
    /// As a read, but no event of a miss.
    Asked,
    Silent,
}

/// How a command looks for all of its keys, where that does not follow from how it uses them: those
/// that it only reads count.
fn reads(id: Id, arguments: Arguments<'_>) -> Option<Lookup> {
    match id {
        Id::Getex | Id::Getdel | Id::Getset => Some(Lookup::Read),
        Id::Set if (3..arguments.len()).any(|at| arguments.is(at, "get")) => Some(Lookup::Read),
        Id::ObjectEncoding | Id::ObjectFreq | Id::ObjectIdletime | Id::ObjectRefcount => {
            Some(Lookup::Asked)
        }
        Id::MemoryUsage => Some(Lookup::Silent),
        _ => None,
    }
}

/// A database of clients that an argument names.
pub(crate) fn database_of(arguments: Arguments<'_>, at: usize) -> Option<u8> {
    let database = arguments.integer(at).ok()?;
    u8::try_from(database).ok().filter(|database| *database < DATABASES)
}

/// What a command needs before it runs.
pub(crate) enum Admission {
    /// Its keys are in memory. The stamp is that of the newest of them, the weight what they take:
    /// the largest, or all together where the command unites them.
    Ready {
        stamp: u64,
        weight: usize,
    },
    Missing,
}

/// Looks for the keys of a command in memory. What has expired is removed. Keys that are not there
/// are added to `misses`.
pub(crate) fn admit(
    keyspace: &mut Keyspace,
    luggage: &Luggage,
    spec: &Spec,
    arguments: Arguments<'_>,
    database: u8,
    misses: &mut Vec<Miss>,
) -> Result<Admission, Failure> {
    let is_blind = is_blind(spec.id, arguments) && !keyspace.looks_for_new();
    let uses = uses_keys(spec.id) && (keyspace.touches() || spec.id == Id::Touch);
    if spec.id == Id::RainOnce
        && let Some(stamp) = kept_stamp(keyspace, arguments, uses)
    {
        return Ok(Admission::Ready { stamp, weight: 0 });
    }

    let missed_before = misses.len();
    let is_union = is_union(spec, arguments);
    let mut needs_id = false;
    let mut newest = 0;
    let mut weight = 0;
    let mut failure = None;
    let mut unread = Vec::new();
    let mut hits = 0;
    let mut absent: SmallVec<[(u8, &[u8], Lookup); 1]> = SmallVec::new();

    visit_keys(spec, arguments, database, &mut |database, name, lookup| {
        if name.len() > OBJECT_NAME_LEN_MAX {
            failure.get_or_insert(failures::name_too_long(OBJECT_NAME_LEN_MAX));
            return;
        }

        let place = keyspace.find(database, name);
        if let Some(place) = place.or_else(|| keyspace.add_flushed(database, name)) {
            let is_found = keyspace.admit(place, uses, &mut newest);
            let taken = keyspace.slot(place).weight;
            weight = if is_union { weight + taken } else { taken.max(weight) };
            match (lookup, is_found) {
                (Lookup::Silent, _) => {}
                (_, true) => hits += 1,
                (_, false) => absent.push((database, name, lookup)),
            }
            return;
        }

        if is_blind {
            return;
        }
        if let Some(refusal) = luggage.refusal(database, name) {
            if matches!(spec.id, Id::Del | Id::Unlink) {
                unread.push((database, name));
            } else {
                failure.get_or_insert(refusal.clone());
            }
        } else {
            needs_id |= database == INTERNAL_DATABASE;
            misses.push(keyspace.miss(database, name));
        }
    });

    match failure {
        // With a kept reply, nothing that is wrong with the keys matters.
        Some(failure) if !needs_id => Err(failure),
        _ if misses.len() > missed_before => Ok(Admission::Missing),
        _ => {
            // A command that starts again looks for all of its keys again.
            keyspace.count_hits(hits);
            for (database, name, lookup) in absent {
                keyspace.count_miss(database, name, lookup == Lookup::Read);
            }
            // Only a command that runs for certain makes them resident, since it removes them.
            unread.iter().for_each(|(database, name)| keyspace.add_unread(*database, name));
            Ok(Admission::Ready { stamp: newest, weight })
        }
    }
}

/// The stamp of the reply that RAIN.ONCE kept under the id of a command, if it is in memory: the
/// command needs nothing else.
fn kept_stamp(keyspace: &mut Keyspace, arguments: Arguments<'_>, uses: bool) -> Option<u64> {
    let place = keyspace.find(INTERNAL_DATABASE, arguments.at(1))?;
    let mut stamp = 0;
    keyspace.admit(place, uses, &mut stamp).then_some(stamp)
}

/// As [`admit`], for a command that waited and finds something at a key, `ready`. It can do without
/// those of its other keys that are not in memory: each of them had nothing when the wait began,
/// and would have woken it. A move needs its target. Returns what the keys take; `None` if one that
/// it needs is missing.
pub(crate) fn admit_woken(
    keyspace: &mut Keyspace,
    spec: &Spec,
    arguments: Arguments<'_>,
    database: u8,
    ready: &[u8],
) -> Option<usize> {
    let uses = keyspace.touches();
    let moves = matches!(spec.id, Id::Blmove | Id::Brpoplpush);
    let mut weight = 0;
    let mut is_missing = false;

    visit_keys(spec, arguments, database, &mut |database, name, _| {
        let place = keyspace.find(database, name);
        match place.or_else(|| keyspace.add_flushed(database, name)) {
            Some(place) => {
                keyspace.admit(place, uses, &mut 0);
                weight = keyspace.slot(place).weight.max(weight);
            }
            None => is_missing |= moves || name == ready,
        }
    });
    (!is_missing).then_some(weight)
}

/// Collects the keys of a command that are not in memory, and not `known` to be missed already.
/// `place` says where the content of a database is.
pub(crate) fn collect_misses<'a>(
    keyspace: &mut Keyspace,
    luggage: &Luggage,
    command: Command<'a>,
    database: u8,
    place: impl Fn(u8) -> u8,
    known: &mut HashSet<(u8, &'a [u8])>,
    misses: &mut Vec<Miss>,
) {
    let Ok(spec) = command.check() else { return };
    if is_blind(spec.id, command.arguments) && !keyspace.looks_for_new() {
        return;
    }

    visit_keys(spec, command.arguments, database, &mut |database, name, _| {
        let database = place(database);
        let is_wanted = keyspace.find(database, name).is_none()
            && name.len() <= OBJECT_NAME_LEN_MAX
            && luggage.refusal(database, name).is_none();
        if is_wanted && known.insert((database, name)) {
            misses.push(keyspace.miss(database, name));
        }
    });
}

/// Whether a command replaces its keys whatever they have, so that nobody has to know.
fn is_blind(id: Id, arguments: Arguments<'_>) -> bool {
    match id {
        Id::Setex | Id::Psetex | Id::Mset => true,
        Id::Set => match arguments.len() {
            3 => true,
            5 => ["ex", "px", "exat", "pxat"].iter().any(|option| arguments.is(3, option)),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a command counts as a use of its keys. Those that ask about keys do not.
fn uses_keys(id: Id) -> bool {
    !matches!(
        id,
        Id::ObjectEncoding
            | Id::ObjectRefcount
            | Id::ObjectIdletime
            | Id::ObjectFreq
            | Id::MemoryUsage
            | Id::Type
            | Id::Ttl
            | Id::Pttl
            | Id::Expiretime
            | Id::Pexpiretime
            | Id::Exists
    )
}

/// Bytes that an entry takes beside its name and value, about.
pub(crate) const ENTRY_BYTES: usize = 64;

/// Refuses a command that would make an object larger than one may be, or a transaction that has
/// changed too much. `weight` is what its keys take in memory.
pub(crate) fn check_growth(
    keyspace: &Keyspace,
    spec: &Spec,
    arguments: Arguments<'_>,
    weight: usize,
) -> Result<(), Failure> {
    let lens = arguments.iter().skip(2).map(|argument| argument.len() + ENTRY_BYTES);
    let bytes = match spec.id {
        Id::Set | Id::Setnx | Id::Setex | Id::Psetex | Id::Getset | Id::Mset | Id::Msetnx => {
            lens.max().unwrap_or_default()
        }
        // A copy is as large as its source, and a move looks at its target itself.
        Id::Copy | Id::Lmove | Id::Blmove | Id::Rpoplpush | Id::Brpoplpush => 0,
        _ => weight + lens.sum::<usize>(),
    };

    let together_bytes_max = keyspace.together_bytes_max();
    if keyspace.changed_bytes() > together_bytes_max {
        return Err(failures::transaction_too_large(together_bytes_max));
    }

    let bytes_max = keyspace.limits().object_bytes_max;
    if bytes > bytes_max {
        return Err(failures::too_large(arguments.get(1).unwrap_or_default(), bytes, bytes_max));
    }
    Ok(())
}

/// Whether the result of a command may be as large as its keys together.
fn is_union(spec: &Spec, arguments: Arguments<'_>) -> bool {
    let unites = |id| matches!(id, Id::Sunionstore | Id::Zunionstore);
    match spec.id {
        Id::RainOnce => Command::of(arguments.from(2)).spec().is_some_and(|spec| unites(spec.id)),
        id => unites(id),
    }
}
