use super::*;
use crate::faults::Library;
use raingauge_ports::clock::{ManualClock, SystemClock};
use raingauge_ports::contract::queues::{burial, letters, receive, suite};
use raingauge_ports::points::{LetterSelection, QueueControl, Shelf};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;

const NOW_S: i64 = 1_727_136_000;
const QUEUE: QueueName = QueueName::Award;
const LONG: Duration = Duration::from_secs(600);
/// Calls that the process under faults makes.
const CALLS: u64 = 60;
const TEST: &str = "queues::tests::a_process_under_faults";

fn options() -> Options {
    Options { block_cache_bytes: 1 << 20, memtable_bytes: 1 << 20, ..Options::default() }
}

fn open(folder: &Path, clock: &Arc<ManualClock>) -> LetterQueues {
    LetterQueues::open(folder, &options(), clock.clone()).unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_s(NOW_S))
}

async fn ids(queues: &LetterQueues, shelf: Shelf) -> Vec<String> {
    let found = queues.peek(QUEUE, shelf, 1_000).await.unwrap();
    found.into_iter().map(|peeked| peeked.letter.id).collect()
}

#[tokio::test]
async fn the_contract_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let number = Cell::new(0);
    let fresh = async || {
        number.set(number.get() + 1);
        open(&folder.path().join(number.get().to_string()), &clock)
    };
    let pass = async |time: Duration| {
        clock.set_s(clock.now_s() + time.as_secs() as i64);
    };
    suite(fresh, pass).await;
}

#[tokio::test]
async fn letters_are_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let queues = open(folder.path(), &clock);
    queues.send(QUEUE, letters(&["a", "b", "c", "d"]), Duration::ZERO).await.unwrap();
    let received = queues.receive(QUEUE, receive(3, LONG)).await.unwrap();
    queues.delete(QUEUE, vec![received[0].receipt.clone()]).await.unwrap();
    queues.bury(QUEUE, vec![burial(&received[1])]).await.unwrap();
    let depth = queues.depth(QUEUE).await.unwrap();
    let locked = LetterQueues::open(folder.path(), &options(), clock.clone());
    assert!(matches!(locked, Err(QueueError::Locked)));
    drop(queues);

    let queues = open(folder.path(), &clock);
    let again = queues.depth(QUEUE).await.unwrap();
    assert_eq!((again.waiting, again.dead), (depth.waiting + depth.in_flight, depth.dead));
    assert_eq!(again.oldest_ms, Some(NOW_S * 1_000));
    assert_eq!(ids(&queues, Shelf::Dead).await, ["b"]);

    // What was in flight stays invisible until its time, and its receipts are void.
    queues.delete(QUEUE, vec![received[2].receipt.clone()]).await.unwrap();
    let only = queues.receive(QUEUE, receive(10, LONG)).await.unwrap();
    assert_eq!(only.iter().map(|one| &one.letter.id).collect::<Vec<_>>(), ["d"]);
    clock.set_s(NOW_S + 600);
    let back = queues.receive(QUEUE, receive(10, LONG)).await.unwrap();
    let back: Vec<_> = back.iter().map(|one| (one.letter.id.as_str(), one.receives)).collect();
    assert_eq!(back, [("c", 2), ("d", 2)]);
}

/// Letters become visible in an order that a full range of deleted ones does not disturb.
#[tokio::test]
async fn letters_that_come_back_early_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let queues = open(folder.path(), &clock);
    for number in 0..20 {
        clock.set_s(NOW_S + number);
        let id = number.to_string();
        queues.send(QUEUE, letters(&[&id]), Duration::ZERO).await.unwrap();
    }
    let early = queues.receive(QUEUE, receive(1, LONG)).await.unwrap().remove(0);
    let rest = queues.receive(QUEUE, receive(100, LONG)).await.unwrap();
    let receipts = rest.iter().map(|one| one.receipt.clone()).collect();
    queues.delete(QUEUE, receipts).await.unwrap();
    assert!(queues.receive(QUEUE, receive(10, LONG)).await.unwrap().is_empty());

    let sooner = vec![(early.receipt.clone(), Duration::from_secs(1))];
    queues.change_visibility(QUEUE, sooner).await.unwrap();
    clock.set_s(NOW_S + 30);
    let back = queues.receive(QUEUE, receive(10, LONG)).await.unwrap();
    assert_eq!(back[0].letter, early.letter);
    queues.delete(QUEUE, vec![back[0].receipt.clone()]).await.unwrap();
    assert_eq!(queues.depth(QUEUE).await.unwrap(), Default::default());
}

