//! Memory that is too small gives the same answers as memory that is large enough.

use super::stage::{NOW_S, Stage};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// Commands whose replies do not depend on chance. `{k}`, `{j}`: keys; `{m}`: a member or field;
/// `{n}`: a number; `{i}`: a small number, maybe negative.
const COMMANDS: &[&str] = &[
    "SET {k} {n}",
    "SET {k} {m} EX 100",
    "SET {k} {m} NX",
    "SET {k} {m} XX GET",
    "GET {k}",
    "GETDEL {k}",
    "APPEND {k} {m}",
    "INCRBY {k} {n}",
    "MSET {k} {n} {j} {m}",
    "MSETNX {k} {n} {j} {m}",
    "MGET {k} {j}",
    "SETRANGE {k} 5 {m}",
    "STRLEN {k}",
    "SETBIT {k} {n} 1",
    "BITCOUNT {k}",
    "HSET {k} {m} {n}",
    "HSET {k} {m} a{n} b{m} {n} c{n} {m}",
    "HDEL {k} {m}",
    "HGET {k} {m}",
    "HLEN {k}",
    "HINCRBY {k} {m} {n}",
    "HGETALL {k}",
    "SADD {k} {m} {n} x{n}",
    "SREM {k} {m}",
    "SCARD {k}",
    "SMEMBERS {k}",
    "SISMEMBER {k} {n}",
    "SMOVE {k} {j} {m}",
    "SUNIONSTORE {k} {j} {k}",
    "SINTER {k} {j}",
    "SDIFFSTORE {k} {k} {j}",
    "ZADD {k} {n} {m} {i} y{n}",
    "ZINCRBY {k} {i} {m}",
    "ZRANGE {k} 0 -1 WITHSCORES",
    "ZRANK {k} {m}",
    "ZREM {k} {m}",
    "ZREMRANGEBYRANK {k} 0 {i}",
    "ZPOPMIN {k} 2",
    "ZUNIONSTORE {k} 2 {k} {j}",
    "RPUSH {k} {m} {n}",
    "LPUSH {k} {n}",
    "LPOP {k}",
    "LRANGE {k} 0 -1",
    "LREM {k} {i} {m}",
    "LSET {k} {i} {n}",
    "LTRIM {k} {i} -2",
    "LMOVE {k} {j} LEFT RIGHT",
    "LINSERT {k} BEFORE {m} {n}",
    "DEL {k}",
    "EXISTS {k} {j}",
    "TYPE {k}",
    "RENAME {k} {j}",
    "RENAMENX {k} {j}",
    "COPY {k} {j} REPLACE",
    "COPY {k} {j} DB 1",
    "MOVE {k} 1",
    "EXPIRE {k} {n}",
    "PEXPIRE {k} 0",
    "TTL {k}",
    "PERSIST {k}",
    "SELECT 1",
    "SELECT 0",
    "SWAPDB 0 1",
    "DBSIZE",
    "KEYS *",
    "FLUSHDB",
    "RAIN.ONCE {n} INCR {k}",
    "MULTI",
    "EXEC",
    "WATCH {k}",
    "DISCARD",
];

/// Commands that make large collections, so that some are wide.
const LARGE: &[&str] = &["SADD", "RPUSH", "ZADD", "HSET"];

fn command(template: &str, choices: (u8, u8, u8, i16)) -> String {
    let (k, j, m, n) = choices;
    template
        .replace("{k}", &format!("key{}", k % 5))
        .replace("{j}", &format!("key{}", j % 5))
        .replace("{m}", &format!("member{}", m % 12))
        .replace("{n}", &n.rem_euclid(300).to_string())
        .replace("{i}", &(n % 4).to_string())
}

fn large(name: &str, key: u8, from: u8) -> String {
    let mut command = format!("{name} key{}", key % 5);
    for number in u16::from(from)..u16::from(from) + 140 {
        command.push_str(&match name {
            "ZADD" => format!(" {number} member{number}"),
            "HSET" => format!(" member{number} {number}"),
            _ => format!(" member{number}"),
        });
    }
    command
}

