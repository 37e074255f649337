//! Faults under awards of a cluster: processes are killed and paused, two of them price the same
//! events, and Kafka goes away, while events and awards arrive. Afterwards each has one entry, the
//! books follow from their journal, and the topic of points has every entry.
//!
//! `RAINGAUGE_CRASH_ROUNDS` and `RAINGAUGE_CRASH_SEED` choose the number of faults and the seed;
//! `scripts/crash cluster-points` sets them, on servers of its own. Only there Kafka is broken too.

use super::place::Place;
use super::points::{consumer_of, expire_lease, header};
use crate::client::{Client, event, now_s};
use crate::crash::{number, seed};
use crate::server::{Home, Server, until};
use parking_lot::Mutex;
use raingauge_points::Entry;
use raingauge_ports::points::Books;
use raingauge_sql::{MySqlBooks, MySqlOptions};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Faults in a run of the suite.
const ROUNDS: u64 = 4;
/// Faults between two comparisons.
const ROUNDS_PER_CHECK: u64 = 8;
const PROCESSES: usize = 3;
const PARTITIONS: u16 = 4;
const MEMBERS: u64 = 40;
/// Items of one request.
const BATCH_MAX: u64 = 10;
/// Acknowledged items between two faults.
const ITEMS_PER_FAULT: u64 = 150;
/// Pause of a producer between two requests: the machine also runs everything that is tested.
const PACE: Duration = Duration::from_millis(15);
/// Books of points in a database.
const BOOKS: u16 = 16;
/// Longest wait. A lease that nobody holds expires in a minute.
const WAIT_MAX: Duration = Duration::from_secs(180);
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(5);
/// Most attempts to start what was killed, on a machine that may stand still for minutes.
const STARTS_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// SIGKILL of a process.
    Killed,
    /// SIGKILL of two processes at once.
    TwoKilled,
    /// The right to price and to publish moves while its holder does not know it.
    RightMoved,
    /// SIGSTOP of a process, whose right moves, until the others went on for a while.
    Paused,
    /// SIGKILL of Kafka.
    KafkaKilled,
    /// SIGTERM of Kafka.
    KafkaStopped,
    /// SIGKILL of a process while Kafka is away.
    KilledWithoutKafka,
}

const OF_PROCESSES: [Fault; 4] =
    [Fault::Killed, Fault::TwoKilled, Fault::RightMoved, Fault::Paused];
const ALL: [Fault; 7] = [
    Fault::Killed,
    Fault::TwoKilled,
    Fault::RightMoved,
    Fault::Paused,
    Fault::KafkaKilled,
    Fault::KafkaStopped,
    Fault::KilledWithoutKafka,
];

#[test]
fn nothing_is_lost_or_awarded_twice_whatever_is_killed() {
    let Some(mut place) = Place::bare(PARTITIONS) else { return };
    let topic = format!("{}-points", place.topic);
    let settings = [
        ("points.enabled", "true"),
        ("points.kafka_topic", topic.as_str()),
        // Requests are answered soon while Kafka is away.
        ("kafka.delivery_timeout_ms", "4000"),
    ];
    settings.iter().for_each(|(key, value)| place.home.set(key, value));
    place.migrate();

    let rounds = number("RAINGAUGE_CRASH_ROUNDS");
    let mut random = StdRng::seed_from_u64(seed());
    let faults = if rounds.is_some() { &ALL[..] } else { &OF_PROCESSES };
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut stage = Stage::new(&place);
    let mut done: BTreeMap<Fault, u64> = BTreeMap::new();

    let mut left = rounds;
    while left > 0 {
        let part = left.min(ROUNDS_PER_CHECK);
        stage.load.is_over.store(false, Ordering::Release);
        let load = Arc::clone(&stage.load);
        let seeds: [u64; 3] = random.random();
        std::thread::scope(|scope| {
            // A request that fails ends the load as well.
            let _over = Over(&load.is_over);
            for (seed, kind) in seeds.into_iter().zip([Kind::Event, Kind::Event, Kind::Award]) {
                let load = &*load;
                scope.spawn(move || load.produce(kind, seed));
            }
            for _ in 0..part {
                let fault = *faults.choose(&mut random).expect("there are some");
                stage.wait_for_load();
                stage.deal(fault, &mut random);
                *done.entry(fault).or_default() += 1;
            }
            stage.wait_for_load();
        });
        left -= part;
        stage.compare();
    }

    let entries = stage.verified();
    let (messages, early) = stage.compare_topic(&topic, &entries);
    println!(
        "{rounds} faults {done:?}; {} events and awards, {} sent again; {messages} messages of \
         {} entries, {early} before their turn",
        stage.load.points.lock().len(),
        stage.load.repeated.load(Ordering::Relaxed),
        entries.len(),
    );
}

