//! A consumer of the log beside counting, which does not run: the log is kept for it up to the
//! bound, and an operator lets it skip what it lost. Counting is not affected.

use crate::client::{drop_event, drops_counter, now_s, rfc3339};
use crate::server::{Home, Server, until};
use raingauge_embedded::{TileOptions, TileStore};
use raingauge_ports::consumers::{ConsumerStore, Name};

const DAY_S: i64 = 86_400;
const LOST: &str = r#"raingauge_consumer_overtaken_entries{consumer="dummy",partition="0"}"#;
const LAG: &str = r#"raingauge_consumer_lag_events{consumer="dummy",partition="0"}"#;

/// The clock of the next process begins this many days ahead.
fn set_days_ahead(home: &mut Home, days: i64) {
    let now = rfc3339(now_s());
    let shown = rfc3339(now_s() + days * DAY_S);
    home.set("clock.experiment", &format!("{shown} at {now} times 1"));
}

/// Events that fill several segments.
fn fill(server: &Server, batch: usize) {
    let mut events: Vec<_> =
        (0..30).map(|event| drop_event(&format!("{batch}-{event}"), now_s(), "oslo")).collect();
    for event in &mut events {
        event["data"]["padding"] = "x".repeat(50_000).into();
    }
    server.count_events(&events);
}

fn segments(home: &Home) -> usize {
    let files = std::fs::read_dir(home.data().join("log")).expect("a log");
    let names = files.map(|file| file.expect("a file").file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
}

#[test]
fn a_consumer_that_lags_holds_the_log_up_to_the_bound_and_nothing_else() {
    let mut home = Home::with(&[("log.segment_bytes", "1048576")]);
    {
        let server = home.start();
        server.create(drops_counter());
        (0..5).for_each(|batch| fill(&server, batch));
        server.terminate();
    }

    let kept = segments(&home);
    assert!(kept > 4, "{kept} segments");

    let dummy = Name::new("dummy").expect("a name");
    let store = TileStore::open(&home.data().join("tiles"), &TileOptions::default());
    store.expect("a store").commit(&dummy, 0, Vec::new()).expect("committed");

    // Everything is older than the retention and the dedupe window, but the log is still kept.
    set_days_ahead(&mut home, 10);
    {
        let server = home.start();
        until("the consumer is reported", || (server.metric(LAG) > 0.0).then_some(()));
        assert_eq!(server.metric(LOST), 0.0);
        assert!(segments(&home) >= kept, "the log is kept for the consumer");
        server.terminate();
    }

    home.set("log.consumer_lag_bytes_max", "2097152");
    set_days_ahead(&mut home, 10);
    {
        let server = home.start();
        let lost =
            until("it is overtaken", || Some(server.metric(LOST)).filter(|lost| *lost > 0.0));
        assert!(segments(&home) < kept);
        assert!(server.errors().contains("was overtaken") && server.errors().contains("dummy"));
        assert_eq!(server.get("/readyz").text(), "ready\n");

        let late = drop_event("late", now_s() + 10 * DAY_S, "oslo");
        assert_eq!(server.count_events(&[late])["accepted"], 1);
        assert!(lost < server.metric(LAG), "{lost}");
        server.terminate();
    }

    let skip = |more: &[&str]| {
        let data = home.data().display().to_string();
        home.run(&[&["skip-lost", "--data-dir", &data, "--partition", "0"], more].concat())
    };
    assert!(skip(&["--consumer", "nobody"]).errors.contains("no consumer nobody"));
    assert!(!skip(&["--consumer", "No body"]).status.success());

    let told = skip(&["--consumer", "dummy", "--json"]).json();
    assert_eq!((&told["consumer"], &told["skipped"]), (&"dummy".into(), &false.into()));

    let skipped = skip(&["--consumer", "dummy", "--yes"]);
    assert!(skipped.output.contains("what lay between has been dropped"), "{skipped:?}");
    assert!(skip(&["--consumer", "dummy"]).errors.contains("has lost nothing"));

    set_days_ahead(&mut home, 10);
    let server = home.start();
    until("the consumer is reported", || (server.metric(LAG) > 0.0).then_some(()));
    assert_eq!(server.metric(LOST), 0.0);
}
