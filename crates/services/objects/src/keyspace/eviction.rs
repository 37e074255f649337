//! Eviction: a clock whose hand passes over all resident keys.
//!
//! Everything that was submitted is in the store, so any key may go at the end of a hold. Its
//! stamp stays behind, with its shard, until the key is loaded again.

use super::{DATABASES, Keyspace, Slot};

impl Keyspace {
    /// Evicts keys until the resident ones fit into their memory, and returns what went, to be
    /// dropped without the lock. `durable` is the stamp up to which nothing needs to be remembered.
    pub(crate) fn evict(&mut self, durable: u64) -> Vec<Slot> {
        let mut evicted = std::mem::take(&mut self.dropped);
        while self.resident_bytes > self.resident_bytes_max {
            let (database, index) = self.hand;
            let slots = &mut self.databases[database].slots;
            let Some((_, slot)) = slots.get_index_mut(index) else {
                self.hand = ((database + 1) % DATABASES, 0);
                if self.is_empty() {
                    break;
                }
                continue;
            };

            if std::mem::take(&mut slot.is_recent) {
                self.hand.1 += 1;
                continue;
            }

            let Some((name, slot)) = slots.swap_remove_index(index) else { continue };
            self.resident_bytes -= slot.weight;
            self.totals.evicted += 1;
            if slot.stamp > durable {
                self.shards.keep_stamp(database as u8, &name, slot.stamp);
            }
            evicted.push(slot);
        }

        self.totals.resident_bytes = self.resident_bytes as u64;
        self.totals.resident = self.databases.iter().map(|one| one.slots.len() as u64).sum();
        self.shared.counters.publish(&self.totals);
        evicted
    }

    fn is_empty(&self) -> bool {
        self.databases.iter().all(|database| database.slots.is_empty())
    }
}
