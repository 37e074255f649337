//! Brings missing objects into memory, many at a time, without the lock.

use crate::failures;
use crate::keyspace::{Claim, Loaded, LoadedObject, Miss};
use crate::limits::{LARGE_LOADS_MAX, LOAD_BYTES, LOAD_KEYS_MAX, LOAD_PAGE_BYTES};
use bytes::Bytes;
use raingauge_ports::objects::{Error, Key, ObjectStore};
use raingauge_resp::Failure;
use raingauge_values::{Body, Damaged, Head, Object, Value, head};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many keys one call asks for, at first.
const KEYS_FIRST: usize = 128;
/// Fewest keys that one call asks for.
const KEYS_MIN: usize = 4;

/// What one connection loaded and has not handed to the keyspace yet.
pub(crate) struct Luggage {
    pub loaded: Vec<Loaded>,
    /// Keys whose objects are too large to be in memory, or damaged. Each is kept with the miss
    /// that tells whether the key has changed since.
    refusals: HashMap<(u8, Bytes), (Miss, Failure)>,
    /// How many keys one call asks for: fewer after large objects, more after small ones.
    keys: usize,
}

impl Default for Luggage {
    fn default() -> Self {
        Self { loaded: Vec::new(), refusals: HashMap::new(), keys: KEYS_FIRST }
    }
}

impl Luggage {
    /// Why an object of the store cannot be in memory.
    pub(crate) fn refusal(&self, database: u8, name: &[u8]) -> Option<&Failure> {
        if self.refusals.is_empty() {
            return None;
        }
        let (miss, failure) = self.refusals.get(&(database, Bytes::copy_from_slice(name)))?;
        (!miss.is_stale()).then_some(failure)
    }

    /// The keys that could not be read.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &Key> {
        self.refusals.values().map(|(miss, _)| &miss.key)
    }

    /// How many keys one call should ask for.
    pub(crate) fn keys_max(&self) -> usize {
        self.keys
    }

    pub(crate) fn refuse(&mut self, miss: Miss, failure: Failure) {
        self.refusals.insert((miss.key.database, miss.key.name.clone()), (miss, failure));
    }
}

/// Reads objects from a store.
#[derive(Clone)]
pub(crate) struct Loader {
    store: Arc<dyn ObjectStore>,
    object_bytes_max: usize,
    /// Bytes of the objects that one command may need together.
    together_bytes_max: usize,
    /// One permit for each connection that may load large objects now.
    large: Arc<Semaphore>,
}

/// Entries of a wide object that were read.
struct Entries {
    read: Vec<(Bytes, Bytes)>,
    bytes: usize,
    /// The last name.
    after: Option<Bytes>,
    has_more: bool,
}

impl Default for Entries {
    fn default() -> Self {
        Self { read: Vec::new(), bytes: 0, after: None, has_more: true }
    }
}

/// What became of one object.
enum Read {
    /// It is there, with the claim if it is large.
    Done(LoadedObject, Option<Claim>),
    /// It is large, and has to wait until what was loaded before is resident.
    Later,
}

impl From<LoadedObject> for Read {
    fn from(object: LoadedObject) -> Self {
        Self::Done(object, None)
    }
}

