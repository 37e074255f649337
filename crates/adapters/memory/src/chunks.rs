//! Chunks of dedupe windows in memory.

use parking_lot::Mutex;
use raingauge_ports::cluster::Error;
use raingauge_ports::dedupe::{Chunk, ChunkStore};
use raingauge_ports::log::Partition;
use std::collections::BTreeMap;
use std::ops::Range;

/// By partition, rules and number.
type Key = (Partition, u64, u64);

/// Keeps every chunk forever.
#[derive(Debug, Default)]
pub struct Chunks {
    chunks: Mutex<BTreeMap<Key, Vec<u8>>>,
}

impl Chunks {
    pub fn len(&self) -> usize {
        self.chunks.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.lock().is_empty()
    }

    /// Changes or drops stored chunks: a chunk stays if `keeps` returns true.
    pub fn retain(&self, mut keeps: impl FnMut(u64, &mut Vec<u8>) -> bool) {
        self.chunks.lock().retain(|(_, _, number), bytes| keeps(*number, bytes));
    }
}

impl ChunkStore for Chunks {
    fn put(&self, partition: Partition, chunk: &Chunk) -> Result<(), Error> {
        self.chunks.lock().insert((partition, chunk.rules, chunk.number), chunk.bytes.clone());
        Ok(())
    }

    fn get(
        &self,
        partition: Partition,
        rules: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let chunks = self.chunks.lock();
        Ok(numbers.map(|number| chunks.get(&(partition, rules, number)).cloned()).collect())
    }
}

#[test]
fn keeps_the_contract() {
    raingauge_ports::contract::chunks::keeps_what_it_is_given(&Chunks::default());
}