fn commands() -> impl Strategy<Value = Vec<String>> {
    let small = (0..COMMANDS.len(), any::<(u8, u8, u8, i16)>())
        .prop_map(|(template, choices)| command(COMMANDS[template], choices));
    let large = (0..LARGE.len(), any::<(u8, u8)>())
        .prop_map(|(name, (key, from))| large(LARGE[name], key, from));
    proptest::collection::vec(prop_oneof![20 => small, 1 => large], 1..120)
}

/// Whether the order of the words of a reply is not promised.
fn has_no_order(command: &str) -> bool {
    ["SMEMBERS", "HGETALL", "SINTER", "EXEC"].iter().any(|name| command.starts_with(name))
}

fn words(replies: &str, is_ordered: bool) -> Vec<&str> {
    let mut words: Vec<&str> = replies.split(' ').collect();
    if !is_ordered {
        words.sort_unstable();
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_tiny_memory_gives_the_same_answers(
        commands in commands(),
        resident in 0..3_000_usize,
        cuts in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(compare(&commands, resident, cuts));
    }
}

/// Sends commands to a service with enough memory, one by one, and to one with `resident` bytes, in
/// pipelines that `cuts` decides on, as it does on the steps of time.
async fn compare(commands: &[String], resident: usize, cuts: u64) {
    let large = Stage::new();
    let tiny = Stage::of_memory(resident);
    let mut known = large.client();
    let mut client = tiny.client();
    let mut now_s = NOW_S;
    for (number, commands) in commands.chunks(1 + (cuts % 7) as usize).enumerate() {
        now_s += 20 * i64::from(cuts >> (number % 60) & 1 == 1);
        for stage in [&large, &tiny] {
            stage.clock.set_s(now_s);
            // DBSIZE counts expired keys until they are swept.
            stage.objects.sweep().await.expect("a sweep");
        }

        let mut expected = Vec::new();
        for command in commands {
            expected.push(known.send(command).await);
        }
        let names: Vec<&str> = commands.iter().map(String::as_str).collect();
        let replies = client.send_all(&names).await;
        let is_ordered = !commands.iter().any(|command| has_no_order(command));
        assert_eq!(
            words(&replies, is_ordered),
            words(&expected.join(" "), is_ordered),
            "{commands:?}"
        );
    }

    tiny.objects.lock.hold().expect("a store that works").check_weights();
    assert_eq!(tiny.objects.keyspace().await, large.objects.keyspace().await);
    assert_eq!(tiny.store.orphans(), [], "wide objects without a head");
    assert_eq!(large.store.orphans(), [], "wide objects without a head");
    let reopened = tiny.reopened();
    known.session.reset();
    for key in 0..5 {
        for read in ["TYPE", "TTL", "GET", "HLEN", "SCARD", "LLEN", "ZCARD"] {
            let command = format!("{read} key{key}");
            let reply = reopened.client().send(&command).await;
            assert_eq!(reply, known.send(&command).await, "{command}");
        }
    }
}

#[tokio::test]
async fn memory_stays_within_its_bound() {
    const BYTES: usize = 200_000;
    let stage = Stage::of_memory(BYTES);
    let mut client = stage.client();
    for number in 0..2_000 {
        client.send(&format!("SET key:{number} {}", "x".repeat(500))).await;
        let stats = stage.objects.stats();
        assert!(stats.resident_bytes <= BYTES as u64, "{stats:?}");
    }
    assert!(stage.objects.stats().evicted > 1_000);

    // Keys that are used stay.
    client.send("SET hot 1").await;
    for number in 0..2_000 {
        client.send_all(&["GET hot", &format!("GET key:{number}")]).await;
    }
    let loads = stage.objects.stats().loads;
    client.send("GET hot").await;
    assert_eq!(stage.objects.stats().loads, loads);
}

/// About 1,000 of 10,000 keys of about a kilobyte.
const TENTH_BYTES: usize = 1_200_000;

async fn with_ten_thousand_keys() -> Stage {
    let stage = Stage::of_memory(TENTH_BYTES);
    let mut client = stage.client();
    for number in 0..10_000 {
        client.send(&format!("SET key:{number} {}", "x".repeat(1_000))).await;
    }
    stage
}

/// Reads keys, and returns how many of them were in memory.
async fn hits(stage: &Stage, numbers: impl IntoIterator<Item = usize>) -> u64 {
    let mut client = stage.client();
    let before = stage.objects.stats();
    for number in numbers {
        client.send(&format!("GET key:{number}")).await;
    }
    let after = stage.objects.stats();
    (after.hits - before.hits) - (after.loads - before.loads)
}

#[tokio::test]
async fn keys_that_are_read_once_do_not_push_out_those_that_are_read_again() {
    let stage = with_ten_thousand_keys().await;
    for _ in 0..3 {
        hits(&stage, 0..500).await;
    }
    assert_eq!(hits(&stage, 1_000..10_000).await, 0);
    assert_eq!(hits(&stage, 0..500).await, 500);
}

/// What was popular before does not keep out what is read over and over now, although that is more
/// than may be on probation.
#[tokio::test]
async fn what_is_popular_may_change() {
    let stage = with_ten_thousand_keys().await;
    for _ in 0..5 {
        hits(&stage, 0..800).await;
    }
    for _ in 0..8 {
        hits(&stage, 5_000..5_800).await;
    }
    assert_eq!(hits(&stage, 5_000..5_800).await, 800);
}

/// No policy without knowledge of the future has more hits than one that holds the most popular
/// keys. The clock that eviction used before had 0.9 of them.
#[tokio::test]
async fn hits_by_zipfs_law_are_near_the_best_possible() {
    const READS: usize = 30_000;
    let stage = with_ten_thousand_keys().await;
    let mut sum = 0.0;
    let weights = (1..=10_000).map(|rank| f64::from(rank).powf(-0.99));
    let sums: Vec<f64> = weights
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    let mut random = SmallRng::seed_from_u64(17);
    let mut read = || {
        let drawn = random.random_range(0.0..sum);
        sums.partition_point(|at| *at < drawn)
    };
    let mut reads = || (0..READS).map(|_| read()).collect::<Vec<_>>();

    hits(&stage, reads()).await;
    let found = hits(&stage, reads()).await as f64 / READS as f64;
    let resident = stage.objects.stats().resident as usize;
    let best = sums[resident - 1] / sum;
    assert!((0.94..1.01).contains(&(found / best)), "{found} of {best}");
}

#[tokio::test]
async fn an_object_that_is_too_large_is_refused() {
    let stage = Stage::new();
    let mut options = stage.objects.options().clone();
    options.limits.object_bytes_max = 50_000;
    let stage = Stage::with(options, |store| store);
    let mut client = stage.client();
    for number in 0..2_000 {
        let reply = client.send(&format!("SADD s member:{number:0200}")).await;
        if reply.starts_with("-ERR") {
            assert!(reply.contains("objects.object_bytes_max"), "{reply}");
            break;
        }
        assert!(number < 1_000, "the set grows for ever");
    }
    client.expect(&[("SADD other 1", ":1"), ("SREM s member:1", ":0")]).await;

    // What is too large to be read can be removed.
    let mut options = stage.objects.options().clone();
    options.limits.object_bytes_max = 5_000;
    let small = crate::Objects::open(
        std::sync::Arc::clone(&stage.store) as _,
        std::sync::Arc::clone(&stage.store) as _,
        std::sync::Arc::clone(&stage.clock) as _,
        options,
    );
    let small = Stage { objects: small, store: stage.store, clock: stage.clock };
    let mut client = small.client();
    assert!(client.send("SCARD s").await.starts_with("-ERR the object at 's'"));
    client.expect(&[("DEL s other", ":2"), ("SCARD s", ":0"), ("DBSIZE", ":0")]).await;
    assert_eq!(small.store.orphans(), []);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_removed_once() {
    let stage = Stage::new();
    stage.client().send(&format!("SET large {}", "x".repeat(100_000))).await;

    let mut options = stage.objects.options().clone();
    options.limits.object_bytes_max = 5_000;
    options.resident_bytes = 50_000;
    let small = stage.reopened_with(options);
    let mut client = small.client();
    let removal = format!("DEL{}", " large".repeat(500));
    client.expect(&[(&removal, ":1"), (&removal, ":0"), ("UNLINK large large", ":0")]).await;
    small.objects.lock.hold().expect("a store that works").check_weights();
    assert_eq!(small.reopened().client().send("EXISTS large").await, ":0");
}
