//! A cluster of an earlier release: its keyspace, topic and catalog are migrated, and answer as
//! before.
//!
//! The fixture holds what the release before campaigns stored in a cluster: the rows of the
//! keyspace, the tables of the catalog and the messages of the topic, with `{topic}` for its name.
//! The test puts them into servers of its own, and then migrates them as an operator does.

use super::place::Place;
use super::roles::{NOON_S, settle};
use crate::client::{Client, drop_event, drops_counter};
use crate::model::Model;
use crate::server::{PATIENCE, until};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cluster-1.json");
const PARTITIONS: u16 = 2;

#[derive(Serialize, Deserialize)]
struct Fixture {
    /// For each table of the keyspace, its rows as CQL prints them in JSON.
    tables: BTreeMap<String, Vec<Value>>,
    /// Statements that create the tables of the catalog, and fill them.
    catalog: Vec<String>,
    /// Of each partition in its order.
    messages: Vec<StoredMessage>,
}

#[derive(Serialize, Deserialize)]
struct StoredMessage {
    partition: i32,
    key: Option<String>,
    headers: Vec<(String, String)>,
    payload: String,
    /// Whether the marker of a transaction takes the next offset.
    ends_transaction: bool,
}

impl StoredMessage {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let headers = message.headers().expect("headers").iter();
        Self {
            partition: message.partition(),
            key: message.key().map(text),
            headers: headers
                .map(|header| (header.key.to_owned(), text(header.value.unwrap_or_default())))
                .collect(),
            payload: text(message.payload().unwrap_or_default()),
            ends_transaction: false,
        }
    }
}

/// Events of three cities over some days, and what they count.
fn events() -> (Vec<Value>, Model) {
    let mut model = Model::default();
    let event = |index: i64| {
        let city = ["oslo", "rome", "lima"][index as usize % 3];
        let time_s = NOON_S + index * 5_003;
        model.add(&format!("drops:{city}"), time_s, 1);
        drop_event(&format!("earlier-{index}"), time_s, city)
    };
    ((0..60).map(event).collect(), model)
}

fn compare(reader: &Client, model: &Model) {
    for key in model.keys() {
        for (from, to) in [(0, 432_000), (0, 43_200), (900, 86_400), (43_200, 302_400)] {
            let (from, to) = (NOON_S + from, NOON_S + to);
            assert_eq!(reader.count(key, from, to), model.count(key, from, to), "{key}");
        }
    }
}

#[test]
fn a_cluster_of_an_earlier_release_still_answers() {
    let Some(place) = Place::bare(PARTITIONS) else { return };
    let text = std::fs::read_to_string(FIXTURE).expect("the fixture is there");
    let text = text.replace("{topic}", &place.topic);
    let fixture: Fixture = serde_json::from_str(&text).expect("a fixture");
    place.run_sql(&place.catalog_url(), &fixture.catalog.join(";\n"));
    place.migrate();
    fill_topic(&place, &fixture.messages);
    fill_keyspace(&place, &fixture.tables);
    place.migrate();

    let writer = place.start("writer,portal");
    let reader = place.start("reader");
    let (events, model) = events();
    compare(&reader, &model);

    let versions = writer.get("/v1/counters/34/versions").expect(200);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2), "{versions}");

    let (from, to) = (NOON_S, NOON_S + 432_000);
    let recount = format!("/v1/recount?key=drops:rome&fromTime={from}&toTime={to}");
    let recount = writer.get(&recount).expect(200);
    assert_eq!((&recount["equal"], &recount["recounted"]), (&json!(true), &json!(20)), "{recount}");

    writer.count_events(&events);
    compare(&reader, &model);
    writer.count_events(&[drop_event("later", NOON_S, "oslo")]);
    until("the new event is counted too", || {
        let count = reader.count("drops:oslo", NOON_S, NOON_S + 900);
        (count == model.count("drops:oslo", NOON_S, NOON_S + 900) + 1).then_some(())
    });
}

/// Sends the messages again, each to the offset that it had.
fn fill_topic(place: &Place, messages: &[StoredMessage]) {
    let plain: BaseProducer = config(place).create().expect("a producer");
    let grouped: BaseProducer =
        config(place).set("transactional.id", &place.topic).create().expect("a producer");
    grouped.init_transactions(PATIENCE).expect("a broker with transactions");

    for message in messages {
        let headers = message.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value) })
        });
        let mut record = BaseRecord::<String, String>::to(&place.topic)
            .partition(message.partition)
            .payload(&message.payload)
            .headers(headers);
        record.key = message.key.as_ref();

        if message.ends_transaction {
            grouped.begin_transaction().expect("a transaction");
            grouped.send(record).map_err(|(error, _)| error).expect("handed over");
            grouped.commit_transaction(PATIENCE).expect("committed");
        } else {
            plain.send(record).map_err(|(error, _)| error).expect("handed over");
            plain.flush(PATIENCE).expect("flushed");
        }
    }
}

