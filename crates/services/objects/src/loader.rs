//! Brings missing objects into memory, many at a time, without the lock.

use crate::failures;
use crate::keyspace::{Loaded, LoadedObject, Miss};
use crate::limits::{LOAD_BYTES, LOAD_KEYS_MAX, LOAD_PAGE_BYTES};
use bytes::Bytes;
use raingauge_ports::objects::{Error, ObjectStore};
use raingauge_resp::Failure;
use raingauge_values::{Body, Damaged, Head, Object, Value, head};
use std::collections::HashMap;
use std::sync::Arc;

/// How many keys one call asks for, at first.
const KEYS_FIRST: usize = 128;
/// Fewest keys that one call asks for.
const KEYS_MIN: usize = 4;

/// What one connection loaded and has not handed to the keyspace yet.
pub(crate) struct Luggage {
    pub loaded: Vec<Loaded>,
    /// Keys whose objects are too large to be in memory, or damaged.
    pub refusals: HashMap<(u8, Bytes), Failure>,
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
        self.refusals.get(&(database, Bytes::copy_from_slice(name)))
    }

    /// How many keys one call should ask for.
    pub(crate) fn keys_max(&self) -> usize {
        self.keys
    }

    fn refuse(&mut self, miss: &Miss, failure: Failure) {
        self.refusals.insert((miss.key.database, miss.key.name.clone()), failure);
    }
}

/// Reads objects from a store.
#[derive(Clone)]
pub(crate) struct Loader {
    store: Arc<dyn ObjectStore>,
    object_bytes_max: usize,
    /// Bytes of the objects that one command may need together.
    together_bytes_max: usize,
}

impl Loader {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        object_bytes_max: usize,
        together_bytes_max: usize,
    ) -> Self {
        Self { store, object_bytes_max, together_bytes_max }
    }

    /// Loads what was missed, into the luggage: heads, a few megabytes at a time, and the entries
    /// of wide objects. `needed` of the misses belong to the command that waits; the others are
    /// left out once a few megabytes are there. Objects that had expired at `now_ms` are not read.
    pub(crate) async fn load(
        &self,
        mut misses: Vec<Miss>,
        needed: usize,
        now_ms: i64,
        luggage: &mut Luggage,
    ) -> Result<(), Failure> {
        let mut bytes = 0;
        let mut read = 0;
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
                match self.object(&miss, head, now_ms).await {
                    Ok(object) => {
                        if let LoadedObject::Whole(object) = &object {
                            bytes += object.weight();
                        }
                        luggage.loaded.push(Loaded { miss, object });
                    }
                    Err(failure) => luggage.refuse(&miss, failure),
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
    ) -> Result<LoadedObject, Failure> {
        let Some(head) = head else {
            return Ok(LoadedObject::Absent);
        };

        // What has expired needs no memory, however large it is.
        let parsed = Head::parse(&head).map_err(|damaged| corrupt(miss, damaged))?;
        if parsed.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            return Ok(LoadedObject::Expired { wide: parsed.wide_id() });
        }

        let bytes_max = self.object_bytes_max.saturating_add(self.object_bytes_max / 4);
        if let Some(object) = head::decode(&head).map_err(|damaged| corrupt(miss, damaged))? {
            return match object.weight() {
                bytes if bytes > bytes_max => Err(self.too_large(miss, bytes)),
                _ => Ok(LoadedObject::Whole(object)),
            };
        }

        let Body::Wide { id, count, meta } = parsed.body else {
            return Err(corrupt(miss, Damaged("the head has no entries")));
        };
        let entries = self.entries(miss, id, bytes_max).await?;
        if entries.len() as u64 != count {
            let damaged = Damaged("the number of entries differs from the head");
            return Ok(LoadedObject::Changed(corrupt(miss, damaged)));
        }
        let value = match Value::load(parsed.kind, meta, entries.len(), entries) {
            Ok(value) if value.weight() > bytes_max => {
                return Err(self.too_large(miss, value.weight()));
            }
            Ok(value) => value,
            Err(damaged) => return Ok(LoadedObject::Changed(corrupt(miss, damaged))),
        };

        let object = Object { expires_ms: parsed.expires_ms, wide: Some(id), ..Object::new(value) };
        Ok(LoadedObject::Whole(object))
    }

    /// Reads the entries of a wide object.
    async fn entries(
        &self,
        miss: &Miss,
        id: u64,
        bytes_max: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Failure> {
        let mut entries = Vec::new();
        let mut after = None;
        let mut bytes = 0;
        loop {
            let page = self.store.entries(miss.key.database, id, after.take(), LOAD_PAGE_BYTES);
            let page = page.await.map_err(|error| failures::of_store(&error))?;
            let len = |(sub, value): &(Bytes, Bytes)| sub.len() + value.len();
            bytes += page.entries.iter().map(len).sum::<usize>();
            if bytes > bytes_max {
                return Err(self.too_large(miss, bytes));
            }

            after = page.entries.last().map(|(sub, _)| sub.clone());
            entries.extend(page.entries);
            if !page.has_more || after.is_none() {
                return Ok(entries);
            }
        }
    }

    fn too_large(&self, miss: &Miss, bytes: usize) -> Failure {
        failures::too_large(&miss.key.name, bytes, self.object_bytes_max)
    }
}

fn corrupt(miss: &Miss, damaged: Damaged) -> Failure {
    let name = String::from_utf8_lossy(&miss.key.name);
    failures::of_store(&Error::Corrupt(format!("{damaged}, at the key '{name}'")))
}
