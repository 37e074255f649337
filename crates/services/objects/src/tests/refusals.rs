//! What is answered while the store refuses groups.

use super::between::Between;
use super::stage::{NOW_S, Stage};
use crate::limits::{BUSY_ROUNDS_MAX, HOLD_COMMANDS_MAX};
use crate::{Space, Subscriber};
use raingauge_ports::objects::Error;
use std::sync::atomic::Ordering;

const FULL: Error = Error::Full { free_bytes: 0, reserve_bytes: 1 };
const BUSY: Error = Error::Busy { pending_bytes: 1 };

fn heard(listener: &mut Subscriber) -> Vec<String> {
    let messages = std::iter::from_fn(|| listener.try_next());
    messages.map(|message| String::from_utf8_lossy(&message.payload).into_owned()).collect()
}

#[tokio::test]
async fn what_expired_is_gone_though_the_store_cannot_note_it() {
    for (refusal, word) in [(FULL, "-MISCONF"), (BUSY, "-BUSY")] {
        let stage = Stage::new();
        stage.client().send_all(&["SET a 1 EX 5", "SET kept 1"]).await;
        let options = stage.objects.options().clone();
        let (stage, between) = stage.behind(options, Between::new(&stage.store));
        let mut listener = stage.subscriber();
        listener.subscribe(Space::Channel, "__keyevent@0__:expired".into());
        listener.subscribe(Space::Channel, "news".into());
        stage.objects.set_notify_flags("Ex").expect("flags");

        // It expires in memory first, and then whenever it is loaded again.
        let mut client = stage.client();
        client.expect(&[("GET a", "$1 1")]).await;
        stage.clock.set_s(NOW_S + 5);
        *between.refusal.lock() = Some(refusal);
        client
            .expect(&[
                ("GET a", "$-1"),
                ("GET a", "$-1"),
                ("MGET a kept", "*2 $-1 $1 1"),
                ("DEL a", ":0"),
                ("WATCH a", "+OK"),
                ("MULTI", "+OK"),
                ("TTL a", "+QUEUED"),
                ("EXEC", "*1 :-2"),
            ])
            .await;

        // Messages of what stays answered go out; that of the expiry waits for one that is noted.
        let replies = client.send_all(&["GET a", "PUBLISH news x", "SET a 2", "GET kept"]).await;
        assert!(replies.starts_with(&format!("$-1 :1 {word} ")), "{replies}");
        assert_eq!(heard(&mut listener), ["x"]);
        assert_eq!(stage.objects.stats().expired, 0);

        *between.refusal.lock() = Some(Error::Closed("a test".to_owned()));
        assert!(client.send("GET a").await.starts_with("-MISCONF"));
        *between.refusal.lock() = None;
        client.expect(&[("GET a", "$-1"), ("GET a", "$-1"), ("DBSIZE", ":1")]).await;
        assert_eq!(heard(&mut listener), ["a"]);
        assert_eq!(stage.objects.stats().expired, 1);
    }
}

#[tokio::test]
async fn what_the_disk_has_no_time_for_waits_and_runs_again() {
    for waits in [1, BUSY_ROUNDS_MAX, BUSY_ROUNDS_MAX + 1] {
        let stage = Stage::new();
        stage.client().send_all(&["SET a 1", "SET b 1"]).await;
        let options = stage.objects.options().clone();
        let (stage, between) = stage.behind(options, Between::new(&stage.store));
        *between.refusal.lock() = Some(BUSY);
        between.refused_waits.store(waits, Ordering::SeqCst);

        let mut client = stage.client();
        let mut listener = stage.subscriber();
        listener.subscribe(Space::Channel, "news".into());
        let commands = ["GET a", "PUBLISH news x", "INCR a", "MULTI", "INCR a", "INCR b", "EXEC"];
        let replies = client.send_all(&commands).await;
        if waits <= BUSY_ROUNDS_MAX {
            assert_eq!(replies, "$1 1 :1 :2 +OK +QUEUED +QUEUED *2 :3 :2");
        } else {
            assert!(replies.starts_with("$1 1 :1 -BUSY "), "{replies}");
            client.expect(&[("GET a", "$1 1"), ("GET b", "$1 1")]).await;
        }
        assert_eq!(heard(&mut listener), ["x"]);
    }
}

#[tokio::test]
async fn a_full_disk_refuses_only_what_adds() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send_all(&["SET a 1", "SET c 1", "SET d 1", "SET e 1"]).await;
    let mut listener = stage.subscriber();
    listener.subscribe(Space::Channel, "news".into());
    stage.store.set_full(true);

    let pipeline =
        ["GET a", "SET b 1", "DEL a", "SELECT 1", "SET f 1", "PUBLISH news x", "SELECT 0"];
    let reads = ["EXISTS a b", "INCR c", "GET c", "MGET d missing"];
    let replies = client.send_all(&[&pipeline[..], &reads[..]].concat()).await;
    let refused = client.send("SET b 1").await;
    assert!(refused.starts_with("-MISCONF "), "{refused}");
    let expected = format!("$1 1 {refused} :1 +OK {refused} :1 +OK :0 {refused} $1 1 *2 $1 1 $-1");
    assert_eq!(replies, expected);
    assert_eq!(heard(&mut listener), ["x"]);

    // A transaction is refused by itself.
    let replies = client
        .send_all(&["MULTI", "DEL d", "SET b 1", "EXEC", "GET d", "MULTI", "DEL d", "EXEC"])
        .await;
    assert_eq!(replies, format!("+OK +QUEUED +QUEUED {refused} $1 1 +OK +QUEUED *1 :1"));

    // Once there is room, commands share groups again.
    stage.store.set_full(false);
    client.expect(&[("SET b 1", "+OK")]).await;
    let groups = stage.objects.stats().groups;
    assert_eq!(client.send_all(&["SET b 2", "SET c 2", "DEL e"]).await, "+OK +OK :1");
    assert_eq!(stage.objects.stats().groups, groups + 1);
}

