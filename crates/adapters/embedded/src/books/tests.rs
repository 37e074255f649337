mod damage;
mod faults;
mod format;
mod load;
mod pending;
mod simulator;

use super::*;
use crate::files::copies::copy_folder;
use crate::files::simulated::{Disk, Fault as DiskFault};
use load::{Scene, same_content};
use raingauge_memory::Books as Twin;
use raingauge_points::Body;
use raingauge_ports::contract::books::{self as contract, Clerk, award, burn, wait, wallet};
use raingauge_ports::points::{BookReader, Verified};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options with segments so short that a few turns fill one, and tables for every few entries.
fn options() -> Options {
    let pending_entries = 8;
    let block_cache_bytes = 1 << 20;
    Options { segment_bytes: 2_000, pending_entries, block_cache_bytes, ..Options::default() }
}

fn open(folder: &Path) -> Result<PointBooks, Error> {
    PointBooks::open(folder, &options())
}

fn verified(folder: &Path) -> Verified {
    verify(folder, &options()).expect("it can be read")
}

/// A runtime, for futures that read in the background.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
}

#[test]
fn both_books_keep_the_contract() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let folders = RefCell::new(Vec::new());
    contract::suite(|| {
        let folder = tempfile::tempdir().unwrap();
        let books = open(folder.path()).unwrap();
        folders.borrow_mut().push(folder);
        books
    });
    contract::suite(|| Twin::new(1));
}

#[test]
fn books_answer_as_the_scripts_say() {
    let runtime = runtime();
    let _entered = runtime.enter();
    contract::scripts(|| {
        simulator::open(&Disk::new(1), &simulator::FailingRecords::new(1)).unwrap()
    });
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(7);
    for _ in 0..5 {
        let books = open(folder.path()).unwrap();
        (0..10).for_each(|_| scene.turn(&books).unwrap());
        books.set_place("publisher", 0, scene.head().sequence).unwrap();
        let read_to = scene.head().position + 3;
        let moved = |_: &[Head], _| Turn { position: Some(read_to), ..Turn::default() };
        books.turn(&[0], &Footprint::default(), &mut { moved }).unwrap();
        scene.note_position(read_to);
        same_content(&books, &scene);
    }

    let books = open(folder.path()).unwrap();
    same_content(&books, &scene);
    assert_eq!(books.place("publisher", 0), Ok(scene.head().sequence));
    assert_eq!(books.head(0).unwrap().position, scene.head().position);
    assert!(matches!(PointBooks::open(folder.path(), &options()), Err(Error::Locked)));
    drop(books);

    let summary = verified(folder.path()).unwrap();
    assert_eq!((summary.entries, summary.behind), (scene.head().sequence, 0));
    assert_eq!((summary.chain, summary.position), (scene.head().chain, scene.head().position));
    assert!(summary.records > summary.entries);
}

#[test]
fn records_that_are_behind_or_gone_come_back_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join(STATE_FOLDER);
    let older = folder.path().join("older");
    let mut scene = Scene::new(3);
    let books = open(folder.path()).unwrap();
    (0..20).for_each(|_| scene.turn(&books).unwrap());
    drop(books);
    copy_folder(&state, &older);

    let books = open(folder.path()).unwrap();
    (0..30).for_each(|_| scene.turn(&books).unwrap());
    drop(books);

    // As after a power cut: the records are what they once were.
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&older, &state).unwrap();
    same_content(&open(folder.path()).unwrap(), &scene);
    assert_eq!(verified(folder.path()).unwrap().behind, 0);

    std::fs::remove_dir_all(&state).unwrap();
    assert_eq!(verified(folder.path()).unwrap().behind, scene.head().sequence);
    same_content(&open(folder.path()).unwrap(), &scene);

    let summary = rebuild(folder.path(), &options()).unwrap();
    assert_eq!(Ok(summary), verified(folder.path()));
    same_content(&open(folder.path()).unwrap(), &scene);
}

#[test]
fn a_disk_that_is_almost_full_takes_no_turn() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let reserve_bytes = 1 << 30;
    let options = Options { reserve_bytes, ..options() };
    let books = PointBooks::open(folder.path(), &options).unwrap();
    let clerk = Clerk::new(&books);
    books.inner.room.pretend(5);
    let refused = clerk.turn(&[award("bob", "order-1", 100)], None).map(|_| ());
    assert_eq!(refused, Err(Error::Full { free_bytes: 5, reserve_bytes }));
    assert_eq!(books.head(0), Ok(Head::of_book(0)));

    books.inner.room.pretend(u64::MAX);
    clerk.execute(&[award("bob", "order-1", 100)]);
    let found = wait(books.wallets(vec![wallet("bob")])).unwrap();
    assert_eq!(found[0].as_ref().map(|wallet| wallet.balance()), Some(100));
}

