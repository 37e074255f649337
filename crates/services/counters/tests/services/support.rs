use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::Counter;
use raingauge_core::plan::{Plan, Slice};
use raingauge_counters::Counters;
use raingauge_counters::recount::Recounter;
use raingauge_memory as memory;
use raingauge_ports::buckets::{BucketReader, BucketWriter, Query};
use raingauge_ports::catalog::Catalog;
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::published::Published;
use raingauge_writer::control::Bucket;
use raingauge_writer::ingest::Receipt;
use raingauge_writer::state::Answer;
use raingauge_writer::states::{PublishedStates, States, progress};
use raingauge_writer::worker::BackfillStatus;
use raingauge_writer::worker::Handle;
use raingauge_writer::{Ingest, Options};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// A day in 2024, and noon of it, which is when every test begins.
pub const TODAY_S: i64 = 20_000 * DAY_S;
pub const NOON_S: i64 = TODAY_S + DAY_S / 2;
pub const ALLOWANCE_S: i64 = 300;

/// A log that is written and read in the same process.
pub trait Log: EventLog + EventSink {}

impl<T: EventLog + EventSink> Log for T {}

pub struct Services {
    pub clock: Arc<ManualClock>,
    pub log: Arc<dyn Log>,
    pub store: Arc<memory::Buckets>,
    pub catalog: Arc<memory::Catalog>,
    pub published: Arc<Published>,
    pub writer: Arc<Handle>,
    pub ingest: Ingest,
    pub counters: Arc<Counters>,
    pub recounter: Recounter,
}

impl Services {
    pub fn start() -> Self {
        Self::start_on(
            Arc::<memory::Log>::default(),
            Arc::default(),
            Arc::default(),
            ManualClock::at_s(NOON_S).into(),
        )
    }

    pub fn start_on(
        log: Arc<dyn Log>,
        store: Arc<memory::Buckets>,
        catalog: Arc<memory::Catalog>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let published = Arc::<Published>::default();
        let time = || Arc::clone(&clock) as Arc<dyn Clock>;
        let options = Options { future_allowance_s: ALLOWANCE_S, ..Options::default() };
        let cells = Arc::clone(&store) as Arc<dyn BucketWriter>;
        let read = || Arc::clone(&log) as Arc<dyn EventLog>;

        let sink = || Arc::clone(&log) as Arc<dyn EventSink>;
        let writer = Handle::start(read(), cells, Arc::clone(&published), time(), options);
        let writer = Arc::new(writer.expect("a writer"));
        let configurations = Arc::clone(&catalog) as Arc<dyn Catalog>;

        Self {
            ingest: Ingest::new(
                sink(),
                vec![read()],
                Arc::clone(&published),
                time(),
                ALLOWANCE_S,
                1_000_000,
            ),
            counters: Arc::new(
                Counters::new(configurations, sink(), Arc::clone(&published), time())
                    .with_conductor(Arc::clone(&writer) as Arc<dyn PublishedStates>),
            ),
            recounter: Recounter {
                logs: vec![read()],
                buckets: Arc::clone(&store) as Arc<dyn BucketReader>,
                published: Arc::clone(&published),
                states: Arc::clone(&writer) as Arc<dyn States>,
                clock: time(),
                future_allowance_s: ALLOWANCE_S,
            },
            clock,
            log,
            store,
            catalog,
            published,
            writer,
        }
    }

    /// Sends events and waits until they are counted.
    pub async fn send(&self, events: &[Json]) -> Receipt {
        let mut intake = self.ingest.begin().expect("taken");
        for event in events {
            intake.push_json(event.to_string().as_bytes()).expect("not too many");
        }
        self.ingest.finish(intake, true).await.expect("counted")
    }

    pub async fn create(&self, counter: Json) {
        let counter = Counter::from_json(&counter).expect("a counter");
        self.counters.create(counter, "me", "a test").await.expect("created");
    }

    pub async fn replace(&self, counter: Json) {
        let counter = Counter::from_json(&counter).expect("a counter");
        self.counters.replace(counter, None, "me", "a test").await.expect("replaced");
    }

    /// Sets buckets without a key.
    pub async fn set(&self, buckets: impl IntoIterator<Item = Bucket>) -> Answer {
        self.counters
            .set_buckets(buckets.into_iter().map(Ok).collect(), None)
            .await
            .expect("set")
            .answer
    }

    /// Backfills a counter, to the end.
    pub async fn backfill(&self, id: u32) {
        let before = self.generation(id);
        self.counters.backfill(id).await.expect("begun");
        let conductor = self.counters.conductor().expect("a conductor");
        let is_finished = || {
            let progress = progress(&*self.writer, &self.published, id);
            progress.is_some_and(|progress| progress.backfill.status == BackfillStatus::Finished)
        };
        while self.generation(id) == before || !is_finished() {
            conductor.conduct().await.expect("conducted");
            tokio::task::yield_now().await;
        }
    }

    /// The newest generation of a counter.
    pub fn generation(&self, id: u32) -> u32 {
        let view = self.published.view();
        let index = view.ruleset.index_of(id).expect("a counter that answers");
        view.timelines[index].parts().last().expect("a part").1
    }

    pub async fn count(&self, key: &str, from_s: i64, to_s: i64) -> i128 {
        let view = Arc::clone(&self.published.view());
        let index = view.ruleset.index_of_key(key).expect("a counter that answers");
        let plans =
            view.timelines[index].plans(&Plan::new(from_s, to_s).expect("a plan")).expect("plans");
        let query = |(generation, plan)| Query { generation, key: key.to_owned(), plan };
        let sums = self.store.sums(plans.into_iter().map(query).collect()).await;
        sums.into_iter().map(|sum| sum.expect("a sum")).sum()
    }

    pub async fn quarters(&self, key: &str) -> Vec<(i64, i64)> {
        let view = Arc::clone(&self.published.view());
        let index = view.ruleset.index_of_key(key).expect("a counter that answers");
        let generation = view.timelines[index].parts().last().expect("a part").1;
        let slice = Slice { granularity: Granularity::Quarter, from_s: 0, to_s: 2 * TODAY_S };
        let cells = self.store.cells(generation, key.to_owned(), slice).await.expect("cells");
        cells.iter().map(|cell| (cell.time_s, cell.count)).collect()
    }
}

/// A counter `c{id}:{k}` of events of type `t`.
pub fn counter(id: u32, members: Json) -> Json {
    let mut counter =
        json!({"id": id, "name": "n", "template": format!("c{id}:{{k}}"), "eventType": "t"});
    if let (Some(counter), Json::Object(members)) = (counter.as_object_mut(), members) {
        counter.extend(members);
    }
    counter
}

pub fn event(id: impl ToString, time_s: i64, data: Json) -> Json {
    let time = raingauge_core::time::format_rfc3339(time_s);
    json!({"specversion": "1.0", "id": id.to_string(), "source": "s", "type": "t", "time": time, "data": data})
}

/// An event of the key `x`.
pub fn event_x(id: impl ToString, time_s: i64) -> Json {
    event(id, time_s, json!({"k": "x"}))
}
