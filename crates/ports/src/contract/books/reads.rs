//! What readers find.

use super::{Clerk, NOW_MS, award, burn, command, head_of, wait, wallet};
use crate::points::{BookReader, Books, Chain, DueWallet};
use raingauge_points::{Body, BudgetId, Command, Day, Entry, Points};
use std::ops::Range;
use std::sync::Arc;

const HOUR_MS: i64 = 3_600_000;

pub(super) fn entries_are_read_in_order<B: Books>(books: &B) {
    let clerk = Clerk::new(books);
    for turn in 0..6 {
        let commands: Vec<Command> = (0..=turn)
            .map(|number| award("bob", &format!("order-{turn}-{number}"), number + 1))
            .collect();
        clerk.execute(&commands);
    }

    let head = head_of(books, "bob");
    let all = books.read(head.book, 1, 1 << 20).expect("entries");
    assert!(all.iter().map(|entry| entry.sequence).eq(1..=head.sequence));
    let chain = all.iter().fold(Chain::default(), |chain, entry| {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        chain.after(&bytes)
    });
    assert_eq!(chain, head.chain, "the chain covers each entry");

    // In parts of any size, from any entry on.
    for from in 1..=head.sequence {
        let mut next = from;
        while next <= head.sequence {
            let part = books.read(head.book, next, 1).expect("entries");
            let end = next + part.len() as u64;
            assert!(!part.is_empty() && part[..] == all[next as usize - 1..end as usize - 1]);
            next = end;
        }
    }
    assert_eq!(books.read(head.book, head.sequence + 1, 1 << 20).expect("entries"), []);
}

pub(super) fn statements_are_read_in_pages<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    for number in 0..5 {
        let commands = [
            award("bob", &format!("bob-{number}"), 10),
            award("bobby", &format!("bobby-{number}"), 1),
            burn("bob", &format!("burn-{number}"), 3),
        ];
        clerk.execute(&commands);
    }

    let page = |before, len_max| {
        let entries = wait(books.statement(wallet("bob"), before, len_max)).expect("a page");
        let row = |entry: &Arc<Entry>| (entry.member_sequence, entry.balance_after);
        entries.iter().map(row).collect::<Vec<_>>()
    };
    let all: Vec<(u64, Points)> =
        (1..=10).rev().map(|row| (row as u64, row / 2 * 7 + row % 2 * 10)).collect();
    assert_eq!(page(None, 100), all);
    assert_eq!(page(None, 3), all[..3]);
    assert_eq!(page(Some(8), 4), all[3..7]);
    assert_eq!(page(Some(1), 4), []);
    assert_eq!(page(None, 0), []);
    let other = wait(books.statement(wallet("bobby"), None, 100)).expect("a statement");
    assert_eq!(other.len(), 5, "a longer name is another member");
}

pub(super) fn balances_are_known_as_of_a_time<B: Books + BookReader>(books: &B) {
    let mut clerk = Clerk::new(books);
    for number in 0..7 {
        clerk.now_ms = NOW_MS + number * 1_000;
        clerk.execute(&[award("bob", &format!("order-{number}"), 10)]);
    }
    // Two entries at the same time: the later one counts.
    clerk.execute(&[award("bob", "order-7", 10)]);

    let as_of = |at_ms| {
        let entry = wait(books.as_of(wallet("bob"), at_ms)).expect("read");
        entry.map(|entry| entry.balance_after)
    };
    assert_eq!(as_of(NOW_MS - 1), None);
    assert_eq!(as_of(NOW_MS), Some(10));
    assert_eq!(as_of(NOW_MS + 999), Some(10));
    assert_eq!(as_of(NOW_MS + 3_500), Some(40));
    assert_eq!(as_of(NOW_MS + 6_000), Some(80));
    assert_eq!(as_of(i64::MAX), Some(80));
    assert_eq!(wait(books.as_of(wallet("ann"), i64::MAX)).expect("read"), None);
}

