use crate::control::{DocumentVersion, document_entry};
use crate::deps::{Deps, Options};
use crate::error::Error;
use crate::worker::{Progress, Worker};
use parking_lot::Mutex;
use raingauge_campaigns::decision::ActionId;
use raingauge_campaigns::engine::LookupKey;
use raingauge_consumers::Registry;
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{
    Decision, DecisionQuery, Delivery, DeliveryQuery, DocumentStore, Ledger, LedgerErasure,
    LedgerReader, LedgerRetention, LookupError, Lookups, Outbox, Put, Status, StoredDocument,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Batch, EventSink, Offset};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// 2024-09-24T00:00:00Z.
pub const START_MS: i64 = 1_727_136_000_000;
pub const HOUR_MS: i64 = 3_600_000;

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct Manual(AtomicI64);

impl Manual {
    pub fn at(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }

    pub fn advance(&self, by_ms: i64) {
        self.0.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Lookups that answer what a test has set. All others fail.
#[derive(Default)]
pub struct Answering {
    answers: Mutex<HashMap<(String, String), Result<Json, LookupError>>>,
    asked: Mutex<Vec<Vec<String>>>,
}

impl Answering {
    /// The answer of a lookup for a key.
    pub fn set(&self, name: &str, key: &str, answer: Result<Json, LookupError>) {
        self.answers.lock().insert((name.to_owned(), key.to_owned()), answer);
    }

    /// The names and keys that were asked for since the last call, call by call.
    pub fn asked(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.asked.lock())
    }
}

impl Lookups for Answering {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        _after: Offset,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<Result<Json, LookupError>>> {
        let names = keys.iter().map(|key| format!("{} {}", key.name, key.key));
        self.asked.lock().push(names.collect());
        let known = self.answers.lock();
        let answer = |key: &LookupKey| {
            let answer = known.get(&(key.name.clone(), key.key.clone()));
            answer.cloned().unwrap_or_else(|| Err(LookupError::Failed("unknown".to_owned())))
        };
        Box::pin(ready(keys.iter().map(answer).collect()))
    }
}

/// Everything around a worker.
pub struct Stage<L> {
    pub clock: Arc<Manual>,
    pub log: Arc<memory::Log>,
    pub documents: Arc<memory::Documents>,
    pub lookups: Arc<Answering>,
    pub ledger: Arc<L>,
    pub runtime: Runtime,
}

pub type MemoryStage = Stage<memory::Ledger>;

impl MemoryStage {
    pub fn in_memory() -> Self {
        Self::over(memory::Ledger::default())
    }
}

impl<L: Ledger + LedgerErasure + LedgerReader + LedgerRetention + Outbox + 'static> Stage<L> {
    pub fn over(ledger: L) -> Self {
        let clock = Arc::new(Manual::at(START_MS));
        Self {
            log: Arc::new(memory::Log::dated(Arc::clone(&clock) as Arc<dyn Clock>)),
            clock,
            documents: Arc::default(),
            lookups: Arc::default(),
            ledger: Arc::new(ledger),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    pub fn deps(&self) -> Deps {
        Deps {
            log: Arc::clone(&self.log) as _,
            registry: Arc::<Registry>::default(),
            ledger: Arc::clone(&self.ledger) as _,
            retention: Arc::clone(&self.ledger) as _,
            erasure: Arc::clone(&self.ledger) as _,
            outbox: Arc::clone(&self.ledger) as _,
            documents: Arc::clone(&self.documents) as _,
            lookups: Arc::clone(&self.lookups) as _,
            clock: Arc::clone(&self.clock) as _,
            runtime: self.runtime.handle().clone(),
        }
    }

    /// Without a pause between commits.
    pub fn options() -> Options {
        Options { commit_ms: 0, ..Options::default() }
    }

    pub fn open(&self) -> Worker {
        Worker::open(self.deps(), Self::options()).unwrap()
    }

    /// Lets a worker do all that is to be done.
    pub fn run(&self, worker: &mut Worker) {
        self.try_run(worker).unwrap();
    }

    pub fn try_run(&self, worker: &mut Worker) -> Result<(), Error> {
        while worker.turn()? != Progress::Idle {}
        Ok(())
    }

    /// Stores the next version of a document, without an entry in the log.
    pub fn store(&self, kind: &str, id: &str, configuration: Json) -> DocumentVersion {
        let newest = self.runtime.block_on(self.documents.get(kind, id, None)).unwrap();
        let base = newest.map_or(0, |newest| newest.version);
        let document = StoredDocument {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: 0,
            is_deleted: configuration.is_null(),
            configuration,
            changed_by: String::new(),
            reason: String::new(),
            changed_ms: 0,
        };
        match self.runtime.block_on(self.documents.put(document, base)).unwrap() {
            Put::Stored(stored) => {
                let StoredDocument { kind, id, version, .. } = stored;
                DocumentVersion { kind, id, version }
            }
            Put::Conflict { current } => panic!("{kind} {id} is at {current}"),
        }
    }

    /// Stores the next version of a document, which takes effect here.
    pub fn save(&self, kind: &str, id: &str, configuration: Json) {
        let stored = self.store(kind, id, configuration);
        self.control(document_entry(&stored));
    }

    pub fn control(&self, payload: Vec<u8>) {
        self.runtime.block_on(self.log.append_control(0, payload)).unwrap();
    }

    pub fn save_campaign(&self, campaign: &Json) {
        self.save("campaign", &campaign["id"].to_string(), campaign.clone());
    }

    /// Appends an event.
    pub fn append(&self, event: &Event<'_>) {
        let mut batch = Batch::default();
        batch.push(event);
        self.runtime.block_on(self.log.append(batch)).unwrap();
    }

    /// Appends an event of `mart` that happens now.
    pub fn send(&self, id: &str, kind: &str, data: &Json) {
        let data = data.to_string();
        let event = Event::of_data(kind, self.clock.now_ms(), &data);
        self.append(&Event { id: id.into(), source: "mart".into(), ..event });
    }

    /// All decisions, in their order.
    pub fn decisions(&self) -> Vec<Decision> {
        let query = DecisionQuery { len_max: 1_000, ..DecisionQuery::default() };
        let found = self.runtime.block_on(self.ledger.decisions(query)).unwrap();
        found.decisions.into_iter().rev().collect()
    }

    /// Each decision as `event step/action outcome`, sorted by time and text.
    pub fn lines(&self) -> Vec<String> {
        let line = |one: Decision| {
            let Decision { event, step, name, outcome, .. } = one;
            (one.decided_ms, format!("{event} {step}/{name} {outcome}"))
        };
        let mut lines: Vec<_> = self.decisions().into_iter().map(line).collect();
        lines.sort();
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// The deliveries of a status, with their bodies.
    pub fn deliveries(&self, status: Status) -> Vec<Delivery> {
        let query = DeliveryQuery {
            status,
            destination: None,
            campaign: None,
            after: None,
            len_max: 1_000,
        };
        let listed = self.runtime.block_on(self.ledger.list(query)).unwrap();
        let whole = |action: ActionId| self.runtime.block_on(self.ledger.get(action)).unwrap();
        let records = listed.records.into_iter();
        records.map(|record| whole(record.delivery.action).unwrap().delivery).collect()
    }

    /// What is reserved of a budget of campaign 7.
    pub fn reserved(&self, name: &str) -> i64 {
        let budgets = self.runtime.block_on(self.ledger.budgets_of(7)).unwrap();
        let found = budgets.into_iter().find(|(key, _)| key.name == name);
        found.map_or(0, |(_, budget)| budget.reserved)
    }
}
