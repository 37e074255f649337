//! The lab's experiment, in small: what each cache strategy does to the store at the turn of a
//! quarter hour.

use raingauge_lab::cluster::ClusterOptions;
use raingauge_lab::experiment::Options;
use raingauge_lab::experiment::cases::{Comparison, Row};
use raingauge_lab::experiment::prices::Prices;
use raingauge_lab::experiment::scenario::Scenario;
use std::path::Path;

/// A quarter hour takes 3 s.
const SCENARIO: &str = r#"
title = "In small"
factor = 300
from = "2024-11-05T10:45:00"
to = "2024-11-05T11:40:00"
plan = "tiles"
before = "none"
after = "none"

[traffic]
seed = 7
timezone = "Asia/Singapore"
counters = 20
keys = 300
zipf = 1.0
history_days = 8
history = 6000
batch = [10, 10]
ends_now = 1.0
windows = [{ hours = 1, share = 40 }, { hours = 168, share = 60 }]
batches_per_s = 60.0
even = true
hours = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
weekdays = [1, 1, 1, 1, 1, 1, 1]
burst = 2.0
burst_minutes = 2.0
events_per_s = 20.0
"#;

/// The least share of answers in time for which a turn is judged.
const KEPT_PACE_MIN: f64 = 0.95;

#[test]
fn at_the_turn_of_a_quarter_hour_the_result_cache_alone_loads_the_store() {
    let Some(services) = std::env::var_os("RAINGAUGE_TEST_SERVICES") else {
        return println!(
            "skipped: RAINGAUGE_TEST_SERVICES names no folder of servers; `make test` starts them"
        );
    };

    let scenario = Scenario::parse(SCENARIO).expect("a scenario");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let given = ClusterOptions {
        services: services.into(),
        script: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services"),
        binary: env!("CARGO_BIN_EXE_raingauge").into(),
    };

    let options = Options { given, scenario: None, out: folder.path().to_owned(), prefer: false };
    let pairs = ["none", "result", "phased", "live"].map(|strategy| ("tiles", strategy));
    let prices = Prices::usual().expect("prices");
    let turns =
        Comparison { scenario: &scenario, options: &options, prices: &prices, closed_loop: None };
    let rows = turns.on_cluster(&pairs).expect("a run");
    let of = |strategy: &str| {
        rows.iter().find(|row| row.strategy == strategy).expect("every strategy was measured")
    };
    let turn = |strategy: &str| of(strategy).share_at_turn;

    let store = |strategy: &str| of(strategy).numbers.store_share.expect("counts were answered");
    for row in &rows {
        println!(
            "{}: {:?} {:?} {:?}",
            row.strategy, row.share_at_turn, row.numbers.store_share, row.checked
        );
        assert_sound(row);
    }

    // What is asked for the first time is read under every strategy.
    assert!(store("live") < store("result") && store("result") < 0.9 && store("phased") < 0.9);
    assert!(
        turn("none").is_some_and(|turn| (turn - 1.0).abs() < 0.01),
        "everything is read from the store at any time"
    );

    // How much more the store is asked at a turn than between turns. A turn lasts 0.2 s here: on a
    // machine that is busy with other work, answers come later than that and blur it.
    let rise = |strategy: &str| {
        let kept_pace = of(strategy).kept_pace;
        if kept_pace.is_none_or(|share| share < KEPT_PACE_MIN) {
            println!("{strategy}: the machine was too busy to judge the turn by {kept_pace:?}");
            return None;
        }
        Some(turn(strategy).map_or(0.0, |turn| turn - 1.0))
    };
    let Some(result) = rise("result") else {
        return;
    };

    assert!(result > 0.3, "result: {result}");
    for strategy in ["phased", "live"] {
        if let Some(rise) = rise(strategy) {
            let limit = f64::max(0.25, result / 2.0);
            assert!(rise < limit, "{strategy}: {rise}, where result has {result}");
        }
    }
}

/// What holds under every strategy.
fn assert_sound(row: &Row) {
    let numbers = &row.numbers;
    assert_eq!((numbers.failed, row.checked.wrong), (0, 0), "{}", row.strategy);
    assert_eq!(
        numbers.counts,
        numbers.batches * 10,
        "{}: hits and reads of the store add up",
        row.strategy
    );
    assert!(row.checked.compared > 100 && row.equal == 300, "{}", row.strategy);
    assert_eq!(row.checked.early > 0, row.strategy == "phased", "{}", row.strategy);
}