impl Loader {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        object_bytes_max: usize,
        together_bytes_max: usize,
    ) -> Self {
        let large = Arc::new(Semaphore::new(LARGE_LOADS_MAX));
        Self { store, object_bytes_max, together_bytes_max, large }
    }

    /// Loads what was missed, into the luggage: heads, a few megabytes at a time, and the entries
    /// of wide objects. `needed` of the misses belong to the command that waits; the others are
    /// left out once a few megabytes are there. Objects that had expired at `now_ms` are not read.
    /// A large object waits for its turn, unless another one is in the luggage: then the rest is
    /// left to a later call, since nobody may wait who others wait for.
    pub(crate) async fn load(
        &self,
        mut misses: Vec<Miss>,
        needed: usize,
        now_ms: i64,
        luggage: &mut Luggage,
    ) -> Result<(), Failure> {
        let mut bytes = 0;
        let mut read = 0;
        let mut is_first_large = true;
        while !misses.is_empty() && (read < needed || bytes <= LOAD_BYTES) {
            let keys = misses.iter().take(LOAD_KEYS_MAX).map(|miss| miss.key.clone()).collect();
            let heads = self.store.heads(keys, LOAD_BYTES).await;
            let heads = heads.map_err(|error| failures::of_store(&error))?;

            for (miss, head) in misses.drain(..heads.len()).zip(heads) {
                if read >= needed && bytes > LOAD_BYTES {
                    break;
                }
                if bytes > self.together_bytes_max {
                    return Err(failures::too_much_together(self.together_bytes_max));
                }

                read += 1;
                match self.object(&miss, head, now_ms, is_first_large).await {
                    Ok(Read::Done(object, claim)) => {
                        if let LoadedObject::Whole(object) = &object {
                            bytes += object.weight();
                        }
                        is_first_large &= claim.is_none();
                        luggage.loaded.push(Loaded { miss, object, claim });
                    }
                    Ok(Read::Later) => return Ok(()),
                    Err(failure) => luggage.refuse(miss, failure),
                }
            }
        }

        luggage.keys = match bytes {
            LOAD_BYTES.. => (luggage.keys / 2).max(KEYS_MIN),
            _ => (luggage.keys * 2).min(LOAD_KEYS_MAX),
        };
        Ok(())
    }

    async fn object(
        &self,
        miss: &Miss,
        head: Option<Bytes>,
        now_ms: i64,
        is_first_large: bool,
    ) -> Result<Read, Failure> {
        let Some(head) = head else {
            return Ok(LoadedObject::Absent.into());
        };

        // What has expired needs no memory, however large it is.
        let parsed = Head::parse(&head).map_err(|damaged| corrupt(miss, damaged))?;
        if parsed.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            return Ok(LoadedObject::Expired { wide: parsed.wide_id() }.into());
        }

        let bytes_max = self.object_bytes_max.saturating_add(self.object_bytes_max / 4);
        if let Some(object) = head::decode(&head).map_err(|damaged| corrupt(miss, damaged))? {
            return match object.weight() {
                bytes if bytes > bytes_max => Err(self.too_large(miss, bytes)),
                _ => Ok(LoadedObject::Whole(object).into()),
            };
        }

        let Body::Wide { id, count, meta } = parsed.body else {
            return Err(corrupt(miss, Damaged("the head has no entries")));
        };
        let mut entries = Entries::default();
        let mut claim = None;
        while entries.has_more {
            self.read_page(miss, id, bytes_max, &mut entries).await?;
            if entries.has_more && claim.is_none() {
                claim = miss.try_claim(is_first_large.then_some(&self.large));
                if claim.is_none() && !is_first_large {
                    return Ok(Read::Later);
                }
                if claim.is_none() {
                    // Those who wait take no memory.
                    entries = Entries::default();
                    claim = Some(miss.claim(&self.large).await);
                }
                if miss.is_resident() {
                    return Ok(LoadedObject::Resident.into());
                }
            }
        }
        let entries = entries.read;
        if entries.len() as u64 != count {
            let damaged = Damaged("the number of entries differs from the head");
            return Ok(LoadedObject::Changed(corrupt(miss, damaged)).into());
        }
        let value = match Value::load(parsed.kind, meta, entries.len(), entries) {
            Ok(value) if value.weight() > bytes_max => {
                return Err(self.too_large(miss, value.weight()));
            }
            Ok(value) => value,
            Err(damaged) => return Ok(LoadedObject::Changed(corrupt(miss, damaged)).into()),
        };

        let object = Object { expires_ms: parsed.expires_ms, wide: Some(id), ..Object::new(value) };
        Ok(Read::Done(LoadedObject::Whole(object), claim))
    }

    /// Reads further entries of a wide object.
    async fn read_page(
        &self,
        miss: &Miss,
        id: u64,
        bytes_max: usize,
        entries: &mut Entries,
    ) -> Result<(), Failure> {
        let after = entries.after.take();
        let page = self.store.entries(miss.key.database, id, after, LOAD_PAGE_BYTES);
        let page = page.await.map_err(|error| failures::of_store(&error))?;
        let len = |(sub, value): &(Bytes, Bytes)| sub.len() + value.len();
        entries.bytes += page.entries.iter().map(len).sum::<usize>();
        if entries.bytes > bytes_max {
            return Err(self.too_large(miss, entries.bytes));
        }

        entries.after = page.entries.last().map(|(sub, _)| sub.clone());
        entries.has_more = page.has_more && entries.after.is_some();
        entries.read.extend(page.entries);
        Ok(())
    }

    fn too_large(&self, miss: &Miss, bytes: usize) -> Failure {
        failures::too_large(&miss.key.name, bytes, self.object_bytes_max)
    }
}

fn corrupt(miss: &Miss, damaged: Damaged) -> Failure {
    let name = String::from_utf8_lossy(&miss.key.name);
    failures::of_store(&Error::Corrupt(format!("{damaged}, at the key '{name}'")))
}
