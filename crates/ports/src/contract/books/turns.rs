//! What a turn makes durable.

use super::{Clerk, NOW_MS, award, burn, command, head_of, programmes, wait, wallet};
use crate::points::{BookReader, Books, Chain, Head};
use raingauge_points::{
    Answer, Body, Desk, Entry, Footprint, Key, Kind, Points, ReferenceId, Snapshot, Turn,
};
use std::sync::Arc;

pub(super) fn empty_books_have_nothing<B: Books + BookReader>(books: &B) {
    for book in 0..books.books() {
        assert_eq!(books.head(book).expect("a head"), Head::of_book(book));
        assert_eq!(books.read(book, 1, 1_000).expect("entries"), []);
        assert_eq!(books.due(book, u32::MAX, None, 9).expect("due wallets"), []);
        assert_eq!(wait(books.entry(book, 1)).expect("read"), None);
    }

    assert!(books.head(books.books()).is_err(), "there are no other books");
    assert_eq!(wait(books.wallets(vec![wallet("bob")])).expect("wallets"), [None]);
    assert_eq!(wait(books.statement(wallet("bob"), None, 9)).expect("a statement"), []);
    assert_eq!(wait(books.as_of(wallet("bob"), i64::MAX)).expect("read"), None);
    assert_eq!(wait(books.by_key(Key::of("shop", "", "k"))).expect("read"), None);
    assert!(wait(books.totals(Arc::from("shop"))).expect("totals").0.is_empty());
}

/// What a turn finds of a footprint. It changes nothing.
fn look<B: Books>(books: &B, footprint: &Footprint) -> Snapshot {
    let mut found = None;
    let all = super::books_of(books, footprint);
    let heads_before: Vec<Head> = all.iter().map(|book| books.head(*book).unwrap()).collect();
    let heads = books.turn(&all, footprint, &mut |heads, snapshot| {
        assert_eq!(heads, heads_before, "heads come in the order of the books");
        found = Some(snapshot);
        Turn::default()
    });
    assert_eq!(heads.expect("a turn"), heads_before, "a turn without entries changes nothing");
    found.expect("it was decided")
}

pub(super) fn everything_becomes_durable_together<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let mut first = award("bob", "order-1", 180);
    first.reference = Some(Arc::from("o-1"));
    let (answers, heads) = clerk.turn(&[first.clone()], Some(77)).expect("a turn");
    let [Answer::Done(entries)] = &answers[..] else {
        panic!("it is done, and not {answers:?}");
    };
    let entry = Arc::clone(&entries[0]);

    // The head.
    let head = head_of(books, "bob");
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    assert_eq!(heads, std::slice::from_ref(&head));
    assert_eq!((head.sequence, head.recorded_ms, head.position), (1, NOW_MS, 77));
    assert_eq!(head.chain, Chain::default().after(&bytes));

    // The wallet, with its place among those that are due.
    let found = wait(books.wallets(vec![wallet("ann"), wallet("bob")])).expect("wallets");
    let of_bob = found[1].clone().expect("bob's wallet");
    assert_eq!((&found[0], of_bob.balance(), of_bob.sequence), (&None, 180, 1));
    let due = books.due(head.book, u32::MAX, None, 9).expect("due wallets");
    assert_eq!(due.len(), 1);
    assert_eq!((Some(due[0].hour), &due[0].wallet), (of_bob.due_hour, &wallet("bob")));

    // The entry, by number, key and member.
    let key = Key::of("shop", "", "order-1");
    assert_eq!(wait(books.entry(head.book, 1)).expect("read"), Some(Arc::clone(&entry)));
    assert_eq!(wait(books.by_key(key)).expect("read"), Some(Arc::clone(&entry)));
    let statement = wait(books.statement(wallet("bob"), None, 9)).expect("a statement");
    assert_eq!(statement, [Arc::clone(&entry)]);
    assert_eq!(books.read(head.book, 1, 1).expect("entries"), [Arc::clone(&entry)]);

    // What the next turn finds of it.
    let footprint = Footprint::of(&[first], &programmes(), NOW_MS);
    let snapshot = look(books, &footprint);
    assert_eq!(snapshot.wallets.get(&wallet("bob")), Some(&of_bob));
    assert_eq!(snapshot.keys.get(&key), Some(&entry));
    let reference = ReferenceId::of(&Arc::from("shop"), "bob", "o-1");
    assert!(snapshot.references.contains_key(&reference), "what the reference of a key earned");
    assert_eq!(snapshot.books, books.books());
    assert_eq!(snapshot.heads.len(), 1);
    assert_eq!((snapshot.heads[0].sequence, snapshot.heads[0].recorded_ms), (1, NOW_MS));
    assert!(snapshot.totals.0.is_empty(), "sums are not loaded, however many there are");
}

