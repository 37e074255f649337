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

/// A service whose objects take 50,000 bytes at most, with a list `q` of nearly that many, the
/// second entry of which came by RAIN.ONCE: the command is returned.
async fn with_a_full_list() -> (Stage, String) {
    let mut options = Stage::new().objects.options().clone();
    options.limits.object_bytes_max = 50_000;
    let stage = Stage::with(options, |store| store);
    let mut client = stage.client();
    let push = format!("RAIN.ONCE id RPUSH q {}", "x".repeat(9_550));
    client.expect(&[(&format!("RPUSH q {}", "x".repeat(40_000)), ":1"), (&push, ":2")]).await;
    (stage, push)
}

#[tokio::test]
async fn a_retry_is_answered_although_its_object_is_full_or_cannot_be_read() {
    let (stage, push) = with_a_full_list().await;
    stage.client().expect(&[(&push, ":2"), ("LLEN q", ":2")]).await;

    let mut options = stage.objects.options().clone();
    options.limits.object_bytes_max = 20_000;
    let smaller = stage.reopened_with(options.clone());
    assert_eq!(smaller.client().send(&push).await, ":2");
    // Whether it is known already that the list cannot be read, or not yet.
    let smaller = stage.reopened_with(options);
    let mut client = smaller.client();
    let replies = client.send_all(&["LLEN q", &push, "RAIN.ONCE other RPUSH q x"]).await;
    let refusals: Vec<&str> = replies.split(" :2 ").collect();
    assert_eq!(refusals.len(), 2, "{replies}");
    assert!(refusals.iter().all(|line| line.starts_with("-ERR the object at 'q'")), "{replies}");
}

#[tokio::test]
async fn what_shrinks_or_replaces_a_full_object_runs() {
    let (stage, _) = with_a_full_list().await;
    let mut client = stage.client();
    let grown = client.send(&format!("RAIN.ONCE a RPUSH q {}", "x".repeat(1_000))).await;
    assert!(grown.starts_with("-ERR the object at 'q'"), "{grown}");
    client
        .expect(&[
            ("RAIN.ONCE b LREM q 1 absent", ":0"),
            ("RAIN.ONCE c EXPIRE q 100", ":1"),
            ("RAIN.ONCE d SET q small", "+OK"),
            ("GET q", "$5 small"),
            ("RAIN.ONCE e DEL q", ":1"),
        ])
        .await;
    let (stage, _) = with_a_full_list().await;
    let popped = stage.client().send("RAIN.ONCE f LPOP q").await;
    assert!(popped.starts_with("$40000 x"), "{popped}");
}
