//! The process that delivers what the worker decides. It dies at any of its awaits, and another one
//! follows.

mod outbox;
mod receiver;

use super::play::Defect;
use super::world::Random;
use outbox::FailingOutbox;
use raingauge_campaigns::schedule::Concurrency;
use raingauge_deliveries::{
    Deliveries, Deps, Destination, Destinations, StoppedCampaigns, Target, stopped_campaigns,
};
use raingauge_memory as memory;
use raingauge_policy::breaker;
use raingauge_ports::campaigns::{DeliveryQuery, DeliveryRecord, Outbox, Status, StoredDocument};
use raingauge_ports::clock::Clock;
pub use receiver::Receiver;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// Where the actions of campaigns go.
const DESTINATIONS: [&str; 3] = ["m", "r", "p"];
/// How long a process runs that is not to be interrupted, which is long enough to see to all that
/// is due, and how often it is looked at.
const UNDISTURBED: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 1_000;
/// Longer than any pause between two attempts.
const LONGEST_PAUSE_MS: i64 = 30 * 3_600_000;

/// Delivers, and breaks.
pub struct Delivery {
    random: Random,
    clock: Arc<dyn Clock>,
    ledger: Arc<memory::Ledger>,
    pub receiver: Arc<Receiver>,
    stopped: Arc<StoppedCampaigns>,
    process: Option<Process>,
    defect: Option<Defect>,
    is_healed: bool,
}

/// A process with a time of its own, which passes whenever nothing else is to be done.
struct Process {
    runtime: Runtime,
    outbox: Arc<FailingOutbox>,
    stopped: watch::Sender<Arc<StoppedCampaigns>>,
    /// It goes on without its handle, and ends without the sender of its destinations.
    _service: (Deliveries, watch::Sender<Destinations>),
}

impl Delivery {
    pub fn new(
        seed: u64,
        ledger: Arc<memory::Ledger>,
        clock: Arc<dyn Clock>,
        defect: Option<Defect>,
    ) -> Self {
        let mut random = Random(seed | 1);
        let receiver = Receiver::new(random.below(1 << 40), Arc::clone(&ledger), defect);
        Self {
            receiver: Arc::new(receiver),
            random,
            clock,
            ledger,
            stopped: Arc::default(),
            process: None,
            defect,
            is_healed: false,
        }
    }

    /// Follows the documents that the worker has applied.
    pub fn follow(&mut self, documents: impl Iterator<Item = StoredDocument>) {
        let documents: Vec<StoredDocument> = documents.collect();
        self.stopped = Arc::new(stopped_campaigns(&documents));
        if let Some(process) = &self.process {
            process.stopped.send_replace(Arc::clone(&self.stopped));
        }
    }

    /// Lets the process run for a while, after which it may be dead.
    pub fn run(&mut self) {
        let time = Duration::from_millis(self.random.below(40));
        // Ends between two steps of a moment, and not only when all of them are done.
        let steps = self.random.below(8);
        self.process().runtime.block_on(async {
            tokio::time::sleep(time).await;
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
        });
        if self.random.chance(25) {
            self.crash();
        }
    }

    fn process(&mut self) -> &Process {
        if self.process.is_none() {
            self.process = Some(self.start());
        }
        self.process.as_ref().expect("it was started")
    }

    fn start(&mut self) -> Process {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let percent = if self.is_healed { 0 } else { 10 };
        let ledger = Arc::clone(&self.ledger);
        let outbox =
            Arc::new(FailingOutbox::new(self.random.below(1 << 40), percent, ledger, self.defect));

        let concurrency = 1 + self.random.below(3) as u16;
        let destination = |name| Arc::new(destination(name, concurrency));
        let (destinations, followed) = watch::channel(DESTINATIONS.map(destination).into());
        let (stopped, watched) = watch::channel(Arc::clone(&self.stopped));
        let deps = Deps {
            outbox: Arc::clone(&outbox) as _,
            sender: Arc::clone(&self.receiver) as _,
            destinations: followed,
            stopped: watched,
            log: Arc::new(memory::Log::default()),
            points: None,
            gone: mpsc::unbounded_channel().0,
            clock: Arc::clone(&self.clock),
        };
        let service = {
            let _context = runtime.enter();
            Deliveries::start(deps)
        };
        Process { runtime, outbox, stopped, _service: (service, destinations) }
    }

    /// Whatever the process was about to do is not done. What it was sending is free to be sent
    /// again.
    fn crash(&mut self) {
        if let Some(Process { runtime, outbox, .. }) = self.process.take() {
            drop(runtime);
            outbox.forget_taken();
        }
    }

    /// Nothing fails any more, and time passes until every delivery has ended.
    pub fn settle(&mut self, advance: impl Fn(i64)) {
        self.crash();
        self.is_healed = true;
        self.receiver.heal();
        for _ in 0..3 {
            self.deliver_due();
            if self.open().is_empty() {
                return;
            }
            advance(LONGEST_PAUSE_MS);
        }
        panic!("these deliveries never end: {:?}", self.open());
    }

    /// Runs until nothing is due.
    fn deliver_due(&mut self) {
        for _ in 0..LOOKS_MAX {
            self.process().runtime.block_on(async { tokio::time::sleep(UNDISTURBED).await });
            let now_ms = self.clock.now_ms();
            let is_due = |record: &DeliveryRecord| {
                record.status == Status::Held
                    || record.status == Status::Pending && record.at_ms <= now_ms
            };
            if !self.open().iter().any(is_due) {
                return;
            }
        }
    }

    fn open(&self) -> Vec<DeliveryRecord> {
        let mut records = self.records(Status::Pending);
        records.extend(self.records(Status::Held));
        records
    }

    fn records(&self, status: Status) -> Vec<DeliveryRecord> {
        let query = DeliveryQuery {
            status,
            destination: None,
            campaign: None,
            after: None,
            len_max: 100_000,
        };
        outbox::now(self.ledger.list(query)).unwrap().records
    }

    /// Compares what the receiver did with what became of each delivery.
    pub fn compare(&self, is_archived: impl Fn(u32) -> bool) {
        let accepted = self.receiver.accepted();
        let mut known = 0;
        for record in Status::ALL.into_iter().flat_map(|status| self.records(status)) {
            let action = record.delivery.action;
            let record = outbox::now(self.ledger.get(action)).unwrap().unwrap();
            let found = accepted.get(&action.to_string());
            let is_accepted = found.is_some();
            known += usize::from(is_accepted);
            assert!(found.is_none_or(|body| *body == record.delivery.body), "{record:?}");

            let is_withdrawn = is_archived(record.delivery.campaign);
            let is_sound = match record.status {
                Status::Delivered => is_accepted,
                Status::Refused => is_withdrawn || self.receiver.refuses(action) && !is_accepted,
                Status::Cancelled => is_withdrawn,
                // It may have been accepted at any of the attempts.
                Status::Dead => record.tries == 10,
                Status::Pending | Status::Held => false,
            };
            assert!(is_sound, "accepted: {is_accepted}, {record:?}");
        }
        assert_eq!(known, accepted.len(), "something was done that nobody decided: {accepted:?}");
    }
}

/// It takes as much as there is, and is tried again soon.
fn destination(name: &str, concurrency: u16) -> Destination {
    Destination {
        name: name.to_owned(),
        version: 1,
        target: Target::Http(format!("http://{name}.example/hook")),
        concurrency: Concurrency { min: 1, max: concurrency },
        breaker: breaker::Options { sleep_ms: 5, ..breaker::Options::default() },
        ..Destination::log()
    }
}
