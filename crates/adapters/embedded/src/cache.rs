//! Records of fjall in memory, within a number of bytes.
//!
//! Two ages: when the young half is full it becomes the old one, and what was not used since the
//! last time is dropped. A record that is used returns to the young half. There is no list to keep
//! in order, so a use costs one look-up.
//!
//! A large cache consists of many small ones: to drop a half of a million records, or to move them
//! when a table grows, would hold up one caller for a fifth of a second.

use hashbrown::HashMap;
use std::mem;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes that an entry takes beside its key and its value.
const ENTRY_BYTES: usize = 80;
/// Fewest bytes of a part, and most parts.
const PART_BYTES_MIN: usize = 1 << 20;
const PARTS_MAX: usize = 128;

type Half = HashMap<Vec<u8>, Option<Vec<u8>>>;

/// Values by key, also `None` for keys that have none.
pub struct Cache {
    /// Which part has a key follows from its hash.
    parts: Vec<Part>,
}

struct Part {
    young: Half,
    old: Half,
    young_bytes: usize,
    half_bytes: usize,
}

impl Cache {
    pub fn new(bytes: usize) -> Self {
        let number = (bytes / PART_BYTES_MIN).clamp(1, PARTS_MAX);
        Self { parts: (0..number).map(|_| Part::new(bytes / number)).collect() }
    }

    /// Returns the cached value of a key.
    pub fn get(&mut self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        self.part(key).get(key)
    }

    pub fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.part(&key).put(key, value);
    }

    fn part(&mut self, key: &[u8]) -> &mut Part {
        let place = xxh3_64(key) % self.parts.len() as u64;
        &mut self.parts[place as usize]
    }
}

impl Part {
    fn new(bytes: usize) -> Self {
        Self { young: Half::default(), old: Half::default(), young_bytes: 0, half_bytes: bytes / 2 }
    }

    fn get(&mut self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone());
        Some(value)
    }

    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
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

    impl Cache {
        fn len(&self) -> usize {
            self.parts.iter().map(|part| part.young.len() + part.old.len()).sum()
        }
    }

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
            assert!(cache.len() <= 200 + 2);
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

    /// No half is so large that dropping or moving it holds up a turn, and they share the bytes.
    #[test]
    fn a_large_cache_has_many_parts() {
        let bytes = 16 * PART_BYTES_MIN;
        let mut cache = Cache::new(bytes);
        assert_eq!(cache.parts.len(), 16);
        let entry = ENTRY_BYTES + 8 + 100;
        let number = bytes / entry;
        for number in 0..2 * number {
            cache.put(key(number), Some(vec![0; 100]));
        }
        assert!((number / 2..=number).contains(&cache.len()), "{} of {number}", cache.len());
        let even = |part: &Part| part.young.len() + part.old.len() > number / 16 / 3;
        assert!(cache.parts.iter().all(even));
        assert_eq!(cache.get(&key(2 * number - 1)), Some(Some(vec![0; 100])));
        assert_eq!(Cache::new(1 << 40).parts.len(), PARTS_MAX);
    }
}