/// Ends the load when the director is over, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Event,
    Award,
}

/// What the producers do, and what they were acknowledged.
#[derive(Default)]
struct Load {
    doors: Mutex<Vec<Client>>,
    /// The number of the next item.
    next: AtomicU64,
    /// Points of each acknowledged item.
    points: Mutex<BTreeMap<u64, i64>>,
    /// Items of requests that failed, or were sent twice.
    repeated: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    /// Sends items until it is over, each until it is acknowledged.
    fn produce(&self, kind: Kind, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        while !self.is_over.load(Ordering::Acquire) {
            let len = random.random_range(1..=BATCH_MAX);
            let first = self.next.fetch_add(len, Ordering::Relaxed);
            let items: Vec<u64> = (first..first + len).collect();
            // One in ten is sent again although it was acknowledged, mostly to another process.
            let times = if random.random_ratio(1, 10) { 2 } else { 1 };
            for _ in 0..times {
                while !self.send(kind, &items, &mut random) {
                    self.repeated.fetch_add(len, Ordering::Relaxed);
                    std::thread::sleep(PACE);
                }
            }
            self.repeated.fetch_add((times - 1) * len, Ordering::Relaxed);
            self.points.lock().extend(items.iter().map(|item| (*item, points(*item))));
            std::thread::sleep(PACE);
        }
    }

    /// Answers whether all items are acknowledged.
    fn send(&self, kind: Kind, items: &[u64], random: &mut StdRng) -> bool {
        let door = self.doors.lock().choose(random).expect("there are processes").clone();
        let (path, content, body) = match kind {
            Kind::Event => {
                let lines: String =
                    items.iter().map(|item| format!("{}\n", order(*item))).collect();
                ("/v1/events", "application/x-ndjson", lines)
            }
            Kind::Award => {
                let awards: Vec<Value> = items.iter().map(|item| award(*item)).collect();
                let body = json!({ "awards": awards }).to_string();
                ("/v1/points/awards", "application/json", body)
            }
        };

        let answer = door.try_send("POST", path, &[("content-type", content)], body.as_bytes());
        match answer {
            Ok(answer) if answer.status == 200 && kind == Kind::Event => true,
            Ok(answer) if answer.status == 200 => {
                let answer = answer.json();
                let results = answer["results"].as_array().expect("results").iter();
                results.filter(|result| result["error"].is_object()).count() == 0
            }
            Ok(answer) => {
                assert!([429, 502, 503, 504].contains(&answer.status), "{}", answer.text());
                false
            }
            Err(_) => false,
        }
    }
}

fn member(item: u64) -> String {
    format!("m{}", item % MEMBERS)
}

/// Points of an item: those of two items differ, mostly.
fn points(item: u64) -> i64 {
    1 + (item % 97) as i64
}

fn order(item: u64) -> Value {
    let data = json!({"member": member(item), "amount": points(item)});
    event("order.completed", &format!("order-{item}"), now_s(), data)
}

fn award(item: u64) -> Value {
    json!({"programme": "rain", "member": member(item), "points": points(item),
           "key": format!("award-{item}")})
}

/// The processes, and what is done to them.
struct Stage<'a> {
    place: &'a Place,
    homes: Vec<Home>,
    servers: Vec<Option<Server>>,
    load: Arc<Load>,
}

