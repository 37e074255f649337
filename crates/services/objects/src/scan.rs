//! Walks over the keys of a database: SCAN, KEYS, RANDOMKEY.

use crate::answer::{Answer, Budget, Page, Range};
use crate::failures;
use crate::limits::{KEYS_LEN_MAX, NAMES_PAGE_LEN, SCAN_COUNT_MAX, SCAN_PLACES_MAX};
use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_ports::objects::{FoundHead, ObjectStore};
use raingauge_resp::{Arguments, Failure, glob};
use raingauge_values::Head;
use rand::Rng as _;
use std::collections::HashMap;

/// Bytes of a name that a cursor holds.
const CURSOR_NAME_LEN: usize = 3;
/// Bits of a cursor that number its place. Clients that keep numbers as doubles know those below
/// 2^53.
const NUMBER_BITS: u32 = 53 - 8 * CURSOR_NAME_LEN as u32;
const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;

/// The places of SCAN that clients may continue from.
///
/// A cursor holds the first bytes of the last name and the number of a place. No two places have
/// the same number. When the place is forgotten, the walk goes on from the bytes: it repeats keys,
/// and misses none.
pub(crate) struct Places(Mutex<Ring>);

struct Ring {
    /// The newest places, by their numbers modulo [`SCAN_PLACES_MAX`].
    places: HashMap<u64, Place>,
    newest: u64,
}

struct Place {
    number: u64,
    database: u8,
    name: Bytes,
}

impl Default for Places {
    /// Numbers begin anywhere, so that cursors of an earlier process are not taken for new ones.
    fn default() -> Self {
        let newest = rand::rng().random_range(1..=NUMBER_MAX);
        Self(Mutex::new(Ring { places: HashMap::new(), newest }))
    }
}

impl Places {
    /// The cursor of a place. Never 0, which ends a walk.
    fn cursor(&self, database: u8, name: &Bytes) -> u64 {
        let mut ring = self.0.lock();
        let number = ring.newest % NUMBER_MAX + 1;
        ring.newest = number;

        let place = Place { number, database, name: name.clone() };
        ring.places.insert(number % SCAN_PLACES_MAX as u64, place);
        leading(name) << NUMBER_BITS | number
    }

    /// The name behind which a walk goes on; `None` begins.
    fn after(&self, database: u8, cursor: u64) -> Option<Bytes> {
        if cursor == 0 {
            return None;
        }

        let number = cursor & NUMBER_MAX;
        let ring = self.0.lock();
        let place = ring.places.get(&(number % SCAN_PLACES_MAX as u64));
        if let Some(place) = place.filter(|one| (one.number, one.database) == (number, database)) {
            return Some(place.name.clone());
        }

        let before = (cursor >> NUMBER_BITS).checked_sub(1)?;
        Some(Bytes::copy_from_slice(&before.to_be_bytes()[8 - CURSOR_NAME_LEN..]))
    }
}

/// The first bytes of a name, as a number.
fn leading(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(CURSOR_NAME_LEN);
    bytes[8 - CURSOR_NAME_LEN..][..len].copy_from_slice(&name[..len]);
    u64::from_be_bytes(bytes)
}

/// What a SCAN asks for.
pub(crate) struct Walk<'a> {
    cursor: u64,
    count: usize,
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> Walk<'a> {
    pub(crate) fn parse(arguments: Arguments<'a>) -> Result<Self, Failure> {
        let mut walk = Self { cursor: arguments.cursor(1)?, count: 10, pattern: None, kind: None };

        let mut at = 2;
        while at < arguments.len() {
            let value = arguments.get(at + 1).ok_or(Failure::Syntax)?;
            if arguments.is(at, "count") {
                let count = arguments.integer(at + 1)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                walk.count = count.ok_or(Failure::Syntax)?.min(SCAN_COUNT_MAX);
            } else if arguments.is(at, "match") {
                walk.pattern = Some(value);
            } else if arguments.is(at, "type") {
                walk.kind = Some(value);
            } else {
                return Err(Failure::Syntax);
            }
            at += 2;
        }
        Ok(walk)
    }

    /// Whether a key is asked for, of which the type is known or not.
    pub(crate) fn wants(&self, name: &[u8], kind: Option<&str>) -> bool {
        let is_matched = |pattern| glob::matches(pattern, name, false);
        let is_kind =
            |asked: &[u8]| kind.is_none_or(|kind| asked.eq_ignore_ascii_case(kind.as_bytes()));
        self.pattern.is_none_or(is_matched) && self.kind.is_none_or(is_kind)
    }

    fn wants_found(&self, found: &FoundHead, expired_ms: i64) -> bool {
        match Head::parse(&found.head) {
            Ok(head) => {
                is_live(&head, expired_ms) && self.wants(&found.name, Some(head.kind.name()))
            }
            Err(_) => self.wants(&found.name, None),
        }
    }
}

fn is_live(head: &Head<'_>, expired_ms: i64) -> bool {
    head.expires_ms.is_none_or(|expires_ms| expires_ms > expired_ms)
}

/// Whether a key is there; one that cannot be decoded is.
fn is_found(found: &FoundHead, expired_ms: i64) -> bool {
    Head::parse(&found.head).map_or(true, |head| is_live(&head, expired_ms))
}

