//! A log, a worker and what it keeps, in memory.

use raingauge_campaigner::{Campaigner, Deps, Handle, Options};
use raingauge_campaigns::engine::{Documents, LookupKey};
use raingauge_consumers::Registry;
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{Decision, DecisionQuery, LedgerReader};
use raingauge_ports::campaigns::{DocumentStore, Put, StoredDocument};
use raingauge_ports::campaigns::{LookupError, Lookups};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::{Batch, EventLog, EventSink, Offset};
use raingauge_ports::record::identity;
use raingauge_ports::scans::Scans;
use raingauge_replay::jobs::Status;
use raingauge_replay::request::BacktestRequest;
use raingauge_replay::{Explained, Job, Replay, Sources};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// 2024-09-24T00:00:00Z.
pub const START_S: i64 = 1_727_136_000;
pub const HOUR_S: i64 = 3_600;
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers segments and tables by the key alone.
pub struct KeyLookups;

impl Lookups for KeyLookups {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        _after: Offset,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<Result<Json, LookupError>>> {
        let answers = keys.iter().map(|key| match key.name.as_str() {
            "vip" => Ok(json!(key.key.ends_with('1'))),
            "users" => Ok(json!({"tier": if key.key.ends_with('1') { "gold" } else { "silver" }})),
            _ => Err(LookupError::Failed("there is no such lookup".to_owned())),
        });
        let answers: Vec<_> = answers.collect();
        Box::pin(async move { answers })
    }
}

/// Shows the time that a test sets. No time passes between, so that no lookup is late because the
/// test goes on.
pub struct TestClock(ManualClock);

impl TestClock {
    pub fn set_s(&self, seconds: i64) {
        self.0.set_s(seconds);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.0.now_ms()
    }

    fn elapsed_ms(&self) -> i64 {
        0
    }
}

pub struct World {
    pub clock: Arc<TestClock>,
    pub log: Arc<memory::Log>,
    pub ledger: Arc<memory::Ledger>,
    pub documents: Arc<memory::Documents>,
    pub worker: Handle,
    pub replay: Replay,
}

impl World {
    pub async fn new() -> Self {
        let clock = Arc::new(TestClock(ManualClock::at_s(START_S)));
        let log = Arc::new(memory::Log::dated(clock.clone()));
        Self::over(clock, log, Arc::default(), Arc::default()).await
    }

    /// The same with another worker, which begins where the last one stopped.
    pub async fn restarted(self) -> Self {
        let Self { clock, log, ledger, documents, .. } = self;
        Self::over(clock, log, ledger, documents).await
    }

