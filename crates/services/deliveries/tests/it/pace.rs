//! How fast deliveries are sent.

use crate::bench::{Bench, NOW_MS, always, delivery, destination, until};
use raingauge_campaigns::schedule::Concurrency;
use raingauge_deliveries::Destination;
use raingauge_ports::campaigns::Status;
use raingauge_ports::campaigns::sender::{Response, SendError};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn paced(name: &str, rate: serde_json::Value) -> Destination {
    Destination { rate: serde_json::from_value(rate).expect("a rate"), ..destination(name) }
}

fn arrived_within(bench: &Bench, from_ms: i64, to_ms: i64) -> usize {
    let within = NOW_MS + from_ms..NOW_MS + to_ms;
    bench.receiver.arrivals().iter().filter(|arrival| within.contains(&arrival.at_ms)).count()
}

/// The clock begins a second before 07:00.
#[tokio::test(start_paused = true)]
async fn at_seven_the_rate_falls_without_a_burst() {
    let rate = json!([
        {"perSecond": 500, "burst": 20},
        {"from": "07:00", "to": "10:00", "days": ["mon"], "perSecond": 50, "burst": 20},
    ]);
    let bench = Bench::start(vec![paced("a", rate)], always(200));
    bench.commit((0..900).map(|number| delivery("a", number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() == 900).await;

    let fast = arrived_within(&bench, 0, 1_000);
    assert!((450..=521).contains(&fast), "{fast}");
    for second in 1..5 {
        let slow = arrived_within(&bench, second * 1_000, second * 1_000 + 1_000);
        assert!((49..=51).contains(&slow), "{slow} in second {second}");
    }
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.per_second, Some(50));
}

#[tokio::test(start_paused = true)]
async fn no_stretch_of_time_has_more_than_the_rate_and_a_burst() {
    let bench = Bench::start(vec![paced("a", json!([{"perSecond": 40, "burst": 5}]))], always(200));
    bench.commit((0..200).map(|number| delivery("a", number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() == 200).await;

    let times: Vec<i64> = bench.receiver.arrivals().iter().map(|arrival| arrival.at_ms).collect();
    for (place, from_ms) in times.iter().enumerate() {
        let within = times[place..].iter().filter(|at_ms| **at_ms < from_ms + 1_000).count();
        assert!(within <= 46, "{within} from {from_ms}");
    }
    let took_ms = times[199] - times[0];
    assert!((4_800..5_100).contains(&took_ms), "{took_ms} ms for 195 at 40 a second");
}

#[tokio::test(start_paused = true)]
async fn a_slow_destination_gets_more_requests_at_a_time() {
    let concurrency = Concurrency { min: 2, max: 12 };
    let slow = Destination { concurrency, ..destination("a") };
    let bench = Bench::start(vec![slow], always(200));
    bench.commit((0..400).map(|number| delivery("a", number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() == 400).await;
    assert_eq!(bench.receiver.most_at_once(), 12);
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.concurrency, 12);
}

#[tokio::test(start_paused = true)]
async fn timeouts_halve_the_requests_at_a_time() {
    let concurrency = Concurrency { min: 2, max: 16 };
    let slow = Destination { concurrency, ..destination("a") };
    let bench = Bench::start(vec![slow], |request| match request.header("webhook-id") {
        Some(id) if id.starts_with("act_000001") => Err(SendError::Late(request.timeout)),
        _ => Ok(Response::of_status(200)),
    });
    bench.commit((0..256).map(|number| delivery("a", number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() == 256).await;
    bench.until_status(255, Status::Delivered).await;
    assert_eq!(bench.deliveries.status("a").await.expect("a status").activity.concurrency, 16);

    bench.commit(vec![delivery("a", 256, 0)]);
    until("it has failed", async || bench.record(256).await.tries == 1).await;
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.concurrency, 8);
    let failure = status.activity.last_failure.expect("a failure");
    assert_eq!(failure.note, "no response within 15000 ms");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_halve_the_rate() {
    let rate = json!([{"perSecond": 100, "burst": 1}]);
    let is_asked = AtomicBool::new(false);
    let bench = Bench::start(vec![paced("a", rate)], move |request| {
        // The first attempt of the tenth delivery.
        let is_tenth = request.body == b"{\"number\":10}";
        let is_refused = is_tenth && !is_asked.swap(true, Ordering::SeqCst);
        Ok(Response::of_status(if is_refused { 429 } else { 200 }))
    });
    bench.commit((0..400).map(|number| delivery("a", number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() == 400).await;

    let halved = arrived_within(&bench, 1_000, 2_000);
    assert!((49..=51).contains(&halved), "{halved}");
    bench.until_status(10, Status::Delivered).await;
    assert_eq!(bench.record(10).await.tries, 2);
    bench.pass(Duration::from_secs(11)).await;
    bench.commit(vec![delivery("a", 400, 0)]);
    bench.until_status(400, Status::Delivered).await;
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.per_second, Some(100), "it has eased");
}