#[test]
fn books_whose_sync_failed_take_nothing_until_they_are_opened_again() {
    let disk = Disk::new(1);
    let records = simulator::FailingRecords::new(1);
    let books = simulator::open(&disk, &records).unwrap();
    let clerk = Clerk::new(&books);
    clerk.turn(&[award("bob", "order-1", 100)], None).unwrap();

    disk.fail_after(0, DiskFault::SyncFails);
    for _ in 0..2 {
        let refused = clerk.turn(&[burn("bob", "burn-1", 60)], None).map(|_| ());
        assert!(matches!(refused, Err(Error::Closed(_))), "{refused:?}");
    }
    assert_eq!(books.head(0).unwrap().sequence, 1);

    // Whether the disk has it or not, the command has one effect.
    drop(books);
    disk.cut_power();
    let books = simulator::open(&disk, &records).unwrap();
    Clerk::new(&books).turn(&[burn("bob", "burn-1", 60)], None).unwrap();
    let found = state::wallets(&books.inner.records, &[wallet("bob")]).unwrap();
    assert_eq!(found[0].as_ref().map(|wallet| wallet.balance()), Some(40));
}

#[test]
fn a_turn_that_panics_leaves_the_books_as_they_were() {
    let disk = Disk::new(1);
    let books = simulator::open(&disk, &simulator::FailingRecords::new(1)).unwrap();
    Clerk::new(&books).execute(&[award("bob", "order-1", 100)]);
    let before = books.head(0).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        books.turn(&[0], &Footprint::default(), &mut |_, _| panic!("as the test wants it"))
    }));
    assert!(panicked.is_err());
    assert_eq!(books.head(0), Ok(before));
    Clerk::new(&books).execute(&[burn("bob", "burn-1", 100)]);
}

#[test]
fn what_is_read_while_turns_are_written_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let books = open(folder.path()).unwrap();
    let bob = wallet("bob");
    let is_done = AtomicBool::new(false);

    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut newest = 0;
            while !is_done.load(Ordering::Acquire) {
                let rows = books.inner.statement(&bob, None, 20).unwrap();
                for pair in rows.windows(2) {
                    assert_eq!(pair[0].member_sequence, pair[1].member_sequence + 1);
                    assert_eq!(pair[0].balance_after - pair[0].points(), pair[1].balance_after);
                }
                let last = books.inner.as_of(&bob, i64::MAX).unwrap();
                let last = last.map_or(0, |entry| entry.member_sequence);
                assert!(last >= rows.first().map_or(0, |entry| entry.member_sequence));
                assert!(last >= newest);
                newest = last;
            }
        });

        let clerk = Clerk::new(&books);
        for number in 0..100 {
            let order = award("bob", &format!("order-{number}"), 10);
            clerk.execute(&[order, burn("bob", &format!("burn-{number}"), 3)]);
        }
        is_done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(books.inner.statement(&bob, None, 1_000).unwrap().len(), 200);
}

/// A transfer changes two wallets in one turn, and a reader sees both of them changed or neither.
#[test]
fn readers_see_whole_turns() {
    let folder = tempfile::tempdir().unwrap();
    let books = open(folder.path()).unwrap();
    let clerk = Clerk::new(&books);
    clerk.execute(&[award("bob", "order-1", 1_000)]);
    let is_done = AtomicBool::new(false);

    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                let both = ["bob", "eve"].map(wallet);
                let found = state::wallets(&books.inner.records, &both).unwrap();
                let balances = found.iter().flatten().map(|wallet| wallet.balance());
                assert_eq!(balances.sum::<i64>(), 1_000, "{found:?}");
            }
        });
        for number in 0..300 {
            let (from, to) = if number % 2 == 0 { ("bob", "eve") } else { ("eve", "bob") };
            let transfer = Body::Transfer { to: to.into(), points: 1_000 };
            clerk.execute(&[contract::command(from, &format!("move-{number}"), transfer)]);
        }
        is_done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
}

/// In a long segment, in which walks remember places on their way.
#[test]
fn entries_are_found_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 4 << 20, ..options() };
    let books = PointBooks::open(folder.path(), &options).unwrap();
    let clerk = Clerk::new(&books);
    let gift = |number: usize| {
        let reason = Some(Arc::from("r".repeat(250)));
        raingauge_points::Command { reason, ..award("bob", &format!("gift-{number}"), 1) }
    };
    for turn in 0..150 {
        let gifts: Vec<_> = (turn * 20..turn * 20 + 20).map(gift).collect();
        clerk.execute(&gifts);
    }

    let found = |sequence| books.inner.pages.entry(sequence).unwrap();
    assert!(found(0).is_none() && found(3_001).is_none());
    for sequence in (1..=3_000).step_by(37).chain((1..=3_000).rev().step_by(41)) {
        let entry = found(sequence).unwrap();
        assert_eq!((entry.sequence, entry.member_sequence), (sequence, sequence));
    }
}
