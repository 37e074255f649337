use crate::support::{NOON_S, Service, model, range};
use raingauge_core::bucket::HOUR_S;
use raingauge_reader::{Options, Range};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Asks for some ranges in the background; what comes of each is a count or a code.
fn ask(
    service: &Service,
    ranges: Vec<Range<'static>>,
) -> JoinHandle<Vec<Result<i64, &'static str>>> {
    let reader = Arc::clone(&service.reader);
    tokio::spawn(async move {
        let answers = reader.counts(&ranges).await;
        answers
            .into_iter()
            .map(|answer| {
                answer.map(|answer| answer.count).map_err(|failure| failure.code.as_str())
            })
            .collect()
    })
}

fn hours(key: &'static str, hours: i64) -> Range<'static> {
    range(key, NOON_S - hours * HOUR_S, NOON_S)
}

fn sum(hours: i64) -> Result<i64, &'static str> {
    Ok(model(NOON_S - hours * HOUR_S, NOON_S))
}

#[tokio::test]
async fn what_is_about_to_be_read_is_read_once() {
    let service = Service::with(
        json!({"strategy": "none"}),
        Options { reads_in_flight_max: 2, ..Options::default() },
    );
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let first = ask(&service, vec![hours("c1:x", 1), hours("c1:x", 2)]);
    service.settle().await;

    // Two are read; these wait for their turn.
    let second = ask(&service, vec![hours("c1:x", 3), hours("c1:x", 4), hours("c1:x", 4)]);
    let third = ask(&service, vec![hours("c1:x", 4), hours("c1:x", 3)]);
    service.settle().await;
    service.remote.held.send_replace(false);
    assert_eq!(first.await.unwrap(), [sum(1), sum(2)]);
    assert_eq!(second.await.unwrap(), [sum(3), sum(4), sum(4)]);
    assert_eq!(third.await.unwrap(), [sum(4), sum(3)]);
    assert_eq!(service.remote.reads(), 4);
    assert_eq!(service.outcome("c1:x", NOON_S - HOUR_S, NOON_S).await, sum(1));
    assert_eq!(service.remote.reads(), 5, "nothing is remembered");
}

