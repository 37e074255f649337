//! One history: what happens to a worker, and what has to come of it.

use super::delivery::Delivery;
use super::faults::{FailingDocuments, FailingLedger, FailingLog, FailingLookups, Failures};
use super::naive::Naive;
use super::world::{Draft, PATIENT, Random, campaign, change_tally, event, patient};
use crate::control::{Control, DocumentVersion, document_entry};
use crate::deps::{Deps, Options};
use crate::tests::stage::{HOUR_MS, Manual, START_MS};
use crate::worker::{Progress, Worker};
use raingauge_campaigns::decision::ActionId;
use raingauge_consumers::Registry;
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_ports::campaigns::{
    Decision, DecisionQuery, DeliveryQuery, DocumentStore, Ledger, LedgerReader, Outbox, Put,
    StateKey, Status, StoredDocument,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Batch, EventLog, EventSink};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Steps of one history.
const STEPS: usize = 26;
/// Campaigns that may begin in one history, besides the patient one.
const CAMPAIGNS_MAX: usize = 5;

/// What a worker might do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    ForgetsTimers,
    CommitsTwice,
    ForgetsAState,
    RepeatsHistory,
    GivesUpDeliveries,
    RenamesDeliveries,
}

pub struct Play {
    random: Random,
    clock: Arc<Manual>,
    log: Arc<memory::Log>,
    documents: Arc<memory::Documents>,
    /// The log and the documents as the worker reads them.
    read_log: Arc<FailingLog>,
    read_documents: Arc<FailingDocuments>,
    lookups: Arc<FailingLookups>,
    ledger: Arc<FailingLedger>,
    delivery: Delivery,
    runtime: Runtime,
    worker: Option<Worker>,
    campaigns: Vec<Json>,
    sent: Vec<Draft>,
}

impl Play {
    pub fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut random = Random::of(seed);
        let clock = Arc::new(Manual::at(START_MS));
        let mut ledger = FailingLedger::new(Arc::default(), random.below(1 << 40));
        ledger.forgets_timers = defect == Some(Defect::ForgetsTimers);
        ledger.commits_twice = defect == Some(Defect::CommitsTwice);
        ledger.forgets_a_state = defect == Some(Defect::ForgetsAState);
        ledger.repeats_history = defect == Some(Defect::RepeatsHistory);
        let log = Arc::new(memory::Log::dated(Arc::clone(&clock) as Arc<dyn Clock>));
        let documents: Arc<memory::Documents> = Arc::default();
        let failures = |random: &mut Random| Failures::new(random.below(1 << 40), 3);
        let read_log = FailingLog { inner: Arc::clone(&log), failures: failures(&mut random) };
        let read_documents =
            FailingDocuments { inner: Arc::clone(&documents), failures: failures(&mut random) };
        let outbox = Arc::clone(&ledger.inner);
        let wall_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let delivery = Delivery::new(random.below(1 << 40), outbox, wall_clock, defect);
        let mut play = Self {
            log,
            documents,
            read_log: Arc::new(read_log),
            read_documents: Arc::new(read_documents),
            lookups: Arc::new(FailingLookups::new(random.below(1 << 40))),
            ledger: Arc::new(ledger),
            delivery,
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            worker: None,
            campaigns: Vec::new(),
            sent: Vec::new(),
            random,
            clock,
        };

