//! A broker of its own, killed and started again while events go in and out.

use crate::support::{Broker, One, SOON, options_at};
use raingauge_core::event::Event;
use raingauge_kafka::{self as kafka, Options};
use raingauge_ports::contract::log::texts;
use raingauge_ports::log::{Batch, Error, EventLog, EventSink};
use raingauge_ports::record::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn batch(round: usize) -> Batch {
    let mut batch = Batch::default();
    for index in 0..20 {
        batch.push(&Event {
            id: format!("{round}-{index}").into(),
            ..Event::of_data("t", 1_000, "{}")
        });
    }
    batch
}

/// Reads on and on, as a worker does, until it has read up to the offset in `until`.
fn follow(log: &kafka::Log, until: &AtomicUsize) -> Result<Vec<String>, Error> {
    let mut ids = Vec::new();
    let mut next = 0;
    while next < until.load(Ordering::Acquire) as u64 {
        for block in log.read(next, 1 << 16)? {
            for entry in block.entries(next) {
                if let Entry::Event(event) = entry?.1 {
                    ids.push(event.id.into_owned());
                }
            }
            next = block.end();
        }
        log.wait_beyond(next, Duration::from_millis(50));
    }

    Ok(ids)
}

/// What was confirmed is there, once, although the broker was killed and batches were sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_loses_and_doubles_nothing() {
    let Some(broker) = tokio::task::block_in_place(|| Broker::start(&["--kafka"])) else {
        return;
    };
    let options = Options {
        delivery_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(2),
        ..options_at(&broker.address, "outage")
    };

    let one = Arc::new(One::new(&Options { request_timeout: SOON, ..options.clone() }).await);
    let until = Arc::new(AtomicUsize::new(usize::MAX));
    let confirmed = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let reading = {
        let one = Arc::clone(&one);
        let until = Arc::clone(&until);
        std::thread::spawn(move || follow(&one.log, &until))
    };

    let failures = Arc::new(Mutex::new(Vec::new()));
    let sending = {
        let one = Arc::clone(&one);
        let confirmed = Arc::clone(&confirmed);
        let stop = Arc::clone(&stop);
        let failures = Arc::clone(&failures);

        tokio::spawn(async move {
            let mut round = 0;
            let mut end = 0;
            while !stop.load(Ordering::Acquire) {
                match one.sink.append(batch(round)).await {
                    Ok(appended) => {
                        (round, end) = (round + 1, appended.ends[0].1);
                        confirmed.store(round, Ordering::Release);
                    }
                    // After a failure the producer sends the whole batch again.
                    Err(error) => failures.lock().unwrap().push(error.to_string()),
                }
            }

            (round, end)
        })
    };

    let wait = |what: &str, condition: &dyn Fn() -> bool| {
        tokio::task::block_in_place(|| crate::support::until(what, condition))
    };
    for _ in 0..2 {
        let before = confirmed.load(Ordering::Acquire);
        wait("some batches are confirmed", &|| confirmed.load(Ordering::Acquire) > before + 100);
        broker.services("kill", &["kafka"]);

        let failed = failures.lock().unwrap().len();
        wait("the producer sees the failure", &|| failures.lock().unwrap().len() > failed);

        let began = Instant::now();
        assert!(
            tokio::task::block_in_place(|| one.log.read(0, 1)).is_ok(),
            "readers are not disturbed"
        );
        assert!(began.elapsed() < SOON, "reading answers in bounded time");
        broker.services("restart", &["kafka"]);

        let back = confirmed.load(Ordering::Acquire);
        wait("the broker is back", &|| confirmed.load(Ordering::Acquire) > back + 100);
    }

    stop.store(true, Ordering::Release);
    let (rounds, end) = sending.await.unwrap();
    until.store(end as usize, Ordering::Release);

    let read =
        tokio::task::block_in_place(|| reading.join().unwrap()).expect("reading never fails");

    let expected: Vec<String> = (0..rounds)
        .flat_map(|round| (0..20).map(move |index| format!("{round}-{index}")))
        .collect();
    assert_eq!(read, expected, "once each, in order");
    assert_eq!(tokio::task::block_in_place(|| texts(&one.topic.log(0).unwrap(), 0)), expected);

    let failures = failures.lock().unwrap();
    assert!(
        failures.iter().all(|failure| failure.contains(&broker.address) && failure.contains("send them again")),
        "{failures:?}"
    );
}