impl<'a> Stage<'a> {
    fn new(place: &'a Place) -> Self {
        let homes: Vec<Home> = (0..PROCESSES).map(|_| place.home_with(&[])).collect();
        let servers = homes.iter().map(|home| Some(begin(home))).collect();
        let mut stage = Self { place, homes, servers, load: Arc::default() };
        stage.open_doors();

        let rule = json!({"id": 1, "name": "orders", "eventType": "order.completed",
            "member": "data.member", "amount": "data.amount"});
        let programme = json!({"programme": "rain", "unit": "drops", "timezone": "UTC",
            "expiry": {"kind": "never"}, "rules": [rule]});
        let doors = stage.load.doors.lock().clone();
        doors[0].post("/v1/points/programmes", &programme).expect(201);
        for door in &doors {
            until("the programme is in force in each process", || {
                let path = "/v1/points/awards?dryRun=true";
                let answer = door.post(path, &json!({"awards": [award(0)]}));
                let is_known = answer.status == 200 && !answer.text().contains("error");
                is_known.then_some(())
            });
        }
        stage
    }

    /// Requests go to the processes that run.
    fn open_doors(&mut self) {
        let running = self.servers.iter().flatten();
        *self.load.doors.lock() = running.map(|server| (**server).clone()).collect();
    }

    /// Waits until producers were acknowledged a number of items more.
    fn wait_for_load(&self) {
        let goal = self.load.points.lock().len() + ITEMS_PER_FAULT as usize;
        wait("items are acknowledged", || (self.load.points.lock().len() >= goal).then_some(()));
    }

    fn deal(&mut self, fault: Fault, random: &mut StdRng) {
        let which = random.random_range(0..PROCESSES);
        println!("{fault:?} {which}");
        match fault {
            Fault::Killed => {
                self.kill(which);
                self.move_right();
                self.wait_for_load();
                self.begin(which);
            }
            Fault::TwoKilled => {
                let other = (which + 1) % PROCESSES;
                self.kill(which);
                self.kill(other);
                self.move_right();
                self.wait_for_load();
                self.begin(which);
                self.begin(other);
            }
            Fault::RightMoved => self.move_right(),
            Fault::Paused => self.pause(which),
            Fault::KafkaKilled => {
                self.services("kill", "kafka");
                self.wait_for_load();
                self.services("restart", "kafka");
            }
            Fault::KafkaStopped => {
                self.services("stop", "kafka");
                self.wait_for_load();
                self.services("restart", "kafka");
            }
            Fault::KilledWithoutKafka => {
                self.services("kill", "kafka");
                self.kill(which);
                self.move_right();
                self.wait_for_load();
                self.services("restart", "kafka");
                self.begin(which);
            }
        }
    }

    fn kill(&mut self, which: usize) {
        self.servers[which].take().expect("it runs").kill();
        self.open_doors();
    }

    fn begin(&mut self, which: usize) {
        self.servers[which] = Some(begin(&self.homes[which]));
        self.open_doors();
    }

    fn pause(&mut self, which: usize) {
        let paused = self.servers[which].take().expect("it runs");
        paused.signal("STOP");
        self.open_doors();
        self.move_right();
        self.wait_for_load();
        paused.signal("CONT");
        self.servers[which] = Some(paused);
        self.open_doors();
    }

    /// Another process may take the right over.
    fn move_right(&self) {
        expire_lease(self.place);
    }

    /// Breaks or mends a server.
    fn services(&self, verb: &str, name: &str) {
        let folder = std::env::var("RAINGAUGE_TEST_SERVICES").expect("servers of this run alone");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
        let run = || Command::new(&script).args([verb, &folder, name]).output().expect("it runs");
        let done = (0..STARTS_MAX).map(|_| run()).find(|done| done.status.success());
        assert!(done.is_some(), "{verb} {name}");
    }

    /// Waits until every member has what was acknowledged, and asserts that nothing waits.
    fn compare(&self) {
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for (item, points) in &*self.load.points.lock() {
            *expected.entry(member(*item)).or_default() += points;
        }
        let members: Vec<Value> =
            expected.keys().map(|member| json!({"programme": "rain", "member": member})).collect();
        let door = self.load.doors.lock().first().expect("there are processes").clone();

        wait("everything is awarded", || {
            let asked = json!({ "members": members });
            let found = door.post("/v1/points/balances", &asked).expect(200);
            let found = found["results"].as_array().expect("results").iter();
            let found: Vec<i64> =
                found.map(|balance| balance["available"].as_i64().unwrap_or_default()).collect();
            let too_much = expected.iter().zip(&found).find(|((_, due), found)| found > due);
            assert_eq!(too_much, None, "nobody has more than was given");
            expected.values().eq(&found).then_some(())
        });

        let queues = door.get("/v1/points/queues").expect(200);
        for queue in queues["queues"].as_array().expect("queues") {
            assert_eq!((&queue["waiting"], &queue["dead"]), (&json!(0), &json!(0)), "{queue}");
        }
    }

