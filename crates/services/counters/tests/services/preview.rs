use crate::support::{NOON_S, Services, counter, event};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::Counter;
use raingauge_counters::preview::{KeyChange, KeyChanges, compare, preview, preview_newest};
use raingauge_ports::log::EventLog;
use raingauge_ports::scans::Stop;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[tokio::test]
async fn a_preview_says_what_a_draft_would_have_counted() {
    let services = Services::start();
    let times = |n: i64| NOON_S - (n * 7_919) % (3 * DAY_S);
    let mut events = Vec::new();

    for n in 0..500 {
        events.push(event(n, times(n), json!({"k": format!("k{}", n % 30), "v": n % 7})));
    }
    events.push(event("keyless", NOON_S, json!({"v": 6})));

    let mut other = event("other", NOON_S, json!({"k": "x", "v": 6}));
    other["type"] = json!("u");
    events.push(other);
    services.send(&events).await;

    let draft = counter(
        0,
        json!({"state": "draft", "template": "draft:{k}", "value": {"field": "data.v"},
        "filter": {"operator": "gte", "lhs": "data.v", "rhs": 3}}),
    );

    let figures = preview(
        &[Arc::clone(&services.log) as Arc<dyn EventLog>],
        &Counter::from_json(&draft).unwrap(),
        &Stop::default(),
    )
    .unwrap();

    let mut keys = BTreeMap::<i64, (u64, i128)>::new();
    let mut cells = BTreeSet::new();
    let mut days = BTreeSet::new();

    for n in (0..500).filter(|n| n % 7 >= 3) {
        let entry = keys.entry(n % 30).or_default();
        *entry = (entry.0 + 1, entry.1 + i128::from(n % 7));
        cells.extend(
            Granularity::ALL.map(|granularity| (n % 30, granularity, granularity.floor(times(n)))),
        );
        days.insert(times(n) / DAY_S);
    }

    let counted = keys.values().map(|(events, _)| events).sum::<u64>();
    assert_eq!((figures.events, figures.events_of_type, figures.counted), (502, 501, counted));
    assert_eq!(figures.skipped, BTreeMap::from([("filtered", 500 - counted), ("no_key", 1)]));
    assert_eq!((figures.keys, figures.hottest.len()), (keys.len(), 20));
    assert_eq!(figures.cells_per_day, cells.len() as f64 / days.len() as f64);

    for hot in &figures.hottest {
        assert_eq!(
            keys[&hot.key["draft:k".len()..].parse().unwrap()],
            (hot.events, hot.count),
            "{}",
            hot.key
        );
    }

    assert!(figures.hottest.is_sorted_by_key(|hot| std::cmp::Reverse(hot.events)));
    let counted_times = || (0..500).filter(|n| n % 7 >= 3).map(times);
    assert_eq!(
        (figures.from_time, figures.to_time),
        (counted_times().min(), counted_times().max())
    );
}

#[test]
fn a_preview_of_an_empty_log_is_empty() {
    let log: Arc<dyn EventLog> = Arc::<raingauge_memory::Log>::default();
    let figures =
        preview(&[log], &Counter::from_json(&counter(1, json!({}))).unwrap(), &Stop::default())
            .unwrap();
    assert_eq!(
        (figures.events, figures.keys, figures.cells_per_day, figures.from_time),
        (0, 0, 0.0, None)
    );
}

#[tokio::test]
async fn two_configurations_are_compared_on_the_same_events() {
    let services = Services::start();
    let events = (0..40).map(|n| event(n, NOON_S, json!({"k": format!("k{}", n % 4), "v": n % 4})));
    services.send(&events.collect::<Vec<_>>()).await;

    let of = |changes| Counter::from_json(&counter(7, changes)).unwrap();

    // Before: the keys k0 to k2, ten each. After: k1 as before, k2 twice as much, k3 new.
    let before = of(json!({"filter": {"operator": "lt", "lhs": "data.v", "rhs": 3}}));
    let after = of(
        json!({"value": {"field": "data.v"}, "filter": {"operator": "gte", "lhs": "data.v", "rhs": 1}}),
    );
    let logs = [Arc::clone(&services.log) as Arc<dyn EventLog>];
    let compared = compare(&logs, &before, &after, 1_000, &Stop::default()).unwrap();
    let change = |key: &str, before, after| KeyChange { key: format!("c7:{key}"), before, after };
    let largest = vec![
        change("k3", None, Some(30)),
        change("k0", Some(10), None),
        change("k2", Some(10), Some(20)),
    ];

    assert_eq!(compared.keys, KeyChanges { gained: 1, lost: 1, changed: 1, same: 1, largest });
    assert_eq!(compared.before, preview(&logs, &before, &Stop::default()).unwrap());
    assert_eq!(compared.after, preview(&logs, &after, &Stop::default()).unwrap());
    assert_eq!(preview_newest(&logs, &before, 8, &Stop::default()).unwrap().events, 8);

    let daily = compared.after.daily;
    assert_eq!([daily.quarter_cells, daily.hour_cells, daily.day_cells], [3.0; 3]);
}
