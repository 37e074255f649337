//! Turns that no engine may write.

use super::{Clerk, NOW_MS, award, head_of, programmes, wait, wallet};
use crate::points::{BookReader, Books, Error};
use raingauge_points::{Account, Desk, Entry, Footprint, Key, Posting, Turn};
use std::sync::Arc;

/// Changes the first entry of a turn.
fn spoiled(turn: &mut Turn, change: impl FnOnce(&mut Entry)) {
    let mut entry = Entry::clone(&turn.entries[0]);
    change(&mut entry);
    turn.entries[0] = Arc::new(entry);
}

pub(super) fn a_refused_turn_changes_nothing<B: Books + BookReader>(books: &B) {
    let gap = |turn: &mut Turn| spoiled(turn, |entry| entry.sequence += 1);
    let repeated = |turn: &mut Turn| spoiled(turn, |entry| entry.sequence -= 1);
    let elsewhere = |turn: &mut Turn| spoiled(turn, |entry| entry.book += 1);
    let unbalanced = |turn: &mut Turn| {
        let posting = Posting { account: Account::Expired(None), amount: 1 };
        spoiled(turn, |entry| entry.postings.push(posting));
    };
    let back_in_time = |turn: &mut Turn| {
        turn.recorded_ms = NOW_MS - 1;
        spoiled(turn, |entry| entry.recorded_ms = NOW_MS - 1);
    };
    let other_time = |turn: &mut Turn| turn.recorded_ms += 1;
    let back = |turn: &mut Turn| turn.position = Some(76);
    let known_key = |turn: &mut Turn| {
        let key = Key::of("shop", "", "order-1");
        spoiled(turn, |entry| entry.key.as_mut().expect("a key").hash = key);
    };
    let spoil: [&dyn Fn(&mut Turn); 8] =
        [&gap, &repeated, &elsewhere, &unbalanced, &back_in_time, &other_time, &back, &known_key];

    let clerk = Clerk::new(books);
    clerk.turn(&[award("bob", "order-1", 100)], Some(77)).expect("a turn");
    let head = head_of(books, "bob");
    let next = [award("bob", "order-2", 50)];
    let programmes = programmes();
    let footprint = Footprint::of(&next, &programmes, NOW_MS);

    for (number, spoil) in spoil.into_iter().enumerate() {
        let refused = books.turn(&[head.book], &footprint, &mut |_, snapshot| {
            let mut desk = Desk::new(&programmes, snapshot, NOW_MS);
            desk.execute(&next[0]);
            let mut turn = desk.finish();
            spoil(&mut turn);
            turn
        });
        assert!(matches!(refused, Err(Error::Invalid(_))), "turn {number}: {refused:?}");
        assert_eq!(head_of(books, "bob"), head);
    }

    let key = Key::of("shop", "", "order-2");
    assert_eq!(wait(books.by_key(key)).expect("read"), None);
    assert_eq!(books.read(head.book, 1, 1 << 20).expect("entries").len(), 1);
    clerk.execute(&next);
    let found = wait(books.wallets(vec![wallet("bob")])).expect("wallets");
    assert_eq!(found[0].as_ref().map(|wallet| wallet.balance()), Some(150));
}
