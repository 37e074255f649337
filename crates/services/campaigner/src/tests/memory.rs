//! The memory that a worker needs for the campaigns in effect, which docs/operations/sizing.md has.

use super::allocations::allocated_bytes;
use super::stage::START_MS;
use crate::documents::Documents;
use crate::tallies::Tallies;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::engine::{At, Engine};
use raingauge_campaigns::index::Scratch;
use raingauge_campaigns::states::MemoryStates;
use raingauge_core::event::Event;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

const CAMPAIGNS: usize = 10_000;
const LATE_AFTER_MS: i64 = 86_400_000;
const KIB: usize = 1_024;
/// Bytes that a byte of a campaign's JSON may take in the documents and the tallies of a worker.
const DOCUMENT_BYTES_MAX: usize = 30;
/// Bytes that it may take in an engine, of which there may be three for some time.
const ENGINE_BYTES_MAX: usize = 18;
/// Bytes of the texts of a campaign with one template, once one of them was needed.
const TEXTS_BYTES_MAX: usize = 16 * KIB;

/// A linear congruential generator, so that every run has the same campaigns.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn leaf(operator: &str, lhs: &str, rhs: impl Into<Json>) -> Json {
    json!({"operator": operator, "lhs": lhs, "rhs": rhs.into()})
}

fn group(operator: &str, conditions: &[Json]) -> Json {
    json!({"operator": operator, "conditions": conditions})
}

/// A rule as those of the published description, and of the bench of the index: a country, kinds of
/// taxi, an amount, a payment or a platform for old users, an hour, a merchant, and two lookups.
fn rule(random: &mut Random) -> Json {
    let old_user = group("not", &[leaf("eq", "var.new_user", true)]);
    let platform = leaf("eq", "var.platform", format!("o{}", random.below(3)));
    let payment = leaf("eq", "var.payment", format!("p{}", random.below(5)));
    let taxis = [0, 1].map(|_| leaf("eq", "var.taxi", random.below(8)));
    let from = random.below(18);
    group(
        "and",
        &[
            leaf("eq", "var.country", format!("c{}", random.below(12))),
            group("or", &taxis),
            leaf("gte", "var.amount", random.below(200)),
            group("or", &[payment, group("and", &[platform, old_user])]),
            leaf("gte", "time.hour", from),
            leaf("lt", "time.hour", from + 6),
            leaf("prefix", "var.merchant", format!("m{}-", random.below(50))),
            leaf("eq", "segment.vip", true),
            leaf("eq", "http.risk.score", 1),
        ],
    )
}

/// A campaign with a nested rule, a count, two steps, a limit, a budget and a text. An eighth of
/// them listens to each of eight types.
fn nested(number: usize, random: &mut Random) -> Json {
    json!({
        "id": number + 1, "name": format!("campaign_{number}"),
        "eventTypes": [format!("ride.{}", number % 8)],
        "subject": "data.user", "zone": "Asia/Singapore", "state": "active",
        "counts": {"rides": {
            "filter": leaf("eq", "var.status", "completed"), "window": "campaign", "history": "none"}},
        "rule": rule(random),
        "steps": [
            {"name": "nudge", "when": leaf("gte", "count.rides", 1), "actions": [
                {"name": "msg", "kind": "message", "to": "messages", "template": "text"}]},
            {"name": "reward", "when": leaf("reaches", "count.rides", 8), "actions": [
                {"name": "voucher", "kind": "reward", "to": "rewards", "reward": "RIDE5",
                 "cost": {"budget": "vouchers", "amount": 500}}]}],
        "limits": [{"step": "reward", "max": 1, "period": "campaign"}],
        "budgets": {"vouchers": {"unit": "cents", "max": 100_000, "period": "campaign"}},
        "templates": {"text": {"en": "One more ride, {{ subject }}!"}},
    })
}

/// What some work leaves on the heap, in bytes, with its result.
fn held<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = allocated_bytes();
    let made = work();
    let held = allocated_bytes() - before;
    (usize::try_from(held).expect("something is held"), made)
}

#[test]
fn ten_thousand_nested_campaigns_have_a_bounded_size() {
    let mut random = Random(7);
    let texts: Vec<String> =
        (0..CAMPAIGNS).map(|number| nested(number, &mut random).to_string()).collect();
    let len = texts.iter().map(String::len).sum::<usize>() / CAMPAIGNS;

    let (documents_bytes, documents) =
        held(|| Documents::of(texts.iter().map(|text| stored(text))));
    assert_eq!(documents.campaigns().count(), CAMPAIGNS);
    let (tallies_bytes, _tallies) = held(|| Tallies::of(&documents));
    let (engine_bytes, engine) =
        held(|| Engine::new(documents.engine_documents(&BTreeSet::new(), LATE_AFTER_MS)));
    let (texts_bytes, ()) = held(|| {
        for id in 1..=CAMPAIGNS as CampaignId {
            let released = documents.released(id).expect("it is in effect");
            assert!(released.messages().is_some());
        }
    });

    let of_one = |bytes: usize| bytes / CAMPAIGNS;
    println!(
        "bytes of a campaign of {len}: documents {}, tallies {}, engine {}, texts {}",
        of_one(documents_bytes),
        of_one(tallies_bytes),
        of_one(engine_bytes),
        of_one(texts_bytes)
    );
    assert!(acts(&engine), "the engine has the campaigns");
    assert!(of_one(documents_bytes + tallies_bytes) <= DOCUMENT_BYTES_MAX * len);
    assert!(of_one(engine_bytes) <= ENGINE_BYTES_MAX * len);
    assert!(of_one(texts_bytes) <= TEXTS_BYTES_MAX);
}

/// A stored campaign, as the store of documents answers it.
fn stored(text: &str) -> StoredDocument {
    let configuration: Json = serde_json::from_str(text).expect("JSON");
    StoredDocument {
        kind: "campaign".to_owned(),
        id: configuration["id"].to_string(),
        version: 1,
        configuration,
        is_deleted: false,
        changed_by: "ann".to_owned(),
        reason: String::new(),
        changed_ms: START_MS,
    }
}

/// Whether events find campaigns that may act on them.
fn acts(engine: &Engine) -> bool {
    let mut random = Random(8);
    let mut scratch = Scratch::default();
    let candidates = (0..200).map(|number| {
        let data = json!({
            "user": "u", "country": format!("c{}", random.below(12)), "taxi": random.below(8),
            "amount": 300, "payment": format!("p{}", random.below(5)), "platform": "o1",
            "merchant": format!("m{}-1", random.below(50)), "new_user": false, "status": "completed",
        });
        let data = data.to_string();
        let kind = format!("ride.{}", number % 8);
        let event = Event::of_data(&kind, START_MS, &data);
        let at = At { appended_ms: START_MS };
        engine.begin(&event, at, &mut MemoryStates::default(), &mut scratch).candidates()
    });
    candidates.sum::<usize>() > 0
}