/// While a read is under way, the writer of another process may count more, and a caller of that
/// moment may have seen it.
#[tokio::test(start_paused = true)]
async fn a_caller_during_a_read_of_the_same_gets_an_answer_that_is_not_older() {
    let service = Service::new(json!({"strategy": "none"}));
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let first = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;
    service.count_one_more("c1:x");

    let second = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;

    let third = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;
    assert_eq!(service.remote.reads(), 1, "both wait for the first, to share one read behind it");
    service.remote.held.send_replace(false);

    let more = sum(1).map(|count| count + 1);
    assert_eq!(
        [first.await.unwrap(), second.await.unwrap(), third.await.unwrap()],
        [[sum(1)], [more], [more]]
    );
    assert_eq!(service.remote.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_holds_up_those_behind_it_for_a_moment_only() {
    let service = Service::new(json!({"strategy": "none"}));
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let first = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;

    let second = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;
    assert_eq!(service.remote.reads(), 1);
    tokio::time::advance(Duration::from_millis(25)).await;
    service.settle().await;
    assert_eq!(service.remote.reads(), 2);
    service.remote.held.send_replace(false);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (vec![sum(1)], vec![sum(1)]));
}

#[tokio::test]
async fn who_stops_waiting_takes_nothing_from_the_others() {
    let service = Service::with(
        json!({"strategy": "none"}),
        Options { reads_in_flight_max: 1, ..Options::default() },
    );
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let reading = ask(&service, vec![hours("c1:x", 9)]);
    service.settle().await;

    let first = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;

    let second = ask(&service, vec![hours("c1:x", 1)]);
    service.settle().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    service.remote.held.send_replace(false);
    assert_eq!((reading.await.unwrap(), second.await.unwrap()), (vec![sum(9)], vec![sum(1)]));
    assert_eq!(service.remote.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_beyond_the_deadline() {
    let options = Options { deadline: Duration::from_millis(70), ..Options::default() };
    let service = Service::with(json!({"strategy": "none"}), options);
    service.fill("c1:x");
    service.remote.held.send_replace(true);
    let began = tokio::time::Instant::now();
    let answers = service.reader.counts(&[hours("c1:x", 1)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().code.as_str(), "deadline_exceeded");
    assert!(answers[0].as_ref().unwrap_err().detail.contains("70 ms"));
    assert_eq!(began.elapsed().as_millis() / 10, 7);
    assert_eq!(ask(&service, vec![hours("c1:x", 2)]).await.unwrap(), [Err("deadline_exceeded")]);
    service.remote.held.send_replace(false);
    assert_eq!(ask(&service, vec![hours("c1:x", 2)]).await.unwrap(), [sum(2)]);
}

#[tokio::test]
async fn too_many_waiting_callers_are_refused() {
    let options = Options { reads_in_flight_max: 2, reads_waiting_max: 3, ..Options::default() };
    let service = Service::with(json!({"strategy": "none"}), options);
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let reading = ask(&service, vec![hours("c1:x", 1), hours("c1:x", 2)]);
    service.settle().await;

    let waiting = ask(&service, vec![hours("c1:x", 3), hours("c1:x", 4), hours("c1:x", 5)]);
    service.settle().await;

    let refused = ask(&service, vec![hours("c1:x", 6), range("nobody", 0, 0), hours("c1:x", 3)]);
    assert_eq!(
        refused_then(refused, &service).await,
        [Err("overloaded"), Err("key_unknown"), sum(3)]
    );
    assert_eq!(reading.await.unwrap(), [sum(1), sum(2)]);
    assert_eq!(waiting.await.unwrap(), [sum(3), sum(4), sum(5)]);
    assert_eq!(ask(&service, vec![hours("c1:x", 6)]).await.unwrap(), [sum(6)]);
}

/// Lets storage answer, once the refused request has been seen.
async fn refused_then(
    request: JoinHandle<Vec<Result<i64, &'static str>>>,
    service: &Service,
) -> Vec<Result<i64, &'static str>> {
    service.settle().await;
    assert_eq!(service.remote.reads(), 2, "what waits and what is refused is not read");
    service.remote.held.send_replace(false);
    request.await.unwrap()
}

/// However many ranges it has: one slow batch is no reason to refuse everybody.
#[tokio::test]
async fn a_batch_that_fails_is_one_failure() {
    let service = Service::new(json!({"strategy": "none"}));
    service.fill("c1:x");
    service.remote.fails.store(true, Ordering::SeqCst);
    let batch = (1..=40).map(|width| hours("c1:x", width)).collect();
    assert_eq!(ask(&service, batch).await.unwrap().len(), 40);
    service.remote.fails.store(false, Ordering::SeqCst);
    assert_eq!(ask(&service, vec![hours("c1:x", 1)]).await.unwrap(), [sum(1)]);
}

#[tokio::test]
async fn a_store_that_fails_is_left_alone_for_a_while() {
    let service = Service::new(json!({"strategy": "none"}));
    service.fill("c1:x");
    service.remote.fails.store(true, Ordering::SeqCst);

    for width in 1..=40 {
        assert_eq!(ask(&service, vec![hours("c1:x", width)]).await.unwrap(), [Err("unavailable")]);
    }
    assert_eq!(service.remote.reads(), 20, "it opens when it has seen enough");

    let failure = service.count("c1:x", NOON_S - HOUR_S, NOON_S).await.unwrap_err();
    assert!(failure.detail.contains("left alone"), "{}", failure.detail);
    service.clock.set_s(NOON_S + 405);
    assert_eq!(ask(&service, vec![hours("c1:x", 1)]).await.unwrap(), [Err("unavailable")]);
    assert_eq!(service.remote.reads(), 21, "the probe failed");
    service.remote.fails.store(false, Ordering::SeqCst);
    assert_eq!(ask(&service, vec![hours("c1:x", 1)]).await.unwrap(), [Err("unavailable")]);
    assert_eq!(service.remote.reads(), 21);
    service.clock.set_s(NOON_S + 410);
    assert_eq!(ask(&service, vec![hours("c1:x", 1)]).await.unwrap(), [sum(1)]);
    assert_eq!(ask(&service, vec![hours("c1:x", 2)]).await.unwrap(), [sum(2)]);
}

/// One batch does not take all places, and its rounds are read at once.
#[tokio::test]
async fn a_large_batch_is_read_in_rounds_at_once() {
    let options = Options { reads_in_flight_max: 130, ..Options::default() };
    let service = Service::with(json!({"strategy": "none"}), options);
    service.fill("c1:x");
    service.remote.held.send_replace(true);

    let times = |number: i64| (NOON_S - (2 + number % 50) * HOUR_S, NOON_S - number / 50 * 900);
    let ranges = (0..200).map(times).map(|(from_s, to_s)| range("c1:x", from_s, to_s)).collect();
    let batch = ask(&service, ranges);
    service.settle().await;
    assert_eq!(service.remote.reads(), 128, "two rounds of 64 have places");
    service.remote.held.send_replace(false);

    let sums = (0..200).map(times).map(|(from_s, to_s)| Ok(model(from_s, to_s)));
    assert_eq!(batch.await.unwrap(), sums.collect::<Vec<_>>());
    assert_eq!(service.remote.reads(), 200);
}
