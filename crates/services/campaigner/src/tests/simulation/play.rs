//! One history: what happens to a worker, and what has to come of it.

use super::faults::{FailingLedger, FailingLookups};
use super::naive::Naive;
use super::world::{Draft, PATIENT, Random, campaign, event, patient};
use crate::control::{DocumentVersion, document_entry};
use crate::deps::{Deps, Options};
use crate::tests::stage::{HOUR_MS, Manual, START_MS};
use crate::worker::{Progress, Worker};
use raingauge_campaigns::decision::ActionId;
use raingauge_consumers::Registry;
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_ports::campaigns::{
    Decision, DecisionQuery, DeliveryQuery, DocumentStore, Ledger, LedgerReader, Outbox, Put,
    Status, StoredDocument,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Batch, EventLog, EventSink};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Steps of one history.
const STEPS: usize = 26;

/// What a worker might do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    ForgetsTimers,
    CommitsTwice,
    ForgetsAState,
}

pub struct Play {
    random: Random,
    clock: Arc<Manual>,
    log: Arc<memory::Log>,
    documents: Arc<memory::Documents>,
    lookups: Arc<FailingLookups>,
    ledger: Arc<FailingLedger>,
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
        let mut play = Self {
            log: Arc::new(memory::Log::dated(Arc::clone(&clock) as Arc<dyn Clock>)),
            documents: Arc::default(),
            lookups: Arc::new(FailingLookups::new(random.below(1 << 40))),
            ledger: Arc::new(ledger),
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
        for id in 1..=1 + play.random.below(3) as u32 {
            let document = campaign(&mut play.random, id);
            play.save_campaign(&document);
            play.campaigns.push(document);
        }
        play.save_campaign(&patient());
        play
    }

    pub fn play_out(mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        self.settle();
        self.compare();
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.send(),
            45..60 => {
                let by_ms = self.random.below(2 * HOUR_MS as u64) as i64;
                self.clock.advance(by_ms);
            }
            60..68 => self.edit(),
            _ => self.run(),
        }
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

    /// Gives a campaign another state or another rule.
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
            4..8 => document["state"] = json!("active"),
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
            log: Arc::clone(&self.log) as _,
            registry: Arc::<Registry>::default(),
            ledger: Arc::clone(&self.ledger) as _,
            retention: Arc::clone(&self.ledger) as _,
            erasure: Arc::clone(&self.ledger.inner) as _,
            outbox: Arc::clone(&self.ledger.inner) as _,
            documents: Arc::clone(&self.documents) as _,
            lookups: Arc::clone(&self.lookups) as _,
            clock: Arc::clone(&self.clock) as _,
            runtime: self.runtime.handle().clone(),
        };
        let batch_events = 1 + self.random.below(12) as usize;
        let timers_max = 1 + self.random.below(5) as usize;
        let options = Options { commit_ms: 0, batch_events, timers_max, ..Options::default() };
        Worker::open(deps, options).ok()
    }

    /// Nothing fails any more, and time passes until nothing waits.
    fn settle(&mut self) {
        self.ledger.heal();
        self.lookups.heal();
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
        let mut naive = Naive::read(&blocks, document);
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
