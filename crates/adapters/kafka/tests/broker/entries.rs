//! The stream of entries of points.

use crate::support::{made, options, plan, until};
use crate::topics::create;
use raingauge_kafka::{self as kafka, Error, Options, migrate_entries};
use raingauge_ports::contract::entry_stream::{ReceivedEvent, suite};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::Duration;

const PARTITIONS: u16 = 3;

/// A consumer as anybody has one.
struct Consuming {
    consumer: BaseConsumer,
    received: BTreeMap<i32, Vec<ReceivedEvent>>,
}

impl Consuming {
    fn new(options: &Options, topic: &str) -> Self {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", options.brokers.join(","))
            .set("group.id", "not-used")
            .create()
            .expect("a consumer");
        let mut places = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            let added = places.add_partition_offset(topic, partition.into(), Offset::Beginning);
            added.expect("a partition");
        }
        consumer.assign(&places).expect("assigned");
        Self { consumer, received: BTreeMap::new() }
    }

    /// Everything so far, once it is as much as that.
    fn at_least(&mut self, len: usize) -> Vec<ReceivedEvent> {
        until("the events are received", || {
            while let Some(message) = self.consumer.poll(Duration::from_millis(50)) {
                let message = message.expect("a message");
                let events = self.received.entry(message.partition()).or_default();
                events.push(event_of(&message));
            }
            self.received.values().map(Vec::len).sum::<usize>() >= len
        });
        self.received.values().flatten().cloned().collect()
    }
}

fn event_of(message: &BorrowedMessage<'_>) -> ReceivedEvent {
    let header = |name: &str| {
        let headers = message.headers().expect("headers");
        let found = headers.iter().find(|header| header.key == name).and_then(|found| found.value);
        text(found.unwrap_or_else(|| panic!("the header {name}")))
    };
    ReceivedEvent {
        key: text(message.key().expect("a key")),
        subject: header("ce_subject"),
        source: header("ce_source"),
        id: header("ce_id"),
        kind: header("ce_type"),
        time_ms: raingauge_core::time::parse_rfc3339_ms(header("ce_time").as_bytes())
            .expect("a time"),
        data: text(message.payload().expect("data")),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_entries_keeps_the_contract() {
    let Some(options) = options("entries") else {
        return;
    };
    made(&options, 1).await;
    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    let name = format!("{}-points", options.topic);
    let missing = kafka::EntryTopic::open(&topic, &name).await.err().expect("it is not there");
    assert!(matches!(missing, Error::NoTopic { .. }), "{missing}");

    for created in [true, false] {
        let done = migrate_entries(&options, &plan(PARTITIONS), &name).await.expect("it is made");
        assert_eq!((&done.topic, done.created), (&name, created));
    }
    let stream = kafka::EntryTopic::open(&topic, &name).await.expect("it is there");
    let mut consuming = Consuming::new(&options, &name);
    suite(&stream, async |len| tokio::task::block_in_place(|| consuming.at_least(len))).await;
    let used = consuming.received.values().filter(|events| !events.is_empty()).count();
    assert!(used > 1, "members are spread over the partitions");
}

/// It would keep only the last entry of each member.
#[tokio::test]
async fn a_compacted_topic_is_refused() {
    let Some(options) = options("entries-compacted") else {
        return;
    };
    made(&options, 1).await;
    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    let name = format!("{}-points", options.topic);
    let entries = Options { topic: name.clone(), ..options.clone() };
    create(&entries, 1, &[("cleanup.policy", "compact")]).await;

    let migrated = migrate_entries(&options, &plan(1), &name).await;
    assert!(matches!(migrated, Err(Error::Compacted { .. })), "{migrated:?}");
    let opened = kafka::EntryTopic::open(&topic, &name).await.err().expect("it is refused");
    assert!(matches!(opened, Error::Compacted { .. }), "{opened}");
}
