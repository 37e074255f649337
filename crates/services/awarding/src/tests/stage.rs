//! Everything around a service: engines in memory, which outlive its processes.

use super::faults::{Fuse, Fused};
use crate::CONSUMER;
use crate::awards::Awards;
use crate::deps::{Deps, NotifyOptions, Options};
use crate::error::Error;
use crate::intake::Manner;
use crate::members::Members;
use crate::notifier::Notifier;
use crate::publisher::Publisher;
use crate::retry::Retry;
use crate::shared::Shared;
use crate::sweeper::Sweeper;
use crate::tail::Tail;
use crate::teller::{Progress, Worker};
use raingauge_consumers::Registry;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_points::{Answer, Award, Basis, Body, Command, Entry, WalletId};
use raingauge_ports::campaigns::sender::{Request, Response, SendError};
use raingauge_ports::campaigns::{DocumentStore, Put, StoredDocument};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Batch, EventLog, EventSink};
use raingauge_ports::points::{Books, QueueControl, QueueName};
use raingauge_ports::record;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// 2026-01-10T02:00:00Z, ten in the morning in Singapore.
pub const START_MS: i64 = 1_768_010_400_000;
pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 24 * HOUR_MS;
/// The programme of the tests.
pub const PROGRAMME: &str = "grab-sg";

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct Manual(AtomicI64);