#[tokio::test]
async fn a_clock_that_was_ahead_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = Arc::new(ManualClock::at_s(NOW_S + 31_536_000));
    let queues = open(folder.path(), &ahead);
    queues.send(QUEUE, letters(&["a"]), Duration::ZERO).await.unwrap();
    drop(queues);

    let queues = open(folder.path(), &clock());
    let received = queues.receive(QUEUE, receive(1, LONG)).await.unwrap();
    assert_eq!(received[0].letter.id, "a");
    queues.delete(QUEUE, vec![received[0].receipt.clone()]).await.unwrap();
    assert!(ids(&queues, Shelf::Waiting).await.is_empty());
}

#[tokio::test]
async fn a_full_disk_takes_no_letters_and_gives_back_those_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { reserve_bytes: 1_000, ..options() };
    let queues = LetterQueues::open(folder.path(), &options, clock()).unwrap();
    queues.send(QUEUE, letters(&["a", "b"]), Duration::ZERO).await.unwrap();
    queues.inner.room.pretend(999);

    let full = QueueError::Full { free_bytes: 999, reserve_bytes: 1_000 };
    let sent = queues.send(QUEUE, letters(&["c"]), Duration::ZERO).await;
    assert_eq!(sent, Err(full.clone()));
    let received = queues.receive(QUEUE, receive(10, LONG)).await.unwrap();
    queues.bury(QUEUE, vec![burial(&received[0])]).await.unwrap();
    queues.delete(QUEUE, vec![received[1].receipt.clone()]).await.unwrap();
    assert_eq!(queues.redrive(QUEUE, LetterSelection::All).await, Err(full));
    assert_eq!(ids(&queues, Shelf::Dead).await, ["a"]);
}

/// The process under faults; as a test of its own it does nothing. Each call sends one letter,
/// receives one, and buries or deletes what is received. It reports each letter sent.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let done: Result<(), QueueError> = runtime.block_on(async {
        let folder = Path::new(&folder);
        let queues = LetterQueues::open(folder, &options(), Arc::new(SystemClock))?;
        for number in 1..=CALLS {
            let letter = Letter::new(number.to_string(), "x".repeat(2_000));
            queues.send(QUEUE, vec![letter], Duration::ZERO).await?;
            println!("\ncommitted {number}");
            std::io::stdout().flush().expect("the parent listens");

            for received in queues.receive(QUEUE, receive(1, LONG)).await? {
                match number_of(&received.letter) % 3 {
                    0 => queues.bury(QUEUE, vec![burial(&received)]).await?,
                    1 => queues.delete(QUEUE, vec![received.receipt]).await?,
                    _ => {}
                }
            }
        }
        Ok(())
    });
    if done.is_err() {
        // Exits as the program does, without any cleanup.
        std::process::exit(1);
    }
}

fn number_of(letter: &Letter) -> u64 {
    letter.id.parse().unwrap()
}

/// Succeeds if every letter up to `number` is there once, except those that were deleted.
fn is_whole(folder: &Path, number: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let queues = LetterQueues::open(folder, &options(), Arc::new(SystemClock))
            .map_err(|why| why.to_string())?;
        let mut found = BTreeMap::new();
        for shelf in [Shelf::Waiting, Shelf::Dead] {
            let peeked = queues.peek(QUEUE, shelf, 1_000).await.map_err(|why| why.to_string())?;
            for one in peeked {
                assert_eq!(one.letter.body.len(), 2_000);
                *found.entry(number_of(&one.letter)).or_insert(0) += 1;
            }
        }

        if let Some((id, times)) = found.iter().find(|(_, times)| **times != 1) {
            return Err(format!("letter {id} is there {times} times"));
        }
        match (1..=number).find(|id| id % 3 != 1 && !found.contains_key(id)) {
            Some(missing) => Err(format!("letter {missing} of {number} is missing")),
            None => Ok(()),
        }
    })
}

#[test]
fn no_fault_under_the_queues_loses_a_letter() {
    Library::new(TEST).examine(&is_whole);
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    Library::new(TEST).notices_missing_syncs(&is_whole);
}
