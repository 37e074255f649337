//! The life of a delivery.

use super::{NOW_MS, action, budget_change, budget_key, commit_to, cost, delivery};
use crate::campaigns::{
    ActionId, Backlog, Delivery, DeliveryQuery, DeliveryRecord, Ledger, Outbox, Selection, Settled,
    Settlement, Status,
};

fn settled(number: u8, settlement: Settlement) -> Settled {
    Settled { action: action(number), at_ms: NOW_MS + 50, settlement, note: "503".to_owned() }
}

fn to_messages(campaign: Option<u32>) -> Selection {
    Selection::All { destination: Some("messages".to_owned()), campaign }
}

/// Takes what is due `after_ms` after the beginning.
async fn take(outbox: &impl Outbox, after_ms: i64, len_max: usize) -> Vec<ActionId> {
    let taken = outbox.take("messages", NOW_MS + after_ms, len_max).await.expect("deliveries");
    taken.into_iter().map(|delivery| delivery.action).collect()
}

async fn record(outbox: &impl Outbox, number: u8) -> DeliveryRecord {
    outbox.get(action(number)).await.expect("a delivery").expect("it is there")
}

async fn status(outbox: &impl Outbox, number: u8) -> Status {
    record(outbox, number).await.status
}

pub async fn sends_what_is_due_in_order<L: Ledger + Outbox>(ledger: &L) {
    let elsewhere = |number| Delivery { destination: "message".to_owned(), ..delivery(number, 0) };
    commit_to(ledger, |commit| {
        commit.deliveries =
            vec![delivery(3, 5), delivery(2, 0), delivery(1, 0), delivery(4, 6), elsewhere(5)];
    });

    let backlog = ledger.backlog("messages").await.expect("a backlog");
    assert_eq!(backlog, Backlog { pending: 4, oldest_ms: Some(NOW_MS) });
    assert_eq!(take(ledger, -1, 9).await, []);
    assert_eq!(take(ledger, 5, 2).await, [action(1), action(2)]);
    assert_eq!(take(ledger, 5, 9).await, [action(3)]);
    assert_eq!(take(ledger, 5, 9).await, []);
    assert_eq!(ledger.take("message", NOW_MS, 9).await.expect("deliveries"), [elsewhere(5)]);
    assert_eq!(ledger.take("messages-2", NOW_MS, 9).await.expect("deliveries"), []);

    // What is taken is still pending, and what comes later may be due earlier.
    assert_eq!(ledger.backlog("messages").await.expect("a backlog").pending, 4);
    commit_to(ledger, |commit| commit.deliveries = vec![delivery(6, -70)]);
    assert_eq!(take(ledger, 6, 9).await, [action(6), action(4)]);
    let nothing = ledger.backlog("rewards").await.expect("a backlog");
    assert_eq!(nothing, Backlog::default());
}

pub async fn tries_again_until_it_is_settled<L: Ledger + Outbox>(ledger: &L) {
    commit_to(ledger, |commit| commit.deliveries = (1..=4).map(|n| delivery(n, 0)).collect());
    assert_eq!(take(ledger, 0, 9).await.len(), 4);

    let results = [
        Settlement::Delivered,
        Settlement::Refused,
        Settlement::Retry { next_ms: NOW_MS + 5_000 },
        Settlement::Postponed { next_ms: NOW_MS + 5_000 },
    ];
    let results = (1..).zip(results).map(|(number, result)| settled(number, result)).collect();
    ledger.settle(results).await.expect("settled");
    let tries_of = async |number| record(ledger, number).await.tries;
    assert_eq!([tries_of(1).await, tries_of(3).await, tries_of(4).await], [1, 1, 0]);
    assert_eq!(record(ledger, 3).await.note, "503");
    assert_eq!(
        [status(ledger, 1).await, status(ledger, 2).await],
        [Status::Delivered, Status::Refused]
    );
    assert_eq!(record(ledger, 1).await.at_ms, NOW_MS + 50);

    assert_eq!(take(ledger, 4_999, 9).await, []);
    let again = ledger.take("messages", NOW_MS + 5_000, 9).await.expect("deliveries");
    assert_eq!(again, [delivery(3, 0), delivery(4, 0)]);
    ledger.settle(vec![settled(3, Settlement::Dead)]).await.expect("settled");
    assert_eq!((status(ledger, 3).await, tries_of(3).await), (Status::Dead, 2));

    // Results for what is not being sent change nothing.
    let late = [1, 2, 3, 9].map(|number| settled(number, Settlement::Delivered));
    ledger.settle(late.to_vec()).await.expect("settled");
    assert_eq!(status(ledger, 2).await, Status::Refused);
    assert_eq!((status(ledger, 3).await, tries_of(3).await), (Status::Dead, 2));

    let long = Settled { note: "é".repeat(1_000), ..settled(4, Settlement::Delivered) };
    ledger.settle(vec![long]).await.expect("settled");
    assert_eq!(record(ledger, 4).await.note, "é".repeat(128));
}

pub async fn holds_and_releases_a_campaign<L: Ledger + Outbox>(ledger: &L) {
    let other = Delivery { campaign: 8, ..delivery(3, 0) };
    commit_to(ledger, |commit| commit.deliveries = vec![delivery(1, 0), delivery(2, 0), other]);
    assert_eq!(take(ledger, 0, 9).await.len(), 3);
    let held = [1, 2, 3].map(|number| settled(number, Settlement::Held));
    ledger.settle(held.to_vec()).await.expect("settled");
    assert_eq!(take(ledger, 9_000, 9).await, []);
    assert_eq!(record(ledger, 1).await.tries, 0);

    assert_eq!(ledger.release(7, NOW_MS + 100).await, Ok(2));
    assert_eq!(ledger.release(7, NOW_MS + 100).await, Ok(0));
    assert_eq!(take(ledger, 99, 9).await, []);
    assert_eq!(take(ledger, 100, 9).await, [action(1), action(2)]);
    assert_eq!(status(ledger, 3).await, Status::Held);
}

