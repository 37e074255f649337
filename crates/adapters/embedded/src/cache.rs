//! Records of fjall in memory, within a number of bytes.
//!
//! Two ages: when the young half is full it becomes the old one, and what was not used since the
//! last time is dropped. A record that is used returns to the young half. There is no list to keep
//! in order, so a use costs one look-up.

use hashbrown::HashMap;
use std::mem;

/// Bytes that an entry takes beside its key and its value.
const ENTRY_BYTES: usize = 80;

type Half = HashMap<Vec<u8>, Option<Vec<u8>>>;

/// Values by key, also `None` for keys that have none.
pub struct Cache {
    young: Half,
    old: Half,
    young_bytes: usize,
    half_bytes: usize,
}

impl Cache {
    pub fn new(bytes: usize) -> Self {
        Self { young: Half::default(), old: Half::default(), young_bytes: 0, half_bytes: bytes / 2 }
    }

    /// Returns the cached value of a key.
    pub fn get(&mut self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone());
        Some(value)
    }

    pub fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_len = key.len();
        let value_len = value.as_ref().map_or(0, Vec::len);
        self.young_bytes += value_len;
        match self.young.insert(key, value) {
            Some(before) => self.young_bytes -= before.map_or(0, |value| value.len()),
            None => self.young_bytes += key_len + ENTRY_BYTES,
        }

        if self.young_bytes > self.half_bytes {
            self.old = mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Vec<u8> {
        format!("{number:08}").into_bytes()
    }

    #[test]
    fn it_returns_what_was_put_last_and_forgets_the_unused() {
        let mut cache = Cache::new(200 * (ENTRY_BYTES + 16));
        assert_eq!(cache.get(&key(0)), None);
        cache.put(key(0), None);
        cache.put(key(1), Some(vec![1; 8]));
        assert_eq!(cache.get(&key(0)), Some(None));

        for number in 2..1_000 {
            cache.put(key(number), Some(vec![0; 8]));
            assert_eq!(cache.get(&key(1)), Some(Some(vec![1; 8])), "{number}");
            assert!(cache.young.len() + cache.old.len() <= 200 + 2);
        }
        assert_eq!(cache.get(&key(0)), None);
        cache.put(key(1), None);
        assert_eq!(cache.get(&key(1)), Some(None));
    }

    /// A value in the old half is older than the one that is put now.
    #[test]
    fn a_new_value_hides_an_old_one() {
        let mut cache = Cache::new(4 * (ENTRY_BYTES + 9));
        cache.put(key(1), Some(vec![1]));
        cache.put(key(2), Some(vec![2]));
        cache.put(key(3), Some(vec![3]));
        cache.put(key(1), Some(vec![9]));
        assert_eq!(cache.get(&key(1)), Some(Some(vec![9])));
        cache.put(key(4), None);
        cache.put(key(5), None);
        assert_ne!(cache.get(&key(1)), Some(Some(vec![1])));
    }
}
