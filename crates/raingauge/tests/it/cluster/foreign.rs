//! Events that other producers send to the topic.

use super::roles::{NOON_S, Roles};
use crate::client::{event, forever, rfc3339};
use crate::server::{PATIENCE, until};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde_json::json;
use std::time::Instant;

const NOISE: &[u8] = b"this is no event";

pub fn are_counted_and_what_is_malformed_is_put_aside(roles: &Roles) {
    roles.portal.create(
        json!({"id": 60, "name": "foreign", "template": "foreign:{city}", "eventType": "foreign",
        "retentionDays": forever()}),
    );
    roles.settle();

    let producer: BaseProducer = client(roles).create().expect("a producer");
    let structured =
        |id: &str| event("foreign", id, NOON_S, json!({"city": "rome"})).to_string().into_bytes();
    let time = rfc3339(NOON_S);

    for partition in 0..roles.place.partitions {
        let first = format!("f{partition}-1");
        let second = format!("f{partition}-2");
        let third = format!("f{partition}-3");
        let json_event: &[(&str, &str)] =
            &[("content-type", "application/cloudevents+json; charset=UTF-8")];
        let binary = |id: &str| {
            let attributes = [
                ("ce_specversion", "1.0"),
                ("ce_id", id),
                ("ce_source", "tests"),
                ("ce_type", "foreign"),
            ];
            headers(&attributes).insert(Header { key: "ce_time", value: Some(&time) })
        };

        let messages: [(OwnedHeaders, Vec<u8>); 7] = [
            (headers(json_event), structured(&first)),
            (binary(&second), br#"{"city":"rome"}"#.to_vec()),
            // The same event once more, in the other mode.
            (binary(&first), br#"{"city":"rome"}"#.to_vec()),
            (headers(&[]), NOISE.to_vec()),
            // Neither this nor anything else with the header of a control entry stops the counting
            // of the partition.
            (headers(&[("raingauge-control", "1")]), b"x".to_vec()),
            (headers(&[("content-type", "application/cloudevents-batch+json")]), b"[]".to_vec()),
            (headers(json_event), structured(&third)),
        ];

        for (headers, payload) in &messages {
            let record: BaseRecord<'_, (), [u8]> = BaseRecord::to(&roles.place.topic);
            let record =
                record.partition(partition.into()).payload(payload).headers(headers.clone());
            producer.send(record).map_err(|(error, _)| error).expect("handed over");
        }
    }

    producer.flush(PATIENCE).expect("flushed");
    let expected = 3 * i64::from(roles.place.partitions);
    let ask = || roles.reader.count("foreign:rome", NOON_S, NOON_S + 900);
    until("the events are counted", || (ask() >= expected).then_some(()));
    assert_eq!(ask(), expected, "each is counted once");
    check_dead_letters(roles);
}

/// Everything before a counted event has been processed.
fn check_dead_letters(roles: &Roles) {
    let letters = dead_letters(roles);
    for partition in 0..roles.place.partitions {
        let own = letters
            .iter()
            .filter(|letter| header(letter, "raingauge-source-partition") == partition.to_string());
        let reasons: Vec<(&str, &[u8])> = own
            .map(|letter| {
                (header(letter, "raingauge-reason-code"), letter.payload().unwrap_or_default())
            })
            .collect();

        let expected: [(&str, &[u8]); 3] =
            [("event_malformed", NOISE), ("control_malformed", b"x"), ("batch_unsupported", b"[]")];
        assert_eq!(reasons, expected, "of partition {partition}");
    }

    for letter in &letters {
        assert_eq!(header(letter, "raingauge-source-topic"), roles.place.topic);
        assert!(header(letter, "raingauge-reason").len() > 10);
    }
}

fn client(roles: &Roles) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &roles.place.addresses.kafka).set("group.id", "foreign");
    config
}

fn headers(pairs: &[(&str, &str)]) -> OwnedHeaders {
    pairs.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(*value) })
    })
}

/// All messages of the dead-letter topic, in their order.
fn dead_letters(roles: &Roles) -> Vec<OwnedMessage> {
    let topic = roles.place.dead_letter_topic();
    let consumer: BaseConsumer =
        client(roles).set("enable.auto.commit", "false").create().expect("a consumer");
    let (_, end) = consumer.fetch_watermarks(&topic, 0, PATIENCE).expect("the topic is there");
    let mut place = TopicPartitionList::new();

    place.add_partition_offset(&topic, 0, Offset::Beginning).expect("a place");
    consumer.assign(&place).expect("assigned");

    let deadline = Instant::now() + PATIENCE;
    let mut letters = Vec::new();
    while (letters.len() as i64) < end {
        assert!(Instant::now() < deadline, "{} of {end} letters came", letters.len());
        if let Some(Ok(message)) = consumer.poll(PATIENCE) {
            letters.push(message.detach());
        }
    }

    letters
}

fn header<'a>(message: &'a OwnedMessage, name: &str) -> &'a str {
    let headers = message.headers().expect("headers");
    let found = headers.iter().find(|header| header.key == name).and_then(|header| header.value);
    std::str::from_utf8(found.unwrap_or_else(|| panic!("the header {name} is there")))
        .expect("UTF-8")
}