/// Inserts the rows as they were, but for the id of the topic, which is another one here, and for
/// the stamps of checkpoints: the broker gave its messages other times of appending.
fn fill_keyspace(place: &Place, tables: &BTreeMap<String, Vec<Value>>) {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    let stamp = u64::try_from(since.as_micros()).expect("a time of this age");
    let mut statements = Vec::new();
    for (table, rows) in tables {
        let rows = rows.iter().filter(|row| row["log"] != json!(format!("{}#ids", place.topic)));
        for row in rows {
            let mut row = row.clone();
            if table == "checkpoint_table" {
                row["stamp"] = json!(stamp);
            }
            let row = row.to_string().replace('\'', "''");
            statements.push(format!("INSERT INTO {table} JSON '{row}' USING TIMESTAMP {stamp}"));
        }
    }

    place.block_on(async {
        let session = place.connect().await.expect("a keyspace").session_for_tests();
        for statement in statements {
            let ran = session.query_unpaged(&*statement, ()).await;
            ran.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    });
}

/// Writes the fixture with the program that `RAINGAUGE_TEST_BINARY` names.
#[test]
#[ignore = "writes the fixture"]
fn write_the_fixture() {
    let Some(mut place) = Place::bare(PARTITIONS) else { return };
    place.home.run_program(&std::env::var("RAINGAUGE_TEST_BINARY").expect("an earlier release"));
    place.migrate();
    let writer = place.start("writer,portal");
    let reader = place.start("reader");
    writer.create(drops_counter());
    let mut counter = drops_counter();
    counter["description"] = json!("drops by city");
    writer.send("PUT", "/v1/counters/34", &[], counter.to_string().as_bytes()).expect(200);
    settle(&writer, &writer, &reader, PARTITIONS);

    let (events, model) = events();
    writer.count_events(&events);
    compare(&reader, &model);
    assert!(writer.terminate().0.success());

    let fixture = Fixture {
        tables: rows_of(&place),
        catalog: place.sql_dump(),
        messages: messages_of(&place),
    };
    let text = serde_json::to_string_pretty(&fixture).expect("JSON");
    std::fs::write(FIXTURE, text.replace(&place.topic, "{topic}")).expect("written");
}

fn rows_of(place: &Place) -> BTreeMap<String, Vec<Value>> {
    place.block_on(async {
        let session = place.connect().await.expect("a keyspace").session_for_tests();
        let texts = async |query: String| -> Vec<String> {
            let rows = session.query_unpaged(query, ()).await.expect("rows");
            let rows = rows.into_rows_result().expect("rows");
            let rows = rows.rows::<(String,)>().expect("texts");
            rows.map(|row| row.expect("a row").0).collect()
        };

        let name = place.keyspace();
        let names =
            format!("SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{name}'");
        let mut tables = BTreeMap::new();
        for table in texts(names).await {
            let rows = texts(format!("SELECT JSON * FROM {table}")).await;
            let rows = rows.iter().map(|row| serde_json::from_str(row).expect("JSON"));
            tables.insert(table, rows.collect());
        }

        tables
    })
}

fn messages_of(place: &Place) -> Vec<StoredMessage> {
    let consumer: BaseConsumer = config(place)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()
        .expect("a consumer");
    let mut messages = Vec::new();
    for partition in 0..i32::from(PARTITIONS) {
        let watermarks = consumer.fetch_watermarks(&place.topic, partition, PATIENCE);
        let (_, end) = watermarks.expect("the topic is there");
        let mut offsets = TopicPartitionList::new();
        offsets.add_partition_offset(&place.topic, partition, Offset::Beginning).expect("a place");
        consumer.assign(&offsets).expect("assigned");

        let mut own = Vec::new();
        loop {
            match consumer.poll(PATIENCE).expect("a message in time") {
                Ok(message) => own.push((message.offset(), StoredMessage::of(&message))),
                Err(KafkaError::PartitionEOF(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }

        let behind: Vec<i64> = own.iter().map(|(offset, _)| *offset).skip(1).chain([end]).collect();
        for ((offset, mut message), behind) in own.into_iter().zip(behind) {
            message.ends_transaction = behind > offset + 1;
            messages.push(message);
        }
    }
    messages
}

fn config(place: &Place) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &place.addresses.kafka).set("group.id", "earlier");
    config
}
