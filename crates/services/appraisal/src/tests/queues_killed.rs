//! A real server of queues is killed under awards, and the process that makes them is replaced.
//! What the queue had taken is awarded once, and the audit finds nothing that is missing.
//!
//! `RAINGAUGE_QUEUE_FAULTS=500 scripts/services run temp --elasticmq -- cargo test -p
//! raingauge-appraisal queues_killed -- --nocapture` kills that often; a run of the suite does it a
//! few times. `RAINGAUGE_SEED` repeats the choices of a run.

use super::{document, programme};
use crate::{Appraisal, AuditRequest, Sources};
use raingauge_awarding::{Awarding, Deps, Handle, Options, RetryOptions, Teller};
use raingauge_consumers::Registry;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_points::{Award, Basis, Body, Command, Programmes, WalletId};
use raingauge_ports::campaigns::{DocumentStore, StoredDocument};
use raingauge_ports::clock::{Clock, ManualClock, SystemClock};
use raingauge_ports::log::{Batch, EventLog, EventSink};
use raingauge_ports::points::{QueueControl, QueueName};
use raingauge_ports::scans::Scans;
use raingauge_sqs::RemoteQueues;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const FAULTS: &str = "RAINGAUGE_QUEUE_FAULTS";
const SEED: &str = "RAINGAUGE_SEED";
/// Kills in a run of the suite.
const FAULTS_FEW: u64 = 2;
const PROGRAMME: &str = "grab-sg";
const MEMBERS: u64 = 20;
/// Events and commands between two kills.
const EVENTS: u64 = 60;
const COMMANDS: u64 = 30;
/// Longest life of a server under load.
const LIFE_MAX_MS: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(240);

/// An ElasticMQ of this test alone, in a folder of its own.
struct QueueServer {
    folder: TempDir,
}

impl QueueServer {
    /// `None` where the tests run without servers.
    fn start() -> Option<Self> {
        if std::env::var_os("RAINGAUGE_TEST_SQS").is_none() {
            eprintln!("skipped: RAINGAUGE_TEST_SQS is not set");
            return None;
        }
        let server = Self { folder: tempfile::tempdir().unwrap() };
        server.services("start", &["--elasticmq"]);
        Some(server)
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("queues")
    }

    fn services(&self, word: &str, words: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/services");
        let mut command = std::process::Command::new(script);
        let ran = command.arg(word).arg(self.place()).args(words).output().unwrap();
        assert!(ran.status.success(), "{word}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn kill(&self) {
        self.services("kill", &["elasticmq"]);
    }

    /// Starts it again, and waits until it answers.
    fn restart(&self) {
        self.services("restart", &["elasticmq"]);
    }

    fn options(&self) -> raingauge_sqs::Options {
        let env = std::fs::read_to_string(self.place().join("env")).unwrap();
        let endpoint = env.lines().find_map(|line| line.strip_prefix("RAINGAUGE_TEST_SQS="));
        raingauge_sqs::Options {
            region: "elasticmq".to_owned(),
            endpoint: endpoint.map(str::to_owned),
            prefix: "killed-".to_owned(),
            access_key_id: Some("x".to_owned()),
            access_key: Some("x".to_owned()),
            session_token: None,
        }
    }
}

impl Drop for QueueServer {
    fn drop(&mut self) {
        self.services("stop", &[]);
    }
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What outlives the processes that award: the log, the books, the documents, the queues.
struct World {
    runtime: Runtime,
    log: Arc<memory::Log>,
    books: Arc<memory::Books>,
    documents: Arc<memory::Documents>,
    queues: Arc<RemoteQueues>,
    /// Points that each member must have in the end.
    expected: BTreeMap<String, i64>,
    sent: u64,
}

impl World {
    fn new(server: &QueueServer) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let queues = runtime.block_on(RemoteQueues::open(&server.options())).unwrap();
        let documents = Arc::new(memory::Documents::default());
        let stored = StoredDocument {
            kind: "programme".to_owned(),
            id: PROGRAMME.to_owned(),
            version: 0,
            configuration: document(2),
            is_deleted: false,
            changed_by: "test".to_owned(),
            reason: String::new(),
            changed_ms: 0,
        };
        runtime.block_on(documents.put(stored, 0)).unwrap();
        let log = Arc::new(memory::Log::default());
        let books = Arc::new(memory::Books::new(4));
        let queues = Arc::new(queues);
        Self { runtime, log, books, documents, queues, expected: BTreeMap::new(), sent: 0 }
    }

    /// A process that prices events into the queue `award`, and makes the awards that are in it.
    fn open(&self) -> Handle {
        let deps = Deps {
            books: Arc::clone(&self.books) as _,
            reader: Arc::clone(&self.books) as _,
            log: Some(Arc::clone(&self.log) as _),
            partitions: Vec::new(),
            registry: Some(Arc::<Registry>::default()),
            sink: Arc::clone(&self.log) as _,
            stream: None,
            queues: Arc::clone(&self.queues) as _,
            control: Arc::clone(&self.queues) as _,
            documents: Arc::clone(&self.documents) as _,
            sender: Arc::<memory::Sender>::default(),
            lease: Arc::new(memory::Lease),
            clock: Arc::new(SystemClock),
            runtime: self.runtime.handle().clone(),
        };
        // What a process that died had received comes back soon, but not before a full turn of a
        // slow machine has settled its letters.
        let retry = RetryOptions {
            first_ms: 100,
            most_ms: 1_000,
            visibility: Duration::from_secs(20),
            ..RetryOptions::default()
        };
        let options =
            Options { awarding: Awarding::Queued, publish: false, retry, ..Options::default() };
        Teller::start(deps, options).unwrap()
    }

