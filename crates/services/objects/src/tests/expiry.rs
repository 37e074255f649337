//! Keys whose time is over.

use super::between::Between;
use super::stage::{NOW_S, Stage};
use crate::Objects;
use crate::limits::SWEEP_LEN;
use bytes::Bytes;
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::objects::{Effect, Group, Key, ObjectControl, ObjectStore, Old};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn times_are_set_compared_and_removed() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("TTL a", ":-2"),
            ("EXPIRE a 10", ":0"),
            ("SET a 1", "+OK"),
            ("TTL a", ":-1"),
            ("EXPIRE a 10 XX", ":0"),
            ("EXPIRE a 10 GT", ":0"),
            ("EXPIRE a 10 LT", ":1"),
            ("EXPIRE a 20 NX", ":0"),
            ("EXPIRE a 5 GT", ":0"),
            ("PEXPIRE a 20500 GT", ":1"),
            ("TTL a", ":21"),
            ("PTTL a", ":20500"),
            ("EXPIRETIME a", ":1800000021"),
            ("PEXPIRETIME a", ":1800000020500"),
            ("PERSIST a", ":1"),
            ("PERSIST a", ":0"),
            ("EXPIRE a 10 FOO", "-ERR Unsupported option FOO"),
            (
                "EXPIRE a 10 NX GT",
                "-ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            ("EXPIRE a 10 GT LT", "-ERR GT and LT options at the same time are not compatible"),
            ("EXPIRE a 9999999999999999", "-ERR invalid expire time in 'expire' command"),
            ("EXPIRE a x", "-ERR value is not an integer or out of range"),
            ("EXPIREAT a 1", ":1"),
            ("EXISTS a", ":0"),
        ])
        .await;
}

#[tokio::test]
async fn keys_that_expire_are_counted() {
    let stage = Stage::new();
    let mut client = stage.client();
    let fields: Vec<String> = (0..200).map(|number| format!("f{number} v")).collect();
    let wide = format!("HSET wide {}", fields.join(" "));
    for (command, expiring) in [
        ("SET a 1 EX 50", [1, 0]),
        ("SET b 1", [1, 0]),
        (wide.as_str(), [1, 0]),
        ("EXPIRE wide 50", [2, 0]),
        ("HSET wide other 1", [2, 0]),
        ("APPEND a 2", [2, 0]),
        ("PERSIST a", [1, 0]),
        ("GETEX a EX 50", [2, 0]),
        ("SET a 2 KEEPTTL", [2, 0]),
        ("SET a 3", [1, 0]),
        ("RENAME wide b", [1, 0]),
        ("COPY b c", [2, 0]),
        ("COPY b c DB 1", [2, 1]),
        ("MOVE c 2", [1, 1]),
        ("SWAPDB 0 1", [1, 1]),
        ("SWAPDB 0 1", [1, 1]),
        ("DEL b", [0, 1]),
        ("MSET a 1 b 1", [0, 1]),
        ("EXPIRE b 5", [1, 1]),
        ("FLUSHDB", [0, 1]),
        ("SET d 1 EX 5", [1, 1]),
    ] {
        client.send(command).await;
        for (database, expiring) in (0..).zip(expiring) {
            let count = stage.store.count(database).await.expect("a count");
            assert_eq!(count.expiring, expiring, "{command} in database {database}");
        }
    }

    // What has expired is counted until it is removed.
    let stage = stage.reopened();
    stage.clock.set_s(NOW_S + 50);
    let counted = async || {
        let counts = stage.objects.keyspace().await.expect("counts").into_iter();
        counts.map(|(database, count)| (database, count.keys, count.expiring)).collect::<Vec<_>>()
    };
    assert_eq!(counted().await, [(0, 1, 1), (1, 1, 1), (2, 1, 1)]);
    stage.client().expect(&[("EXISTS d", ":0")]).await;
    assert_eq!(counted().await, [(1, 1, 1), (2, 1, 1)]);
    assert_eq!(stage.objects.sweep().await, Ok(2));
    assert_eq!(counted().await, []);
}

#[tokio::test]
async fn a_key_is_gone_at_its_millisecond() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.expect(&[("SET a 1 EX 5", "+OK"), ("RPUSH l 1", ":1"), ("PEXPIRE l 5000", ":1")]).await;
    stage.clock.set_s(NOW_S + 4);
    client.expect(&[("GET a", "$1 1"), ("LLEN l", ":1")]).await;
    stage.clock.set_s(NOW_S + 5);
    client.expect(&[("GET a", "$-1"), ("RPUSH l 2", ":1"), ("TTL l", ":-1")]).await;

    // Of the keys that nobody read, those that were never in this process are gone as well.
    client.expect(&[("SET b 1 EX 5", "+OK"), ("SADD s 1", ":1"), ("EXPIRE s 5", ":1")]).await;
    let reopened = stage.reopened();
    stage.clock.set_s(NOW_S + 10);
    reopened.client().expect(&[("EXISTS b s", ":0"), ("SET b 2 NX", "+OK")]).await;
}

