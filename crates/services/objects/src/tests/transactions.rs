//! MULTI, EXEC and WATCH. The replies are those of Redis 7.

use super::between::Between;
use super::stage::{NOW_S, Stage, heard};

#[tokio::test]
async fn a_transaction_runs_together() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("EXEC", "-ERR EXEC without MULTI"),
            ("DISCARD", "-ERR DISCARD without MULTI"),
            ("MULTI", "+OK"),
            ("MULTI", "-ERR MULTI calls can not be nested"),
            ("WATCH a", "-ERR WATCH inside MULTI is not allowed"),
            ("SET a 1", "+QUEUED"),
            ("INCR a", "+QUEUED"),
            ("PING", "+QUEUED"),
            ("LPUSH a x", "+QUEUED"),
            ("SELECT 1", "+QUEUED"),
            ("SET b 1", "+QUEUED"),
            (
                "EXEC",
                "*6 +OK :2 +DOOR -WRONGTYPE Operation against a key holding the wrong kind of \
                 value +OK +OK",
            ),
            ("GET b", "$1 1"),
            ("MULTI", "+OK"),
            ("SET b 2", "+QUEUED"),
            ("DISCARD", "+OK"),
            ("GET b", "$1 1"),
            ("MULTI", "+OK"),
            ("EXEC", "*0"),
        ])
        .await;
    assert_eq!(stage.objects.stats().submitted, 1);
}

#[tokio::test]
async fn a_refused_command_aborts_the_transaction() {
    let stage = Stage::new();
    let mut client = stage.client();
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    for wrong in ["SET", "NOSUCH", "RAIN.ONCE id SET a 1"] {
        assert_eq!(client.send("MULTI").await, "+OK");
        assert_eq!(client.send("SET a 1").await, "+QUEUED");
        assert!(client.send(wrong).await.starts_with("-ERR"), "{wrong}");
        assert_eq!(client.send("EXEC").await, aborted);
    }
    assert_eq!(client.send("GET a").await, "$-1");
}

#[tokio::test]
async fn watched_keys_must_not_change() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut other = stage.client();
    for change in ["SET a 2", "DEL a", "EXPIRE a 100", "FLUSHALL", "RENAME a b", "SWAPDB 0 1"] {
        client.expect(&[("FLUSHALL", "+OK"), ("SET a 1", "+OK"), ("WATCH a", "+OK")]).await;
        other.send(change).await;
        client.expect(&[("MULTI", "+OK"), ("SET c 1", "+QUEUED"), ("EXEC", "*-1")]).await;
        client.expect(&[("MULTI", "+OK"), ("SET c 1", "+QUEUED"), ("EXEC", "*1 +OK")]).await;
    }

    for no_change in ["GET a", "DEL nothing", "SET b 1", "HDEL h f", "LPUSHX nothing 1"] {
        client.expect(&[("FLUSHALL", "+OK"), ("SET a 1", "+OK"), ("WATCH a h", "+OK")]).await;
        other.send(no_change).await;
        client.expect(&[("MULTI", "+OK"), ("SET c 1", "+QUEUED"), ("EXEC", "*1 +OK")]).await;
    }

    client.expect(&[("WATCH a", "+OK"), ("SET a 2", "+OK"), ("UNWATCH", "+OK")]).await;
    client.expect(&[("MULTI", "+OK"), ("EXEC", "*0")]).await;
    client.expect(&[("SET a 1 EX 5", "+OK"), ("WATCH a", "+OK"), ("MULTI", "+OK")]).await;
    stage.clock.set_s(NOW_S + 5);
    client.expect(&[("EXEC", "*-1")]).await;
}

#[tokio::test]
async fn a_transaction_finds_its_keys_without_memory() {
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    client.expect(&[("SET a 1", "+OK"), ("RPUSH l 1 2 3", ":3"), ("SELECT 1", "+OK")]).await;
    client.expect(&[("SET a 5", "+OK"), ("SELECT 0", "+OK"), ("WATCH a l", "+OK")]).await;
    let replies = client.send_all(&[
        "MULTI",
        "INCR a",
        "LPOP l",
        "SELECT 1",
        "INCR a",
        "SWAPDB 0 1",
        "INCR a",
        "DBSIZE",
        "EXEC",
    ]);
    let queued = "+QUEUED ".repeat(7);
    assert_eq!(replies.await, format!("+OK {queued}*7 :2 $1 1 +OK :6 +OK :3 :2"));
    client
        .expect(&[("GET a", "$1 3"), ("LLEN l", ":2"), ("SELECT 0", "+OK"), ("GET a", "$1 6")])
        .await;
}

#[tokio::test]
async fn events_that_a_transaction_asks_for_begin_within_it() {
    let stage = Stage::new();
    stage.client().send("SET old 1").await;
    let stage = stage.reopened();
    let mut client = stage.client();
    let mut listener = stage.subscriber();
    listener.subscribe(crate::Space::Pattern, "__keyevent@0__:*".into());

    let set = "CONFIG SET notify-keyspace-events En$";
    let commands = ["MULTI", "SET a 1", set, "SET old 2", "SET b 1", "EXEC"];
    let replies = client.send_all(&commands).await;
    assert_eq!(replies, "+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 +OK +DOOR +OK +OK");
    assert_eq!(heard(&listener), ["set old", "new b", "set b"]);
}

#[tokio::test]
async fn a_read_that_is_refused_leaves_the_watch() {
    let stage = Stage::new();
    for number in 0..10 {
        stage.client().send(&format!("SETRANGE k{number} 3999999 x")).await;
    }
    let mut options = stage.objects.options().clone();
    options.resident_bytes = 1 << 20;
    let (stage, _) = stage.behind(options, Between::new(&stage.store));
    let mut client = stage.client();
    let mut other = stage.client();
    let too_much = "EXISTS k0 k1 k2 k3 k4 k5 k6 k7 k8 k9";
    let refusal = "-ERR the keys of the command take more than";

    client.expect(&[("SET a 1", "+OK"), ("WATCH a", "+OK")]).await;
    assert!(client.send(too_much).await.starts_with(refusal));
    other.send("SET a 2").await;
    client.expect(&[("MULTI", "+OK"), ("SET a 3", "+QUEUED"), ("EXEC", "*-1")]).await;

    // An EXEC that is refused ends the transaction, and the watch with it.
    client.expect(&[("WATCH a", "+OK"), ("MULTI", "+OK"), (too_much, "+QUEUED")]).await;
    assert!(client.send("EXEC").await.starts_with(refusal));
    other.send("SET a 4").await;
    client.expect(&[("EXEC", "-ERR EXEC without MULTI"), ("MULTI", "+OK")]).await;
    client.expect(&[("SET a 5", "+QUEUED"), ("EXEC", "*1 +OK"), ("GET a", "$1 5")]).await;
}
