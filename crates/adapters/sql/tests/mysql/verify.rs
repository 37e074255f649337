//! The verification of books on a server: it names the row that was altered, and turns go on
//! beside it.

use crate::points_load::{BOOKS, REVERSALS, Teller};
use crate::support::{Server, name_of};
use raingauge_ports::points::{Books as _, VerifiedBooks};
use raingauge_sql::{MySql, MySqlBooks};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Handle, Runtime};

/// Commands of all kinds.
const COMMANDS: u64 = 800;
/// Entries of one member, more than a page has.
const ENTRIES: u64 = 600;
/// Commands of one turn.
const TURN: usize = 100;
/// A command that awards from a budget and has no reference, and how far the next one of its member
/// is away.
const AWARD: u64 = 4;
const PERIOD: u64 = 40;

/// Alterations, what takes each of them back, and the row that is named.
const ALTERED: [[&str; 3]; 9] = [
    [
        "UPDATE points_wallets SET record = CONCAT(LEFT(record, LENGTH(record) - 1), x'02')
         WHERE member = 'm28'",
        "UPDATE points_wallets SET record = CONCAT(LEFT(record, LENGTH(record) - 1), x'00')
         WHERE member = 'm28'",
        "the wallet of rain/m28",
    ],
    [
        "UPDATE points_wallets SET due_hour = 7 WHERE member = 'm28'",
        "UPDATE points_wallets SET due_hour = NULL WHERE member = 'm28'",
        "the wallet of rain/m28",
    ],
    [
        "UPDATE points_entries SET body = REPLACE(body, 'because it rains', 'because it snows')
         WHERE book = 1",
        "UPDATE points_entries SET body = REPLACE(body, 'because it snows', 'because it rains')
         WHERE book = 1",
        "the head of book 1",
    ],
    [
        "UPDATE points_entries SET recorded_ms = recorded_ms + 1 WHERE book = 1 AND sequence = 3",
        "UPDATE points_entries SET recorded_ms = recorded_ms - 1 WHERE book = 1 AND sequence = 3",
        "entry 3 of book 1",
    ],
    [
        "UPDATE points_keys SET hash = REVERSE(hash) WHERE book = 1 ORDER BY sequence LIMIT 1",
        "UPDATE points_keys SET hash = REVERSE(hash) WHERE book = 1 ORDER BY sequence LIMIT 1",
        "the key ",
    ],
    [
        "INSERT INTO points_keys (hash, book, sequence) VALUES (REPEAT('k', 16), 1, 3)",
        "DELETE FROM points_keys WHERE hash = REPEAT('k', 16)",
        "the number of keys",
    ],
    [
        "UPDATE points_totals SET amount = amount + 1 WHERE book = 2 ORDER BY total LIMIT 1",
        "UPDATE points_totals SET amount = amount - 1 WHERE book = 2 ORDER BY total LIMIT 1",
        "of rain in book 2",
    ],
    [
        "UPDATE points_budgets SET used = used + 1",
        "UPDATE points_budgets SET used = used - 1",
        "the budget gifts of rain",
    ],
    [
        "UPDATE points_references SET reference = CONCAT(reference, '!')
         WHERE reference = 'm0\\0order 0'",
        "UPDATE points_references SET reference = 'm0\\0order 0'
         WHERE reference = 'm0\\0order 0!'",
        "the reference \"m0\\0order 0\" of rain",
    ],
];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Returns the summary of sound books, or the sentence about the first row that is not.
fn verified(books: &MySqlBooks, runtime: &Handle) -> Result<VerifiedBooks, String> {
    let verified = runtime.block_on(books.verify()).map_err(|error| error.to_string())?;
    verified.map_err(|difference| difference.to_string())
}

fn entries(teller: &Teller<MySql>) -> u64 {
    (0..BOOKS).map(|book| teller.books.head(book).unwrap().sequence).sum()
}

#[test]
fn a_row_that_was_altered_is_named() {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = runtime();
    let handle = runtime.handle();
    let options = handle.block_on(server.database());
    let books = handle.block_on(MySqlBooks::open(&options, BOOKS, handle.clone())).unwrap();
    let teller = Teller::new(books);
    assert_eq!(verified(&teller.books, handle).unwrap().records, 0, "books without entries");

    let of_member = (COMMANDS / PERIOD..).map(|period| AWARD + period * PERIOD);
    let numbers: Vec<u64> = (0..COMMANDS).chain(of_member.take(ENTRIES as usize)).collect();
    for numbers in numbers.chunks(TURN) {
        teller.turn(numbers).unwrap();
    }
    // The award is pages before its reversal.
    teller.turn(&[REVERSALS + AWARD]).unwrap();

    let sound = verified(&teller.books, handle).unwrap();
    assert_eq!(sound.entries, entries(&teller));
    let commands = COMMANDS + ENTRIES + 1;
    assert!(sound.records > commands, "each command has its key at least: {}", sound.records);

    let database = name_of(&options);
    for [alteration, repair, named] in ALTERED {
        handle.block_on(server.run(&database, alteration));
        let sentence = verified(&teller.books, handle).unwrap_err();
        assert!(sentence.contains(named), "after {alteration}: {sentence}");
        handle.block_on(server.run(&database, repair));
        assert_eq!(verified(&teller.books, handle).as_ref(), Ok(&sound), "after {repair}");
    }

    let removal = "DELETE FROM points_entries WHERE member = 'm28' AND member_sequence = 300";
    handle.block_on(server.run(&database, removal));
    let sentence = verified(&teller.books, handle).unwrap_err();
    assert!(sentence.contains("no entry is left out"), "{sentence}");
    handle.block_on(server.clean_up());
}

#[test]
fn turns_go_on_beside_a_verification() {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = runtime();
    let handle = runtime.handle();
    let options = handle.block_on(server.database());
    let open = || handle.block_on(MySqlBooks::open(&options, BOOKS, handle.clone())).unwrap();
    let teller = Teller::new(open());
    let books = open();
    let ends = AtomicBool::new(false);

    std::thread::scope(|scope| {
        scope.spawn(|| {
            for first in (0..).step_by(8) {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let numbers: Vec<u64> = (first..first + 8).collect();
                teller.turn(&numbers).unwrap();
            }
        });

        // The thread ends as well when a verification fails.
        let found = std::panic::AssertUnwindSafe(|| {
            let mut last = 0;
            let mut longer = 0;
            while longer < 5 {
                let found = verified(&books, handle).unwrap();
                longer += u32::from(found.entries > last);
                last = found.entries;
            }
        });
        let found = std::panic::catch_unwind(found);
        ends.store(true, Ordering::Relaxed);
        found.unwrap_or_else(|why| std::panic::resume_unwind(why));
    });

    assert_eq!(verified(&books, handle).unwrap().entries, entries(&teller));
    handle.block_on(server.clean_up());
}
