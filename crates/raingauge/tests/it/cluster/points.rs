//! Points of a cluster: several processes award over one database, publish to a topic, and any of
//! them may die.

use super::lost_log::drop_everything;
use super::place::{Place, start};
use crate::client::{Client, event, now_s};
use crate::server::{Home, Server, until};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

const MEMBERS: usize = 7;
const AWARDS: usize = 300;
const BATCH: usize = 10;
const POINTS: i64 = 3;
const PARTITIONS: u16 = 2;
const ROLES: &str = "writer,portal";

/// What a command was answered: its entry.
type Entries = Mutex<HashMap<String, String>>;

#[test]
fn processes_share_the_ledger_and_any_may_die() {
    let Some((place, topic)) = place_with_topic(PARTITIONS) else { return };
    let homes = [(); 3].map(|()| place.home_with(&[]));
    let [stays, dies] = begin(&homes);

    // Both give the same awards, and the one that publishes is killed and replaced.
    let entries = Entries::default();
    std::thread::scope(|scope| {
        let giving = scope.spawn(|| give_all(&stays, &entries));
        give_some(&dies, &entries, AWARDS / 2);
        dies.kill();
        let other = start(&homes[2], ROLES);
        verify(&place);
        give_all(&other, &entries);
        giving.join().expect("the other one goes on");
        compare(&stays, &other);
    });
    assert_eq!(entries.lock().expect("no panic").len(), AWARDS);
    assert!(verify(&place) >= AWARDS as u64, "each award has its entry");
    compare_stream(&place, &topic, &stays);
}

/// One process prices the events, any may wait for them, and another one goes on when it dies.
#[test]
fn events_of_kafka_are_awarded_once_and_any_process_may_die() {
    let Some((place, topic)) = place_with_topic(PARTITIONS) else { return };
    let homes = [(); 3].map(|()| place.home_with(&[]));
    let [stays, dies] = begin(&homes);
    let orders: Vec<Value> = (0..AWARDS).map(order).collect();
    let waited = |orders: &[Value]| {
        until("the events are awarded", || {
            let answer = stays.lines("/v1/events?wait=awarded", orders);
            (answer.status == 200).then_some(())
        });
    };
    waited(&orders[..AWARDS / 3]);

    // It dies with events before it, and events are sent again.
    stays.lines("/v1/events", &orders[AWARDS / 3..]).expect(200);
    dies.kill();
    waited(&orders);
    let other = start(&homes[2], ROLES);
    waited(&orders[AWARDS / 2..]);
    compare(&stays, &other);
    compare_stream(&place, &topic, &stays);
}

/// Events that Kafka deleted before they were priced are reported, and never passed over silently.
#[test]
fn what_kafka_dropped_is_named_and_skipped_by_a_command_alone() {
    let Some((place, _)) = place_with_topic(1) else { return };
    let awarding = start(&place.home, ROLES);
    awarding.post("/v1/points/programmes", &programme()).expect(201);
    until_in_force(&awarding, "first");
    awarding.lines("/v1/events?wait=awarded", &[order(0)]).expect(200);
    awarding.terminate();

    let counting = start(&place.home_with(&[("points.enabled", "false")]), ROLES);
    let send = |numbers: std::ops::Range<usize>| {
        let orders: Vec<Value> = numbers.map(order).collect();
        counting.lines("/v1/events?wait=applied", &orders).expect(200);
    };
    send(1..MEMBERS);
    drop_everything(&place);
    send(MEMBERS..2 * MEMBERS);

    expire_lease(&place);
    let awarding = start(&place.home, ROLES);
    let readiness = || awarding.get("/readyz").text();
    until("the loss is reported", || {
        readiness().contains("events of partition 0 are not awarded points").then_some(())
    });
    let skip = |more: &[&str]| {
        let command = ["skip-lost", "--consumer", "points", "--partition", "0"];
        place.home.run(&[&command[..], more].concat())
    };
    let lost = skip(&["--json"]).json();
    assert!(lost["entries"].as_u64().is_some_and(|lost| lost >= MEMBERS as u64 - 1), "{lost}");
    assert_eq!(lost["skipped"], false);

    let skipped = skip(&["--yes"]);
    assert!(skipped.status.success(), "{skipped:?}");
    // The first member has the order before the loss and one after it. The second one has an order
    // after it and the award by which the programme was waited for; the others have one order.
    let points = |number: usize| {
        let path = format!("/v1/points/rain/members/{}", member(number));
        awarding.get(&path).expect(200)["available"].as_i64().expect("a number")
    };
    let expected: Vec<i64> = [2, 2, 1, 1, 1, 1, 1].map(|orders| orders * POINTS).to_vec();
    let all = || (0..MEMBERS).map(points).collect::<Vec<i64>>();
    until("what is left is awarded", || (all() == expected).then_some(()));
    until("nothing troubles it any more", || (readiness() == "ready\n").then_some(()));
    let again = skip(&["--yes"]);
    assert!(!again.status.success() && again.errors.contains("has lost nothing"), "{again:?}");
    assert_eq!(all(), expected);
}