    /// Puts the programme into force. A process begins at the end of a log that it does not know.
    fn publish(&self, teller: &Handle) {
        let version =
            DocumentVersion { kind: "programme".to_owned(), id: PROGRAMME.to_owned(), version: 1 };
        let entry = document_entry("points", &version);
        self.runtime.block_on(self.log.append_control(0, entry)).unwrap();
        until("the programme is in force", || teller.position() >= self.log.end());
    }

    fn member(random: &mut Random) -> String {
        format!("m-{}", random.below(MEMBERS))
    }

    fn append_events(&mut self, random: &mut Random) {
        let now_ms = SystemClock.now_ms();
        let mut batch = Batch::default();
        for _ in 0..EVENTS {
            let member = Self::member(random);
            let amount = random.below(100) as i64 + 1;
            let id = format!("e-{}", self.sent);
            self.sent += 1;
            let data = json!({"member": member, "vertical": "food", "amount": amount, "order": id});
            let data = data.to_string();
            let event = Event::of_data("order.completed", now_ms, &data);
            batch.push(&Event { id: id.into(), ..event });
            *self.expected.entry(member).or_default() += 2 * amount;
        }
        self.runtime.block_on(self.log.append(batch)).unwrap();
    }

    fn commands(&mut self, random: &mut Random) -> Vec<Command> {
        let mut commands = Vec::new();
        for _ in 0..COMMANDS {
            let member = Self::member(random);
            let points = random.below(100) as i64 + 1;
            commands.push(Command {
                programme: PROGRAMME.into(),
                member: member.as_str().into(),
                key: format!("c-{}", self.sent).into(),
                source: "".into(),
                occurred_ms: None,
                accepted_ms: None,
                reference: None,
                reason: None,
                body: Body::Award(Award::of(Basis::Points(points))),
            });
            self.sent += 1;
            *self.expected.entry(member).or_default() += points;
        }
        commands
    }

    /// Waits until every member has what was sent, and no letter is left. A server that has just
    /// started reads its letters while it answers already, so that one of the two is not enough.
    fn settle(&self, teller: &Handle) {
        until("everything is awarded", || self.balances(teller) == self.expected);
        until("the queue is empty", || {
            let depth = self.runtime.block_on(self.queues.depth(QueueName::Award));
            depth.is_ok_and(|depth| depth.waiting + depth.in_flight == 0)
        });
    }

    fn audit(&self) -> Json {
        let mut programmes = Programmes::new();
        programmes.insert(programme(2, 1));
        let programmes = Arc::new(programmes);
        let sources = Sources {
            logs: vec![Arc::clone(&self.log) as Arc<dyn EventLog>],
            reader: Arc::clone(&self.books) as _,
            documents: Arc::clone(&self.documents) as _,
            queues: Arc::clone(&self.queues) as _,
            control: Arc::clone(&self.queues) as _,
            in_force: Arc::new(move || Arc::clone(&programmes)),
        };
        // An audit leaves out what was accepted in the last minute.
        let later = SystemClock.now_ms() / 1_000 + 600;
        let clock = Arc::new(ManualClock::at_s(later));
        let appraisal = Appraisal::new(sources, Scans::default(), clock);
        let request = AuditRequest::parse(b"{}").unwrap();
        let job = self.runtime.block_on(async { appraisal.audit("test", request) }).unwrap();
        let mut result = None;
        until("the audit has ended", || {
            let job = appraisal.jobs().get(&job.id).unwrap();
            assert!(job.status.is_open() || job.result.is_some(), "{:?}", job.error);
            result = job.result;
            result.is_some()
        });
        serde_json::from_str(result.unwrap().get()).unwrap()
    }

    fn balances(&self, teller: &Handle) -> BTreeMap<String, i64> {
        let members = self.expected.keys();
        let ids = members.clone().map(|name| WalletId::new(PROGRAMME, name)).collect();
        let found = self.runtime.block_on(teller.members().balances(ids, None)).unwrap();
        let points = found.into_iter().map(|balance| balance.unwrap().available);
        members.cloned().zip(points).collect()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends commands until the queue has them: what was not answered is sent once more.
async fn send(teller: Handle, commands: Vec<Command>) {
    while let Err(error) = teller.submit_later(commands.clone()).await {
        eprintln!("sent again: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn what_a_queue_has_taken_is_awarded_once_however_often_its_server_is_killed() {
    let Some(server) = QueueServer::start() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    println!("{SEED}={seed}");
    let mut random = Random(seed);
    let faults = number(FAULTS).unwrap_or(FAULTS_FEW);

    let mut world = World::new(&server);
    let mut teller = world.open();
    world.publish(&teller);
    for fault in 0..faults {
        world.append_events(&mut random);
        let commands = world.commands(&mut random);
        let sending = world.runtime.spawn(send(teller.clone(), commands));
        std::thread::sleep(Duration::from_millis(random.below(LIFE_MAX_MS)));
        server.kill();
        // Every other time the process dies too, with letters that it had received.
        if fault % 2 == 1 {
            teller.stop();
            teller = world.open();
        }
        server.restart();
        world.runtime.block_on(sending).unwrap();
        until("the log is in the queue", || teller.position() >= world.log.end());
    }

    world.settle(&teller);
    let audit = world.audit();
    println!("{faults} kills, {} awards; {audit}", world.sent);
    for none in ["missing", "different", "dead", "waiting", "unpriced"] {
        assert_eq!(audit[none], json!(0), "{none}: {audit}");
    }
    assert_eq!(audit["equal"], json!(faults * EVENTS));
    assert_eq!(world.balances(&teller), world.expected, "nothing is lost or doubled");
    teller.stop();
}
