//! Loads that race with writes.

use super::between::Between;
use super::stage::Stage;
use crate::Options;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_load_never_hides_a_write() {
    // With memory, the written object is resident when the old one arrives; without, it was
    // evicted, and only the note of its load tells.
    for resident_bytes in [1 << 20, 0] {
        for write in ["SET a new", "DEL a", "FLUSHDB", "SWAPDB 0 1"] {
            let stage = Stage::new();
            stage.client().send_all(&["SET a old", "SELECT 1", "SET a swapped", "SELECT 0"]).await;
            let expected = match write {
                "SET a new" => "$3 new",
                "SWAPDB 0 1" => "$7 swapped",
                _ => "$-1",
            };
            let (stage, late) = reopened(&stage, resident_bytes);
            let mut writer = stage.client();
            let mut reader = stage.client();

            let read = tokio::spawn(async move { reader.send("GET a").await });
            while late.reads.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            let written = tokio::spawn(async move { writer.send(write).await });
            if write == "DEL a" {
                // It loads the key as well, and gets its answer first or second: either is right.
                late.answers.add_permits(1);
            } else {
                written.await.expect("no panic");
            }
            late.answers.add_permits(10);
            let seen = read.await.expect("no panic");
            assert!(seen == expected || write == "DEL a", "{write}: {seen}");

            let mut later = stage.client();
            assert_eq!(later.send("GET a").await, expected, "{write}");
        }
    }
}

#[tokio::test]
async fn writes_of_other_keys_do_not_delay_a_load() {
    let stage = Stage::new();
    stage.client().send(&format!("RPUSH l {}", ["x"; 500].join(" "))).await;
    let (stage, late) = reopened(&stage, 1 << 20);
    let mut reader = stage.client();
    let mut writer = stage.client();

    let read = tokio::spawn(async move { reader.send("LLEN l").await });
    while late.reads.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for number in 0..10_000 {
        writer.send(&format!("SET other:{number} 1")).await;
    }
    late.answers.add_permits(10);
    assert_eq!(read.await.expect("no panic"), ":500");
    assert_eq!(late.reads.load(Ordering::SeqCst), 1);
}

/// Another service over the same content, whose reads are late.
fn reopened(stage: &Stage, resident_bytes: usize) -> (Stage, Arc<Between>) {
    let mut options = Options::of_memory(resident_bytes);
    options.limits.object_bytes_max = 1 << 20;
    let (stage, late) = stage.behind(options, Between::new(&stage.store));
    late.answers.forget_permits(usize::MAX);
    (stage, late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn increments_of_many_connections_all_count() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 300;
    for resident_bytes in [1 << 20, 0, 700] {
        let stage = Stage::of_memory(resident_bytes);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut client = stage.client();
                tokio::spawn(async move {
                    for round in 0..ROUNDS {
                        let other = format!("INCR k{}", (number + round) % 5);
                        client.send_all(&["INCR all", &other, "HINCRBY h f 1"]).await;
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("no panic");
        }

        let mut client = stage.client();
        let total = CLIENTS * ROUNDS;
        assert_eq!(client.send("GET all").await, format!("$4 {total}"));
        assert_eq!(client.send("HGET h f").await, format!("$4 {total}"));
        let replies = client.send_all(&["GET k0", "GET k1", "GET k2", "GET k3", "GET k4"]).await;
        let counts = replies.split(' ').skip(1).step_by(2).map(|count| count.parse::<usize>());
        assert_eq!(counts.map(|count| count.expect("a number")).sum::<usize>(), total);
    }
}
