use super::*;
use raingauge_ports::contract::queues::{letters, receive, suite};
use raingauge_ports::points::QueueControl;
use std::cell::Cell;

/// The address of a server that speaks the protocol, started by `scripts/services`.
fn endpoint() -> Option<String> {
    let endpoint = std::env::var("RAINGAUGE_TEST_SQS").ok();
    if endpoint.is_none() {
        eprintln!("skipped: RAINGAUGE_TEST_SQS is not set");
    }
    endpoint
}

fn options(endpoint: &str, prefix: &str) -> Options {
    Options {
        region: "elasticmq".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        prefix: format!("rg{}-{prefix}-", std::process::id()),
        access_key_id: Some("x".to_owned()),
        access_key: Some("x".to_owned()),
        session_token: None,
    }
}

#[tokio::test]
async fn the_contract_is_kept() {
    let Some(endpoint) = endpoint() else { return };
    let number = Cell::new(0);
    let fresh = async || {
        number.set(number.get() + 1);
        let options = options(&endpoint, &number.get().to_string());
        RemoteQueues::open(&options).await.unwrap()
    };
    // The time of the server passes by itself, and receives wait for it.
    suite(fresh, async |_| ()).await;
}

#[tokio::test]
async fn queues_are_found_again() {
    let Some(endpoint) = endpoint() else { return };
    let options = options(&endpoint, "again");
    let first = RemoteQueues::open(&options).await.unwrap();
    first.send(QueueName::Award, letters(&["a"]), Duration::ZERO).await.unwrap();

    let second = RemoteQueues::open(&options).await.unwrap();
    let taken = second.receive(QueueName::Award, receive(1, Duration::ZERO)).await.unwrap();
    assert_eq!(taken[0].letter.id, "a");
}

/// A message that was not sent by raingauge is received, and can be buried.
#[tokio::test]
async fn a_foreign_message_is_a_letter_too() {
    let Some(endpoint) = endpoint() else { return };
    let queues = RemoteQueues::open(&options(&endpoint, "foreign")).await.unwrap();
    let url = queues.url(QueueName::Award, Shelf::Waiting);
    calls::send(&queues.client, url, vec!["hello".to_owned()], Duration::ZERO).await.unwrap();

    let long = Duration::from_secs(600);
    let received = queues.receive(QueueName::Award, receive(1, long)).await.unwrap().remove(0);
    assert_eq!(received.letter.body, "hello");
    let reason = "malformed".to_owned();
    let last_error = "no JSON".to_owned();
    queues.bury(QueueName::Award, vec![Burial { received, reason, last_error }]).await.unwrap();
    let dead = queues.peek(QueueName::Award, Shelf::Dead, 10).await.unwrap();
    assert_eq!(dead[0].letter.body, "hello");
    assert_eq!(dead[0].death.as_ref().unwrap().reason, "malformed");
}

/// No answer is an error, and not an empty queue.
#[tokio::test]
async fn a_server_that_is_away_is_an_error() {
    let options = options("http://127.0.0.1:1", "away");
    let error = RemoteQueues::open(&options).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, QueueError::Unavailable(_)), "{error}");
}
