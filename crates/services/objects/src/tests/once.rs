//! RAIN.ONCE.

use super::stage::{NOW_S, Stage};
use crate::limits::SWEEP_LEN;
use raingauge_resp::Protocol;

#[tokio::test]
async fn a_retried_command_counts_once() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("RAIN.ONCE id-1 INCRBY a 5", ":5"),
            ("RAIN.ONCE id-1 INCRBY a 5", ":5"),
            ("RAIN.ONCE id-1 incrby a 5", ":5"),
            ("GET a", "$1 5"),
            ("RAIN.ONCE id-2 INCRBY a 5", ":10"),
            ("FLUSHALL", "+OK"),
            ("DBSIZE", ":0"),
            ("RAIN.ONCE id-2 INCRBY a 5", ":10"),
            ("GET a", "$-1"),
        ])
        .await;
    let other = client.send("RAIN.ONCE id-2 INCRBY a 6").await;
    assert!(other.starts_with("-ERR RAIN.ONCE has run another command"), "{other}");

    let mut client = stage.reopened().client();
    assert_eq!(client.send("RAIN.ONCE id-2 INCRBY a 5").await, ":10");
    stage.clock.set_s(NOW_S + 24 * 3_600);
    assert_eq!(client.send("RAIN.ONCE id-2 INCRBY a 5").await, ":5");
}

#[tokio::test]
async fn a_command_that_failed_may_be_sent_again() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send("RPUSH a 1").await;
    let refused = client.send("RAIN.ONCE id INCR a").await;
    assert!(refused.starts_with("-WRONGTYPE"), "{refused}");
    client.expect(&[("DEL a", ":1"), ("RAIN.ONCE id INCR a", ":1"), ("GET a", "$1 1")]).await;
}

#[tokio::test]
async fn what_cannot_be_repeated_is_refused() {
    let stage = Stage::new();
    let mut client = stage.client();
    for command in ["GET a", "PING", "MULTI", "FLUSHALL", "SUBSCRIBE a", "RAIN.ONCE b SET a 1"] {
        let reply = client.send(&format!("RAIN.ONCE id {command}")).await;
        assert!(reply.starts_with("-ERR RAIN.ONCE"), "{command}: {reply}");
    }
    client
        .expect(&[("RAIN.ONCE id SET", "-ERR wrong number of arguments for 'set' command")])
        .await;
}

#[tokio::test]
async fn the_reply_is_readable_in_another_protocol() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.protocol = Protocol::Three;
    assert_eq!(client.send("RAIN.ONCE id ZADD z INCR 1.5 m").await, ",1.5");
    client.protocol = Protocol::Two;
    assert_eq!(client.send("RAIN.ONCE id ZADD z INCR 1.5 m").await, "$3 1.5");
}

#[tokio::test]
async fn clients_hear_nothing_of_the_ids() {
    let stage = Stage::new();
    stage.objects.set_notify_flags("KEAmn").expect("flags");
    let mut listener = stage.subscriber();
    listener.subscribe(crate::Space::Pattern, "*".into());
    let mut client = stage.client();
    for number in 0..SWEEP_LEN + 1 {
        client.send(&format!("RAIN.ONCE id-{number} INCR a")).await;
    }
    stage.clock.set_s(NOW_S + 24 * 3_600);
    assert_eq!(client.send("RAIN.ONCE id-0 INCR a").await, format!(":{}", SWEEP_LEN + 2));
    assert_eq!(stage.objects.sweep().await, Ok(SWEEP_LEN as u64));

    let messages = std::iter::from_fn(|| listener.try_next());
    let channels = messages.map(|message| String::from_utf8_lossy(&message.channel).into_owned());
    let (of_clients, others): (Vec<_>, Vec<_>) = channels.partition(|name| name.contains("@0__:"));
    assert!(!of_clients.is_empty() && others.is_empty(), "{others:?}");
    assert_eq!(stage.objects.stats().expired, 0);
}
