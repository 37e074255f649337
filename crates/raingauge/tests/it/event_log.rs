//! The event log through the doors of the program: wrong clocks, damage, and the operator's
//! remedies.

use crate::client::{drop_event, drops_counter, now_s};
use crate::server::{Home, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const DAY_S: i64 = 86_400;

/// A counter whose buckets expire.
fn short_counter() -> Value {
    let mut counter = drops_counter();
    counter["retentionDays"] = json!({"quarter": 90, "hour": 400, "day": null});
    counter
}

fn set_clock(home: &mut Home, shown_s: i64) {
    let shown = crate::client::rfc3339(shown_s);
    let now = crate::client::rfc3339(now_s());
    home.set("clock.experiment", &format!("{shown} at {now} times 1"));
}

fn log_files(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(home.data().join("log"))
        .expect("a log")
        .map(|entry| entry.expect("an entry").path());
    files.map(|path| (path.clone(), fs::read(path).expect("a file can be read"))).collect()
}

fn newest_segment(home: &Home) -> PathBuf {
    let files = log_files(home).into_keys();
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max()
        .expect("a segment")
}

fn repair(home: &Home, more: &[&str]) -> String {
    let data = home.data().display().to_string();
    let ran = home.run(&[&["repair", "--data-dir", data.as_str()], more].concat());
    assert!(ran.status.success(), "{}", ran.errors);
    ran.output
}

fn takes(server: &Server, id: &str) {
    let receipt = server.count_events(&[drop_event(id, now_s(), "oslo")]);
    assert_eq!(receipt["accepted"], 1);
}

/// One start under a clock that was 500 days ahead: afterwards events that would count nothing are
/// refused, and so are counts that would be too small.
#[test]
fn a_log_from_the_future_is_reported_and_can_be_redated() {
    let mut home = Home::new();
    set_clock(&mut home, now_s() + 500 * DAY_S);
    {
        let server = home.start();
        server.create(short_counter());
        server.count_events(&[drop_event("a", now_s() + 500 * DAY_S, "oslo")]);
        server.terminate();
    }
    home.set("clock.experiment", "");
    {
        let server = home.start();
        let event = drop_event("b", now_s(), "oslo");
        server.lines("/v1/events", &[event]).expect_problem(503, "clock_unsound");
        server.get("/readyz").expect_problem(503, "not_ready");
        assert!(server.metric("raingauge_clock_ahead_seconds") < -499.0 * 86_400.0);

        let (from, to) = (now_s() - 7_200, now_s() - 900);
        assert_eq!(
            server.results(&[("drops:oslo", from, to)])[0]["error"]["code"],
            "range_expired"
        );
        server.terminate();
    }

    assert!(repair(&home, &[]).contains("later than this machine's clock"));
    assert!(repair(&home, &["--restamp"]).contains("It is repaired"));

    let server = home.start();
    takes(&server, "b");
    assert_eq!(server.count("drops:oslo", now_s() - 7_200, now_s() + 900), 1);
}

/// A clock that is further ahead of the log than the operator allows is refused at the start, until
/// it is allowed.
#[test]
fn a_clock_far_ahead_of_the_log_needs_a_word() {
    let mut home = Home::new();
    {
        let server = home.start();
        server.create(short_counter());
        takes(&server, "a");
        server.terminate();
    }
    set_clock(&mut home, now_s() + 100 * DAY_S);
    {
        let server = home.start();
        let event = drop_event("b", now_s() + 100 * DAY_S, "oslo");
        let problem = server.lines("/v1/events", &[event]).expect_problem(503, "clock_unsound");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("clock.ahead_days_max")),
            "{problem}"
        );
        assert_eq!(
            server.count("drops:oslo", now_s() - 7_200, now_s() + 900),
            1,
            "it is answered as before"
        );
        server.terminate();
    }
    home.set("clock.ahead_days_max", "101");

    let server = home.start();
    let receipt = server.count_events(&[drop_event("b", now_s() + 100 * DAY_S, "oslo")]);
    assert_eq!(receipt["accepted"], 1);
}

/// A wrong bit in the last block: the start is refused and changes nothing in the log. Then the
/// loss is accepted.
#[test]
fn a_refused_start_changes_nothing_and_a_loss_can_be_accepted() {
    let home = Home::new();
    {
        let server = home.start();
        server.create(drops_counter());
        takes(&server, "a");
        takes(&server, "b");
        server.terminate();
    }

    let segment = newest_segment(&home);
    let sound = fs::read(&segment).expect("the segment can be read");
    let mut damaged = sound.clone();
    damaged[sound.len() - 5] ^= 1;
    fs::write(&segment, damaged).expect("the segment can be written");

    let before = log_files(&home);
    let Err(refused) = home.try_start() else { panic!("it started") };
    assert!(refused.errors.contains("raingauge repair"), "{}", refused.errors);
    assert_eq!(log_files(&home), before);
    fs::write(&segment, sound).expect("the segment can be written");
    home.start().terminate();

    fs::write(&segment, &before[&segment]).expect("the segment can be written");
    assert!(repair(&home, &[]).contains("are lost: 1 entries"));
    assert!(home.try_start().is_err());
    assert!(repair(&home, &["--accept-loss"]).contains("It is repaired"));

    let server = home.start();
    takes(&server, "c");
    assert_eq!(
        server.count("drops:oslo", now_s() - 7_200, now_s() + 900),
        3,
        "what was counted stays counted"
    );
}