/// Proves the ledger while processes run, and returns how many entries it has.
fn verify(place: &Place) -> u64 {
    let verified = place.home.run(&["points", "verify", "--json"]).json();
    verified["entries"].as_u64().expect("a number")
}

/// An event that a rule of the programme wants.
fn order(number: usize) -> Value {
    let data = json!({"member": member(number)});
    event("order.completed", &format!("order-{number}"), now_s(), data)
}

/// A place whose points have a topic of their own.
fn place_with_topic(partitions: u16) -> Option<(Place, String)> {
    let mut place = Place::bare(partitions)?;
    let topic = format!("{}-points", place.topic);
    place.home.set("points.enabled", "true");
    place.home.set("points.kafka_topic", &topic);
    place.migrate();
    Some((place, topic))
}

/// Starts two processes with a programme in force. The second one of them has the right to publish
/// and to price.
fn begin(homes: &[Home; 3]) -> [Server; 2] {
    let servers = [&homes[0], &homes[1]].map(|home| start(home, ROLES));
    servers[0].post("/v1/points/programmes", &programme()).expect(201);
    for (number, server) in servers.iter().enumerate() {
        until_in_force(server, &format!("first-{number}"));
    }

    let publishes =
        until("one publishes", || servers.iter().position(|server| delivered(server) > 0.0));
    let [first, second] = servers;
    if publishes == 0 { [second, first] } else { [first, second] }
}

/// A programme that gives the same points for each order.
fn programme() -> Value {
    let rule = json!({"id": 1, "name": "orders", "eventType": "order.completed",
        "member": "data.member", "points": POINTS});
    json!({"programme": "rain", "unit": "drops", "timezone": "UTC",
        "expiry": {"kind": "never"}, "rules": [rule]})
}

/// Waits until a process goes by the programme, which takes an award.
fn until_in_force(server: &Client, key: &str) {
    until("the programme is in force", || {
        let answer = server.post("/v1/points/awards", &json!({"awards": [award(key, 1)]}));
        (answer.status == 200 && answer.json()["results"][0]["error"].is_null()).then_some(())
    });
}

/// The lease of the process that prices and publishes ends at once. Should it live, it believes for
/// a while that it still has the right.
pub fn expire_lease(place: &Place) {
    place.run_cql("DELETE FROM lease_table WHERE name = 'points' IF EXISTS");
}

/// How many entries a process has published to the topic.
fn delivered(server: &Client) -> f64 {
    server.metric("raingauge_points_delivered_total{consumer=\"stream\"}")
}

fn member(number: usize) -> String {
    format!("m{}", number % MEMBERS)
}

fn award(key: &str, number: usize) -> Value {
    json!({"programme": "rain", "member": member(number), "key": key, "points": POINTS})
}