/// One step of SCAN.
pub(crate) async fn scan(
    store: &dyn ObjectStore,
    places: &Places,
    database: u8,
    expired_ms: i64,
    arguments: Arguments<'_>,
    budget: &mut Budget,
) -> Result<Answer, Failure> {
    let walk = Walk::parse(arguments)?;
    let after = places.after(database, walk.cursor);
    let page = store.scan(database, after.clone(), walk.count).await;
    let page = page.map_err(|error| failures::of_store(&error))?;

    let last = page.last().filter(|_| page.len() >= walk.count);
    let until = last.map(|last| last.name.clone());
    let cursor = until.as_ref().map_or(0, |last| places.cursor(database, last));
    let wanted = page.into_iter().filter(|found| walk.wants_found(found, expired_ms));
    let mut names = Vec::new();
    budget.take(wanted.map(|found| found.name), &mut names)?;
    Ok(Answer::Page(Page { cursor, names, range: Range { after, until } }))
}

/// All names that match a pattern.
pub(crate) async fn keys(
    store: &dyn ObjectStore,
    database: u8,
    expired_ms: i64,
    pattern: &[u8],
    budget: &mut Budget,
) -> Result<Answer, Failure> {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let prefix = &pattern[..pattern.iter().position(special).unwrap_or(pattern.len())];
    let mut after = before(prefix);
    let mut names = Vec::new();
    loop {
        let page = store.scan(database, after.take(), NAMES_PAGE_LEN).await;
        let page = page.map_err(|error| failures::of_store(&error))?;
        let len = page.len();
        after = page.last().map(|last| last.name.clone());
        let is_past = |name: &Bytes| name[..] > *prefix && !name.starts_with(prefix);
        let is_over = len < NAMES_PAGE_LEN || after.as_ref().is_some_and(is_past);

        let wanted = page.into_iter().filter(|found| {
            glob::matches(pattern, &found.name, false) && is_found(found, expired_ms)
        });
        budget.take(wanted.map(|found| found.name), &mut names)?;
        if names.len() > KEYS_LEN_MAX {
            return Err(Failure::owned(format!(
                "ERR more than {KEYS_LEN_MAX} keys match: walk over them with SCAN"
            )));
        }
        if is_over {
            return Ok(Answer::Names(names));
        }
    }
}

/// Visits the names of all keys, in their order.
pub(crate) async fn visit(
    store: &dyn ObjectStore,
    database: u8,
    expired_ms: i64,
    mut visit: impl FnMut(&Bytes),
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = store.scan(database, after.take(), NAMES_PAGE_LEN).await;
        let page = page.map_err(|error| failures::of_store(&error))?;
        let names = page.iter().filter(|found| is_found(found, expired_ms));
        names.for_each(|found| visit(&found.name));
        if page.len() < NAMES_PAGE_LEN {
            return Ok(());
        }
        after = page.last().map(|last| last.name.clone());
    }
}

/// A name behind which all names with a prefix lie; `None` when that is the beginning.
fn before(prefix: &[u8]) -> Option<Bytes> {
    let (last, rest) = prefix.split_last()?;
    let mut name = rest.to_vec();
    if let Some(smaller) = last.checked_sub(1) {
        name.push(smaller);
        name.extend_from_slice(&[0xff; 8]);
    } else if rest.is_empty() {
        return None;
    }
    Some(name.into())
}

/// Keys of which any is a random one: all of a small database; of a large one, the neighbours of
/// `resident`, or of a random place.
pub(crate) async fn random(
    store: &dyn ObjectStore,
    database: u8,
    expired_ms: i64,
    resident: Option<Bytes>,
    budget: &mut Budget,
) -> Result<Answer, Failure> {
    let page = store.scan(database, None, NAMES_PAGE_LEN).await;
    let mut page = page.map_err(|error| failures::of_store(&error))?;
    if page.len() == NAMES_PAGE_LEN && rand::rng().random_bool(0.9) {
        let place = || Bytes::copy_from_slice(&rand::rng().random::<[u8; 4]>());
        let after = resident.unwrap_or_else(place);
        let behind = store.scan(database, Some(after), NAMES_PAGE_LEN).await;
        let behind = behind.map_err(|error| failures::of_store(&error))?;
        if !behind.is_empty() {
            page = behind;
        }
    }

    let wanted = page.into_iter().filter(|found| is_found(found, expired_ms));
    let mut names = Vec::new();
    let taken = budget.take(wanted.map(|found| found.name), &mut names);
    // One of those that fit is random enough.
    if names.is_empty() {
        taken?;
    }
    Ok(Answer::Any(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_place_repeats_and_misses_nothing() {
        let places = Places::default();
        let name = Bytes::from_static(b"session:17");
        let cursor = places.cursor(0, &name);
        assert_eq!(places.after(0, cursor), Some(name.clone()));
        assert!(places.cursor(0, &Bytes::from_static(&[0xff; 3])) < 1 << 53);

        let after = Places::default().after(0, cursor).expect("a place");
        assert!(after < name && after < Bytes::from_static(b"ses"));
        assert!(after >= Bytes::from_static(b"ser"));
        assert_eq!(places.after(1, cursor), Some(after.clone()));

        // Another place with names that begin alike is not taken for it.
        for number in 0..2 * SCAN_PLACES_MAX {
            let later = places.cursor(0, &format!("session:9{number}").into());
            assert_ne!(later, cursor);
            assert!(places.after(0, cursor).is_some_and(|after| after <= name));
        }
        assert_eq!(places.after(0, cursor), Some(after));
        assert!(places.0.lock().places.len() <= SCAN_PLACES_MAX);
    }

    #[test]
    fn all_names_with_a_prefix_lie_behind_what_is_before_it() {
        assert_eq!(before(b""), None);
        assert_eq!(before(b"\0"), None);
        assert!(before(b"ab").expect("a name") < Bytes::from_static(b"ab"));
        assert_eq!(before(b"a\0"), Some(Bytes::from_static(b"a")));
    }
}
