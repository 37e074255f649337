//! What becomes of deliveries that fail.

use crate::bench::{Bench, action, always, delivery, destination, until};
use raingauge_campaigns::retry::pause_ms;
use raingauge_deliveries::Destination;
use raingauge_policy::breaker;
use raingauge_ports::campaigns::sender::{Response, SendError};
use raingauge_ports::campaigns::{Outbox, Selection, Status};
use raingauge_ports::clock::Clock as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_delivery_is_tried_ten_times_and_then_dead() {
    let bench = Bench::start(vec![destination("a")], always(500));
    bench.commit(vec![delivery("a", 1, 0)]);

    for tries in 1..=10 {
        until("it has failed", async || bench.record(1).await.tries == tries).await;
        let record = bench.record(1).await;
        let arrivals = bench.receiver.arrivals();
        assert_eq!(arrivals.len(), tries as usize);
        assert_eq!(record.note, "500 Internal Server Error");

        let Some(pause_ms) = pause_ms(&action(1).to_string(), tries, None) else {
            assert_eq!((record.status, tries), (Status::Dead, 10));
            break;
        };
        assert_eq!(record.status, Status::Pending);

        let last_ms = arrivals[tries as usize - 1].at_ms;
        assert_eq!(record.at_ms, last_ms + bench.receiver.latency.as_millis() as i64 + pause_ms);
        // It is not tried a moment too soon.
        bench.clock.jump_ms(pause_ms - 1_000);
        bench.pass(Duration::from_millis(900)).await;
        assert_eq!(bench.receiver.len(), tries as usize);
    }

    let arrivals = bench.receiver.arrivals();
    for arrival in &arrivals {
        assert_eq!(arrival.id(), action(1).to_string(), "each attempt has the same id");
        assert_eq!(arrival.request.body, arrivals[0].request.body);
    }
    let redriven = bench.ledger.redrive(Selection::One(action(1)), bench.clock.now_ms()).await;
    assert_eq!(redriven, Ok(1));
    until("it is tried again", async || bench.receiver.len() == 11).await;
}

