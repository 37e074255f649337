//! What lookups promise, over services and databases that a test drives. Time stands still unless
//! something waits for it.

use raingauge_campaigns::documents::{Document, Kind, Lookup, Named};
use raingauge_campaigns::engine::{LookupClass, LookupKey};
use raingauge_lookups::{Answers, CounterRange, Counts, Deps, Options};
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::campaigns::{
    DatabaseError, DatabaseLookup, LookupError, Lookups, TableLoads, TableRow, Tables,
};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::Offset;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(3_600);

/// Requests that are under way.
#[derive(Default)]
struct Load {
    takes: Mutex<Duration>,
    now: Mutex<usize>,
    most: Mutex<usize>,
}

impl Load {
    /// Keeps a request under way for as long as it takes.
    async fn hold(&self) {
        {
            let mut now = self.now.lock().unwrap();
            *now += 1;
            let mut most = self.most.lock().unwrap();
            *most = (*most).max(*now);
        }
        let takes = *self.takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        *self.now.lock().unwrap() -= 1;
    }

    fn take(&self, ms: u64) {
        *self.takes.lock().unwrap() = Duration::from_millis(ms);
    }

    /// The most at a time since this was asked before.
    fn most(&self) -> usize {
        std::mem::take(&mut *self.most.lock().unwrap())
    }
}

/// A service that answers after a while, with what its script says.
#[derive(Default)]
struct Service {
    asked: Mutex<Vec<Request>>,
    status: Mutex<u16>,
    fails: Mutex<bool>,
    load: Load,
}

impl Service {
    fn urls(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|request| request.url.clone()).collect()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Sender for Service {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            self.load.hold().await;
            if *self.fails.lock().unwrap() {
                return Err(SendError::Late(request.timeout));
            }
            let status = *self.status.lock().unwrap();
            let body = json!({ "level": "low", "path": request.url }).to_string().into_bytes();
            Ok(Response { body, ..Response::of_status(if status == 0 { 200 } else { status }) })
        })
    }
}

/// A database with one row.
#[derive(Default)]
struct Database {
    asked: Mutex<Vec<(String, String, String)>>,
    load: Load,
}

impl DatabaseLookup for Database {
    fn connections(&self) -> Vec<String> {
        vec!["crm".to_owned()]
    }

    fn row<'a>(
        &'a self,
        connection: &'a str,
        sql: &'a str,
        key: &'a str,
        _: Duration,
    ) -> BoxFuture<'a, Result<Option<Map<String, Json>>, DatabaseError>> {
        let asked = (connection.to_owned(), sql.to_owned(), key.to_owned());
        self.asked.lock().unwrap().push(asked);
        let row = (key == "u-7").then(|| json!({ "tier": "gold" }).as_object().unwrap().clone());
        Box::pin(async move {
            self.load.hold().await;
            Ok(row)
        })
    }
}

/// Counts the length of keys, once counting is far enough.
struct Counting {
    applied: tokio::sync::watch::Receiver<Offset>,
}

impl Counts for Counting {
    fn counts<'a>(
        &'a self,
        ranges: &'a [CounterRange],
        after: Offset,
    ) -> BoxFuture<'a, Vec<Result<i64, String>>> {
        let mut applied = self.applied.clone();
        Box::pin(async move {
            applied.wait_for(|applied| *applied >= after).await.unwrap();
            let count = |range: &CounterRange| match range.key.as_str() {
                "" => Err("no counter has this key".to_owned()),
                key => Ok(key.len() as i64 + range.range_s.1 - range.range_s.0),
            };
            ranges.iter().map(count).collect()
        })
    }
}

struct World {
    service: Arc<Service>,
    database: Arc<Database>,
    tables: Arc<memory::Tables>,
    applied: tokio::sync::watch::Sender<Offset>,
    documents: Arc<Mutex<BTreeMap<String, Lookup>>>,
    clock: Arc<ManualClock>,
    answers: Answers,
}

