//! Objects that many connections miss at the same time.

use super::between::Between;
use super::stage::Stage;
use crate::limits::{LARGE_LOADS_MAX, LOAD_PAGE_BYTES};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Length of a field.
const LEN: usize = 50_000;
/// Reads that an object takes behind the first one.
const FURTHER: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

/// Hashes of some pages each, none of which is in memory. Reads of further pages wait.
async fn large(names: &[String]) -> (Stage, Arc<Between>) {
    let stage = Stage::new();
    let mut client = stage.client();
    for name in names {
        for field in 0..FURTHER * LOAD_PAGE_BYTES / LEN + 2 {
            client.send(&format!("HSET {name} f{field} {}", "x".repeat(LEN))).await;
        }
    }

    let options = stage.objects.options().clone();
    let mut between = Between::new(&stage.store);
    between.further_answers = tokio::sync::Semaphore::new(0);
    stage.behind(options, between)
}

fn names(len: usize) -> Vec<String> {
    (0..len).map(|number| format!("h{number}")).collect()
}

/// Each command on a connection of its own.
fn at_once(stage: &Stage, commands: Vec<String>) -> Vec<JoinHandle<String>> {
    let sent = commands.into_iter().map(|command| {
        let mut client = stage.client();
        tokio::spawn(async move { client.send(&command).await })
    });
    sent.collect()
}

async fn replies(sent: Vec<JoinHandle<String>>) -> Vec<String> {
    let mut replies = Vec::new();
    for sent in sent {
        let reply = tokio::time::timeout(PATIENCE, sent).await.expect("nobody waits for ever");
        replies.push(reply.expect("a reply"));
    }
    replies
}

/// Waits until `len` reads were sent, and all tasks wait for something.
async fn settle(reads: &AtomicUsize, len: usize) {
    while reads.load(Ordering::SeqCst) < len {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_large_object_is_loaded_once_for_all_who_miss_it() {
    const CLIENTS: usize = 8;
    let (stage, between) = large(&names(1)).await;
    let sent = at_once(&stage, vec!["HLEN h0".to_owned(); CLIENTS]);
    settle(&between.first_reads, CLIENTS).await;
    assert_eq!(between.further_reads.load(Ordering::SeqCst), 1);

    between.further_answers.add_permits(1_000);
    let replies = replies(sent).await;
    assert!(replies.iter().all(|reply| reply == &replies[0]), "{replies:?}");
    assert_eq!(between.further_reads.load(Ordering::SeqCst), FURTHER);
    assert_eq!(stage.objects.stats().loads, 1);
}

/// As when the client of the first one disconnects.
#[tokio::test]
async fn a_load_that_is_given_up_is_taken_on_by_another() {
    let (stage, between) = large(&names(1)).await;
    let mut sent = at_once(&stage, vec!["HLEN h0".to_owned(); 3]);
    settle(&between.first_reads, 3).await;
    sent.remove(0).abort();

    between.further_answers.add_permits(1_000);
    assert_eq!(replies(sent).await.len(), 2);
    assert_eq!(stage.objects.stats().loads, 1);
}

#[tokio::test]
async fn few_connections_load_large_objects_at_the_same_time() {
    const CLIENTS: usize = LARGE_LOADS_MAX + 3;
    let (stage, between) = large(&names(CLIENTS)).await;
    let sent = at_once(&stage, names(CLIENTS).iter().map(|name| format!("HLEN {name}")).collect());
    settle(&between.first_reads, CLIENTS).await;
    assert_eq!(between.further_reads.load(Ordering::SeqCst), LARGE_LOADS_MAX);

    between.further_answers.add_permits(1_000);
    assert_eq!(replies(sent).await.len(), CLIENTS);
}

/// One that has read the first object, and needs the second one, keeps nobody waiting for the
/// first.
#[tokio::test]
async fn commands_that_need_the_same_large_objects_do_not_wait_for_each_other() {
    let (stage, between) = large(&names(2)).await;
    let commands = ["EXISTS h0 h1", "EXISTS h1 h0"].iter().cycle().take(2 * LARGE_LOADS_MAX + 2);
    let sent = at_once(&stage, commands.map(|&command| command.to_owned()).collect());
    settle(&between.further_reads, 2).await;

    between.further_answers.add_permits(1_000);
    assert!(replies(sent).await.iter().all(|reply| reply == ":2"));
    assert_eq!(stage.objects.stats().loads, 2);
}
