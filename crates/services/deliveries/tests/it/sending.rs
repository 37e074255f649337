//! What is sent, and in which order.

use crate::bench::{Bench, action, always, delivery, destination, until};
use raingauge_campaigns::schedule::Concurrency;
use raingauge_campaigns::sign::{Secret, signature};
use raingauge_deliveries::{Destination, Error, SecretSource};
use raingauge_ports::campaigns::Status;
use raingauge_ports::clock::Clock as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test(start_paused = true)]
async fn each_of_five_thousand_is_delivered_once() {
    let bench = Bench::start(vec![destination("a"), destination("b")], always(200));
    let to = |number: u32| ["a", "b"][number as usize % 2];
    bench.commit((0..5_000).map(|number| delivery(to(number), number, 0)).collect());
    until("all have arrived", async || bench.receiver.len() >= 5_000).await;
    bench.deliveries.stop().await;

    let ids: BTreeSet<String> = bench.receiver.ids().into_iter().collect();
    assert_eq!((ids.len(), bench.receiver.len()), (5_000, 5_000));
    for number in 0..5_000 {
        let record = bench.record(number).await;
        assert_eq!((record.status, record.tries), (Status::Delivered, 1));
    }
    assert!(bench.receiver.most_at_once() > 16, "destinations do not wait for each other");
}

#[tokio::test(start_paused = true)]
async fn requests_begin_in_the_order_in_which_they_are_due() {
    let one = Concurrency { min: 1, max: 1 };
    let bench =
        Bench::start(vec![Destination { concurrency: one, ..destination("a") }], always(200));
    // Numbers lie in the opposite order.
    bench.commit((0..100).map(|number| delivery("a", number, -i64::from(number))).collect());
    bench.commit((100..110).map(|number| delivery("a", number, i64::from(number) * 10)).collect());
    until("all have arrived", async || bench.receiver.len() == 110).await;

    let expected = (0..100).rev().chain(100..110).map(|number| action(number).to_string());
    assert_eq!(bench.receiver.ids(), expected.collect::<Vec<_>>());
    for arrival in &bench.receiver.arrivals()[100..] {
        let due_ms = delivery("a", 0, 0).due_ms;
        assert!(arrival.at_ms >= due_ms + 1_000, "none before it is due");
    }
    assert_eq!(bench.receiver.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_are_signed_with_the_secrets_of_the_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    std::fs::write(&path, OLD).expect("written");
    let secret = Some(SecretSource::File(path.clone()));
    let bench = Bench::start(vec![Destination { secret, ..destination("a") }], always(200));

    bench.commit(vec![delivery("a", 1, 0)]);
    bench.until_status(1, Status::Delivered).await;
    std::fs::write(&path, format!("{NEW}\n{OLD}\n")).expect("written");
    bench.pass(Duration::from_secs(6)).await;
    bench.commit(vec![delivery("a", 2, 0)]);
    bench.until_status(2, Status::Delivered).await;

    let secret = |text| Secret::parse(text).expect("a secret");
    let secrets = [vec![secret(OLD)], vec![secret(NEW), secret(OLD)]];
    for (arrival, secrets) in bench.receiver.arrivals().iter().zip(secrets) {
        let header = |name| arrival.request.header(name).expect("a header");
        let sent_s: i64 = header("webhook-timestamp").parse().expect("a number");
        assert_eq!(sent_s, arrival.at_ms / 1_000);
        let expected = signature(&secrets, arrival.id(), sent_s, &arrival.request.body);
        assert_eq!(header("webhook-signature"), expected);
        assert_eq!(header("idempotency-key"), arrival.id());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_the_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let secret = Some(SecretSource::File(path.clone()));
    let bench = Bench::start(vec![Destination { secret, ..destination("a") }], always(200));
    bench.commit(vec![delivery("a", 1, 0)]);
    bench.pass(Duration::from_secs(60)).await;

    assert_eq!(bench.receiver.len(), 0);
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.backlog.pending, 1);
    let obstacle = status.activity.obstacle.expect("an obstacle");
    assert!(obstacle.contains("its secret cannot be read"), "{obstacle}");
    let probe = bench.deliveries.probe("a").await.expect("a destination");
    assert_eq!((probe.status, probe.is_accepted), (None, false));

    std::fs::write(&path, OLD).expect("written");
    bench.until_status(1, Status::Delivered).await;
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.obstacle, None);
}

#[tokio::test(start_paused = true)]
async fn destinations_come_and_go() {
    let bench = Bench::start(Vec::new(), always(200));
    bench.commit(vec![delivery("a", 1, 0)]);
    assert!(matches!(bench.deliveries.status("a").await, Err(Error::DestinationUnknown(_))));
    bench.pass(Duration::from_secs(1)).await;
    assert_eq!(bench.status(1).await, Status::Pending);

    bench.destinations.send_replace(vec![Arc::new(destination("a"))]);
    bench.until_status(1, Status::Delivered).await;
    bench.destinations.send_replace(Vec::new());
    bench.pass(Duration::from_secs(1)).await;
    bench.commit(vec![delivery("a", 2, 0)]);
    bench.pass(Duration::from_secs(1)).await;
    assert_eq!(bench.status(2).await, Status::Pending);

    // It comes back at another address.
    let elsewhere = Destination { version: 2, ..destination("b") };
    let elsewhere = Destination { name: "a".to_owned(), ..elsewhere };
    bench.destinations.send_replace(vec![Arc::new(elsewhere)]);
    bench.until_status(2, Status::Delivered).await;
    let last = bench.receiver.arrivals().pop().expect("an arrival");
    assert_eq!(last.request.url, "http://b.example/hook");
    let status = bench.deliveries.status("a").await.expect("a status");
    assert_eq!(status.activity.version, 2);
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_what_is_under_way() {
    let bench = Bench::start(vec![destination("a")], always(200));
    bench.commit((0..50).map(|number| delivery("a", number, 0)).collect());
    until("some are under way", async || bench.receiver.len() > 3).await;
    bench.deliveries.stop().await;

    let sent = bench.receiver.ids();
    assert!(sent.len() < 50);
    for number in 0..50 {
        let is_sent = sent.contains(&action(number).to_string());
        let expected = if is_sent { Status::Delivered } else { Status::Pending };
        assert_eq!(bench.status(number).await, expected, "{number}");
    }
    // What was taken and not sent may be changed again.
    let all = raingauge_ports::campaigns::Selection::All { destination: None, campaign: None };
    let now_ms = bench.clock.now_ms();
    let cancelled = raingauge_ports::campaigns::Outbox::cancel(&*bench.ledger, all, now_ms).await;
    assert_eq!(cancelled, Ok(50 - sent.len()));
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_signed_and_is_no_delivery() {
    let bench = Bench::start(vec![destination("a")], always(404));
    let probe = bench.deliveries.probe("a").await.expect("a destination");
    assert_eq!(
        (probe.status, probe.is_accepted, probe.note.as_str()),
        (Some(404), false, "404 Not Found")
    );
    assert_eq!(probe.took, bench.receiver.latency);
    let arrivals = bench.receiver.arrivals();
    assert_eq!(arrivals[0].id(), probe.id);
    let body = String::from_utf8(arrivals[0].request.body.clone()).expect("a text");
    assert!(body.contains(r#""type":"raingauge.probe""#), "{body}");

    assert!(matches!(bench.deliveries.probe("b").await, Err(Error::DestinationUnknown(_))));
    assert!(matches!(bench.deliveries.probe("log").await, Err(Error::NotHttp(_))));
}