impl World {
    fn new() -> Self {
        let service = Arc::<Service>::default();
        let database = Arc::<Database>::default();
        let tables = Arc::<memory::Tables>::default();
        let (applied, counting) = tokio::sync::watch::channel(0);
        let documents = Arc::<Mutex<BTreeMap<String, Lookup>>>::default();
        let known = Arc::clone(&documents);
        let clock = Arc::new(ManualClock::at_s(1_727_136_000));
        let deps = Deps {
            definitions: Arc::new(move |name| known.lock().unwrap().get(name).cloned()),
            tables: Arc::clone(&tables) as Arc<dyn Tables>,
            counts: Arc::new(Counting { applied: counting }),
            sender: Arc::clone(&service) as Arc<dyn Sender>,
            databases: Arc::clone(&database) as Arc<dyn DatabaseLookup>,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        };
        let answers = Answers::new(deps, &Options { cache_bytes: 1 << 20 });
        let world = Self { service, database, tables, applied, documents, clock, answers };
        world.define(json!({ "name": "risk", "class": "http",
            "url": "https://risk.internal/users/{subject}?v=1", "ttlS": 60 }));
        world.define(json!({ "name": "crm", "class": "db", "connection": "crm",
            "sql": "SELECT tier FROM members WHERE id = ?" }));
        world
    }

    /// Saves a lookup.
    fn define(&self, document: Json) {
        match Document::parse(Kind::Lookup, &document) {
            Ok(Document::Lookup(Named { name, content })) => {
                self.documents.lock().unwrap().insert(name, content);
            }
            other => panic!("{other:?}"),
        }
    }

    /// The lookup of `risk`, with other members.
    fn redefine(&self, members: Json) {
        let mut document = json!({ "name": "risk", "class": "http",
            "url": "https://risk.internal/users/{subject}?v=1", "ttlS": 60 });
        for (name, value) in members.as_object().unwrap() {
            document[name] = value.clone();
        }
        self.define(document);
    }

    async fn ask(&self, keys: &[LookupKey]) -> Vec<Result<Json, LookupError>> {
        self.answers.answers(keys, 0, LONG).await
    }

    /// How many of these requests set out at once.
    async fn begun(&self, load: &Load, keys: &[LookupKey]) -> usize {
        load.most();
        self.answers.answers(keys, 0, Duration::from_millis(5)).await;
        load.most()
    }

    async fn risk(&self, key: &str) -> Result<Json, LookupError> {
        self.ask(&[http(key)]).await.remove(0)
    }
}

fn lookup(class: LookupClass, name: &str, key: &str) -> LookupKey {
    LookupKey { class, name: name.to_owned(), key: key.to_owned(), range_s: None }
}

fn http(key: &str) -> LookupKey {
    lookup(LookupClass::Http, "risk", key)
}