    /// Reads the journal, and asserts that it has each item once, and that everything in the books
    /// follows from it. Returns the entries of members by their ids.
    fn verified(&self) -> HashMap<String, Arc<Entry>> {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let options = MySqlOptions::new(self.place.catalog_url());
        let open = MySqlBooks::open(&options, BOOKS, runtime.handle().clone());
        let books = runtime.block_on(open).expect("the books open");
        let mut entries = HashMap::new();
        let mut keys = BTreeSet::new();

        for book in 0..BOOKS {
            let head = books.head(book).expect("a head");
            let mut sequence = 0;
            while sequence < head.sequence {
                let read = books.read(book, sequence + 1, 1 << 20).expect("entries");
                assert!(!read.is_empty(), "book {book} has an entry {}", sequence + 1);
                for entry in read {
                    sequence += 1;
                    if let Some(key) = &entry.key {
                        assert!(keys.insert(key.text.clone()), "{} has one entry", key.text);
                    }
                    if entry.member.is_some() {
                        let id = format!("{}:{book}:{sequence}", entry.programme);
                        entries.insert(id, entry);
                    }
                }
            }
        }

        self.place.home.run(&["points", "verify", "--json"]).json();
        assert_eq!(keys.len(), self.load.points.lock().len(), "each item has one entry");
        entries
    }

    /// Waits until the topic has every entry, and asserts that it has nothing else and that a
    /// repetition has the id of what it repeats. Returns the number of messages, and how many
    /// entries came before an earlier one of their member.
    fn compare_topic(&self, topic: &str, entries: &HashMap<String, Arc<Entry>>) -> (usize, usize) {
        let consumer = consumer_of(self.place, topic, PARTITIONS);
        let mut found: HashMap<String, Value> = HashMap::new();
        let mut last: HashMap<String, u64> = HashMap::new();
        let mut messages = 0;
        let mut early = 0;
        while found.len() < entries.len() {
            let (id, data) = wait("each entry is published", || next(&consumer));
            messages += 1;
            let entry = entries.get(&id).unwrap_or_else(|| panic!("{id} is in the journal"));
            assert_eq!(data["member"].as_str(), entry.member.as_deref());
            assert_eq!(data["points"], json!(entry.points()));
            assert_eq!(data["balance"], json!(entry.balance_after));
            assert_eq!(data["sequence"], json!(entry.member_sequence));

            let member = entry.member.as_deref().expect("a member").to_owned();
            match found.insert(id, data.clone()) {
                Some(before) => assert_eq!(before, data, "an id stands for one entry"),
                None => {
                    let known = last.entry(member).or_default();
                    early += usize::from(entry.member_sequence != *known + 1);
                    *known = entry.member_sequence;
                }
            }
        }
        (messages, early)
    }
}

/// The next message of the topic: its id, and its data.
fn next(consumer: &BaseConsumer) -> Option<(String, Value)> {
    let message = consumer.poll(Duration::from_millis(100))?.expect("a message");
    let data: Value = serde_json::from_slice(message.payload().expect("data")).expect("JSON");
    assert_eq!(message.key(), data["member"].as_str().map(str::as_bytes));
    Some((header(&message, "ce_id").expect("an id"), data))
}

/// Starts a process, again if it was not ready in time.
fn begin(home: &Home) -> Server {
    let arguments =
        ["serve", "--role", "writer,portal", "--listen", "127.0.0.1:0"].map(str::to_owned);
    let started = (0..STARTS_MAX).find_map(|_| home.try_start_with(&arguments).ok());
    started.unwrap_or_else(|| panic!("no process could be started: {}", home.errors()))
}

/// Polls until there is an answer. Only the time of the polls counts, so a machine that stands
/// still for a while ends no wait.
fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..WAIT_MAX.as_millis() / POLL.as_millis() {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(POLL);
    }
    panic!("waited {WAIT_MAX:?} in vain until {what}");
}
