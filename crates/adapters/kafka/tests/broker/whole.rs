//! Control entries that are in every partition or in none.

use crate::support::{Broker, SOON, made, options, options_at, shown, until};
use raingauge_kafka::{self as kafka, Options};
use raingauge_ports::contract::log::{batch, texts};
use raingauge_ports::log::{Error, EventSink, PayloadOf};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const PARTITIONS: u16 = 4;

async fn opened(options: &Options) -> (kafka::Topic, Arc<kafka::Sink>) {
    made(options, PARTITIONS).await;
    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    let sink = Arc::new(kafka::Sink::new(&topic).expect("a sink"));
    (topic, sink)
}

fn note(text: &str) -> PayloadOf {
    let text = text.to_owned();
    Box::new(move |partition| format!("{text} for {partition}").into_bytes())
}

/// The notes that a partition holds, without whom they are for. Blocks the thread.
fn notes(topic: &kafka::Topic, partition: u16) -> Vec<String> {
    let suffix = format!(" for {partition}]");
    let texts = texts(&topic.log(partition).unwrap(), 0);
    texts
        .iter()
        .filter_map(|text| text.strip_prefix('[')?.strip_suffix(&suffix))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_is_in_every_partition_and_its_ends_are_known() {
    let Some(options) = options("whole") else {
        return;
    };
    let (topic, sink) = opened(&options).await;
    sink.append(batch(&["a", "b", "c", "d", "e"])).await.unwrap();

    let requests: Vec<_> = (0..20)
        .map(|number| {
            let sink = Arc::clone(&sink);
            tokio::spawn(
                async move { sink.append_to_all(note(&number.to_string())).await.unwrap() },
            )
        })
        .collect();

    let mut ends = Vec::new();
    for request in requests {
        ends.extend(request.await.unwrap());
    }
    tokio::task::block_in_place(|| {
        for partition in 0..PARTITIONS {
            let mine: BTreeSet<u64> =
                ends.iter().filter(|(of, _)| *of == partition).map(|(_, end)| *end).collect();
            assert_eq!(mine.len(), 20, "each has an end of its own");
            shown(&topic.log(partition).unwrap(), *mine.last().unwrap());

            let found = notes(&topic, partition);
            assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 20, "{found:?}");
        }
    });
}

/// The brokers refuse the part of one partition: no other has its part either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_one_partition_cannot_take_is_in_none() {
    let Some(options) = options("none") else {
        return;
    };
    let (topic, sink) = opened(&options).await;
    let too_large = |partition| vec![b'x'; if partition == 2 { 9 << 20 } else { 10 }];
    let refused = sink.append_to_all(Box::new(too_large)).await;

    assert!(
        matches!(&refused, Err(Error::NotTaken(reason)) if reason.contains("too large")),
        "{refused:?}"
    );
    let ends = sink.append_to_all(note("next")).await.expect("the next one is taken");
    tokio::task::block_in_place(|| {
        for (partition, end) in ends {
            shown(&topic.log(partition).unwrap(), end);
            assert_eq!(
                texts(&topic.log(partition).unwrap(), 0),
                [format!("[next for {partition}]")]
            );
        }
    });
}

/// The broker dies at any moment: every partition holds the same entries, those that were
/// acknowledged among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_leaves_no_entry_in_some_partitions() {
    let Some(broker) = tokio::task::block_in_place(|| Broker::start(&["--kafka"])) else {
        return;
    };
    let soon = options_at(&broker.address, "whole-outage");
    let options = Options { request_timeout: Duration::from_secs(2), ..soon.clone() };
    made(&Options { request_timeout: SOON, ..soon }, PARTITIONS).await;

    let topic = kafka::Topic::open(options).await.expect("the topic opens");
    let sink = Arc::new(kafka::Sink::new(&topic).expect("a sink"));

    let acknowledged = Arc::new(AtomicUsize::new(0));
    let failed = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let sending = {
        let acknowledged = Arc::clone(&acknowledged);
        let failed = Arc::clone(&failed);
        let stop = Arc::clone(&stop);

        tokio::spawn(async move {
            let mut number = 0;
            let mut known = Vec::new();
            let mut ends = Vec::new();

            while !stop.load(Ordering::Acquire) {
                number += 1;
                match sink.append_to_all(note(&number.to_string())).await {
                    Ok(told) => {
                        known.push(number.to_string());
                        ends = told;
                        acknowledged.fetch_add(1, Ordering::Release);
                    }
                    Err(_) => drop(failed.fetch_add(1, Ordering::Release)),
                }
            }

            (known, ends)
        })
    };

    let wait = |what: &str, condition: &dyn Fn() -> bool| {
        tokio::task::block_in_place(|| until(what, condition))
    };
    for _ in 0..2 {
        let before = acknowledged.load(Ordering::Acquire);
        wait("some are acknowledged", &|| acknowledged.load(Ordering::Acquire) > before + 10);
        broker.services("kill", &["kafka"]);

        let before = failed.load(Ordering::Acquire);
        wait("one has failed", &|| failed.load(Ordering::Acquire) > before);
        broker.services("restart", &["kafka"]);
    }

    let before = acknowledged.load(Ordering::Acquire);
    wait("the broker is back", &|| acknowledged.load(Ordering::Acquire) > before + 10);
    stop.store(true, Ordering::Release);

    let (known, ends) = sending.await.unwrap();

    tokio::task::block_in_place(|| {
        let of_each: Vec<Vec<String>> = ends
            .iter()
            .map(|(partition, end)| {
                shown(&topic.log(*partition).unwrap(), *end);
                notes(&topic, *partition)
            })
            .collect();

        assert_eq!(of_each.len(), usize::from(PARTITIONS));
        assert!(of_each.iter().all(|found| *found == of_each[0]), "{of_each:?}");

        let missing: Vec<&String> =
            known.iter().filter(|number| !of_each[0].contains(number)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    });
}
