//! A forecast of what is in force makes what the ledger made of the same events, over expiry,
//! tiers, budgets, refunds and late events.

use super::*;
use raingauge_points::{Account, Entry, Kind, WalletId};
use raingauge_ports::points::{BookReader, DueWallet};
use std::collections::BTreeMap;

/// 2026-01-01T00:00:00Z.
const START_S: i64 = 1_767_225_600;
const DAY_S: i64 = 86_400;
const EVENTS: u64 = 900;
/// No more than a forecast lists.
const MEMBERS: u64 = 18;

fn rich_document(food: &str) -> Json {
    json!({
        "programme": "grab-sg", "unit": "GRP", "timezone": "Asia/Singapore", "decimals": 1,
        "expiry": {"kind": "activity", "months": 1, "graceHours": 24, "reinstateDays": 10},
        "tiers": {"window": "month", "keepMonths": 1, "levels": [
            {"name": "member", "from": 0}, {"name": "gold", "from": 300}]},
        "tables": {
            "tier": {"by": ["tier"], "rows": {"member": 1, "gold": "1.75"}},
            "vertical": {"by": ["data.vertical"], "rows": {"food": food, "ride": 1}}
        },
        "budgets": {"gifts": {"limit": 500}},
        "rules": [
            {"id": 1, "name": "spent", "eventType": "order.completed", "member": "data.member",
             "amount": "data.amount", "factors": ["vertical", "tier"], "reference": "data.order",
             "perEventMax": 150},
            {"id": 2, "name": "gift", "eventType": "order.completed", "member": "data.member",
             "points": 3, "reference": "data.order", "budget": "gifts", "pendingDays": 4,
             "extends": false,
             "filter": {"operator": "eq", "lhs": "data.vertical", "rhs": "ride"}},
            {"id": 3, "name": "refund", "eventType": "order.refunded", "member": "data.member",
             "amount": "data.amount", "reverses": "data.order"},
            {"id": 4, "name": "cancelled", "eventType": "order.cancelled",
             "member": "data.member", "reverses": "data.order"}
        ]
    })
}

fn compiled(document: &Json, version: u32) -> Arc<Programme> {
    let document = ProgrammeDocument::parse(document).unwrap();
    Arc::new(Programme::compile(&document, version).unwrap())
}

/// Numbers that look random, and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Events with pauses in which points expire, some of them days late, and some of a vertical that
/// no table knows.
fn random_events(seed: u64) -> Vec<Json> {
    let mut random = Random(seed);
    let mut at_s = START_S;
    let mut events: Vec<Json> = Vec::new();
    for number in 0..EVENTS {
        let pause_s = if number % 150 == 149 { 70 * DAY_S } else { 0 };
        at_s += pause_s + random.below(DAY_S as u64 / 4) as i64;
        let order = number.saturating_sub(random.below(30));
        // The member follows from the order, so that refunds find it.
        let member = format!("m-{}", order * 7 % MEMBERS);
        let id = format!("e-{number}");
        let vertical = ["food", "food", "ride", "ride", "ride", "boat"][random.below(6) as usize];
        let data = json!({
            "member": member, "order": format!("o-{order}"), "vertical": vertical,
            "amount": format!("{}.{:02}", random.below(90), random.below(100)),
        });

        let kind = match random.below(10) {
            0 => "order.cancelled",
            1 => "order.refunded",
            _ => "order.completed",
        };
        let late_s = if random.below(6) == 0 { random.below(20) as i64 * DAY_S } else { 0 };
        let time = raingauge_core::time::format_rfc3339(at_s - late_s);
        events.push(json!({"specversion": "1.0", "id": id, "source": "shop", "type": kind,
            "time": time, "data": data}));
    }
    events
}

/// What the ledger made of events.
#[derive(Default)]
struct Awarded {
    refused: BTreeMap<String, u64>,
    unpriced: u64,
    now_ms: i64,
}

impl Awarded {
    /// Awards an event in a turn of its own, when it comes.
    fn award(&mut self, stage: &Stage, programme: &Arc<Programme>, event: &Json) {
        let programmes = crate::forecast::alone(programme);
        let text = event.to_string();
        let event = Event::from_json(text.as_bytes()).unwrap();
        self.now_ms = self.now_ms.max(event.time_ms);
        let priced = programme.price_event(&event);
        self.unpriced += priced.iter().filter(|priced| priced.is_err()).count() as u64;

        let commands: Vec<_> = priced.into_iter().flatten().collect();
        let footprint = Footprint::of(&commands, &programmes, self.now_ms);
        let decide = &mut |_: &[_], loaded| -> Turn {
            let mut desk = Desk::new(&programmes, loaded, self.now_ms);
            for command in &commands {
                if let Answer::Refused { refusal, .. } | Answer::Invalid(refusal) =
                    desk.execute(command)
                {
                    *self.refused.entry(refusal.code.as_str().to_owned()).or_default() += 1;
                }
            }
            desk.finish()
        };
        stage.books.turn(&[0], &footprint, decide).unwrap();
    }