impl Manual {
    pub fn advance(&self, by_ms: i64) {
        self.0.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The engines, and the fuse of the process over them.
pub struct Stage {
    pub clock: Arc<Manual>,
    pub log: Arc<memory::Log>,
    pub documents: Arc<memory::Documents>,
    pub books: Arc<memory::Books>,
    pub queues: Arc<memory::Queues>,
    pub stream: Arc<memory::EntryStream>,
    pub sender: Arc<memory::Sender>,
    pub fuse: Arc<Fuse>,
    pub runtime: Runtime,
    pub options: Options,
    /// Whether documents take effect at their place in the log.
    pub has_log: bool,
}

/// The parts of one process, which take turns instead of running at once.
pub struct Process {
    pub worker: Worker,
    pub shared: Arc<Shared>,
    pub awards: Arc<Awards>,
    pub retry: Arc<Retry>,
    pub sweeper: Arc<Sweeper>,
    pub publisher: Arc<Tail<Publisher>>,
    pub streamer: Arc<Tail<Publisher>>,
    pub notifier: Arc<Notifier>,
    pub notices: Arc<Tail<Arc<Notifier>>>,
    pub members: Members,
}

impl Stage {
    /// A stage whose receiver of notifications answers as a script says.
    pub fn new(
        books: u16,
        script: impl FnMut(&Request) -> Result<Response, SendError> + Send + 'static,
    ) -> Self {
        let clock = Arc::new(Manual(AtomicI64::new(START_MS)));
        let notify =
            NotifyOptions { per_day_max: u32::MAX, ..NotifyOptions::to("http://app.example/") };
        Self {
            log: Arc::new(memory::Log::dated(Arc::clone(&clock) as Arc<dyn Clock>)),
            documents: Arc::default(),
            books: Arc::new(memory::Books::new(books)),
            queues: Arc::new(memory::Queues::new(Arc::clone(&clock) as Arc<dyn Clock>)),
            stream: Arc::default(),
            sender: Arc::new(memory::Sender::scripted(script)),
            fuse: Arc::default(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            // One turn after the other, so that a seed repeats a run.
            options: Options { notify: Some(notify), turns_at_once: 1, ..Options::default() },
            has_log: true,
            clock,
        }
    }

    /// A stage of one book, with the programme of the tests in force.
    pub fn with_programme() -> (Self, Process) {
        let stage = Self::new(1, |_| Ok(Response::of_status(200)));
        let mut process = stage.open();
        stage.save(programme());
        stage.settle_down(&mut process);
        (stage, process)
    }

    fn fused<E>(&self, engine: &Arc<E>) -> Arc<Fused<E>> {
        Arc::new(Fused { engine: Arc::clone(engine), fuse: Arc::clone(&self.fuse) })
    }

    pub fn deps(&self) -> Deps {
        let log = Arc::clone(&self.log) as Arc<dyn EventLog>;
        Deps {
            books: self.fused(&self.books),
            reader: Arc::clone(&self.books) as _,
            log: self.has_log.then_some(log),
            partitions: Vec::new(),
            registry: Some(Arc::<Registry>::default()),
            sink: self.fused(&self.log),
            stream: Some(self.fused(&self.stream)),
            queues: self.fused(&self.queues),
            control: Arc::clone(&self.queues) as _,
            documents: Arc::clone(&self.documents) as _,
            sender: self.fused(&self.sender),
            lease: Arc::new(raingauge_memory::Lease),
            clock: Arc::clone(&self.clock) as _,
            runtime: self.runtime.handle().clone(),
        }
    }

    /// A process begins.
    pub fn open(&self) -> Process {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> Result<Process, Error> {
        let deps = self.deps();
        let options = self.options.clone();
        let shared = Arc::new(Shared::new(options.waiting_max));
        let notify = options.notify.clone().unwrap();
        let worker = Worker::open(deps.clone(), options.clone(), Arc::clone(&shared))?;
        let notifier = Notifier::new(deps.clone(), notify, options.retry, Arc::clone(&shared));
        let notifier = Arc::new(notifier);
        let publisher = Publisher::to_log(&deps, Arc::clone(&shared));
        let streamer = Publisher::to_stream(&deps, Arc::clone(&shared)).unwrap();
        Ok(Process {
            worker,
            awards: Arc::new(Awards::new(deps.clone(), options.retry, Arc::clone(&shared))),
            retry: Arc::new(Retry::new(deps.clone(), options.retry, Arc::clone(&shared))),
            sweeper: Arc::new(Sweeper::new(deps.clone(), options, Arc::clone(&shared))),
            publisher: Arc::new(Tail::new(&deps, Arc::clone(&shared), publisher)),
            streamer: Arc::new(Tail::new(&deps, Arc::clone(&shared), streamer)),
            notices: Arc::new(Tail::new(&deps, Arc::clone(&shared), Arc::clone(&notifier))),
            notifier,
            members: Members::new(&deps, Arc::clone(&shared)),
            shared,
        })
    }

    /// Stores the next version of a programme, without an entry in the log.
    pub fn store(&self, configuration: Json) -> DocumentVersion {
        let id = configuration["programme"].as_str().unwrap().to_owned();
        let read = self.documents.get("programme", &id, None);
        let base = self.runtime.block_on(read).unwrap().map_or(0, |newest| newest.version);
        let document = StoredDocument {
            kind: "programme".to_owned(),
            id,
            version: 0,
            is_deleted: false,
            configuration,
            changed_by: String::new(),
            reason: String::new(),
            changed_ms: self.clock.now_ms(),
        };
        match self.runtime.block_on(self.documents.put(document, base)).unwrap() {
            Put::Stored(StoredDocument { kind, id, version, .. }) => {
                DocumentVersion { kind, id, version }
            }
            Put::Conflict { current } => panic!("it is at {current}"),
        }
    }

    /// Stores the next version of a programme, which takes effect here.
    pub fn save(&self, configuration: Json) {
        let stored = self.store(configuration);
        let entry = document_entry(CONSUMER, &stored);
        self.runtime.block_on(self.log.append_control(0, entry)).unwrap();
    }

    /// Appends an event of `shop` that happened at a time.
    pub fn send_at(&self, id: &str, kind: &str, time_ms: i64, data: &Json) {
        let data = data.to_string();
        let event = Event::of_data(kind, time_ms, &data);
        let mut batch = Batch::default();
        batch.push(&Event { id: id.into(), source: "shop".into(), ..event });
        self.runtime.block_on(self.log.append(batch)).unwrap();
    }

    /// Appends an order that is completed now.
    pub fn order(&self, id: &str, member: &str, vertical: &str, amount: i64) {
        let data = json!({
            "member": member, "country": "SG", "vertical": vertical, "payment": "grabpay",
            "amount": amount, "order_id": id,
        });
        self.send_at(id, "order.completed", self.clock.now_ms(), &data);
    }

    /// Lets the teller do all that waits.
    pub fn turn(&self, process: &mut Process) -> Result<(), Error> {
        while process.worker.turn()? == Progress::Busy {}
        Ok(())
    }

    /// Waits for something of a process while its teller decides.
    pub fn during<T: Send>(
        &self,
        process: &mut Process,
        work: impl Future<Output = T> + Send,
    ) -> T {
        let shared = Arc::clone(&process.shared);
        let worker = &mut process.worker;
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    match worker.turn() {
                        Ok(Progress::Busy) => {}
                        Ok(Progress::Idle) => {
                            if !is_over.load(Ordering::Acquire) {
                                shared.intake.wait(Duration::from_millis(50));
                            }
                        }
                        // The process has ended, and those who wait are answered.
                        Err(_) => {
                            shared.intake.close("it crashed");
                            return;
                        }
                    }
                }
            });
            let result = self.runtime.block_on(work);
            is_over.store(true, Ordering::Release);
            shared.intake.wake();
            result
        })
    }

    pub fn submit(
        &self,
        process: &mut Process,
        commands: Vec<Command>,
    ) -> Vec<Result<Answer, Error>> {
        let shared = Arc::clone(&process.shared);
        self.during(process, async move { shared.decide(commands, Manner::Each).await })
    }

    /// Lets a process do everything that there is to do now.
    pub fn settle_down(&self, process: &mut Process) {
        loop {
            self.turn(process).unwrap();
            let mut is_busy = false;
            let awards = Arc::clone(&process.awards);
            let retry = Arc::clone(&process.retry);
            let sweeper = Arc::clone(&process.sweeper);
            is_busy |= self.during(process, awards.step(Duration::ZERO)).unwrap();
            is_busy |= self.during(process, retry.step(Duration::ZERO)).unwrap();
            is_busy |= self.during(process, sweeper.step(Duration::ZERO)).unwrap();
            is_busy |= self.runtime.block_on(process.publisher.step()).unwrap();
            is_busy |= self.runtime.block_on(process.streamer.step()).unwrap();
            is_busy |= self.runtime.block_on(process.notices.step()).unwrap();
            is_busy |= self.runtime.block_on(process.notifier.step_again(Duration::ZERO)).unwrap();
            if !is_busy {
                return;
            }
        }
    }

    /// All entries of all books.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        for book in 0..self.books.books() {
            loop {
                let last = entries.last().filter(|entry| entry.book == book);
                let from = last.map_or(0, |entry| entry.sequence) + 1;
                let read = self.books.read(book, from, usize::MAX).unwrap();
                if read.is_empty() {
                    break;
                }
                entries.extend(read);
            }
        }
        entries
    }

    /// Events that were published, in their order.
    pub fn published(&self) -> Vec<(String, String, Json)> {
        let mut found = Vec::new();
        for block in self.log.read(0, usize::MAX).unwrap() {
            for entry in block.entries(0) {
                if let (_, record::Entry::Event(event)) = entry.unwrap()
                    && event.source == crate::SOURCE
                {
                    let data = serde_json::from_str(event.data).unwrap();
                    found.push((event.id.to_string(), event.kind.to_string(), data));
                }
            }
        }
        found
    }

    /// Events of the stream as a consumer knows them that passes over repetitions, in the order in
    /// which it came to know them.
    pub fn streamed(&self) -> Vec<(String, Json)> {
        let bytes = self.stream.bytes();
        let mut rest = &bytes[..];
        let mut known: HashMap<String, Json> = HashMap::new();
        let mut found = Vec::new();
        while let Some(entry) = record::split_entry(&mut rest) {
            let Some(record::Entry::Event(event)) = record::parse(entry) else {
                panic!("an event")
            };
            let id = event.id.to_string();
            let data: Json = serde_json::from_str(event.data).unwrap();
            match known.insert(id.clone(), data.clone()) {
                Some(before) => assert_eq!(before, data, "{id} stands for one entry"),
                None => found.push((id, data)),
            }
        }
        found
    }

    pub fn depth(&self, queue: QueueName) -> (u64, u64) {
        let depth = self.runtime.block_on(self.queues.depth(queue)).unwrap();
        (depth.waiting + depth.in_flight, depth.dead)
    }

    pub fn available(&self, process: &Process, member: &str) -> i64 {
        let balances = process.members.balances(vec![wallet(member)], None);
        self.runtime.block_on(balances).unwrap()[0].as_ref().unwrap().available
    }
}

