//! Answers in memory, within a number of bytes.
//!
//! Two ages: when the young half is full it becomes the old one, and what was not used since the
//! last time is dropped. A use costs one look-up, and there is no list to keep in order.

use hashbrown::HashMap;
use serde_json::Value as Json;
use std::mem;
use tokio::time::Instant;

/// Bytes that an entry takes beside its key and its answer.
const ENTRY_BYTES: usize = 160;

/// Whose answer it is, and to which key.
pub type Key = (u64, String);

struct Entry {
    answer: Json,
    until: Instant,
    bytes: usize,
}

/// Answers by key, until they expire.
pub struct Cache {
    young: HashMap<Key, Entry>,
    old: HashMap<Key, Entry>,
    young_bytes: usize,
    half_bytes: usize,
}

impl Cache {
    pub fn new(bytes: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, half_bytes: bytes / 2 }
    }

    pub fn get(&mut self, key: &Key, now: Instant) -> Option<Json> {
        if let Some(entry) = self.young.get(key) {
            return (now < entry.until).then(|| entry.answer.clone());
        }
        let (key, entry) = self.old.remove_entry(key)?;
        if now >= entry.until {
            return None;
        }
        let answer = entry.answer.clone();
        self.insert(key, entry);
        Some(answer)
    }

    pub fn put(&mut self, key: Key, answer: Json, len: usize, until: Instant) {
        let bytes = len + key.1.len() + ENTRY_BYTES;
        self.old.remove(&key);
        self.insert(key, Entry { answer, until, bytes });
    }

    fn insert(&mut self, key: Key, entry: Entry) {
        self.young_bytes += entry.bytes;
        if let Some(before) = self.young.insert(key, entry) {
            self.young_bytes -= before.bytes;
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
    use serde_json::json;
    use std::time::Duration;

    fn key(number: usize) -> Key {
        (1, format!("{number:08}"))
    }

    #[test]
    fn answers_expire_and_the_unused_make_room() {
        let now = Instant::now();
        let until = now + Duration::from_secs(5);
        let mut cache = Cache::new(100 * (ENTRY_BYTES + 12));
        cache.put(key(0), json!(0), 4, until);
        cache.put(key(1), json!(1), 4, until);
        assert_eq!(cache.get(&key(1), now), Some(json!(1)));
        assert_eq!(cache.get(&(2, key(1).1), now), None);
        assert_eq!(cache.get(&key(1), until), None);

        for number in 2..1_000 {
            cache.put(key(number), json!(number), 4, until);
            assert_eq!(cache.get(&key(1), now), Some(json!(1)), "{number}");
            assert!(cache.young.len() + cache.old.len() <= 102);
        }
        assert_eq!(cache.get(&key(0), now), None);
        cache.put(key(1), json!("new"), 4, until);
        assert_eq!(cache.get(&key(1), now), Some(json!("new")));
    }

    /// An answer in the old half is older than the one that is put now.
    #[test]
    fn a_new_answer_hides_an_old_one() {
        let now = Instant::now();
        let until = now + Duration::from_secs(5);
        let mut cache = Cache::new(4 * (ENTRY_BYTES + 12));
        for number in 1..=3 {
            cache.put(key(number), json!(number), 4, until);
        }
        cache.put(key(1), json!(9), 4, until);
        assert_eq!(cache.get(&key(1), now), Some(json!(9)));
    }
}
