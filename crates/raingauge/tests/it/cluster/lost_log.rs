//! A broker that drops events before they are counted.

use super::place::Place;
use super::roles::{NOON_S, settle};
use crate::client::{event, forever};
use crate::server::{PATIENCE, until};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;

const LOST_ENTRIES: &str = "raingauge_log_lost_entries{partition=\"0\"}";

fn config(place: &Place) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &place.addresses.kafka).set("group.id", "lost");
    config
}

/// Sends events to the topic directly, bypassing raingauge.
fn send(place: &Place, ids: std::ops::Range<u32>) {
    let producer: BaseProducer = config(place).create().expect("a producer");
    for id in ids {
        let json =
            event("drop", &format!("kafka-{id}"), NOON_S, json!({"city": "oslo"})).to_string();
        let kind = Header { key: "content-type", value: Some("application/cloudevents+json") };
        let headers = OwnedHeaders::new().insert(kind);
        let record =
            BaseRecord::<(), _>::to(&place.topic).partition(0).payload(&json).headers(headers);
        producer.send(record).map_err(|(error, _)| error).expect("handed over");
    }
    producer.flush(PATIENCE).expect("flushed");
}

/// Drops what retention drops when nothing has been read for long, from the first partition.
pub fn drop_everything(place: &Place) {
    let consumer: BaseConsumer = config(place).create().expect("a consumer");
    let (_, end) =
        consumer.fetch_watermarks(&place.topic, 0, PATIENCE).expect("the topic is there");
    let mut ends = TopicPartitionList::new();
    ends.add_partition_offset(&place.topic, 0, Offset::Offset(end)).expect("a place");
    let admin: AdminClient<DefaultClientContext> = config(place).create().expect("a client");
    let dropped = place
        .block_on(admin.delete_records(&ends, &AdminOptions::new()))
        .expect("records are dropped");
    let failed = dropped.elements().iter().find_map(|element| element.error().err());
    assert!(failed.is_none(), "{failed:?}");
}

#[test]
fn what_the_broker_dropped_is_reported_and_skipped_by_a_command_alone() {
    let Some(place) = Place::new(1) else { return };
    let (writer, reader) = (place.start("writer,portal"), place.start("reader"));
    writer
        .create(json!({"id": 1, "name": "drops", "template": "drops:{city}", "eventType": "drop",
        "retentionDays": forever()}));
    settle(&writer, &writer, &reader, place.partitions);

    let count = || reader.count("drops:oslo", NOON_S, NOON_S + 900);
    let counted: Vec<_> = (0..10)
        .map(|id| event("drop", &format!("http-{id}"), NOON_S, json!({"city": "oslo"})))
        .collect();
    writer.count_events(&counted);

    let (status, _) = writer.terminate();
    assert!(status.success() && count() == 10, "{status:?}");

    send(&place, 0..7);
    drop_everything(&place);
    send(&place, 7..12);

    let writer = place.start("writer,portal");
    let told = until("the loss is reported", || {
        Some(writer.get("/readyz").text()).filter(|text| text.lines().count() > 1)
    });
    assert!(
        told.starts_with("ready\n") && told.contains("`raingauge skip-lost --partition 0`"),
        "{told}"
    );
    until("it is measured", || (writer.metric(LOST_ENTRIES) == 7.0).then_some(()));

    let skip = |more: &[&str]| place.home.run(&[&["skip-lost", "--partition", "0"], more].concat());
    let looked = skip(&["--json"]).json();
    assert_eq!((&looked["entries"], &looked["skipped"]), (&json!(7), &json!(false)), "{looked}");
    assert_eq!(count(), 10, "nothing goes on by itself");

    let skipped = skip(&["--yes"]);
    assert!(
        skipped.status.success() && skipped.output.contains("goes on behind it"),
        "{skipped:?}"
    );
    until("counting goes on", || (count() == 15).then_some(()));
    until("nothing troubles it any more", || {
        (writer.get("/readyz").text() == "ready\n").then_some(())
    });
    assert_eq!(writer.metric(LOST_ENTRIES), 0.0);

    let again = skip(&["--yes"]);
    assert!(!again.status.success() && again.errors.contains("has lost nothing"), "{again:?}");
    assert_eq!(count(), 15);
}