pub fn wallet(member: &str) -> WalletId {
    WalletId::new(PROGRAMME, member)
}

/// A programme after the reference, in Singapore.
pub fn programme() -> Json {
    json!({
        "programme": PROGRAMME, "unit": "GRP", "timezone": "Asia/Singapore",
        "expiry": { "kind": "activity", "months": 6, "graceHours": 24, "reinstateDays": 7 },
        "holdHours": 72,
        "tables": {
            "vertical": { "by": ["data.country", "data.vertical"],
                "rows": { "SG.food": 2, "SG.ride": 1 } },
            "payment": { "by": ["data.country", "data.payment"], "default": 1,
                "rows": { "SG.grabpay": 2 } },
        },
        "rules": [
            { "id": 1, "name": "orders", "eventType": "order.completed", "member": "data.member",
                "amount": "data.amount", "factors": ["vertical", "payment"],
                "reference": "data.order_id", "extends": true },
            { "id": 2, "name": "refunds", "eventType": "order.refunded", "member": "data.member",
                "amount": "data.amount", "reverses": "data.order_id" },
        ],
        "rewards": [ { "name": "cup", "points": 50, "stock": 2, "perMember": 1 } ],
    })
}

/// A command of the operator.
pub fn command(member: &str, key: &str, body: Body) -> Command {
    Command {
        programme: PROGRAMME.into(),
        member: member.into(),
        key: key.into(),
        source: "".into(),
        occurred_ms: None,
        accepted_ms: None,
        reference: None,
        reason: None,
        body,
    }
}

/// An award of a number of points.
pub fn award(member: &str, key: &str, points: i64) -> Command {
    command(member, key, Body::Award(Award::of(Basis::Points(points))))
}