pub(super) fn wallets_are_due_in_order<B: Books + BookReader>(books: &B) {
    let mut clerk = Clerk::new(books);
    let members = ["a", "b", "bb", "c", "d", "e"];
    for (number, member) in members.iter().enumerate() {
        // Activity in other months moves the hour at which points expire.
        clerk.now_ms = NOW_MS + (number as i64 % 3) * 31 * 24 * HOUR_MS;
        clerk.execute(&[award(member, &format!("order-{member}"), 10)]);
    }

    for book in 0..books.books() {
        let here = members.iter().filter(|member| wallet(member).book(books.books()) == book);
        let mut expected: Vec<DueWallet> = here
            .map(|member| {
                let found = wait(books.wallets(vec![wallet(member)])).expect("wallets");
                let hour = found[0].as_ref().and_then(|wallet| wallet.due_hour);
                DueWallet { hour: hour.expect("it is due"), wallet: wallet(member) }
            })
            .collect();
        expected.sort_unstable();

        let due = |until, after, len_max| books.due(book, until, after, len_max).expect("due");
        assert_eq!(due(u32::MAX, None, 100), expected);
        assert_eq!(due(0, None, 100), []);
        assert_eq!(due(u32::MAX, None, 0), []);
        for (place, one) in expected.iter().enumerate() {
            assert_eq!(
                due(u32::MAX, Some(one), 2),
                expected[place + 1..].iter().take(2).cloned().collect::<Vec<_>>()
            );
            let until: Vec<_> = expected.iter().filter(|it| it.hour <= one.hour).cloned().collect();
            assert_eq!(due(one.hour, None, 100), until);
        }
    }

    // A wallet that moves is due at its new hour alone.
    clerk.now_ms = NOW_MS + 200 * 24 * HOUR_MS;
    clerk.execute(&[award("a", "order-2", 10)]);
    let due = books.due(wallet("a").book(books.books()), u32::MAX, None, 100).expect("due");
    assert_eq!(due.iter().filter(|due| due.wallet == wallet("a")).count(), 1);

    // One that becomes due before all others comes first, whatever was asked before.
    let hold = Body::Hold { points: Some(1), until_ms: Some(clerk.now_ms + HOUR_MS), reward: None };
    clerk.execute(&[command("a", "hold-1", hold)]);
    let due = books.due(wallet("a").book(books.books()), u32::MAX, None, 1).expect("due");
    assert_eq!(due.first().map(|due| &due.wallet), Some(&wallet("a")));
}

pub(super) fn sums_and_budgets_follow_from_the_entries<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let paid = |member: &str, key: &str, points| {
        let mut command = award(member, key, points);
        if let Body::Award(award) = &mut command.body {
            award.budget = Some(Arc::from("campaign"));
        }
        command
    };
    clerk.execute(&[paid("bob", "order-1", 200), paid("ann", "order-2", 250)]);
    let (answers, _) = clerk.turn(&[paid("eve", "order-3", 51)], None).expect("a turn");
    assert!(matches!(answers[..], [raingauge_points::Answer::Refused { .. }]), "{answers:?}");
    clerk.execute(&[burn("bob", "burn-1", 50)]);

    let budget = |name: &str| BudgetId::new(&Arc::from("shop"), &Arc::from(name));
    let used = wait(books.budgets(vec![budget("other"), budget("campaign")]));
    assert_eq!(used.expect("budgets"), [0, 450]);
    let totals = wait(books.totals(Arc::from("shop"))).expect("totals");
    let liability = totals.liability("shop");
    assert_eq!((liability.total(), liability.issued, liability.burned), (400, 450, 50));
    assert!(wait(books.totals(Arc::from("sho"))).expect("totals").0.is_empty());
}

pub(super) fn turns_move_some_of_many_sums<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let date = |month: u16| Day::of_civil(2026, 7, 31).expect("a day").plus_months(month);
    let awards = |key: &str, months: Range<u16>| -> Vec<Command> {
        let expiring = |month| {
            let mut command = award(&format!("member-{month}"), &format!("{key}-{month}"), 7);
            if let Body::Award(award) = &mut command.body {
                award.expires_on = Some(date(month));
            }
            command
        };
        months.map(expiring).collect()
    };
    for commands in [awards("all", 0..300), awards("some", 10..20), awards("more", 15..25)] {
        clerk.execute(&commands);
    }

    let totals = wait(books.totals(Arc::from("shop"))).expect("totals");
    let points = |month: u16| match month {
        15..20 => 21,
        10..25 => 14,
        _ => 7,
    };
    let expected = (0..300).map(|month| (Some(date(month).month()), points(month)));
    assert_eq!(totals.liability("shop").outstanding, expected.collect::<Vec<_>>());
}

pub(super) fn consumers_have_places<B: Books>(books: &B) {
    assert_eq!(books.place("publisher", 0).expect("a place"), 0);
    books.set_place("publisher", 0, 41).expect("noted");
    books.set_place("notifier", 0, 7).expect("noted");
    books.set_place("publisher", 0, 42).expect("noted");
    assert_eq!(books.place("publisher", 0).expect("a place"), 42);
    assert_eq!(books.place("notifier", 0).expect("a place"), 7);
}
