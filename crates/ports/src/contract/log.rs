//! What every event log keeps.

use crate::log::{Batch, Block, Error, EventLog, EventSink, Offset};
use crate::record::Entry;
use raingauge_core::event::Event;
use std::time::Duration;

/// A batch of events with these ids, of source `s`.
pub fn batch(ids: &[&str]) -> Batch {
    let mut batch = Batch::default();
    for id in ids {
        batch.push(&Event { id: (*id).into(), source: "s".into(), ..Event::of_data("t", 1_000, "{}") });
    }
    batch
}

/// The ids of the events, and the payloads of the control entries in brackets, from `from` on.
pub fn texts(log: &dyn EventLog, from: Offset) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = from;
    loop {
        let blocks = log.read(next, 1).expect("the log can be read");
        let Some(last) = blocks.last() else { return texts };
        for entry in blocks.iter().flat_map(|block| block.entries(next)) {
            texts.push(match entry.expect("entries are sound").1 {
                Entry::Event(event) => event.id.into_owned(),
                Entry::Control(payload) => format!("[{}]", String::from_utf8_lossy(payload)),
                Entry::Void => continue,
            });
        }
        next = last.end();
    }
}

/// Appending, duplicates, control entries, reading from the middle.
pub async fn keeps_what_it_accepts(log: &(impl EventLog + EventSink)) {
    assert_eq!((log.start(), log.end(), log.start_ms()), (0, 0, 0));
    assert!(log.read(0, 1_000).expect("an empty log can be read").is_empty());
    let first = log.append(batch(&["a", "b", "a"])).await.expect("appended");
    assert_eq!((first.accepted, first.duplicates, first.ends), (2, 1, vec![(0, 2)]));
    assert_eq!(log.append_control(0, b"note".to_vec()).await.expect("appended"), 3);
    let second = log.append(batch(&["b", "c"])).await.expect("appended");
    assert_eq!((second.accepted, second.duplicates, second.ends), (1, 1, vec![(0, 4)]));
    let again = log.append(batch(&["c"])).await.expect("appended");
    assert_eq!((again.accepted, again.duplicates), (0, 1));
    assert!(again.ends[0].1 >= 4, "whoever applied up to the end has applied the original");
    assert_eq!(texts(log, 0), ["a", "b", "[note]", "c"]);
    assert_eq!(texts(log, 1), ["b", "[note]", "c"]);
    assert_eq!(texts(log, 4), Vec::<String>::new());
    assert_eq!((log.start(), log.end()), (0, 4));
}

/// Blocks follow each other without a gap, and their times never go back.
pub async fn is_in_order(log: &(impl EventLog + EventSink)) {
    let before = log.end();
    for round in 0..50 {
        let ids: Vec<String> = (0..round % 5).map(|index| format!("order-{round}-{index}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        log.append(batch(&ids)).await.expect("appended");
    }
    let blocks: Vec<Block> = log.read(before, usize::MAX).expect("read");
    assert_eq!(blocks.first().map(|block| block.base), Some(before));
    for pair in blocks.windows(2) {
        assert_eq!(pair[0].end(), pair[1].base);
        assert!(pair[0].appended_ms <= pair[1].appended_ms);
    }
    assert_eq!(blocks.last().map(Block::end), Some(log.end()));
}

/// Waiting ends when the log grows, and at the latest when the time has passed.
pub async fn wakes_those_who_wait(log: &(impl EventLog + EventSink)) {
    let end = log.end();
    assert_eq!(log.wait_beyond(end, Duration::from_millis(1)), end);
    log.append(batch(&["wake"])).await.expect("appended");
    assert_eq!(log.wait_beyond(end, Duration::from_secs(60)), end + 1);
}

/// What lies before the start has been trimmed, and says so.
pub fn tells_what_was_trimmed(log: &dyn EventLog) {
    assert!(log.start() > 0, "this needs a log that was trimmed");
    assert!(log.start_ms() > 0);
    assert!(matches!(log.read(log.start() - 1, 1), Err(Error::Trimmed { .. })));
    assert!(log.read(log.start(), 1).is_ok_and(|blocks| blocks[0].base <= log.start()));
}
