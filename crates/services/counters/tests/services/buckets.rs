//! Requests to set buckets that have a key, and their repetitions.

use crate::support::{NOON_S, Services, counter, event_x};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::limits::{KEYED_ANSWER_LEN_MAX, REQUESTS_REMEMBERED_MAX};
use raingauge_core::plan::Plan;
use raingauge_counters::{Error, Outcome, RequestKey};
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use raingauge_writer::control::Bucket;
use serde_json::json;
use std::sync::Arc;

const HOUR: Granularity = Granularity::Hour;

fn hour(time: i64, count: i64) -> Result<Bucket, &'static str> {
    Ok(Bucket { key: "c1:x".to_owned(), granularity: HOUR, time, count })
}

async fn with_counter() -> Services {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services
}

impl Services {
    async fn set_with_key(
        &self,
        key: &str,
        buckets: &[Result<Bucket, &'static str>],
    ) -> Result<Outcome, Error> {
        self.counters.set_buckets(buckets.to_vec(), Some(RequestKey::new("me", key))).await
    }

    async fn noon(&self) -> i128 {
        self.count("c1:x", NOON_S, NOON_S + 3_600).await
    }

    /// The control entry that the log took last.
    fn last_control(&self) -> Vec<u8> {
        let end = self.log.end();
        let blocks = self.log.read(end - 1, usize::MAX).unwrap();
        let last = blocks.iter().flat_map(|block| block.entries(end - 1)).last();
        let Some(Ok((_, Entry::Control(payload)))) = last else {
            panic!("the last entry is {last:?}")
        };
        payload.to_vec()
    }

    /// Writes an entry once more, as another process does which does not know that it is there.
    async fn repeat_in_log(&self, payload: Vec<u8>) {
        let end = self.log.append_control(0, payload).await.unwrap();
        self.published.wait_applied(&[(0, end)]).await.unwrap();
    }
}

#[tokio::test]
async fn an_event_between_a_request_and_its_repetition_stays() {
    let services = with_counter().await;
    let first = services.set_with_key("a", &[hour(NOON_S, 18)]).await.unwrap();
    assert_eq!((first.answer.accepted, first.set.len(), first.is_repetition), (1, 1, false));
    services.send(&[event_x("e", NOON_S)]).await;

    let end = services.log.end();
    let again = services.set_with_key("a", &[hour(NOON_S, 18)]).await.unwrap();
    assert_eq!((again.answer, again.set, again.is_repetition), (first.answer, vec![], true));
    assert_eq!((services.noon().await, services.log.end()), (19, end));

    let reused = services.set_with_key("a", &[hour(NOON_S, 20)]).await;
    assert!(matches!(reused, Err(Error::KeyReused)), "{reused:?}");

    let of_another = RequestKey::new("another", "a");
    services
        .counters
        .set_buckets(vec![hour(NOON_S, 20)], Some(of_another))
        .await
        .expect("keys of others are others");
    assert_eq!(services.noon().await, 20);
    services.send(&[event_x("f", NOON_S)]).await;
    services.set([hour(NOON_S, 20).unwrap()]).await;
    assert_eq!(services.noon().await, 20, "without a key a request sets what it says");
}

#[tokio::test]
async fn a_repetition_is_answered_what_the_request_was_answered() {
    let services = with_counter().await;
    let asked = [Err("no key"), hour(NOON_S + 7_200, 1), hour(NOON_S, 3)];
    let first = services.set_with_key("a", &asked).await.unwrap();
    let codes: Vec<&str> =
        first.answer.rejected.iter().map(|refused| refused.code.as_str()).collect();

    assert_eq!((first.answer.accepted, codes), (1, vec!["bucket_malformed", "time_in_future"]));

    // By now the bucket that was refused would be taken.
    services.clock.set_s(NOON_S + DAY_S / 4);
    assert_eq!(services.set_with_key("a", &asked).await.unwrap().answer, first.answer);
    assert_eq!(services.count("c1:x", NOON_S, NOON_S + 10_800).await, 3);

    // A request of which nothing was set is remembered too.
    let none = services.set_with_key("b", &[Err("no key")]).await.unwrap();
    assert_eq!((none.answer.accepted, none.answer.rejected.len()), (0, 1));
    assert!(services.set_with_key("b", &[Err("no key")]).await.unwrap().is_repetition);

    // An answer that cannot be remembered is not given, and the key stays free.
    let many = vec![Err("no key"); KEYED_ANSWER_LEN_MAX / 32];
    assert!(matches!(services.set_with_key("c", &many).await, Err(Error::TooManyRefused)));
    assert!(!services.set_with_key("c", &[hour(NOON_S, 4)]).await.unwrap().is_repetition);
}

#[tokio::test]
async fn a_repetition_in_the_log_is_obeyed_by_nobody() {
    let services = with_counter().await;
    services.set_with_key("a", &[hour(NOON_S, 18)]).await.unwrap();

    let entry = services.last_control();
    services.send(&[event_x("e", NOON_S)]).await;
    services.repeat_in_log(entry.clone()).await;
    assert_eq!(services.noon().await, 19);
    services.backfill(1).await;
    assert_eq!(services.noon().await, 19, "a backfill does what was done");

    let range = Plan::new(NOON_S, NOON_S + 3_600).unwrap();
    let recount = services
        .recounter
        .recount("c1:x", range, &Stop::default())
        .await
        .unwrap()
        .expect("a counter");

    assert_eq!((recount.equal, recount.recounted), (true, 19), "{recount:?}");

    // Who starts again with the checkpoint remembers both.
    services.writer.stop();
    let log = Arc::clone(&services.log);
    let store = Arc::clone(&services.store);
    let again =
        Services::start_on(log, store, Arc::clone(&services.catalog), Arc::clone(&services.clock));

    assert!(again.set_with_key("a", &[hour(NOON_S, 18)]).await.unwrap().is_repetition);
    again.repeat_in_log(entry).await;
    again.backfill(1).await;
    assert_eq!(again.noon().await, 19);
}

#[tokio::test]
async fn of_requests_at_the_same_time_one_is_obeyed() {
    let services = Arc::new(with_counter().await);
    let before = services.log.end();
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let services = Arc::clone(&services);
            tokio::spawn(
                async move { services.set_with_key("a", &[hour(NOON_S, 18)]).await.unwrap() },
            )
        })
        .collect();

    let mut obeyed = 0;
    for request in requests {
        let outcome = request.await.unwrap();
        assert_eq!(outcome.answer.accepted, 1);
        obeyed += usize::from(!outcome.is_repetition);
    }

    assert_eq!((obeyed, services.log.end() - before), (1, 1));
}

/// What a documented number of later requests has pushed out is a new request.
#[tokio::test]
async fn a_request_is_forgotten_after_many_others() {
    let services = with_counter().await;
    services.set_with_key("first", &[hour(NOON_S, 1)]).await.unwrap();
    for key in 1..REQUESTS_REMEMBERED_MAX {
        services.set_with_key(&key.to_string(), &[]).await.unwrap();
    }
    assert!(services.set_with_key("first", &[hour(NOON_S, 1)]).await.unwrap().is_repetition);
    services.set_with_key("one more", &[]).await.unwrap();
    assert!(!services.set_with_key("first", &[hour(NOON_S, 1)]).await.unwrap().is_repetition);
}
