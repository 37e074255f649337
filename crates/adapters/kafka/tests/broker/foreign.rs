//! Other producers.

use crate::support::{One, flush, foreign, options, produce, shown};
use raingauge_ports::contract::log::{blocks, texts};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use rdkafka::producer::Producer;
use std::time::Duration;

fn structured(id: &str) -> Vec<u8> {
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t","time":"2024-09-24T22:03:50Z","data":{{"a":1}}}}"#
    )
    .into_bytes()
}

fn binary(id: &str) -> [(&str, &[u8]); 6] {
    [
        ("ce_specversion", b"1.0"),
        ("ce_id", id.as_bytes()),
        ("ce_source", b"s"),
        ("ce_type", b"t"),
        ("ce_time", b"2024-09-24T22:03:50Z"),
        ("content-type", b"application/json"),
    ]
}

#[tokio::test]
async fn both_modes_are_counted_once() {
    let Some(options) = options("modes") else {
        return;
    };
    let one = One::new(&options).await;
    let producer = foreign(&options, &[("compression.type", "zstd")]);
    let json: &[(&str, &[u8])] = &[("content-type", b"application/cloudevents+json")];

    produce(&producer, &options.topic, json, &structured("a"));
    produce(&producer, &options.topic, &binary("b"), br#"{"a":1}"#);
    produce(&producer, &options.topic, &binary("a"), br#"{"a":1}"#);
    produce(&producer, &options.topic, json, &structured("b"));
    flush(&producer);
    shown(&one.log, 4);
    assert_eq!(texts(&one.log, 0), ["a", "b"]);

    for block in blocks(&one.log, 0) {
        for entry in block.entries(0) {
            let (_, entry) = entry.unwrap();
            assert!(
                matches!(entry, Entry::Void)
                    || matches!(entry, Entry::Event(event) if event.data == r#"{"a":1}"#)
            );
        }
    }
}

/// What a transaction takes back was never there, and its offsets are void; nothing shows before it
/// is committed.
#[tokio::test]
async fn transactions_are_all_or_nothing() {
    let Some(options) = options("transaction") else {
        return;
    };
    let one = One::new(&options).await;
    let producer = foreign(&options, &[("transactional.id", &options.topic)]);
    producer.init_transactions(Duration::from_secs(60)).unwrap();

    let mut expected = Vec::new();
    for (round, commits) in [true, false, false, true, false].into_iter().enumerate() {
        producer.begin_transaction().unwrap();

        for index in 0..3 {
            let id = format!("{round}-{index}");
            produce(&producer, &options.topic, &binary(&id), b"{}");

            if commits {
                expected.push(id);
            }
        }

        flush(&producer);
        assert_eq!(
            one.log.wait_beyond(4 * round as u64, Duration::from_millis(200)),
            4 * round as u64,
            "it is not over"
        );
        assert_eq!(texts(&one.log, 0).len(), expected.len() - if commits { 3 } else { 0 });

        let over = if commits {
            producer.commit_transaction(Duration::from_secs(60))
        } else {
            producer.abort_transaction(Duration::from_secs(60))
        };

        over.unwrap();
        shown(&one.log, 4 * round as u64 + 4);
        assert_eq!(texts(&one.log, 0), expected, "round {round}");
    }

    let whole = blocks(&one.log, 0);
    assert_eq!(
        whole.iter().map(|block| block.len).sum::<u64>(),
        20,
        "three messages and a marker each"
    );

    for from in 0..20 {
        let log = one.topic.log(0).unwrap();
        let seen: Vec<_> = blocks(&log, from)
            .iter()
            .flat_map(|block| {
                block.entries(from).map(|entry| format!("{entry:?}")).collect::<Vec<_>>()
            })
            .collect();

        let expected: Vec<_> = whole
            .iter()
            .flat_map(|block| {
                block.entries(from).map(|entry| format!("{entry:?}")).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(seen, expected, "from {from}");
    }
}