    async fn over(
        clock: Arc<TestClock>,
        log: Arc<memory::Log>,
        ledger: Arc<memory::Ledger>,
        documents: Arc<memory::Documents>,
    ) -> Self {
        let deps = Deps {
            log: log.clone(),
            registry: Arc::new(Registry::default()),
            ledger: ledger.clone(),
            retention: ledger.clone(),
            outbox: ledger.clone(),
            erasure: ledger.clone(),
            documents: documents.clone(),
            lookups: Arc::new(KeyLookups),
            clock: clock.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let options = Options { commit_ms: 0, ..Options::default() };
        let started = tokio::task::spawn_blocking(move || Campaigner::start(deps, options));
        let worker = started.await.expect("started").expect("a worker");

        let shown = worker.clone();
        let in_effect = move || -> Documents {
            let snapshot = shown.snapshot();
            snapshot.documents.engine_documents(&Default::default(), 86_400_000)
        };
        let sources = Sources {
            logs: vec![log.clone()],
            ledger: ledger.clone(),
            outbox: ledger.clone(),
            documents: documents.clone(),
            in_effect: Arc::new(in_effect),
            lookups: Some(Arc::new(KeyLookups)),
        };
        let replay = Replay::new(sources, Scans::default(), clock.clone());
        Self { clock, log, ledger, documents, worker, replay }
    }

    /// Saves a document, and waits until it is in effect.
    pub async fn save(&self, kind: &str, id: &str, configuration: Json) {
        let version = self.store(kind, id, configuration).await;
        self.decided().await;
        let snapshot = self.worker.snapshot();
        assert_eq!(snapshot.version_of(kind, id), Some(version));
        self.warmed().await;
    }

    /// Saves a document, which takes effect at the end of the log. Returns its version.
    pub async fn store(&self, kind: &str, id: &str, configuration: Json) -> u32 {
        let current = self.documents.get(kind, id, None).await.expect("read");
        let base = current.map_or(0, |document| document.version);
        let document = StoredDocument {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: 0,
            configuration,
            is_deleted: false,
            changed_by: "ann".to_owned(),
            reason: String::new(),
            changed_ms: self.clock.now_ms(),
        };
        let Put::Stored(stored) = self.documents.put(document, base).await.expect("stored") else {
            panic!("{kind} {id} has changed");
        };
        let document = json!({"kind": kind, "id": id, "version": stored.version});
        let entry = json!({"for": "campaigns", "kind": "document", "document": document});
        self.log.append_control(0, entry.to_string().into_bytes()).await.expect("appended");
        stored.version
    }

    pub async fn save_campaign(&self, campaign: &Json) {
        self.save("campaign", &campaign["id"].to_string(), campaign.clone()).await;
    }

    /// Waits until no campaign is filled from the log any more.
    pub async fn warmed(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.worker.snapshot().warming.is_empty() {
            assert!(Instant::now() < deadline, "the counts are not filled");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Appends events at the time of the clock.
    pub async fn append(&self, events: &[Event<'_>]) {
        let mut batch = Batch::default();
        events.iter().for_each(|event| batch.push(event));
        self.log.append(batch).await.expect("appended");
    }

    /// Appends an event that the log no longer knows by its name, as after the dedupe window.
    pub async fn append_again(&self, event: &Event<'_>) {
        let mut batch = Batch::default();
        batch.push(event);
        let forgotten = format!("{} of {}", event.id, self.log.end());
        batch.entries[0].1 = identity("forgotten", &forgotten);
        self.log.append(batch).await.expect("appended");
    }

    /// Waits until everything in the log is decided.
    pub async fn decided(&self) {
        let decided = self.worker.wait_decided(self.log.end(), Instant::now() + PATIENCE).await;
        assert!(decided, "the worker stands: {:?}", self.worker.trouble());
    }

    /// Everything that was decided, the oldest first.
    pub async fn decisions(&self) -> Vec<Decision> {
        let mut query = DecisionQuery { len_max: 1_000, ..DecisionQuery::default() };
        let mut found = Vec::new();
        loop {
            let page = self.ledger.decisions(query.clone()).await.expect("decisions");
            found.extend(page.decisions);
            match page.next {
                None => break,
                next => query.after = next,
            }
        }
        found.reverse();
        found
    }

    pub async fn backtest(&self, request: Json) -> Json {
        let request = BacktestRequest::parse(request.to_string().as_bytes()).expect("a request");
        let job = self.replay.backtest("ann", request, None).expect("a job");
        self.result(job).await
    }

    pub async fn compare(&self, request: Json) -> Json {
        let request = BacktestRequest::parse(request.to_string().as_bytes()).expect("a request");
        let job = self.replay.compare("ann", request, None).expect("a job");
        self.result(job).await
    }

    pub async fn explain(&self, subject: &str, event: Option<&str>) -> Json {
        let named = event.map(|id| json!({"source": "mart", "id": id}));
        self.explain_named(subject, json!(named)).await
    }

    /// Explains an event that is named by whatever a caller knows of it; the newest for null.
    pub async fn explain_named(&self, subject: &str, event: Json) -> Json {
        let request = json!({"subject": subject, "event": event});
        let request = serde_json::from_value(request).expect("a request");
        match self.replay.explain("ann", 7, request).await.expect("explained") {
            Explained::Now(explanation) => json!(explanation),
            Explained::Job(job) => self.result(*job).await,
        }
    }

    /// Waits for the end of a job.
    pub async fn ended(&self, id: &str) -> Job {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let job = self.replay.jobs().get(id).expect("a job");
            if !job.status.is_open() {
                return job;
            }
            assert!(Instant::now() < deadline, "{job:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub async fn result(&self, job: Job) -> Json {
        let job = self.ended(&job.id).await;
        assert_eq!(job.status, Status::Finished, "{job:?}");
        serde_json::from_str(job.result.expect("a result").get()).expect("JSON")
    }
}

/// An event of the mart, some hours after the start.
pub fn order<'a>(id: &'a str, data: &'a str, hour: i64) -> Event<'a> {
    let event = Event::of_data("mart.order", (START_S + hour * HOUR_S) * 1_000, data);
    Event { id: id.into(), source: "mart".into(), ..event }
}

pub fn data(user: &str, status: &str) -> String {
    json!({"user_id": user, "status": status, "country": "sg"}).to_string()
}

/// The example of the published description of Trident, with limits and a budget.
pub fn mart() -> Json {
    json!({
        "id": 7, "name": "mart_three_orders", "eventTypes": ["mart.order"],
        "subject": "data.user_id", "zone": "Asia/Singapore", "state": "active",
        "activeFrom": 1727020800, "activeUntil": 1728230400,
        "counts": {"orders": {
            "filter": {"operator": "eq", "lhs": "var.status", "rhs": "completed"},
            "window": "campaign"}},
        "rule": {"operator": "eq", "lhs": "var.country", "rhs": "sg"},
        "steps": [
            {"name": "nudge", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 2},
             "actions": [{"name": "msg", "kind": "message", "to": "messages", "template": "one_more"}]},
            {"name": "reward", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 3},
             "actions": [
                {"name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
                 "cost": {"budget": "vouchers", "amount": 500}},
                {"name": "msg", "kind": "message", "to": "messages", "template": "congrats"}]}],
        "limits": [{"step": "reward", "per": "subject", "max": 1, "period": "campaign"}],
        "budgets": {"vouchers": {"unit": "SGD_cents", "max": 1000, "period": "campaign"}},
        "templates": {"one_more": {"en": "Make one more order to earn a reward"},
                      "congrats": {"en": "Congratulations, {{ subject }}!"}},
        "owner": "mart", "description": ""
    })
}

/// The orders of the example, each with its user and hour: one is repeated, and one is cancelled.
pub const ORDERS: [(&str, &str, &str, i64); 12] = [
    ("o-1", "u-7", "completed", 0),
    ("o-1", "u-7", "completed", 1),
    ("o-2", "u-7", "cancelled", 2),
    ("o-3", "u-7", "completed", 3),
    ("o-4", "u-7", "completed", 4),
    ("o-5", "u-7", "completed", 5),
    ("p-1", "u-8", "completed", 6),
    ("p-2", "u-8", "completed", 7),
    ("p-3", "u-8", "completed", 8),
    ("q-1", "u-9", "completed", 9),
    ("q-2", "u-9", "completed", 10),
    ("q-3", "u-9", "completed", 11),
];

impl World {
    /// The example, saved and decided.
    pub async fn with_example() -> Self {
        let world = Self::new().await;
        world.save_campaign(&mart()).await;
        for (id, user, status, hour) in ORDERS {
            world.clock.set_s(START_S + hour * HOUR_S);
            world.append(&[order(id, &data(user, status), hour)]).await;
            world.decided().await;
        }
        world
    }
}