fn give_all(server: &Client, entries: &Entries) {
    give_some(server, entries, AWARDS);
}

/// Gives the first awards, and asserts that each has the same entry wherever it is given.
fn give_some(server: &Client, entries: &Entries, count: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(BATCH) {
        let key = |number: usize| format!("award-{number}");
        let awards: Vec<Value> = batch.iter().map(|number| award(&key(*number), *number)).collect();
        let answer = server.post("/v1/points/awards", &json!({ "awards": awards })).expect(200);
        for (number, result) in batch.iter().zip(answer["results"].as_array().expect("results")) {
            let entry = result["entry"].as_str().unwrap_or_else(|| panic!("an entry: {result}"));
            let mut entries = entries.lock().expect("no panic");
            let before = entries.entry(key(*number)).or_insert_with(|| entry.to_owned());
            assert_eq!(before, entry, "an award has one entry");
        }
    }
}

/// Asserts that both processes read the same, and that nothing was awarded twice.
fn compare(first: &Client, second: &Client) {
    let mut sum = 0;
    for number in 0..MEMBERS {
        let path = format!("/v1/points/rain/members/{}", member(number));
        let balance = first.get(&path).expect(200);
        assert_eq!(second.get(&path).expect(200), balance);

        let rows = second.get(&format!("{path}/statement?limit=500")).expect(200);
        let rows = rows["rows"].as_array().expect("rows").len() as i64;
        assert_eq!(balance["available"], json!(rows * POINTS));
        sum += rows;
    }
    // The two awards by which the programme was waited for have keys of their own.
    assert_eq!(sum, AWARDS as i64 + 2);
}

/// Asserts that who reads the topic, and knows each id once, hears what happened to a member in its
/// order, and arrives at the balances.
fn compare_stream(place: &Place, topic: &str, server: &Client) {
    let consumer = consumer_of(place, topic, PARTITIONS);
    let mut heard: HashMap<String, Value> = HashMap::new();
    let mut last: HashMap<String, (u64, i64)> = HashMap::new();
    until("each entry is published", || {
        while let Some(message) = consumer.poll(Duration::from_millis(100)) {
            let message = message.expect("a message");
            let data: Value =
                serde_json::from_slice(message.payload().expect("data")).expect("JSON");
            let member = data["member"].as_str().expect("a member").to_owned();
            assert_eq!(message.key(), Some(member.as_bytes()));

            let id = header(&message, "ce_id").expect("an id");
            if let Some(before) = heard.get(&id) {
                assert_eq!(*before, data, "an id stands for one entry");
                continue;
            }
            let (sequence, sum) = last.entry(member).or_default();
            assert_eq!(data["sequence"], json!(*sequence + 1), "in the order of the member");
            *sequence += 1;
            *sum += data["points"].as_i64().expect("a number");
            assert_eq!(data["balance"], json!(*sum));
            heard.insert(id, data);
        }
        (heard.len() >= AWARDS + 2).then_some(())
    });

    assert_eq!(heard.len(), AWARDS + 2);
    for (member, (_, sum)) in last {
        let path = format!("/v1/points/rain/members/{member}");
        assert_eq!(server.get(&path).expect(200)["available"], json!(sum));
    }
}

/// A consumer of a whole topic, from its start.
pub fn consumer_of(place: &Place, topic: &str, partitions: u16) -> BaseConsumer {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &place.addresses.kafka)
        .set("group.id", "not-used")
        .create()
        .expect("a consumer");
    let mut places = TopicPartitionList::new();
    for partition in 0..partitions {
        let added = places.add_partition_offset(topic, partition.into(), Offset::Beginning);
        added.expect("a partition");
    }
    consumer.assign(&places).expect("assigned");
    consumer
}

/// A header of a message.
pub fn header(message: &BorrowedMessage<'_>, name: &str) -> Option<String> {
    let found = message.headers()?.iter().find(|header| header.key == name)?;
    Some(String::from_utf8_lossy(found.value?).into_owned())
}
