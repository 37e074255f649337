//! The worked example of campaigns, over each engine, with a worker that dies after every line.

use super::stage::{HOUR_MS, START_MS, Stage};
use raingauge_embedded::{CampaignLedger, LedgerOptions};
use raingauge_memory as memory;
use raingauge_ports::campaigns::{
    Ledger, LedgerErasure, LedgerReader, LedgerRetention, Outbox, Status,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;

pub fn mart() -> Json {
    json!({
        "id": 7, "name": "mart_three_orders", "eventTypes": ["mart.order"],
        "subject": "data.user_id", "zone": "Asia/Singapore", "state": "active",
        "activeFrom": 1727020800, "activeUntil": 1728230400,
        "counts": {"orders": {
            "filter": {"operator": "eq", "lhs": "var.status", "rhs": "completed"},
            "window": "campaign"}},
        "rule": {"operator": "eq", "lhs": "var.country", "rhs": "sg"},
        "steps": [
            {"name": "nudge", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 2},
             "actions": [
                {"name": "msg", "kind": "message", "to": "messages", "template": "one_more"}]},
            {"name": "reward", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 3},
             "actions": [
                {"name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
                 "cost": {"budget": "vouchers", "amount": 500}},
                {"name": "msg", "kind": "message", "to": "messages", "template": "congrats"}]}],
        "limits": [{"step": "reward", "per": "subject", "max": 1, "period": "campaign"}],
        "budgets": {"vouchers": {"unit": "SGD_cents", "max": 1000, "period": "campaign"}},
        "templates": {"one_more": {"en": "Make one more order to earn a reward"},
                      "congrats": {"en": "Congratulations, {{ subject }}!"}},
        "owner": "mart", "description": ""
    })
}

/// The orders of the example: hour, id, user and status.
const ORDERS: [(i64, &str, &str, &str); 12] = [
    (0, "o-1", "u-7", "completed"),
    (1, "o-1", "u-7", "completed"),
    (2, "o-2", "u-7", "cancelled"),
    (3, "o-3", "u-7", "completed"),
    (4, "o-4", "u-7", "completed"),
    (5, "o-5", "u-7", "completed"),
    (6, "o-6", "u-8", "completed"),
    (7, "o-7", "u-8", "completed"),
    (8, "o-8", "u-8", "completed"),
    (9, "o-9", "u-9", "completed"),
    (10, "o-10", "u-9", "completed"),
    (11, "o-11", "u-9", "completed"),
];

fn play<L>(open: impl Fn() -> L)
where
    L: Ledger + LedgerErasure + LedgerReader + LedgerRetention + Outbox + 'static,
{
    let mut stage = Stage::over(open());
    drop(stage.open());
    stage.save_campaign(&mart());

    for (hour, id, user, status) in ORDERS {
        stage.clock.set(START_MS + hour * HOUR_MS);
        let data = json!({"user_id": user, "status": status, "country": "sg"});
        stage.send(id, "mart.order", &data);
        let mut worker = stage.open();
        stage.run(&mut worker);
        drop(worker);

        // The process ends: another one opens the ledger.
        let Stage { clock, log, documents, lookups, ledger, runtime } = stage;
        let ledger = reopened(ledger, &open);
        stage = Stage { clock, log, documents, lookups, ledger, runtime };
    }

    let expected = [
        "o-3 nudge/msg granted",
        "o-4 reward/msg granted",
        "o-4 reward/voucher granted",
        "o-7 nudge/msg granted",
        "o-8 reward/msg granted",
        "o-8 reward/voucher granted",
        "o-10 nudge/msg granted",
        "o-11 reward/msg budget_exhausted",
        "o-11 reward/voucher budget_exhausted",
    ];
    assert_eq!(stage.lines(), expected);
    assert_eq!(stage.reserved("vouchers"), 1_000);

    let deliveries = stage.deliveries(Status::Pending);
    assert_eq!(deliveries.len(), 7);
    let id = "act_3607a20a5c6e936874c9ec850d9ffaac";
    let nudge = deliveries.iter().find(|delivery| delivery.action.to_string() == id).unwrap();
    let body = concat!(
        r#"{"type":"message.send","timestamp":"2024-09-24T03:00:00Z","data":{"#,
        r#""action":"act_3607a20a5c6e936874c9ec850d9ffaac","campaign":7,"version":1,"#,
        r#""step":"nudge","subject":"u-7","variant":null,"#,
        r#""text":"Make one more order to earn a reward","event":{"source":"mart","#,
        r#""id":"o-3","type":"mart.order","time":"2024-09-24T03:00:00Z"}}}"#,
    );
    assert_eq!(String::from_utf8_lossy(&nudge.body), body);
    let rewards = deliveries.iter().filter(|delivery| delivery.destination == "rewards");
    let costs: Vec<_> = rewards.map(|delivery| delivery.cost.as_ref().unwrap().amount).collect();
    assert_eq!(costs, [500, 500]);
}

/// The ledger as the next process finds it. The one in memory lives on.
fn reopened<L: 'static>(ledger: Arc<L>, open: impl Fn() -> L) -> Arc<L> {
    let is_in_memory = std::any::TypeId::of::<L>() == std::any::TypeId::of::<memory::Ledger>();
    if is_in_memory {
        return ledger;
    }
    assert_eq!(Arc::strong_count(&ledger), 1, "nobody else has it open");
    drop(ledger);
    Arc::new(open())
}

#[test]
fn the_worked_example_comes_true_in_memory() {
    play(memory::Ledger::default);
}

#[test]
fn the_worked_example_comes_true_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let options = LedgerOptions { cache_bytes: 1 << 20, ..LedgerOptions::default() };
    play(|| CampaignLedger::open(folder.path(), &options).unwrap());
}
