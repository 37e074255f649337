//! The contract of the chunk store for dedupe windows. Begins with an empty store.

use crate::dedupe::{CHUNK_OFFSETS, Chunk, ChunkStore, Recorder, Window};

/// The chunks that a reader makes of some messages, each as full as possible.
fn made(rules: u64, chunks: u64) -> Vec<Chunk> {
    let mut recorder = Recorder::new(Window::new(86_400_000, usize::MAX), rules, 0, true);
    for offset in 0..chunks * CHUNK_OFFSETS {
        let identity =
            u128::from(offset + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
        recorder.see(offset, 1_700_000_000_000 + offset as i64, identity);
    }
    recorder.take_full()
}

/// A chunk is found by its partition, its rules and its number, and no other chunk is.
pub fn keeps_what_it_is_given(store: &dyn ChunkStore) {
    let few = made(1, 3);
    let other = made(2, 1);
    assert_eq!(store.get(0, 1, 0..4).expect("read"), vec![None; 4]);

    for chunk in &few {
        store.put(0, chunk).expect("stored");
    }
    store.put(0, &other[0]).expect("stored");
    store.put(7, &few[1]).expect("stored");
    store.put(0, &few[2]).expect("stored again");

    let bytes = |chunk: &Chunk| Some(chunk.bytes.clone());
    let expected = [bytes(&few[0]), bytes(&few[1]), bytes(&few[2]), None];
    assert!(store.get(0, 1, 0..4).expect("read") == expected);
    assert!(store.get(0, 1, 1..2).expect("read") == expected[1..2]);
    assert!(store.get(0, 2, 0..2).expect("read") == [bytes(&other[0]), None]);
    assert!(store.get(7, 1, 0..3).expect("read") == [None, bytes(&few[1]), None]);
    assert_eq!(store.get(3, 1, 0..1).expect("read"), [None]);
    assert!(store.get(0, 1, 2..2).expect("read").is_empty());
}
