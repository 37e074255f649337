//! Dedupe windows that outlive the process that holds them.

use crate::support::{One, SOON, options, shown, until};
use raingauge_core::event::Event;
use raingauge_kafka::{self as kafka, Options};
use raingauge_memory as memory;
use raingauge_ports::cluster;
use raingauge_ports::dedupe::{CHUNK_OFFSETS, Chunk, ChunkStore};
use raingauge_ports::log::{Batch, Block, Error, EventLog, Offset, Partition};
use raingauge_ports::record::Entry;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// One chunk, and some more.
const EVENTS: u64 = CHUNK_OFFSETS + 2_000;

/// A store that counts what it gives.
#[derive(Default)]
struct Counted {
    chunks: memory::Chunks,
    given: AtomicUsize,
}

impl ChunkStore for Counted {
    fn put(&self, partition: Partition, chunk: &Chunk) -> Result<(), cluster::Error> {
        self.chunks.put(partition, chunk)
    }

    fn get(
        &self,
        partition: Partition,
        rules: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<Option<Vec<u8>>>, cluster::Error> {
        let found = self.chunks.get(partition, rules, numbers)?;
        self.given.fetch_add(found.iter().flatten().count(), Ordering::Relaxed);
        Ok(found)
    }
}

fn batch(ids: Range<u64>) -> Batch {
    let mut batch = Batch::default();
    for id in ids {
        batch.push(&Event { id: id.to_string().into(), ..Event::of_data("t", 1_000, "{}") });
    }
    batch
}

/// A topic with these events, each of its own.
async fn filled(options: &Options) -> One {
    let one = One::new(options).await;
    let mut end = 0;
    for first in (0..EVENTS).step_by(4_000) {
        end = one.append(batch(first..EVENTS.min(first + 4_000))).await;
    }
    assert_eq!(end, EVENTS);
    one
}

/// A process that takes the partition over.
async fn successor(options: &Options, store: &Arc<Counted>) -> kafka::Log {
    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    topic.keep_windows_in(Arc::clone(store) as Arc<dyn ChunkStore>);
    topic.counting_log(0).expect("a log")
}

/// Which of the offsets from `from` on hold an event that counts.
fn counts(log: &kafka::Log, from: Offset) -> Result<Vec<Offset>, Error> {
    let mut next = from;
    let mut counting = Vec::new();
    let deadline = Instant::now() + SOON;

    while next < log.end() {
        assert!(Instant::now() < deadline, "read to {next} only");
        let blocks = log.read(next, 1 << 20)?;
        for (offset, entry) in
            blocks.iter().flat_map(|block| block.entries(next)).map(|entry| entry.expect("sound"))
        {
            counting.extend(matches!(entry, Entry::Event(_)).then_some(offset));
        }

        next = blocks.last().map_or(next, Block::end);
    }

    Ok(counting)
}

/// A successor decides as if it had read everything, and loads the window from its store.
#[tokio::test]
async fn a_successor_takes_the_window_over() {
    let Some(options) = options("successor") else {
        return;
    };
    let one = filled(&options).await;
    let store = Arc::<Counted>::default();
    let first = successor(&options, &store).await;

    assert_eq!(counts(&first, 0).expect("read").len() as u64, EVENTS);
    until("the full chunk is stored", || store.chunks.len() == 1);

    // Repetitions of the oldest and of the newest events, and some that are new.
    one.append(batch(0..5)).await;
    one.append(batch(EVENTS - 5..EVENTS + 5)).await;

    let end = one.append(batch(100..101)).await;
    let expected: Vec<Offset> = (EVENTS + 10..EVENTS + 15).collect();
    shown(&first, end);
    assert_eq!(counts(&first, EVENTS).expect("read"), expected);

    let next = successor(&options, &store).await;
    assert_eq!(counts(&next, EVENTS).expect("read"), expected);
    assert_eq!(
        store.given.load(Ordering::Relaxed),
        1,
        "the chunk was put in the place of its messages"
    );

    // Nobody who looks at a place within the chunk is misled by it, and one that is damaged is not
    // used.
    assert_eq!(
        counts(&next, CHUNK_OFFSETS - 5).expect("read")[..10],
        (CHUNK_OFFSETS - 5..).take(10).collect::<Vec<_>>()
    );
    let mut damaged = Vec::new();
    store.chunks.retain(|_, bytes| {
        bytes[99] ^= 1;
        damaged.clone_from(bytes);
        true
    });

    let other = successor(&options, &store).await;
    assert_eq!(counts(&other, EVENTS).expect("read"), expected);
    assert_eq!(store.given.load(Ordering::Relaxed), 2);

    let sound = Arc::clone(&store);
    until("the chunk is made again", move || {
        let mut is_changed = false;
        sound.chunks.retain(|_, bytes| {
            is_changed |= *bytes != damaged;
            true
        });
        is_changed
    });
}

/// A window that was kept of another log is no window of this one.
#[tokio::test]
async fn a_window_of_another_log_is_refused() {
    let Some(options) = options("other-log") else {
        return;
    };
    let _one = filled(&options).await;
    let store = Arc::<Counted>::default();
    counts(&successor(&options, &store).await, 0).expect("read");
    until("the full chunk is stored", || store.chunks.len() == 1);

    let another = Options { topic: format!("{}-again", options.topic), ..options };
    let _other = filled(&another).await;
    let refused =
        counts(&successor(&another, &store).await, EVENTS - 1).expect_err("it is refused");

    assert!(
        matches!(&refused, Error::Replaced(reason) if reason.contains("was recreated")),
        "{refused}"
    );
}