/// More keys of `risk` than are asked for at a time.
fn many(prefix: &str) -> Vec<LookupKey> {
    (0..60).map(|number| http(&format!("{prefix}-{number}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn every_class_is_answered_in_the_order_of_the_keys() {
    let world = World::new();
    let gold = json!({ "tier": "gold" }).as_object().unwrap().clone();
    for (table, row) in [("users", gold), ("vip", TableRow::new())] {
        world.tables.change(table, vec![("u-7".to_owned(), Some(row))]).await.unwrap();
    }

    let counter = LookupKey {
        range_s: Some((100, 130)),
        ..lookup(LookupClass::Counter, "orders:{user_id}", "orders:u-7")
    };
    let keys = [
        lookup(LookupClass::Table, "users", "u-8"),
        lookup(LookupClass::Segment, "vip", "u-7"),
        http("u-7"),
        lookup(LookupClass::Database, "crm", "u-8"),
        counter,
        lookup(LookupClass::Segment, "vip", "u-8"),
        lookup(LookupClass::Table, "users", "u-7"),
        lookup(LookupClass::Database, "crm", "u-7"),
        lookup(LookupClass::Counter, "x", ""),
        lookup(LookupClass::Table, "nobody", "u-7"),
        lookup(LookupClass::Http, "nobody", "u-7"),
        lookup(LookupClass::Http, "crm", "u-7"),
    ];
    let answers = world.ask(&keys).await;
    let level = json!({ "level": "low", "path": "https://risk.internal/users/u-7?v=1" });
    assert_eq!(
        answers[..8],
        [
            Ok(Json::Null),
            Ok(json!(true)),
            Ok(level),
            Ok(Json::Null),
            Ok(json!(40)),
            Ok(json!(false)),
            Ok(json!({ "tier": "gold" })),
            Ok(json!({ "tier": "gold" })),
        ]
    );
    let failed = |why: &str| Err(LookupError::Failed(why.to_owned()));
    assert_eq!(answers[8], failed("no counter has this key"));
    assert_eq!(answers[9], Ok(Json::Null));
    assert_eq!(answers[10], failed("there is no lookup `nobody`"));
    assert_eq!(answers[11], failed("there is no lookup `crm`"));
    let asked = world.database.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, "SELECT tier FROM members WHERE id = ?");
    assert_eq!(world.ask(&[]).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_key_stays_in_its_place() {
    let world = World::new();
    world.risk("../admin?x=1&y#z é").await.unwrap();
    let expected = "https://risk.internal/users/..%2Fadmin%3Fx%3D1%26y%23z%20%C3%A9?v=1";
    assert_eq!(world.service.urls(), [expected]);
    let asked = world.service.asked.lock().unwrap()[0].clone();
    assert!(!asked.allow_private && asked.body.is_empty());
    assert_eq!(asked.timeout, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn equal_keys_are_asked_once_and_answers_are_kept() {
    let world = World::new();
    world.service.load.take(100);
    let twice = [http("u-7"), http("u-8"), http("u-7")];
    let (one, other) = tokio::join!(world.ask(&twice), world.ask(&twice));
    assert_eq!(one, other);
    assert!(one[0].is_ok() && one[0] == one[2]);
    assert_eq!(world.service.asked(), 2);

    tokio::time::advance(Duration::from_secs(59)).await;
    world.risk("u-7").await.unwrap();
    assert_eq!(world.service.asked(), 2);
    tokio::time::advance(Duration::from_secs(2)).await;
    world.risk("u-7").await.unwrap();
    assert_eq!(world.service.asked(), 3);

    // Another version of the lookup may ask for something else.
    world.redefine(json!({ "url": "https://risk.internal/v2/{key}", "ttlS": 0 }));
    world.risk("u-7").await.unwrap();
    world.risk("u-7").await.unwrap();
    assert_eq!(world.service.asked(), 5);
    assert_eq!(world.service.urls()[4], "https://risk.internal/v2/u-7");
}

#[tokio::test(start_paused = true)]
async fn what_is_late_is_there_when_it_is_asked_for_again() {
    let world = World::new();
    world.service.load.take(500);
    let patience = Duration::from_millis(200);
    let began = Instant::now();
    let keys = [http("u-7"), lookup(LookupClass::Database, "crm", "u-7")];
    let answers = world.answers.answers(&keys, 0, patience).await;
    assert_eq!(answers[0], Err(LookupError::Late));
    assert!(answers[1].is_ok());
    let waited = began.elapsed();
    assert!(waited >= patience && waited < patience + Duration::from_millis(10), "{waited:?}");

    let again = world.answers.answers(&keys, 0, LONG).await;
    assert!(again[0].is_ok());
    assert_eq!(world.service.asked(), 1);
    assert!(began.elapsed() < Duration::from_millis(600), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_counter_waits_for_counting() {
    let world = World::new();
    let key = LookupKey {
        range_s: Some((0, 10)),
        ..lookup(LookupClass::Counter, "orders:{user_id}", "orders:u-7")
    };
    let keys = std::slice::from_ref(&key);
    let late = world.answers.answers(keys, 5, Duration::from_millis(200)).await;
    assert_eq!(late, [Err(LookupError::Late)]);
    let asking = world.answers.answers(keys, 5, LONG);
    world.applied.send(5).unwrap();
    assert_eq!(asking.await, [Ok(json!(20))]);
}

#[tokio::test(start_paused = true)]
async fn a_status_says_what_there_is() {
    let world = World::new();
    world.redefine(json!({ "ttlS": 0 }));
    let status = async |status: u16| {
        *world.service.status.lock().unwrap() = status;
        world.risk("u-7").await
    };
    assert!(status(200).await.is_ok());
    assert_eq!(status(404).await, Ok(Json::Null));
    for refused in [301, 400, 401, 500, 503] {
        let failed = status(refused).await;
        let why = format!("it answered with status {refused}");
        assert_eq!(failed, Err(LookupError::Failed(why)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_and_the_places_are_kept() {
    let world = World::new();
    world.redefine(json!({ "ttlS": 0, "rate": [{ "perSecond": 10, "burst": 2 }],
                           "concurrency": { "min": 1, "max": 3 }, "timeoutMs": 10_000 }));
    world.service.load.take(1_000);
    let keys: Vec<LookupKey> = (0..12).map(|number| http(&format!("u-{number}"))).collect();
    let began = Instant::now();
    let answers = world.ask(&keys).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(world.service.load.most(), 3);
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());

    // A burst of 2, and then ten a second; what would wait for too long fails.
    world.redefine(json!({ "ttlS": 0, "rate": [{ "perSecond": 10, "burst": 2 }],
                           "concurrency": { "min": 256, "max": 256 } }));
    world.service.load.take(0);
    let began = Instant::now();
    assert!(world.ask(&keys).await.iter().all(Result::is_ok));
    assert!(began.elapsed() >= Duration::from_millis(1_000), "{:?}", began.elapsed());

    let keys: Vec<LookupKey> = (0..200).map(|number| http(&format!("v-{number}"))).collect();
    let answers = world.ask(&keys).await;
    let failed = answers.iter().filter(|answer| answer.is_err()).count();
    assert!((80..=110).contains(&failed), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn requests_at_a_time_follow_the_answers() {
    let world = World::new();
    let load = &world.service.load;
    world.redefine(json!({ "ttlS": 0, "concurrency": { "min": 1, "max": 8 } }));
    load.take(100);
    assert_eq!(world.begun(load, &many("u")).await, 1, "it begins with the fewest");
    world.ask(&many("u")).await;
    assert_eq!(load.most(), 8, "one more with each answer, up to the most");
    assert_eq!(world.begun(load, &many("v")).await, 8);
    world.ask(&many("v")).await;

    // They are halved once for the eight that are late, since all of them set out before.
    *world.service.fails.lock().unwrap() = true;
    load.take(1_000);
    assert!(world.ask(&many("w")[..8]).await.iter().all(Result::is_err));
    load.take(100);
    *world.service.fails.lock().unwrap() = false;
    assert_eq!(world.begun(load, &many("x")).await, 4);
    world.ask(&many("x")).await;
    assert_eq!(load.most(), 8);

    // So they are when it says that it has too much to do.
    *world.service.status.lock().unwrap() = 503;
    assert!(world.ask(&many("y")[..1]).await[0].is_err());
    *world.service.status.lock().unwrap() = 200;
    assert_eq!(world.begun(load, &many("z")).await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_database_is_asked_more_at_a_time_while_it_answers_fast() {
    let world = World::new();
    let load = &world.database.load;
    world.define(json!({ "name": "crm", "class": "db", "connection": "crm",
        "sql": "SELECT tier FROM members WHERE id = ?", "concurrency": { "min": 1, "max": 8 } }));
    let keys = |prefix: &str| -> Vec<LookupKey> {
        many(prefix).iter().map(|key| lookup(LookupClass::Database, "crm", &key.key)).collect()
    };

    // Half of its timeout and more is not fast, and says no more than that it answers.
    load.take(600);
    world.ask(&keys("u")).await;
    assert_eq!(load.most(), 1);
    load.take(400);
    world.ask(&keys("v")).await;
    assert_eq!(load.most(), 8);
    load.take(900);
    world.ask(&keys("w")).await;
    assert_eq!(world.begun(load, &keys("x")).await, 8);
}

#[tokio::test(start_paused = true)]
async fn requests_at_a_time_grow_when_the_hour_allows_more() {
    let world = World::new();
    let load = &world.service.load;
    let rate = json!([{ "perSecond": 1_000, "burst": 100 },
                      { "from": "00:00", "to": "01:00", "perSecond": 20, "burst": 1 }]);
    let concurrency = json!({ "min": 1, "max": 8 });
    world.redefine(json!({ "ttlS": 0, "rate": rate, "concurrency": concurrency }));
    load.take(20);
    assert!(world.ask(&many("u")).await.iter().all(Result::is_ok));
    assert_eq!(load.most(), 1, "the rate lets them go one by one");

    // Those that wait for the rate do not say that more at a time would be of use.
    world.clock.set_s(1_727_136_000 + 3_600);
    assert_eq!(world.begun(load, &many("v")).await, 2);
    world.ask(&many("v")).await;
    assert_eq!(load.most(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_is_left_alone() {
    let world = World::new();
    world.redefine(json!({ "ttlS": 0, "breaker": { "failedPercent": 50, "sleepMs": 5_000 } }));
    *world.service.fails.lock().unwrap() = true;
    for number in 0..40 {
        assert!(world.risk(&format!("u-{number}")).await.is_err());
    }
    let asked = world.service.asked();
    assert!(asked < 40, "{asked}");
    let Err(LookupError::Failed(why)) = world.risk("u-1").await else { panic!("it is open") };
    assert!(why.contains("left alone"), "{why}");

    // A probe that succeeds closes the breaker.
    *world.service.fails.lock().unwrap() = false;
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(world.risk("u-1").await.is_ok());
    assert!(world.risk("u-2").await.is_ok());
    assert_eq!(world.service.asked(), asked + 2);

    // What the caller did wrong says nothing about the service.
    *world.service.status.lock().unwrap() = 400;
    for number in 0..60 {
        assert!(world.risk(&format!("u-{number}")).await.is_err());
    }
    assert_eq!(world.service.asked(), asked + 62);
}