#[tokio::test(start_paused = true)]
async fn refusals_are_final_and_conflicts_are_not() {
    let refused = [400, 401, 403, 404, 413, 422];
    let retried = [301, 408, 409, 425, 500, 501];
    let statuses: Vec<u16> = refused.into_iter().chain(retried).collect();
    let bench = Bench::start(vec![destination("a")], |request| {
        let text = String::from_utf8(request.body.clone()).expect("a text");
        let status = text[10..text.len() - 1].parse().expect("a status");
        Ok(Response::of_status(status))
    });
    bench.commit(statuses.iter().map(|status| delivery("a", (*status).into(), 0)).collect());
    until("all have arrived", async || bench.receiver.len() == statuses.len()).await;
    bench.deliveries.stop().await;

    for status in refused {
        let record = bench.record(status.into()).await;
        assert_eq!((record.status, record.tries), (Status::Refused, 1), "{status}");
    }
    for status in retried {
        let record = bench.record(status.into()).await;
        assert_eq!((record.status, record.tries), (Status::Pending, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destination_is_left_alone_for_as_long_as_it_asks() {
    let is_busy = Arc::new(AtomicBool::new(true));
    let busy = Arc::clone(&is_busy);
    let bench = Bench::start(vec![destination("a")], move |_| {
        let headers = vec![("retry-after".to_owned(), "30".to_owned())];
        let status = if busy.load(Ordering::SeqCst) { 503 } else { 200 };
        Ok(Response { headers, ..Response::of_status(status) })
    });
    bench.commit(vec![delivery("a", 1, 0)]);
    until("it has failed", async || bench.record(1).await.tries == 1).await;
    is_busy.store(false, Ordering::SeqCst);
    bench.commit(vec![delivery("a", 2, 0)]);
    bench.pass(Duration::from_secs(29)).await;
    assert_eq!(bench.receiver.len(), 1);

    until("both have arrived", async || bench.receiver.len() == 3).await;
    let arrivals = bench.receiver.arrivals();
    let answered_ms = arrivals[0].at_ms + 10;
    for arrival in &arrivals[1..] {
        let waited_ms = arrival.at_ms - answered_ms;
        assert!((30_000..30_500).contains(&waited_ms), "{waited_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_gone_is_disabled() {
    let status = Arc::new(AtomicU16::new(410));
    let current = Arc::clone(&status);
    let mut bench = Bench::start(vec![destination("a"), destination("b")], move |request| {
        let is_a = request.url.contains("//a.");
        Ok(Response::of_status(if is_a { current.load(Ordering::SeqCst) } else { 200 }))
    });
    bench.commit(vec![delivery("a", 1, 0), delivery("a", 2, 100), delivery("b", 3, 100)]);
    bench.until_status(3, Status::Delivered).await;
    bench.pass(Duration::from_secs(600)).await;

    assert_eq!(bench.receiver.len(), 2, "nothing more is sent to it");
    assert_eq!((bench.status(1).await, bench.status(2).await), (Status::Pending, Status::Pending));
    let obstacle = async |bench: &Bench| {
        bench.deliveries.status("a").await.expect("a status").activity.obstacle
    };
    assert_eq!(obstacle(&bench).await.as_deref(), Some("it answered 410 Gone"));
    let gone = bench.gone.recv().await.expect("a destination that is gone");
    assert_eq!((gone.name.as_str(), gone.version), ("a", 1));

    // Its document says so as well, and a change of another one changes nothing.
    status.store(200, Ordering::SeqCst);
    let change = |version: u32, disabled: Option<&str>, others: u32| {
        let disabled = disabled.map(str::to_owned);
        let own = Destination { version, disabled, ..destination("a") };
        let other = Destination { version: others, ..destination("b") };
        bench.destinations.send_replace(vec![Arc::new(own), Arc::new(other)]);
    };
    for (version, disabled, others) in
        [(1, None, 2), (2, Some("it answered 410 Gone"), 2), (3, Some("maintenance"), 2)]
    {
        change(version, disabled, others);
        bench.pass(Duration::from_secs(60)).await;
        assert_eq!(obstacle(&bench).await.as_deref(), disabled.or(Some("it answered 410 Gone")));
        assert_eq!(bench.status(1).await, Status::Pending);
    }

    change(4, None, 2);
    bench.until_status(1, Status::Delivered).await;
    bench.until_status(2, Status::Delivered).await;
    assert_eq!(obstacle(&bench).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_destination_is_sent_nothing_from_the_start_on() {
    let disabled = Destination { disabled: Some("moving".to_owned()), ..destination("a") };
    let bench = Bench::start(vec![disabled], always(200));
    bench.commit(vec![delivery("a", 1, 0)]);
    bench.pass(Duration::from_secs(60)).await;
    assert_eq!(bench.receiver.len(), 0);

    let enabled = Destination { version: 2, ..destination("a") };
    bench.destinations.send_replace(vec![Arc::new(enabled)]);
    bench.until_status(1, Status::Delivered).await;
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_fails_is_probed_and_others_go_on() {
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let bench = Bench::start(vec![destination("a"), destination("b")], move |request| {
        if request.url.contains("//a.") && failing.load(Ordering::SeqCst) {
            let why = "connection refused".to_owned();
            return Err(SendError::Unreachable { host: "a.example".to_owned(), why });
        }
        Ok(Response::of_status(200))
    });
    let to = |number: u32| if number < 200 { "a" } else { "b" };
    bench.commit((0..400).map(|number| delivery(to(number), number, 0)).collect());
    let sent_to = |name: &str| {
        let url = format!("http://{name}.example/hook");
        let arrivals = bench.receiver.arrivals();
        arrivals.into_iter().filter(|arrival| arrival.request.url == url).count()
    };

    until("the healthy one has all", async || sent_to("b") == 200).await;
    bench.pass(Duration::from_secs(2)).await;
    let before = sent_to("a");
    assert!((20..60).contains(&before), "{before}: the breaker opens after 20 failures");
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.breaker, breaker::State::Open);

    // One probe in each pause of 5 s.
    bench.pass(Duration::from_secs(30)).await;
    let probes = sent_to("a") - before;
    assert!((5..=7).contains(&probes), "{probes}");

    fails.store(false, Ordering::SeqCst);
    bench.clock.jump_ms(600_000);
    until("all are delivered", async || {
        let backlog = bench.deliveries.status("a").await.expect("a status").backlog;
        backlog.pending == 0
    })
    .await;
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.breaker, breaker::State::Closed);
}