        // A worker that never committed begins at the end of the log.
        while play.worker.is_none() {
            play.run();
        }
        let shared = json!({"kind": "budget", "name": "shared", "unit": "points",
                            "max": play.random.below(20)});
        play.save("budget", "shared", shared);
        for _ in 0..=play.random.below(3) {
            play.begin_campaign();
        }
        play.save_campaign(&patient());
        play
    }

    pub fn play_out(&mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        self.settle();
        self.compare();
        self.deliver_rest();
    }

    /// How many requests reached the receiver for what it had done before.
    pub fn repeated(&self) -> usize {
        self.delivery.receiver.repeated()
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..40 => self.send(),
            40..52 => {
                let by_ms = self.random.below(2 * HOUR_MS as u64) as i64;
                self.clock.advance(by_ms);
            }
            52..60 => self.edit(),
            60..64 if self.campaigns.len() < CAMPAIGNS_MAX => {
                self.catch_up();
                self.begin_campaign();
            }
            64..80 => self.deliver(),
            _ => self.run(),
        }
    }

    /// Sends what is due for a while, to those whom the documents in effect name.
    fn deliver(&mut self) {
        self.follow();
        self.delivery.run();
    }

    fn follow(&mut self) {
        if let Some(worker) = &self.worker {
            let snapshot = worker.shared().snapshot();
            self.delivery.follow(snapshot.documents.iter().cloned());
        }
    }

    /// Every delivery ends, and the receiver has done what was granted, each once.
    fn deliver_rest(&mut self) {
        self.follow();
        let clock = Arc::clone(&self.clock);
        self.delivery.settle(|by_ms| clock.advance(by_ms));
        self.delivery.compare(|campaign| self.is_archived(campaign));
    }

    /// Begins a campaign, some of whose tallies may begin with the events so far.
    fn begin_campaign(&mut self) {
        let id = self.campaigns.len() as u32 + 1;
        let document = campaign(&mut self.random, id);
        self.save_campaign(&document);
        self.campaigns.push(document);
    }

    /// Sends an event, or one again that was sent before.
    fn send(&mut self) {
        self.clock.advance(1);
        let number = self.sent.len() as u64;
        if number == 0 || !self.random.chance(10) {
            let draft = event(&mut self.random, number, self.clock.now_ms());
            self.sent.push(draft);
        } else {
            let place = self.random.below(number) as usize;
            let draft = self.sent.remove(place);
            self.sent.push(draft);
        }

        let Draft { id, kind, time_ms, data } = self.sent.last().unwrap();
        let event = Event::of_data(kind, *time_ms, data);
        let mut batch = Batch::default();
        batch.push(&Event { id: id.as_str().into(), ..event });
        self.runtime.block_on(self.log.append(batch)).unwrap();
    }

    /// Gives a campaign another state, another rule, or another tally.
    fn edit(&mut self) {
        self.catch_up();
        let place = self.random.below(self.campaigns.len() as u64) as usize;
        let mut document = self.campaigns[place].clone();
        if document["state"] == "archived" {
            return;
        }
        let shares = document.to_string().contains("shared");
        match self.random.below(10) {
            0..4 => document["state"] = json!("paused"),
            // What it gives back, others must not wait for.
            4 if !shares => document["state"] = json!("archived"),
            4..7 => document["state"] = json!("active"),
            7 | 8 => change_tally(&mut self.random, &mut document),
            _ => {
                let other = campaign(&mut self.random, 1);
                document["steps"][0]["when"] = other["steps"][0]["when"].clone();
            }
        }
        self.save_campaign(&document);
        self.campaigns[place] = document;
    }

    fn save_campaign(&mut self, document: &Json) {
        self.save("campaign", &document["id"].to_string(), document.clone());
    }

    fn save(&mut self, kind: &str, id: &str, configuration: Json) {
        self.clock.advance(1);
        let newest = self.runtime.block_on(self.documents.get(kind, id, None)).unwrap();
        let document = StoredDocument {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: 0,
            configuration,
            is_deleted: false,
            changed_by: String::new(),
            reason: String::new(),
            changed_ms: 0,
        };
        let base = newest.map_or(0, |newest| newest.version);
        let put = self.runtime.block_on(self.documents.put(document, base)).unwrap();
        let Put::Stored(StoredDocument { kind, id, version, .. }) = put else {
            panic!("nobody else changes documents");
        };
        let entry = document_entry(&DocumentVersion { kind, id, version });
        self.runtime.block_on(self.log.append_control(0, entry)).unwrap();
    }

    /// Lets the worker obey every entry, and see to what follows from it. A campaign that is
    /// changed and changed back before that may be taken for one that was not.
    fn catch_up(&mut self) {
        let end = self.log.end();
        let is_behind = |worker: &Option<Worker>| {
            worker.as_ref().is_none_or(|worker| worker.position() < end || worker.is_sweeping())
        };
        while is_behind(&self.worker) {
            self.turn();
        }
    }

    /// Lets the worker make a few commits. It may fail at each of them, and then goes on by itself
    /// or is followed by another one.
    fn run(&mut self) {
        let turns = 1 + self.random.below(6);
        for _ in 0..turns {
            if !self.turn() {
                return;
            }
        }
    }

    /// Answers `false` if there is nothing more to do.
    fn turn(&mut self) -> bool {
        if self.worker.is_none() || self.random.chance(2) {
            self.worker = self.open();
        }
        let Some(worker) = &mut self.worker else { return true };
        match worker.turn() {
            Ok(progress) => progress != Progress::Idle,
            Err(error) => {
                assert!(error.may_pass(), "{error}");
                if self.random.chance(50) || worker.reopen().is_err() {
                    self.worker = None;
                }
                true
            }
        }
    }

    fn open(&mut self) -> Option<Worker> {
        let deps = Deps {
            log: Arc::clone(&self.read_log) as _,
            registry: Arc::<Registry>::default(),
            ledger: Arc::clone(&self.ledger) as _,
            retention: Arc::clone(&self.ledger) as _,
            erasure: Arc::clone(&self.ledger.inner) as _,
            outbox: Arc::clone(&self.ledger.inner) as _,
            documents: Arc::clone(&self.read_documents) as _,
            lookups: Arc::clone(&self.lookups) as _,
            clock: Arc::clone(&self.clock) as _,
            runtime: self.runtime.handle().clone(),
        };
        let batch_events = 1 + self.random.below(12) as usize;
        let timers_max = 1 + self.random.below(5) as usize;
        // Tallies are filled entry by entry, or all at once.
        let history_bytes = if self.random.chance(75) { 1 } else { 1 << 20 };
        let options =
            Options { commit_ms: 0, batch_events, timers_max, history_bytes, ..Options::default() };
        Worker::open(deps, options).ok()
    }

    /// Nothing fails any more, and time passes until nothing waits.
    fn settle(&mut self) {
        self.ledger.heal();
        self.lookups.heal();
        self.read_log.failures.heal();
        self.read_documents.failures.heal();
        for place in 0..self.campaigns.len() {
            self.catch_up();
            let mut document = self.campaigns[place].clone();
            if document["state"] == "paused" {
                document["state"] = json!("active");
                self.save_campaign(&document);
            }
        }
        for _ in 0..40 {
            while self.turn() {}
            self.clock.advance(HOUR_MS);
        }
        while self.turn() {}
    }

    fn compare(&self) {
        let document = |kind: &str, id: &str, version| {
            let found = self.documents.get(kind, id, Some(version));
            self.runtime.block_on(found).unwrap().unwrap()
        };
        let blocks = self.log.read(0, usize::MAX).unwrap();
        let walks = self.ledger.walks();
        assert!(walks.last().is_none_or(|last| last.tallies.is_empty()), "still filled: {walks:?}");
        let mut naive = Naive::read(&blocks, &walks, document);
        naive.fire(self.clock.now_ms());

        let decisions = self.decisions();
        let granted = decisions.iter().filter(|one| one.is_granted);
        let mut ids = BTreeSet::new();
        granted.for_each(|one| assert!(ids.insert(one.action), "{one:?} is granted twice"));

        // Where the service failed for hours, an evaluation was given up.
        let given_up = |action: &ActionId| {
            decisions.iter().any(|one| {
                one.action == *action && one.campaign == PATIENT && one.outcome == "lookup_failed"
            })
        };
        let decided: BTreeSet<(ActionId, &str)> = decisions
            .iter()
            .filter(|one| !given_up(&one.action))
            .map(|one| (one.action, one.outcome.as_str()))
            .collect();
        let mut expected = naive.decided.clone();
        expected.retain(|(action, _)| !given_up(action));
        assert_eq!(decided, expected);

        naive.sent.retain(|action, _| !given_up(action));
        assert_eq!(self.bodies(), naive.sent);
        self.compare_budgets(&naive);
        self.compare_tallies(&naive);
    }

    /// Whatever the order in which they were counted.
    fn compare_tallies(&self, naive: &Naive) {
        let checkpoint = self.ledger.inner.take_over().unwrap();
        let control = Control::from_bytes(&checkpoint.control).unwrap();
        for (key, value) in naive.tallies() {
            let stored = StateKey { owner: control.stored_owner(key.owner), ..key.clone() };
            let stored = self.ledger.inner.load(&[stored]).unwrap();
            assert_eq!(stored[0].as_ref(), Some(value), "{key:?}");
        }
    }

    fn compare_budgets(&self, naive: &Naive) {
        for (key, reserved) in &naive.budgets.0 {
            if key.campaign > 0 && self.is_archived(key.campaign) {
                continue;
            }
            let stored = self.ledger.inner.budgets(std::slice::from_ref(key)).unwrap();
            assert_eq!(stored[0].reserved, *reserved, "{key:?}");
        }
    }

    /// Whether a campaign has ever been archived. Its deliveries gave back what they reserved.
    fn is_archived(&self, campaign: u32) -> bool {
        let id = campaign.to_string();
        let versions = self.runtime.block_on(self.documents.versions("campaign", &id)).unwrap();
        versions.iter().any(|one| one.configuration["state"] == "archived")
    }

    fn decisions(&self) -> Vec<Decision> {
        let query = DecisionQuery { len_max: 100_000, ..DecisionQuery::default() };
        self.runtime.block_on(self.ledger.inner.decisions(query)).unwrap().decisions
    }

    fn bodies(&self) -> BTreeMap<ActionId, String> {
        let outbox = &self.ledger.inner;
        let mut bodies = BTreeMap::new();
        for status in Status::ALL {
            let query = DeliveryQuery {
                status,
                destination: None,
                campaign: None,
                after: None,
                len_max: 100_000,
            };
            for listed in self.runtime.block_on(outbox.list(query)).unwrap().records {
                let action = listed.delivery.action;
                let record = self.runtime.block_on(outbox.get(action)).unwrap().unwrap();
                let body = String::from_utf8(record.delivery.body).unwrap();
                assert_eq!(bodies.insert(action, body), None);
            }
        }
        bodies
    }
}