#[tokio::test]
async fn a_refused_change_leaves_what_was_before_as_new_as_it_was() {
    let stage = Stage::new();
    let options = stage.objects.options().clone();
    let (stage, between) = stage.behind(options, Between::new(&stage.store));
    let mut client = stage.client();
    stage.store.hold();
    client.expect(&[("SET a 1", "+OK")]).await;

    *between.refusal.lock() = Some(BUSY);
    for command in ["APPEND a 2", "FLUSHALL"] {
        assert!(client.send(command).await.starts_with("-BUSY"), "{command}");
        let (ran, reply) = client.run(&["GET a"]).await;
        assert_eq!((ran.segments[0].stamp, reply.as_str()), (1, "$1 1"), "{command}");
    }
}

#[tokio::test]
async fn a_first_refusal_spares_what_only_reads_or_removes() {
    let refused = {
        let stage = Stage::new();
        stage.store.set_full(true);
        stage.client().send("SET b 1").await
    };
    assert!(refused.starts_with("-MISCONF "), "{refused}");

    // Each pipeline is the first that the full disk refuses, after what stands before it.
    let cases: &[(&[&str], &[&str], String)] = &[
        (
            &[],
            &["GET a", "MULTI", "DEL d", "EXEC", "SET b 1", "MULTI", "SET b 1", "EXEC", "GET a"],
            format!("$1 1 +OK +QUEUED *1 :1 {refused} +OK +QUEUED {refused} $1 1"),
        ),
        (
            &["MULTI", "SET b 1"],
            &["EXEC", "DEL d", "MULTI", "GET d", "EXEC"],
            format!("{refused} :1 +OK +QUEUED *1 $-1"),
        ),
        (
            &["WATCH a"],
            &["SET b 1", "DEL d", "MULTI", "GET a", "EXEC", "GET d", "DEL e"],
            format!("{refused} {refused} {refused} {refused} {refused} $1 1 :1"),
        ),
        (
            &["WATCH a"],
            &["MULTI", "SET b 1", "EXEC", "DEL d", "MULTI", "GET d", "EXEC"],
            format!("+OK +QUEUED {refused} :1 +OK +QUEUED *1 $-1"),
        ),
        (
            &["WATCH a"],
            &["SET b 1", "DEL d", "WATCH e", "MULTI", "GET d"],
            format!("{refused} :1 +OK +OK +QUEUED"),
        ),
        (
            &[],
            &["SET b 1", "WATCH a", "DEL d", "MULTI", "GET a", "EXEC"],
            format!("{refused} +OK :1 +OK +QUEUED *1 $1 1"),
        ),
    ];
    for (before, pipeline, expected) in cases {
        let stage = Stage::new();
        let mut client = stage.client();
        client.send_all(&["SET a 1", "SET d 1", "SET e 1"]).await;
        client.send_all(before).await;
        stage.store.set_full(true);
        assert_eq!(client.send_all(pipeline).await, *expected, "{before:?} {pipeline:?}");
    }
}

#[tokio::test]
async fn what_runs_again_is_counted_once() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send_all(&["SET a 1", "SET d 1"]).await;
    stage.store.set_full(true);
    let before = stage.objects.stats();
    client.send_all(&["GET a", "SET b 1", "GET a", "GET missing", "DEL d", "GET a"]).await;
    let stats = stage.objects.stats();
    assert_eq!(stats.hits - before.hits, 3);
    assert_eq!(stats.misses - before.misses, 1);
    assert_eq!(stats.commands - before.commands, 5);
}

#[tokio::test]
async fn a_key_that_is_too_long_is_refused_alone() {
    let stage = Stage::new();
    let long = format!("SET {} v", "k".repeat(40_000));
    let refused = "-ERR the key is longer than 32768 bytes";
    for before in ["FLUSHDB", "SET b 1"] {
        let replies = stage.client().send_all(&[before, "SET a 1", &long, "GET a"]).await;
        assert_eq!(replies, format!("+OK +OK {refused} $1 1"), "{before}");
    }
    stage.reopened().client().expect(&[("GET a", "$1 1"), ("DBSIZE", ":2")]).await;
}

#[tokio::test]
async fn an_object_that_could_not_be_read_may_be_replaced_or_removed() {
    let large = format!("SET large {}", "x".repeat(100_000));
    // The next hold of the lock begins after enough commands, or after enough in memory.
    let many = vec!["EXISTS a"; HOLD_COMMANDS_MAX];
    for (removal, reply) in [("FLUSHALL", "+OK"), ("DEL large", ":1"), ("SET large x", "+OK")] {
        let stage = Stage::new();
        stage.client().expect(&[(&large, "+OK")]).await;
        let mut options = stage.objects.options().clone();
        options.limits.object_bytes_max = 5_000;
        options.resident_bytes = 0;
        let small = stage.reopened_with(options);
        let commands = [&["GET large", removal][..], &many, &["GET large"]].concat();
        let replies = small.client().send_all(&commands).await;

        let refusal = "-ERR the object at 'large'";
        assert!(replies.starts_with(refusal), "{removal}: {replies}");
        let last = if removal.starts_with("SET") { "$1 x" } else { "$-1" };
        let expected = format!("{reply}{} {last}", " :0".repeat(HOLD_COMMANDS_MAX));
        assert!(replies.ends_with(&expected), "{removal}: {replies}");
    }
}
