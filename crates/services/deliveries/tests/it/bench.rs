//! What the tests share.

use parking_lot::Mutex;
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::schedule::{Concurrency, Pace, Schedule};
use raingauge_deliveries::{
    Deliveries, Deps, Destination, Destinations, GoneDestination, StoppedCampaigns, Target,
};
use raingauge_memory::{Ledger, Log};
use raingauge_policy::breaker;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::campaigns::{self, ActionId, Delivery, DeliveryRecord, Outbox, Status};
use raingauge_ports::clock::Clock;
use raingauge_ports::contract::campaigns::commit_to;
use raingauge_ports::log::EventSink;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// 2026-11-23T06:59:59Z, a Monday.
pub const NOW_MS: i64 = 1_795_417_199_000;

/// Runs with tokio's clock, which stands still while a test works, and may jump.
pub struct TestClock {
    began: Instant,
    ahead_ms: AtomicI64,
}

impl TestClock {
    pub fn jump_ms(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        let elapsed_ms = self.began.elapsed().as_millis() as i64;
        NOW_MS + self.ahead_ms.load(Ordering::SeqCst) + elapsed_ms
    }
}

type Script = dyn Fn(&Request) -> Result<Response, SendError> + Send + Sync;

/// Answers after a while, and notes when requests arrived.
pub struct Receiver {
    clock: Arc<TestClock>,
    pub latency: Duration,
    script: Box<Script>,
    arrivals: Mutex<Vec<Arrival>>,
    under_way: Mutex<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub struct Arrival {
    pub at_ms: i64,
    pub request: Request,
}

impl Arrival {
    pub fn id(&self) -> &str {
        self.request.header("webhook-id").expect("every request has an id")
    }
}

impl Receiver {
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().clone()
    }

    pub fn len(&self) -> usize {
        self.arrivals.lock().len()
    }

    pub fn ids(&self) -> Vec<String> {
        self.arrivals().iter().map(|arrival| arrival.id().to_owned()).collect()
    }

    /// Most requests at a time.
    pub fn most_at_once(&self) -> usize {
        self.under_way.lock().1
    }
}

impl Sender for Receiver {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        Box::pin(async move {
            let arrival = Arrival { at_ms: self.clock.now_ms(), request: request.clone() };
            self.arrivals.lock().push(arrival);
            {
                let mut under_way = self.under_way.lock();
                under_way.0 += 1;
                under_way.1 = under_way.1.max(under_way.0);
            }
            tokio::time::sleep(self.latency).await;
            self.under_way.lock().0 -= 1;
            (self.script)(request)
        })
    }
}

/// A running service and all around it.
pub struct Bench {
    pub clock: Arc<TestClock>,
    pub ledger: Arc<Ledger>,
    pub receiver: Arc<Receiver>,
    pub destinations: watch::Sender<Destinations>,
    pub stopped: watch::Sender<Arc<StoppedCampaigns>>,
    pub log: Arc<Log>,
    /// Destinations that said that they are gone.
    pub gone: mpsc::UnboundedReceiver<GoneDestination>,
    pub deliveries: Deliveries,
}

impl Bench {
    /// Begins with some destinations, and a receiver that answers after 10 ms.
    pub fn start(
        destinations: Vec<Destination>,
        script: impl Fn(&Request) -> Result<Response, SendError> + Send + Sync + 'static,
    ) -> Self {
        Self::with(Arc::default(), destinations, script, |ledger, log| (ledger, log))
    }

    /// Begins over a ledger, with other engines in front of it and the log.
    pub fn with(
        ledger: Arc<Ledger>,
        destinations: Vec<Destination>,
        script: impl Fn(&Request) -> Result<Response, SendError> + Send + Sync + 'static,
        engines: impl FnOnce(Arc<Ledger>, Arc<Log>) -> (Arc<dyn Outbox>, Arc<dyn EventSink>),
    ) -> Self {
        let clock = Arc::new(TestClock { began: Instant::now(), ahead_ms: AtomicI64::new(0) });
        let receiver = Arc::new(Receiver {
            clock: clock.clone(),
            latency: Duration::from_millis(10),
            script: Box::new(script),
            arrivals: Mutex::default(),
            under_way: Mutex::default(),
        });
        let log = Arc::<Log>::default();
        let destinations: Destinations = destinations.into_iter().map(Arc::new).collect();
        let destinations = watch::Sender::new(destinations);
        let stopped = watch::Sender::new(Arc::default());

        let (outbox, sink) = engines(ledger.clone(), log.clone());
        let (sender, gone) = mpsc::unbounded_channel();
        let deliveries = Deliveries::start(Deps {
            outbox,
            sender: receiver.clone(),
            destinations: destinations.subscribe(),
            stopped: stopped.subscribe(),
            log: sink,
            points: None,
            gone: sender,
            clock: clock.clone(),
        });
        Self { clock, ledger, receiver, destinations, stopped, log, gone, deliveries }
    }

    pub fn commit(&self, deliveries: Vec<Delivery>) {
        commit_to(&*self.ledger, |commit| commit.deliveries = deliveries);
    }

    pub async fn record(&self, number: u32) -> DeliveryRecord {
        let record = Outbox::get(&*self.ledger, action(number)).await.expect("a ledger");
        record.expect("a delivery")
    }

    pub async fn status(&self, number: u32) -> Status {
        self.record(number).await.status
    }

    /// Waits until a delivery has a status.
    pub async fn until_status(&self, number: u32, status: Status) {
        until(&format!("{number} is {}", status.name()), async || {
            self.status(number).await == status
        })
        .await;
    }

    /// Lets time pass in which tasks may run.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Answers everything with a status.
pub fn always(status: u16) -> impl Fn(&Request) -> Result<Response, SendError> + Send + Sync {
    move |_| Ok(Response::of_status(status))
}

/// Waits for a condition, for at most an hour of the test's clock.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..360_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: in vain");
}

pub fn action(number: u32) -> ActionId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    campaigns::ActionId(id)
}

/// A delivery of campaign 7, which is due `after_ms` after the beginning.
pub fn delivery(to: &str, number: u32, after_ms: i64) -> Delivery {
    Delivery {
        action: action(number),
        campaign: 7,
        subject: "u-7".to_owned(),
        destination: to.to_owned(),
        due_ms: NOW_MS + after_ms,
        cost: None,
        body: format!("{{\"number\":{number}}}").into_bytes(),
    }
}

/// A destination that takes as much as there is.
pub fn destination(name: &str) -> Destination {
    Destination {
        name: name.to_owned(),
        version: 1,
        target: Target::Http(format!("http://{name}.example/hook")),
        secret: None,
        zone: Zone::utc(),
        rate: Schedule::constant(Pace { per_second: 100_000, burst: 100_000 }),
        concurrency: Concurrency { min: 1, max: 16 },
        timeout: Duration::from_secs(15),
        breaker: breaker::Options::default(),
        allow_private: false,
        disabled: None,
    }
}
