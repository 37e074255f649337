//! Records of consumers, beside the tiles: one batch of either becomes durable as a whole, and the
//! markers of both reveal a hole in the journals.
//!
//! ```text
//! 0x02 │ name │ 0x00 │ 0x00        → the position of the consumer u64
//! 0x02 │ name │ 0x00 │ 0x01 │ key  → a record of the consumer, as it came
//! ```

use crate::TileStore;
use crate::store::Fault;
use raingauge_ports::buckets;
use raingauge_ports::consumers::{Change, ConsumerStore, Error, Name, Record};
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;
use std::ops::Bound;

const TAG: u8 = 2;
const POSITION: u8 = 0;
const RECORD: u8 = 1;
/// Records that are removed in one batch.
const REMOVED_TOGETHER: usize = 10_000;

/// The prefix of a consumer's keys of one kind.
fn head(consumer: &Name, kind: u8) -> Vec<u8> {
    [&[TAG], consumer.as_str().as_bytes(), &[0, kind]].concat()
}

fn record_key(consumer: &Name, key: &[u8]) -> Vec<u8> {
    [&head(consumer, RECORD), key].concat()
}

/// Returns the consumer whose position is stored under this key.
fn name_of(key: &[u8]) -> Option<Name> {
    let name = key.strip_prefix(&[TAG])?.strip_suffix(&[0, POSITION])?;
    Name::new(std::str::from_utf8(name).ok()?)
}

fn position_of(value: &[u8]) -> Option<Offset> {
    value.try_into().map(Offset::from_le_bytes).ok()
}

fn fault(error: impl Into<Fault>) -> Error {
    Error(buckets::Error::from(error.into()).to_string())
}

impl TileStore {
    /// Writes keys with values, and removes keys without one, in one durable batch.
    fn write_records(&self, changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Result<(), Error> {
        let store = &self.inner.disk.store;
        let mut batch = store.synced_batch();
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&store.keyspace, key, value),
                None => batch.remove(&store.keyspace, key),
            }
        }
        store.commit(batch).map_err(fault)
    }
}

impl ConsumerStore for TileStore {
    fn positions(&self) -> Result<Vec<(Name, Offset)>, Error> {
        let mut positions = Vec::new();
        let mut from = Bound::Included(vec![TAG]);

        loop {
            let behind = Bound::Excluded(vec![TAG + 1]);
            let Some(guard) = self.inner.disk.store.keyspace.range((from, behind)).next() else {
                return Ok(positions);
            };
            let (key, value) = guard.into_inner().map_err(fault)?;

            // An interrupted removal leaves records without a position.
            if let Some(name) = name_of(&key) {
                let malformed = || Error(format!("the position of {name} is malformed"));
                let position = position_of(&value).ok_or_else(malformed)?;
                positions.push((name, position));
            }

            // The records of one consumer are skipped together.
            let len = key.iter().position(|byte| *byte == 0).unwrap_or(key.len());
            from = Bound::Included([&key[..len], &[1]].concat());
        }
    }

    fn get(&self, consumer: &Name, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let found = self.inner.disk.store.keyspace.get(record_key(consumer, key)).map_err(fault)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        consumer: &Name,
        prefix: &[u8],
        after: Option<&[u8]>,
        len_max: usize,
    ) -> Result<Vec<Record>, Error> {
        let first = record_key(consumer, prefix);
        let from = match after.map(|after| record_key(consumer, after)) {
            Some(after) if after >= first => Bound::Excluded(after),
            _ => Bound::Included(first.clone()),
        };
        let head_len = head(consumer, RECORD).len();
        let mut records = Vec::new();

        for guard in self.inner.disk.store.keyspace.range((from, Bound::Unbounded)).take(len_max) {
            let (key, value) = guard.into_inner().map_err(fault)?;
            if !key.starts_with(&first) {
                break;
            }
            records.push((key[head_len..].to_vec(), value.to_vec()));
        }

        Ok(records)
    }

    fn commit(&self, consumer: &Name, position: Offset, changes: Vec<Change>) -> Result<(), Error> {
        let changes = changes.into_iter().map(|(key, value)| (record_key(consumer, &key), value));
        // Sorted, with each key once: a batch must not change a key twice.
        let mut writes: BTreeMap<_, _> = changes.collect();
        writes.insert(head(consumer, POSITION), Some(position.to_le_bytes().to_vec()));
        self.write_records(writes)
    }

    fn remove(&self, consumer: &Name) -> Result<(), Error> {
        // The position is removed first: a consumer that has one has all of its records.
        self.write_records(BTreeMap::from([(head(consumer, POSITION), None)]))?;
        loop {
            let found = self.scan(consumer, b"", None, REMOVED_TOGETHER)?;
            if found.is_empty() {
                return Ok(());
            }
            let keys = found.into_iter().map(|(key, _)| (record_key(consumer, &key), None));
            self.write_records(keys.collect())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every later version must be able to read existing folders.
    #[test]
    fn keys_are_laid_out_as_they_were_in_version_1() {
        let rain = Name::new("rain").unwrap();
        assert_eq!(head(&rain, POSITION), b"\x02rain\0\0");
        assert_eq!(record_key(&rain, b"key"), b"\x02rain\0\x01key");
        assert_eq!(name_of(b"\x02rain\0\0"), Some(rain));
        for other in [&b"\x02rain\0\x01key"[..], b"\x02rain\0\x01\0\0", b"\x01rain\0\0", b"\x02"] {
            assert_eq!(name_of(other), None, "{other:?}");
        }
    }
}
