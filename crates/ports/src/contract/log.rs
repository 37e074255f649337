//! The contract of the event log.

use crate::log::{Batch, Block, Error, EventLog, EventSink, LogTimes, Needs, Offset};
use crate::record::Entry;
use raingauge_core::event::Event;
use std::time::{Duration, Instant};

/// A batch of events with these ids, from source `s`.
pub fn batch(ids: &[&str]) -> Batch {
    let mut batch = Batch::default();
    for id in ids {
        batch.push(&Event {
            id: (*id).into(),
            source: "s".into(),
            ..Event::of_data("t", 1_000, "{}")
        });
    }
    batch
}

/// Time limit for operations that should finish at once.
const SOON: Duration = Duration::from_secs(60);

/// Returns the blocks from `from` to the end of the log.
pub fn blocks(log: &dyn EventLog, from: Offset) -> Vec<Block> {
    let deadline = Instant::now() + SOON;
    let mut blocks = Vec::new();
    let mut next = from;
    while next < log.end() {
        let read = log.read(next, 1).expect("the log can be read");
        assert!(
            !read.is_empty() || Instant::now() < deadline,
            "the log ends at {} but reads to {next}",
            log.end()
        );
        next = read.last().map_or(next, Block::end);
        blocks.extend(read);
    }

    blocks
}

/// Returns the ids of the events, and the payloads of the control entries in brackets, from `from`
/// on.
pub fn texts(log: &dyn EventLog, from: Offset) -> Vec<String> {
    let blocks = blocks(log, from);
    let entries = blocks.iter().flat_map(|block| block.entries(from));
    entries
        .filter_map(|entry| match entry.expect("entries are sound").1 {
            Entry::Event(event) => Some(event.id.into_owned()),
            Entry::Control(payload) => Some(format!("[{}]", String::from_utf8_lossy(payload))),
            Entry::Void => None,
        })
        .collect()
}

/// Appends to a log of one partition and waits until the entries are visible. Returns the end
/// reported by the sink, and the number of events it took for duplicates.
async fn append(sink: &dyn EventSink, log: &dyn EventLog, ids: &[&str]) -> (Offset, usize) {
    let appended = sink.append(batch(ids)).await.expect("appended");
    assert_eq!(appended.accepted + appended.duplicates, ids.len());
    let &[(partition, end)] = &appended.ends[..] else {
        panic!("one partition takes part: {:?}", appended.ends)
    };
    assert_eq!(partition, log.partition());
    assert!(log.wait_beyond(end - 1, SOON) >= end);
    (end, appended.duplicates)
}

/// Appending, duplicates, control entries, reading from the middle. A sink may drop duplicates and
/// report them, or leave their detection to the log.
pub async fn keeps_what_it_accepts(sink: &dyn EventSink, log: &dyn EventLog) {
    assert_eq!((log.start(), log.end(), log.start_ms(), sink.partitions()), (0, 0, 0, 1));
    assert!(log.read(0, 1_000).expect("an empty log can be read").is_empty());

    let (first, told) = append(sink, log, &["a", "b", "a"]).await;
    assert!(
        first == 2 && told == 1 || first == 3 && told == 0,
        "the log reported {told} duplicates, and the log ends at {first}"
    );

    let note = sink.append_control(0, b"note".to_vec()).await.expect("appended");
    assert_eq!(note, first + 1);
    append(sink, log, &["b", "c"]).await;

    let (last, _) = append(sink, log, &["c"]).await;
    assert!(last > note, "a reader that applied up to the end has applied the original");

    let expected = ["a", "b", "[note]", "c"];
    assert_eq!(texts(log, 0), expected);
    assert_eq!(texts(log, 1), expected[1..]);
    assert_eq!(texts(log, first), expected[2..]);
    assert_eq!(texts(log, note), expected[3..]);
    assert_eq!(texts(log, log.end()), Vec::<String>::new());
    assert_eq!(log.start(), 0);
}

/// Blocks follow each other without a gap up to the end and hold the same entries, wherever reading
/// begins.
pub async fn is_in_order(sink: &dyn EventSink, log: &dyn EventLog) {
    let before = log.end();
    let mut expected = Vec::new();
    for round in 0..50 {
        let ids: Vec<String> =
            (0..round % 5).map(|index| format!("order-{round}-{index}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        if !ids.is_empty() {
            append(sink, log, &ids).await;
        }
        expected.extend(ids.iter().map(|id| (*id).to_owned()));
    }

    assert_eq!(texts(log, before), expected);

    for from in [before, before + 1, before + 33] {
        let blocks = blocks(log, from);
        assert!(blocks.first().is_some_and(|block| block.base <= from));

        for pair in blocks.windows(2) {
            assert_eq!(pair[0].end(), pair[1].base);
        }
        assert_eq!(blocks.last().map(Block::end), Some(log.end()));
    }
}

/// The times of blocks never go back where one clock stamps them.
pub fn goes_forward(log: &dyn EventLog) {
    let blocks = blocks(log, log.start());
    assert!(blocks.len() > 1 && blocks.is_sorted_by_key(|block| block.appended_ms));
}

/// Waiting ends when the log grows, and at the latest at the timeout.
pub async fn wakes_those_who_wait(sink: &dyn EventSink, log: &dyn EventLog) {
    let end = log.end();
    assert_eq!(log.wait_beyond(end, Duration::from_millis(1)), end);
    sink.append(batch(&["wake"])).await.expect("appended");
    assert_eq!(log.wait_beyond(end, SOON), end + 1);
}

/// A consumer that wants no events passes over them, and over no control entry.
pub async fn passes_over_events_alone(sink: &dyn EventSink, log: &dyn EventLog) {
    let before = log.end();
    append(sink, log, &["pass-1"]).await;
    assert!((before..=before + 1).contains(&log.events_until(before)));

    let behind = sink.append_control(log.partition(), b"{}".to_vec()).await.expect("appended");
    append(sink, log, &["pass-2"]).await;
    assert!(log.events_until(before) < behind);
    assert!((behind..=behind + 1).contains(&log.events_until(behind)));
}

/// Trimming keeps what is needed.
pub fn keeps_what_is_needed(log: &dyn EventLog) {
    let (start, end) = (log.start(), log.end());
    assert!(end - start > 2, "this needs a log that holds something");
    for (counting, others) in [(start, end), (end, start), (start + 1, start + 2), (end, start + 2)]
    {
        log.trim(Needs { counting, others }).expect("trimmed");
        assert!(log.start() <= counting.min(others), "it begins at {}", log.start());
        assert_eq!(log.end(), end);
        assert!(log.read(counting.min(others), 1).is_ok_and(|blocks| !blocks.is_empty()));
    }
}

/// Reading before the start of the log reports that it was trimmed.
pub fn tells_what_was_trimmed(log: &dyn EventLog) {
    assert!(log.start() > 0, "this needs a log that was trimmed");
    is_kept_since_a_time(log);
    assert!(matches!(log.read(log.start() - 1, 1), Err(Error::Trimmed { .. })));
    assert!(log.read(log.start(), 1).is_ok_and(|blocks| blocks[0].base <= log.start()));
}

fn is_kept_since_a_time(log: &dyn LogTimes) {
    assert!(log.start_ms() > 0);
}
