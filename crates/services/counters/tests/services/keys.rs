use crate::support::{ALLOWANCE_S, NOON_S, Services, TODAY_S, counter, event};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::Plan;
use raingauge_counters::Counters;
use raingauge_ports::buckets::KeySource;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::scans::Stop;
use raingauge_writer::control::Bucket;
use raingauge_writer::{Ingest, KeyLimit, KeyWatch};
use serde_json::json;
use std::sync::Arc;

/// Services whose counters have at most this many keys.
struct Limited {
    services: Services,
    watch: KeyWatch,
}

impl Limited {
    fn to(keys_max: u64) -> Self {
        let mut services = Services::start();
        let limit = Arc::new(KeyLimit::new(keys_max));
        let sink = Arc::clone(&services.log) as Arc<dyn EventSink>;
        let log = Arc::clone(&services.log) as Arc<dyn EventLog>;
        let published = Arc::clone(&services.published);

        let clock = Arc::clone(&services.clock) as Arc<dyn Clock>;
        let ingest = Ingest::new(
            sink,
            vec![Arc::clone(&log)],
            Arc::clone(&published),
            clock,
            ALLOWANCE_S,
            1_000_000,
        );

        services.ingest = ingest.with_key_limit(Arc::clone(&limit));
        services.counters = Arc::new(with_limit(&services, &limit));

        let watch = KeyWatch::new(
            limit,
            Arc::clone(&services.store) as Arc<dyn KeySource>,
            published,
            vec![log],
        );
        Self { services, watch }
    }

    async fn send(&self, key: &str) {
        let id = self.services.log.end();
        self.services.send(&[event(id, NOON_S, json!({"k": key}))]).await;
    }

    async fn count(&self, key: &str) -> i128 {
        self.services.count(key, TODAY_S, NOON_S + DAY_S).await
    }
}

fn with_limit(services: &Services, limit: &Arc<KeyLimit>) -> Counters {
    let clock = Arc::clone(&services.clock) as Arc<dyn Clock>;
    let sink = Arc::clone(&services.log) as Arc<dyn EventSink>;
    Counters::new(Arc::clone(&services.catalog) as _, sink, Arc::clone(&services.published), clock)
        .with_conductor(Arc::clone(&services.writer) as _)
        .with_key_limit(Arc::clone(limit))
}

#[tokio::test]
async fn a_full_counter_takes_no_new_keys_and_counts_those_that_it_has() {
    let limited = Limited::to(2);
    let services = &limited.services;
    services.create(counter(1, json!({}))).await;
    services.create(counter(2, json!({"template": "all"}))).await;

    for key in ["x", "y"] {
        limited.send(key).await;
    }
    limited.watch.look().await.unwrap();

    for key in ["x", "z", "z"] {
        limited.send(key).await;
    }
    let counts = async || {
        (limited.count("c1:x").await, limited.count("c1:z").await, limited.count("all").await)
    };
    assert_eq!(counts().await, (2, 0, 5), "other counters count all");

    let bucket = |key: &str| Bucket {
        key: key.to_owned(),
        granularity: Granularity::Day,
        time: TODAY_S,
        count: 7,
    };

    let answer = services.set(vec![bucket("c1:y"), bucket("c1:z")]).await;
    assert_eq!((answer.accepted, answer.rejected[0].code.as_str()), (1, "too_many_keys"));

    // The decision stands in the log: for a backfill, a recount, and a reader that starts at its
    // beginning.
    services.backfill(1).await;
    assert_eq!(counts().await, (2, 0, 5));

    let range = Plan::new(TODAY_S, NOON_S + DAY_S).unwrap();
    for key in ["c1:x", "c1:z"] {
        let recount = services
            .recounter
            .recount(key, range, &Stop::default())
            .await
            .unwrap()
            .expect("a counter has it");
        assert!(recount.equal, "{recount:?}");
    }

    let again = Services::start_on(
        Arc::clone(&services.log),
        Arc::default(),
        Arc::clone(&services.catalog),
        Arc::clone(&services.clock),
    );

    assert_eq!(again.count("c1:x", TODAY_S, NOON_S + DAY_S).await, 2);
    assert_eq!(again.count("c1:z", TODAY_S, NOON_S + DAY_S).await, 0);
    assert_eq!(again.count("c1:y", TODAY_S, NOON_S + DAY_S).await, 7);
}

#[tokio::test]
async fn a_counter_that_begins_from_nothing_takes_keys_again() {
    let limited = Limited::to(2);
    limited.services.create(counter(1, json!({}))).await;
    for key in ["x", "y"] {
        limited.send(key).await;
    }
    limited.watch.look().await.unwrap();
    limited.send("z").await;
    assert_eq!(limited.count("c1:z").await, 0);
    limited.services.counters.erase_all(1).await.unwrap();
    limited.watch.look().await.unwrap();
    limited.send("z").await;
    assert_eq!(limited.count("c1:z").await, 1);
}

#[tokio::test]
async fn a_counter_below_its_limit_takes_every_key() {
    let limited = Limited::to(100);
    limited.services.create(counter(1, json!({}))).await;
    for key in 0..50 {
        limited.send(&key.to_string()).await;
    }
    limited.watch.look().await.unwrap();
    limited.send("new").await;
    assert_eq!(limited.count("c1:new").await, 1);
}
