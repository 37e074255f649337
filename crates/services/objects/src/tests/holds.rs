//! How much one hold of the lock changes, loads and answers.

use super::between::Between;
use super::stage::{Door, Stage};
use crate::limits::{HOLD_CHANGE_BYTES, LOAD_BYTES, RUN_REPLY_BYTES};
use raingauge_resp::{Drain, Protocol, Replies};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Length of a large string.
const LEN: usize = 4_000_000;

fn large(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("SETRANGE k{number} {} x", LEN - 1)).collect()
}

fn as_strs(commands: &[String]) -> Vec<&str> {
    commands.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn a_hold_ends_after_enough_changes() {
    let stage = Stage::new();
    let options = stage.objects.options().clone();
    let (stage, between) = stage.behind(options, Between::new(&stage.store));
    let commands = large(15);
    let replies = stage.client().send_all(&as_strs(&commands)).await;
    assert_eq!(replies, vec![format!(":{LEN}"); 15].join(" "));

    let largest = between.group_bytes_max.load(Ordering::SeqCst);
    assert!(largest < HOLD_CHANGE_BYTES + 2 * LEN, "{largest} bytes");
    assert_eq!(stage.objects.stats().groups, 4);
}

#[tokio::test]
async fn half_of_the_memory_that_objects_leave_free_is_lent_to_the_store() {
    let stage = Stage::new();
    stage.client().send_all(&as_strs(&large(2))).await;
    let taken = stage.objects.stats().resident_bytes;
    assert!(taken > LEN as u64);
    let memory = stage.objects.options().resident_bytes as u64;
    assert_eq!(stage.objects.status().lent_bytes, (memory - taken) / 2);
}

#[tokio::test]
async fn a_load_ends_after_enough_bytes() {
    let stage = Stage::new();
    stage.client().send_all(&as_strs(&large(10))).await;
    let options = stage.objects.options().clone();
    let (stage, between) = stage.behind(options, Between::new(&stage.store));
    let reads: Vec<String> = (0..10).map(|number| format!("STRLEN k{number}")).collect();
    let replies = stage.client().send_all(&as_strs(&reads)).await;
    assert_eq!(replies, vec![format!(":{LEN}"); 10].join(" "));

    let largest = between.read_bytes_max.load(Ordering::SeqCst);
    assert!(largest <= LOAD_BYTES + 2 * LEN, "{largest} bytes");
}

#[tokio::test]
async fn one_command_loads_no_more_than_memory_allows() {
    let stage = Stage::new();
    stage.client().send_all(&as_strs(&large(10))).await;
    let mut options = stage.objects.options().clone();
    options.resident_bytes = 1 << 20;
    let (stage, _) = stage.behind(options, Between::new(&stage.store));

    let mut client = stage.client();
    client.expect(&[("EXISTS k0 k1 k2 k3", ":4")]).await;
    let refused = client.send("EXISTS k0 k1 k2 k3 k4 k5 k6 k7 k8 k9").await;
    assert!(refused.starts_with("-ERR the keys of the command take more than"), "{refused}");
    client.expect(&[("EXISTS k9", ":1")]).await;
}

#[tokio::test]
async fn a_transaction_changes_and_answers_no_more_than_memory_allows() {
    let stage = Stage::of_memory(1 << 20);
    let mut client = stage.client();
    let mut commands = large(6);
    commands.insert(0, "MULTI".to_owned());
    commands.extend(["STRLEN k0".to_owned(), "EXEC".to_owned()]);
    let replies = client.send_all(&as_strs(&commands)).await;
    let refused = replies.matches("-ERR the transaction changes").count();
    assert_eq!((refused, replies.matches(&format!(":{LEN}")).count()), (2, 5));

    let mut commands = vec!["MULTI"];
    commands.extend(vec!["GET k0"; 7]);
    commands.extend(["SET a 1", "EXEC"]);
    let replies = client.send_all(&commands).await;
    let refused = replies.matches("-ERR the transaction changes").count();
    assert_eq!((refused, replies.matches(&format!("${LEN}")).count()), (2, 5));
    assert!(replies.ends_with(" +OK"));
}

#[tokio::test]
async fn names_take_no_more_than_memory_allows() {
    let stage = Stage::of_memory(1 << 20);
    let mut client = stage.client();
    for number in 0..400 {
        client.send(&format!("SET {}{number:030000} 1", ["a", "b"][number % 2])).await;
    }
    for command in ["KEYS a*", "SCAN 0 COUNT 400 MATCH a*"] {
        assert!(client.send(command).await.starts_with('*'), "{command}");
    }
    stage.client().send("SET c 1").await;
    for number in 400..800 {
        client.send(&format!("SET {}{number:030000} 1", ["a", "b"][number % 2])).await;
    }

    // Sixteen megabytes have room for half of the names, and not for all. RANDOMKEY needs one.
    for command in ["KEYS *", "SCAN 0 COUNT 1000"] {
        let reply = client.send(command).await;
        assert!(reply.starts_with("-ERR the command answers more than"), "{command}");
    }
    client.expect(&[("KEYS c*", "*1 $1 c"), ("DBSIZE", ":801")]).await;
    assert!(client.send("RANDOMKEY").await.starts_with('$'));

    // The commands of a transaction share it; what is refused takes nothing of it.
    let commands = ["MULTI", "KEYS *", "KEYS a*", "SCAN 0 COUNT 1000", "KEYS c", "DBSIZE", "EXEC"];
    let replies = client.send_all(&commands).await;
    assert_eq!(replies.matches("-ERR the transaction changes or answers").count(), 2);
    assert!(replies.contains(" *400 $30001 a"));
    assert!(replies.ends_with(" *1 $1 c :801"));
}

/// Whatever ends the holds: many small replies, or commands about all keys.
#[tokio::test]
async fn a_run_ends_after_enough_replies() {
    const VALUE_LEN: usize = 1_000;
    let stage = Stage::new();
    let mut client = stage.client();
    let value = "x".repeat(VALUE_LEN);
    client.expect(&[(&format!("SET {value} {value}"), "+OK")]).await;

    for command in [["GET", &value], ["KEYS", "*"]] {
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        let drain = Drain::of(&vec![&words[..]; 3 * RUN_REPLY_BYTES / VALUE_LEN]);
        let mut replies = Replies::new(Protocol::Two);
        let mut door = Door(Arc::clone(&stage.objects));
        let run = stage.objects.run(&mut client.session, &mut door, &drain, 0, &mut replies);
        let next = run.await.next;
        assert!(replies.len() < RUN_REPLY_BYTES + 2 * VALUE_LEN, "{} bytes", replies.len());

        // The rest is for the next call.
        let run = stage.objects.run(&mut client.session, &mut door, &drain, next, &mut replies);
        assert!(run.await.next > next);
    }
}
