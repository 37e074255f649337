//! Replies wait for what they saw.

use super::between::Between;
use super::stage::Stage;
use crate::Segment;
use raingauge_ports::objects::Error;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_reply_waits_for_the_group_that_it_saw() {
    let stage = Stage::new();
    let mut writer = stage.client();
    let mut reader = stage.client();
    writer.send("SET old 1").await;
    stage.store.hold();

    // The reply to a write, and those behind it, wait; those before it do not.
    let (ran, replies) = writer.run(&["GET old", "SET new 1", "GET old"]).await;
    assert_eq!(replies, "$1 1 +OK $1 1");
    assert_eq!(ran.segments, [Segment { end: 7, stamp: 0 }, Segment { end: 19, stamp: 2 }]);
    assert!(!stage.objects.is_durable(2));

    // So does the reply to a read of it by another connection, and to a question about all keys.
    for (command, stamp) in
        [("GET new", 2), ("GET old", 0), ("EXISTS old new", 2), ("DBSIZE", 2), ("KEYS *", 2)]
    {
        let (ran, _) = reader.run(&[command]).await;
        assert_eq!(ran.segments[0].stamp, stamp, "{command}");
    }

    // A key that was deleted, and one that does not exist any more after a flush, are no different.
    let (ran, _) = writer.run(&["DEL new"]).await;
    assert_eq!(ran.segments[0].stamp, 3);
    assert_eq!(reader.run(&["GET new"]).await.0.segments[0].stamp, 3);
    writer.run(&["FLUSHALL"]).await;
    assert_eq!(reader.run(&["GET old"]).await.0.segments[0].stamp, 4);

    let waiting = stage.objects.durable(4);
    tokio::pin!(waiting);
    let passed = tokio::time::timeout(std::time::Duration::from_millis(20), &mut waiting).await;
    assert!(passed.is_err(), "nothing is durable yet");
    stage.store.release();
    assert_eq!(waiting.await, Ok(()));
    assert_eq!(reader.run(&["GET new"]).await.0.segments[0].stamp, 0);
}

#[tokio::test]
async fn a_database_that_was_flushed_or_swapped_is_as_new_as_that() {
    let stage = Stage::new();
    let mut writer = stage.client();
    let mut reader = stage.client();
    writer.send_all(&["SET a 1", "SELECT 1", "SET b 1", "SELECT 0"]).await;
    reader.expect(&[("EXISTS a b", ":1")]).await;
    stage.store.hold();

    let mut seen = async |command: &str| {
        let (ran, reply) = reader.run(&[command]).await;
        (ran.segments[0].stamp, reply)
    };
    writer.send("SWAPDB 0 1").await;
    let swapped = stage.objects.stats().submitted;
    assert_eq!(seen("GET a").await, (swapped, "$-1".to_owned()));
    assert_eq!(seen("GET b").await, (swapped, "$1 1".to_owned()));

    // A key that was asked for in the hold of the flush is absent from then on.
    writer.send_all(&["FLUSHALL", "GET c"]).await;
    assert_eq!(seen("GET c").await, (swapped + 1, "$-1".to_owned()));
    stage.store.release();
    assert_eq!(seen("GET c").await, (0, "$-1".to_owned()));
}

#[tokio::test]
async fn an_evicted_key_keeps_its_stamp() {
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    client.send("SET other 1").await;
    stage.store.hold();
    client.send("SET a 1").await;
    assert_eq!(stage.objects.stats().resident, 0);

    let (ran, reply) = client.run(&["GET a"]).await;
    assert_eq!((ran.segments[0].stamp, reply.as_str()), (2, "$1 1"));
}

#[tokio::test]
async fn a_failed_write_is_not_confirmed() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send("SET a 1").await;
    stage.store.hold();
    let (ran, _) = client.run(&["SET a 2"]).await;
    stage.store.fail("no more disk");
    let failure = stage.objects.durable(ran.segments[0].stamp).await.expect_err("closed");
    assert!(failure.to_string().starts_with("MISCONF "), "{failure}");
    assert!(stage.objects.trouble().is_some());
}