#[tokio::test]
async fn the_sweeper_removes_what_nobody_reads() {
    let stage = Stage::new();
    let mut client = stage.client();
    for number in 0..300 {
        client.send(&format!("SADD wide member:{number}")).await;
        client.send(&format!("SET key:{number} 1 EX 5")).await;
    }
    client
        .expect(&[("EXPIRE wide 5", ":1"), ("SET stays 1 EX 50", "+OK"), ("DBSIZE", ":302")])
        .await;

    let reopened = stage.reopened();
    let mut listener = reopened.subscriber();
    listener.subscribe(crate::Space::Channel, "__keyevent@0__:expired".into());
    reopened.objects.set_notify_flags("Ex").expect("flags");
    assert_eq!(reopened.objects.sweep().await, Ok(0));
    stage.clock.set_s(NOW_S + 5);
    reopened.client().send("GET key:0").await;
    assert_eq!(reopened.objects.sweep().await, Ok(300));

    assert_eq!(reopened.client().send("DBSIZE").await, ":1");
    assert_eq!(stage.store.orphans(), []);
    assert_eq!(std::iter::from_fn(|| listener.try_next()).count(), 301);
    assert_eq!(reopened.objects.stats().expired, 301);
}

#[tokio::test]
async fn what_is_too_large_to_be_read_expires_all_the_same() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send(&format!("SET large {} EX 5", "x".repeat(5_000))).await;
    client.send(&format!("RPUSH list {}", ["x"; 500].join(" "))).await;
    client.expect(&[("EXPIRE list 5", ":1"), ("SET small 1 EX 5", "+OK")]).await;

    let mut options = stage.objects.options().clone();
    options.limits.object_bytes_max = 1_000;
    let (stage, _) = stage.behind(options, Between::new(&stage.store));
    let mut client = stage.client();
    assert!(client.send("STRLEN large").await.starts_with("-ERR the object at 'large'"));
    stage.clock.set_s(NOW_S + 5);
    assert_eq!(stage.objects.sweep().await, Ok(3));
    client.expect(&[("DBSIZE", ":0"), ("STRLEN large", ":0")]).await;
    assert_eq!(stage.store.orphans(), []);
}

#[tokio::test]
async fn damaged_heads_do_not_keep_other_keys_from_expiring() {
    let stage = Stage::new();
    let damaged = (0..=2 * SWEEP_LEN).map(|number| Effect::PutHead {
        key: Key { database: 0, name: format!("damaged:{number}").into() },
        head: Bytes::from_static(b"?"),
        expires_ms: Some((NOW_S + 1) * 1_000),
        wide: None,
        old: Old::Absent,
    });
    stage.store.submit(Group { effects: damaged.collect() }).expect("a group");
    stage.client().expect(&[("SET a 1 EX 5", "+OK"), ("SET b 1 EX 50", "+OK")]).await;

    let stage = stage.reopened();
    stage.clock.set_s(NOW_S + 5);
    assert_eq!(stage.objects.sweep().await, Ok(1));
    assert_eq!(stage.objects.sweep().await, Ok(0));
    let mut client = stage.client();
    assert_eq!(client.send("DBSIZE").await, format!(":{}", 2 * SWEEP_LEN + 2));
    client.expect(&[("EXISTS a b", ":1"), ("DEL damaged:0", ":1")]).await;
}

/// A clock that says itself whether it is sound.
struct GuardedClock {
    clock: Arc<ManualClock>,
    is_sound: AtomicBool,
}

impl Clock for GuardedClock {
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn is_sound(&self) -> bool {
        self.is_sound.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn nothing_expires_while_the_clock_is_not_sound() {
    let stage = Stage::new();
    let clock = Arc::clone(&stage.clock);
    let guarded = Arc::new(GuardedClock { clock, is_sound: AtomicBool::new(true) });
    let open = || {
        let store: Arc<dyn ObjectStore> = Arc::clone(&stage.store) as _;
        let control: Arc<dyn ObjectControl> = Arc::clone(&stage.store) as _;
        let options = stage.objects.options().clone();
        let objects = Objects::open(store, control, Arc::clone(&guarded) as _, options);
        Stage { objects, store: Arc::clone(&stage.store), clock: Arc::clone(&stage.clock) }
    };
    let first = open();
    let mut client = first.client();
    client.expect(&[("SET a 1 EX 5", "+OK"), ("RAIN.ONCE id INCR b", ":1")]).await;

    // Neither in memory, nor on the way there, nor by the sweeper; ids of RAIN.ONCE are no
    // exception.
    guarded.is_sound.store(false, Ordering::SeqCst);
    stage.clock.set_s(NOW_S + 30 * 24 * 3_600);
    for stage in [first, open()] {
        let mut client = stage.client();
        client.expect(&[("GET a", "$1 1"), ("RAIN.ONCE id INCR b", ":1")]).await;
        client.expect(&[("KEYS a", "*1 $1 a"), ("SET c 1 EX 5", "+OK"), ("GET c", "$1 1")]).await;
        assert_eq!(stage.objects.sweep().await, Ok(0));
        assert_eq!(stage.objects.stats().expired, 0);
    }

    guarded.is_sound.store(true, Ordering::SeqCst);
    let stage = open();
    assert_eq!(stage.objects.sweep().await, Ok(2));
    stage.client().expect(&[("GET a", "$-1"), ("RAIN.ONCE id INCR b", ":2")]).await;
}