pub(super) fn a_key_has_one_entry<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let commands = [award("bob", "order-1", 180), burn("bob", "burn-1", 300)];
    let (answers, _) = clerk.turn(&commands, None).expect("a turn");
    let before = head_of(books, "bob");

    // The first answer again, of what was done and of what was refused.
    let (again, _) = clerk.turn(&commands, None).expect("a turn");
    match (&answers[..], &again[..]) {
        (
            [Answer::Done(done), Answer::Refused { refusal, entry, replayed: false }],
            [
                Answer::Replayed(replayed),
                Answer::Refused { refusal: same, entry: again, replayed: true },
            ],
        ) => {
            assert_eq!(&done[0], replayed);
            assert_eq!((refusal, entry), (same, again));
        }
        other => panic!("the second answers repeat the first: {other:?}"),
    }
    assert_eq!(head_of(books, "bob"), before);
    let found = wait(books.wallets(vec![wallet("bob")])).expect("wallets");
    assert_eq!(found[0].as_ref().map(|wallet| wallet.balance()), Some(180));
}

pub(super) fn a_turn_without_entries_moves_the_position_at_most<B: Books>(books: &B) {
    let clerk = Clerk::new(books);
    clerk.turn(&[award("bob", "order-1", 180)], Some(5)).expect("a turn");
    let before = head_of(books, "bob");
    look(books, &Footprint { wallets: vec![wallet("bob")], ..Footprint::default() });
    assert_eq!(head_of(books, "bob"), before);

    let footprint = Footprint::default();
    let book = before.book;
    let moved = books.turn(&[book], &footprint, &mut |heads, _| Turn {
        position: Some(heads[0].position + 4),
        ..Turn::default()
    });
    let expected = Head { position: 9, ..before };
    assert_eq!(moved.expect("a turn"), std::slice::from_ref(&expected));
    assert_eq!(books.head(book).expect("a head"), expected);
}

/// Two members whose wallets lie in different books, where there are several.
fn far_apart(books: &impl Books) -> [String; 2] {
    let count = books.books();
    let first = "bob".to_owned();
    let is_apart =
        |member: &String| count == 1 || wallet(member).book(count) != wallet(&first).book(count);
    let second = (0..).map(|number| format!("ann-{number}")).find(is_apart);
    [first.clone(), second.expect("a member in another book")]
}

pub(super) fn a_transfer_may_cross_books<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let [from, to] = far_apart(books);
    clerk.execute(&[award(&from, "order-1", 100), award(&to, "order-2", 1)]);
    let transfer = Body::Transfer { to: Arc::from(&to[..]), points: 30 };
    clerk.execute(&[command(&from, "gift", transfer)]);

    let found = wait(books.wallets(vec![wallet(&from), wallet(&to)])).expect("wallets");
    let balances: Vec<Points> = found.iter().flatten().map(|wallet| wallet.balance()).collect();
    assert_eq!(balances, [70, 31]);
    let newest = |member: &str| {
        let rows = wait(books.statement(wallet(member), None, 1)).expect("a statement");
        (rows[0].kind, rows[0].member_sequence)
    };
    assert_eq!([newest(&from), newest(&to)], [(Kind::TransferOut, 2), (Kind::TransferIn, 2)]);
    let totals = wait(books.totals(Arc::from("shop"))).expect("totals");
    assert_eq!(totals.liability("shop").total(), 101);
    assert_eq!(totals.0.values().sum::<i128>(), 0, "what members have, the programme gave");
}

pub(super) fn an_award_is_reversed_by_reference_and_by_key<B: Books + BookReader>(books: &B) {
    let clerk = Clerk::new(books);
    let mut referred = award("bob", "order-1", 100);
    referred.reference = Some(Arc::from("o-1"));
    clerk.execute(&[referred, award("bob", "order-2", 50)]);

    let mut by_reference = command(
        "bob",
        "refund-1",
        Body::Reverse { key: None, source: None, amount: None, points: Some(40) },
    );
    by_reference.reference = Some(Arc::from("o-1"));
    let by_key =
        Body::Reverse { key: Some(Arc::from("order-2")), source: None, amount: None, points: None };
    clerk.execute(&[by_reference, command("bob", "refund-2", by_key.clone())]);
    let found = wait(books.wallets(vec![wallet("bob")])).expect("wallets");
    assert_eq!(found[0].as_ref().map(|wallet| wallet.balance()), Some(60));

    // What was taken back is known to later turns.
    let (answers, _) = clerk.turn(&[command("bob", "refund-3", by_key)], None).expect("a turn");
    assert!(matches!(answers[..], [Answer::Refused { .. }]), "{answers:?}");
}

pub(super) fn versions_in_force_follow_from_the_entries<B: Books + BookReader>(books: &B) {
    let all: Vec<u16> = (0..books.books()).collect();
    let put = |name: &str, version| {
        let programmes = programmes();
        let heads = books.turn(&all, &Footprint::default(), &mut |_, snapshot| {
            let mut desk = Desk::new(&programmes, snapshot, NOW_MS);
            desk.programme(name, version);
            desk.finish()
        });
        heads.expect("a turn")
    };
    put("shop", 1);
    put("mart", 7);
    let heads = put("shop", 2);

    for head in &heads {
        assert_eq!(head.versions, [(Arc::from("mart"), 7), (Arc::from("shop"), 2)]);
        assert_eq!(head.sequence, 3);
        let entry: Option<Arc<Entry>> = wait(books.entry(head.book, 3)).expect("read");
        assert_eq!(entry.map(|entry| entry.kind), Some(Kind::Programme));
    }
    let read = all.iter().map(|book| books.head(*book).expect("a head"));
    assert_eq!(read.collect::<Vec<_>>(), heads);
}