#[tokio::test]
async fn what_the_store_refuses_has_not_happened() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut other = stage.client();
    client.send_all(&["SET a 1", "RPUSH l 1"]).await;
    stage.store.fail("no more disk");

    let replies = client.send_all(&["GET a", "INCR a", "LPUSH l 2", "GET a"]).await;
    let replies: Vec<&str> = replies.split("-MISCONF").collect();
    assert_eq!(replies.len(), 4, "{replies:?}");
    assert_eq!(replies[0], "$1 1 ");
    other.expect(&[("GET a", "$1 1"), ("LRANGE l 0 -1", "*1 $1 1")]).await;
    assert!(client.send("FLUSHALL").await.starts_with("-MISCONF"));
    other.expect(&[("GET a", "$1 1")]).await;

    let replies = client.send_all(&["MULTI", "SET a 2", "SET b 2", "EXEC"]).await;
    assert!(replies.starts_with("+OK +QUEUED +QUEUED -MISCONF"), "{replies}");
    other.expect(&[("GET a", "$1 1"), ("GET b", "$-1")]).await;
}

#[tokio::test]
async fn a_panic_in_a_hold_closes_the_keyspace() {
    let stage = Stage::new();
    let options = stage.objects.options().clone();
    let (stage, between) = stage.behind(options, Between::new(&stage.store));
    let mut client = stage.client();
    let mut waiting = stage.client();
    client.expect(&[("SET a 1", "+OK"), ("MULTI", "+OK"), ("GET a", "+QUEUED")]).await;
    let blocked = tokio::spawn(async move { waiting.send("BLPOP l 0").await });
    while between.reads.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }

    between.panics.store(true, Ordering::SeqCst);
    let mut writer = stage.client();
    let written = tokio::spawn(async move { writer.send_all(&["SET a 2", "SET b 2"]).await });
    assert!(written.await.expect_err("no reply").is_panic());
    between.panics.store(false, Ordering::SeqCst);

    // Reads as well: what is in memory is not what is in the store.
    let closed = "-MISCONF the object store takes no more writes: a defect";
    assert!(blocked.await.expect("no panic").starts_with(closed));
    for command in ["EXEC", "GET a", "SET c 1", "DBSIZE", "PUBLISH a 1", "BLPOP l 0"] {
        let reply = client.send(command).await;
        assert!(reply.starts_with(closed), "{command}: {reply}");
    }
    let replies = client.send_all(&["GET a", "GET a"]).await;
    assert_eq!(replies.matches(closed).count(), 2);
    assert!(client.send("SET").await.starts_with("-ERR wrong number"));
    assert!(stage.objects.trouble().is_some());
    assert!(matches!(stage.objects.sweep().await, Err(Error::Closed(_))));

    // What was confirmed before is there after the next start, and nothing of the rest.
    stage.reopened().client().expect(&[("GET a", "$1 1"), ("EXISTS b c", ":0")]).await;
}

#[tokio::test]
async fn a_message_leaves_with_the_group_before_it() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut listener = stage.subscriber();
    listener.subscribe(crate::Space::Channel, "c".into());
    stage.store.hold();
    let message = |listener: &mut crate::Subscriber| {
        let message = listener.try_next()?;
        Some((message.stamp, String::from_utf8_lossy(&message.payload).into_owned()))
    };

    // What a subscriber hears of a change is as durable as the change.
    client.send_all(&["PUBLISH c first", "SET a 1", "PUBLISH c second"]).await;
    assert_eq!(message(&mut listener), Some((0, "first".to_owned())));
    assert_eq!(message(&mut listener), Some((1, "second".to_owned())));
    client.send_all(&["MULTI", "PUBLISH c third", "SET a 1", "EXEC"]).await;
    assert_eq!(message(&mut listener), Some((2, "third".to_owned())));

    // What it tells of may have changed in an earlier hold, or may have been there all along.
    client.send("PUBLISH c later").await;
    assert_eq!(message(&mut listener), Some((2, "later".to_owned())));
    client.send_all(&["MULTI", "PUBLISH c same", "DEL nothing", "EXEC"]).await;
    assert_eq!(message(&mut listener), Some((2, "same".to_owned())));
    stage.client().send("PUBLISH c other").await;
    assert_eq!(message(&mut listener), Some((0, "other".to_owned())));

    // Of what is refused, nothing is heard; what was answered before it goes out.
    stage.store.fail("no more disk");
    let replies = client.send_all(&["MULTI", "PUBLISH c fourth", "SET a 1", "EXEC"]).await;
    assert!(replies.contains("-MISCONF"), "{replies}");
    let replies = client.send_all(&["PUBLISH c fifth", "SET a 1", "PUBLISH c sixth"]).await;
    assert!(replies.starts_with(":1 -MISCONF"), "{replies}");
    assert_eq!(message(&mut listener), Some((2, "fifth".to_owned())));
    assert_eq!(message(&mut listener), None);
}
