use raingauge_core::bucket::DAY_S;
use raingauge_core::code::Refusal;
use raingauge_core::counter::Counter;
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_memory as memory;
use raingauge_ports::buckets::{Addition, BucketReader, BucketWriter, Generation};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::published::{Published, Timeline, View};
use raingauge_reader::{Answer, Engines, Options, Range, Reader};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// A day in 2024.
pub const TODAY_S: i64 = 20_000 * DAY_S;

/// One counter with the keys `c:…`.
pub struct Service {
    pub store: Arc<memory::Buckets>,
    pub published: Arc<Published>,
    pub clock: Arc<ManualClock>,
    pub reader: Reader,
}

impl Service {
    /// Retention in days, and the parts of the timeline.
    pub fn new(retention_days: Json, parts: Vec<(i64, Generation)>, now_s: i64) -> Self {
        let store = Arc::<memory::Buckets>::default();
        let published = Arc::<Published>::default();
        let clock = Arc::new(ManualClock::at_s(now_s));
        let engines = Engines::new(
            Arc::clone(&store) as Arc<dyn BucketReader>,
            Arc::clone(&published),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );

        let reader = Reader::new(engines, Options::default());
        let counter = json!({"id": 1, "name": "n", "template": "c:{k}", "eventType": "t", "retentionDays": retention_days});
        let ruleset = Ruleset::new([Counter::from_json(&counter).expect("a counter")]);
        let timelines = vec![Timeline::new(parts)];

        published.set_view(Arc::new(View { ruleset, timelines, ..View::default() }));
        Self { store, published, clock, reader }
    }

    /// A counter that keeps everything.
    pub fn forever(parts: Vec<(i64, Generation)>) -> Self {
        Self::new(json!({"quarter": null, "hour": null, "day": null}), parts, TODAY_S)
    }

    pub fn add(&self, key: &str, time_s: i64, value: i64) {
        let generation = self.published.view().timelines[0].generation_at(time_s);
        let added = Addition { offset: 0, time_s, value };
        self.store.add(generation, key, added, &Horizons::default()).expect("added");
    }

    /// One count.
    pub async fn count(&self, range: Range<'_>) -> Result<Answer, Refusal> {
        self.reader.counts(std::slice::from_ref(&range)).await.remove(0)
    }
}

pub fn range(key: &str, from_s: i64, to_s: i64) -> Range<'_> {
    Range { key, from_s, to_s, fresh: false }
}