    /// Settles what is due by the end, as a sweep does.
    fn sweep(&self, stage: &Stage, programme: &Arc<Programme>, until_ms: i64) {
        let programmes = crate::forecast::alone(programme);
        let until_hour = (until_ms / 3_600_000) as u32;
        let due = stage.books.due(0, until_hour, None, 1_000).unwrap();
        let mut footprint = Footprint::default();
        due.iter().for_each(|DueWallet { wallet, .. }| footprint.wallet(wallet.clone()));
        let settle = &mut |_: &[_], loaded| -> Turn {
            let mut desk = Desk::new(&programmes, loaded, until_ms);
            for wallet in &footprint.wallets {
                desk.sweep(wallet);
            }
            desk.finish()
        };
        stage.books.turn(&[0], &footprint, settle).unwrap();
    }
}

/// Points of awards and reversals by member, in the smallest unit.
fn points_by_member(entries: &[Arc<Entry>]) -> BTreeMap<String, i64> {
    let mut points = BTreeMap::new();
    for entry in entries {
        if !matches!(entry.kind, Kind::Earn | Kind::Bonus | Kind::Reverse) {
            continue;
        }
        let is_of_member = |account: &Account| {
            matches!(account, Account::Available(_) | Account::Arrears | Account::Pending { .. })
        };
        let own = entry.postings.iter().filter(|posting| is_of_member(&posting.account));
        let sum: i64 = own.map(|posting| posting.amount).sum();
        *points.entry(entry.member.as_deref().unwrap().to_owned()).or_default() += sum;
    }
    points
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forecast_of_what_is_in_force_is_what_was_awarded() {
    for seed in 1..=4 {
        let in_force = compiled(&rich_document("1.5"), 1);
        let stage = Stage::of(Arc::clone(&in_force));
        let events = random_events(seed);
        stage.append(&events).await;
        let mut awarded = Awarded::default();
        for event in &events {
            awarded.award(&stage, &in_force, event);
        }
        let until_ms = awarded.now_ms + 20 * DAY_S * 1_000;
        awarded.sweep(&stage, &in_force, until_ms);

        // A draft that awards nothing for orders lists every member beside what is in force.
        let until = raingauge_core::time::format_rfc3339(until_ms / 1_000);
        let request = json!({"programme": rich_document("0"), "to": until});
        let found = stage.forecast(request).await;
        let side = &found["inForce"];
        let text = |points: i128| json!(in_force.text_of(points.try_into().unwrap()));

        let totals = stage.books.totals("grab-sg".into()).await.unwrap();
        let liability = totals.liability("grab-sg");
        assert!(liability.expired > 0 && liability.issued > 0, "{liability:?} of seed {seed}");
        assert_eq!(side["liability"]["total"], text(liability.total()), "seed {seed}");
        assert_eq!(side["liability"]["issued"], text(liability.issued), "seed {seed}");
        assert_eq!(side["liability"]["expired"], text(liability.expired), "seed {seed}");
        assert_eq!(side["liability"]["pending"], text(liability.pending), "seed {seed}");
        assert_eq!(side["liability"]["arrears"], text(liability.arrears), "seed {seed}");
        let outstanding = liability.outstanding.iter().map(|(month, points)| {
            let month = month.map_or_else(|| "never".to_owned(), |month| month.to_string());
            json!({"month": month, "points": text(*points)})
        });
        assert_eq!(side["liability"]["outstanding"], Json::from_iter(outstanding), "seed {seed}");
        assert_eq!(side["refused"], json!(awarded.refused), "seed {seed}");
        assert_eq!(side["unpriced"], json!(awarded.unpriced), "seed {seed}");
        assert!(awarded.refused.len() > 1 && awarded.unpriced > 0, "{:?}", awarded.refused);

        let entries = stage.books.read(0, 1, usize::MAX).unwrap();
        let members = points_by_member(&entries);
        let changes = ["gainMost", "loseMost"].map(|list| found[list].as_array().unwrap());
        let shown: BTreeMap<&str, &Json> = changes
            .into_iter()
            .flatten()
            .map(|change| (change["member"].as_str().unwrap(), &change["inForce"]))
            .collect();
        assert!(shown.len() > 10, "members differ");
        for (member, points) in shown {
            assert_eq!(*points, text(members[member].into()), "{member} of seed {seed}");
        }
        let wallets: Vec<_> = entries.iter().filter_map(|entry| entry.wallet()).collect();
        let wallets: std::collections::BTreeSet<WalletId> = wallets.into_iter().collect();
        assert_eq!(side["members"], json!(wallets.len()), "seed {seed}");

        // The same programme on both sides makes no difference, whether it is sent or named.
        for programme in [rich_document("1.5"), json!("grab-sg")] {
            let same = stage.forecast(json!({"programme": programme, "to": until})).await;
            assert_eq!(same["draft"], same["inForce"], "seed {seed}");
            assert_eq!(&same["inForce"], side, "seed {seed}");
            assert_eq!(same["gainMost"], json!([]), "seed {seed}");
        }
    }
}