pub async fn spends_and_returns_budgets<L: Ledger + Outbox>(ledger: &L) {
    let costly = |number| Delivery { cost: Some(cost(100)), ..delivery(number, 0) };
    let mut kept = costly(4);
    kept.cost.as_mut().expect("a cost").is_refunded = false;
    commit_to(ledger, |commit| {
        commit.budgets = vec![budget_change(1_000, 600)];
        commit.deliveries = vec![costly(1), costly(2), costly(3), kept, costly(5), costly(6)];
    });
    let budget = || {
        let budget = ledger.budgets(&[budget_key()]).expect("budgets")[0];
        (budget.reserved, budget.spent)
    };

    assert_eq!(take(ledger, 0, 5).await.len(), 5);
    let next_ms = NOW_MS + 7;
    let results = [
        (1, Settlement::Delivered),
        (2, Settlement::Refused),
        (3, Settlement::Dead),
        (4, Settlement::Refused),
        (5, Settlement::Retry { next_ms }),
    ];
    let results = results.map(|(number, result)| settled(number, result));
    ledger.settle(results[..1].to_vec()).await.expect("settled");
    assert_eq!(budget(), (600, 100));
    ledger.settle(results.to_vec()).await.expect("settled");
    assert_eq!(budget(), (500, 200));

    // The dead one keeps its part until it is cancelled.
    assert_eq!(ledger.cancel(Selection::One(action(3)), NOW_MS).await, Ok(1));
    assert_eq!(budget(), (400, 200));
    assert_eq!(ledger.cancel(Selection::One(action(3)), NOW_MS).await, Ok(0));
    assert_eq!(ledger.cancel(to_messages(None), NOW_MS).await, Ok(2));
    assert_eq!(budget(), (200, 200));
}

pub async fn redrives_and_cancels_a_selection<L: Ledger + Outbox>(ledger: &L) {
    let other = Delivery { campaign: 8, ..delivery(3, 0) };
    let elsewhere = Delivery { destination: "rewards".to_owned(), ..delivery(4, 0) };
    commit_to(ledger, |commit| {
        commit.deliveries = vec![delivery(1, 0), delivery(2, 0), other, elsewhere];
    });
    assert_eq!(take(ledger, 0, 9).await.len(), 3);
    ledger.take("rewards", NOW_MS, 9).await.expect("deliveries");
    let dead = [1, 2, 3, 4].map(|number| settled(number, Settlement::Dead));
    ledger.settle(dead.to_vec()).await.expect("settled");

    assert_eq!(ledger.redrive(Selection::One(action(1)), NOW_MS + 1).await, Ok(1));
    assert_eq!((status(ledger, 1).await, record(ledger, 1).await.tries), (Status::Pending, 0));
    assert_eq!(ledger.redrive(to_messages(Some(7)), NOW_MS + 2).await, Ok(1));
    assert_eq!(ledger.redrive(to_messages(Some(7)), NOW_MS + 2).await, Ok(0));
    assert_eq!(take(ledger, 1, 9).await, [action(1)]);

    // What is being sent is not cancelled.
    assert_eq!(ledger.cancel(Selection::One(action(1)), NOW_MS).await, Ok(0));
    let campaign = Selection::All { destination: None, campaign: Some(7) };
    assert_eq!(ledger.cancel(campaign.clone(), NOW_MS + 3).await, Ok(2));
    assert_eq!([status(ledger, 2).await, status(ledger, 4).await], [Status::Cancelled; 2]);
    assert_eq!([status(ledger, 1).await, status(ledger, 3).await], [Status::Pending, Status::Dead]);

    ledger.settle(vec![settled(1, Settlement::Delivered)]).await.expect("settled");
    for ended in [campaign, Selection::One(action(1)), Selection::One(action(9))] {
        assert_eq!(ledger.cancel(ended.clone(), NOW_MS).await, Ok(0));
        assert_eq!(ledger.redrive(ended, NOW_MS).await, Ok(0));
    }
    assert_eq!(take(ledger, 9_000, 9).await, []);
}

pub async fn lists_every_delivery_in_pages<L: Ledger + Outbox>(ledger: &L) {
    let all: Vec<Delivery> = (1..=20)
        .map(|number: u8| Delivery {
            destination: ["rewards", "messages"][usize::from(number % 2)].to_owned(),
            campaign: u32::from(number % 3),
            ..delivery(number, (number / 3).into())
        })
        .collect();
    commit_to(ledger, |commit| commit.deliveries.clone_from(&all));
    assert_eq!(ledger.cancel(Selection::One(action(20)), NOW_MS).await, Ok(1));

    let mut expected: Vec<DeliveryRecord> = all[..19]
        .iter()
        .map(|delivery| DeliveryRecord::new(Delivery { body: Vec::new(), ..delivery.clone() }))
        .collect();
    expected.sort_by_key(DeliveryRecord::place);

    for destination in [None, Some("rewards"), Some("messages"), Some("message")] {
        for campaign in [None, Some(2), Some(9)] {
            let mut query = DeliveryQuery {
                status: Status::Pending,
                destination: destination.map(str::to_owned),
                campaign,
                after: None,
                len_max: 4,
            };
            let mut found = Vec::new();
            loop {
                let page = ledger.list(query.clone()).await.expect("deliveries");
                assert!(page.records.len() <= 4);
                found.extend(page.records);
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
            let asked = expected.iter().filter(|record| query.matches(record));
            assert_eq!(found, asked.cloned().collect::<Vec<_>>(), "{query:?}");
        }
    }
}
