//! How long *why not* takes: of what was decided by the evidence in a ledger on disk, and of what
//! was not by a replay of the log.
//!
//! ```text
//! cargo bench -p raingauge-replay --bench explain
//! ```
//!
//! The goals are 20 ms for the first and 500,000 events/s for the second. `EVENTS` is the length of
//! the log, a million events if it is absent; as many decisions lie in the ledger.

use raingauge_campaigns::engine::Documents;
use raingauge_core::event::Event;
use raingauge_embedded::{CampaignLedger, LedgerOptions, LogOptions, SegmentLog};
use raingauge_memory as memory;
use raingauge_ports::campaigns::{
    ActionId, Decision, Delivery, DocumentStore as _, Put, StoredDocument,
};
use raingauge_ports::clock::SystemClock;
use raingauge_ports::contract::campaigns::commit_to;
use raingauge_ports::log::{Batch, EventLog, EventSink};
use raingauge_ports::scans::Scans;
use raingauge_replay::request::ExplainRequest;
use raingauge_replay::{Explained, Replay, Sources};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CAMPAIGN: u32 = 7;
/// The sources of the events in the ledger, and of those in the log.
const STORED: &str = "mart";
const REPLAYED: &str = "test";
/// Every subject has as many events, and as many decisions.
const SUBJECTS: u64 = 100_000;
const EVENTS: u64 = 1_000_000;
/// One with far more decisions than any other.
const BUSY: &str = "busy";
const BUSY_DECISIONS: u64 = 1_000;
/// Of one append, and of one commit.
const BATCH: u64 = 10_000;
/// Subjects that are explained.
const EXPLAINED: u64 = 1_000;
/// 2024-09-24T00:00:00Z.
const START_MS: i64 = 1_727_136_000_000;
const PAUSE: Duration = Duration::from_millis(1);

fn main() {
    let events = std::env::var("EVENTS").ok().and_then(|text| text.parse().ok());
    let events: u64 = events.unwrap_or(EVENTS);
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir_in(".").expect("a folder");

    let options = LedgerOptions::default();
    let ledger = CampaignLedger::open(&folder.path().join("ledger"), &options).expect("a ledger");
    let ledger = Arc::new(ledger);
    fill_ledger(&ledger, events);
    let empty = Arc::<memory::Log>::default();
    runtime.block_on(explain_stored(&bench(&runtime, empty, &ledger), events));

    let in_memory = Arc::new(memory::Log::default());
    fill_log(&runtime, &*in_memory, events);
    println!("the log in memory");
    runtime.block_on(explain_replayed(&bench(&runtime, in_memory, &ledger), events));

    let path = folder.path().join("log");
    let on_disk = SegmentLog::open(&path, LogOptions::default(), Arc::new(SystemClock));
    let on_disk = Arc::new(on_disk.expect("a log"));
    fill_log(&runtime, &*on_disk, events);
    println!("the log on disk");
    runtime.block_on(explain_replayed(&bench(&runtime, on_disk, &ledger), events));
}

/// Explains over a log and a ledger.
fn bench(runtime: &Runtime, log: Arc<dyn EventLog>, ledger: &Arc<CampaignLedger>) -> Replay {
    let documents = Arc::new(memory::Documents::default());
    let document = StoredDocument {
        kind: "campaign".to_owned(),
        id: CAMPAIGN.to_string(),
        version: 0,
        configuration: campaign(),
        is_deleted: false,
        changed_by: String::new(),
        reason: String::new(),
        changed_ms: -1,
    };
    let put = runtime.block_on(documents.put(document, 0)).expect("a store");
    assert!(matches!(put, Put::Stored(_)));

    let sources = Sources {
        logs: vec![log],
        ledger: Arc::clone(ledger) as _,
        outbox: Arc::clone(ledger) as _,
        documents,
        in_effect: Arc::new(Documents::default),
        lookups: None,
    };
    Replay::new(sources, Scans::default(), Arc::new(SystemClock))
}

/// The published example: a country, a count and two steps.
fn campaign() -> Json {
    json!({
        "id": CAMPAIGN, "name": "mart_three_orders", "eventTypes": ["order"],
        "subject": "data.user", "zone": "Asia/Singapore", "state": "active",
        "counts": {"orders": {"window": "campaign",
            "filter": {"operator": "eq", "lhs": "var.status", "rhs": "completed"}}},
        "rule": {"operator": "eq", "lhs": "var.country", "rhs": "sg"},
        "steps": [
            {"name": "nudge", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 200},
             "actions": [{"name": "msg", "kind": "message", "to": "messages", "template": "t"}]},
            {"name": "reward", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 300},
             "actions": [{"name": "voucher", "kind": "reward", "to": "rewards", "reward": "R"}]}],
        "templates": {"t": {"en": "One more"}}})
}

fn subject(number: u64) -> String {
    format!("u-{}", number % SUBJECTS)
}

fn fill_log(runtime: &Runtime, log: &impl EventSink, events: u64) {
    for first in (0..events).step_by(BATCH as usize) {
        let mut batch = Batch::default();
        for number in first..(first + BATCH).min(events) {
            let country = ["sg", "id", "my", "th", "vn"][(number % 5) as usize];
            let data = format!(
                r#"{{"user":"{}","country":"{country}","status":"completed","total":{}.50,"items":{}}}"#,
                subject(number),
                number % 200,
                number % 9
            );
            let event = Event::of_data("order", START_MS + number as i64, &data);
            let id = format!("o-{number}").into();
            batch.push(&Event { id, source: REPLAYED.into(), ..event });
        }
        runtime.block_on(log.append(batch)).expect("appended");
    }
}

/// A decision with the evidence that the worker keeps, of a campaign with three conditions.
fn decision(number: u64, subject: String) -> Decision {
    let evidence = json!({"trace": [
        {"leaf": "rule: var.country eq sg", "is": "sg", "holds": true},
        {"leaf": "nudge: count.orders reaches 200", "before": 199, "after": 200, "holds": true},
        {"leaf": "reward: count.orders reaches 300", "before": 199, "after": 200, "holds": false}]});
    let mut action = [0; 16];
    action[..8].copy_from_slice(&number.to_be_bytes());
    Decision {
        action: ActionId(action),
        is_granted: true,
        campaign: CAMPAIGN,
        version: 1,
        step: "nudge".to_owned(),
        name: "msg".to_owned(),
        subject,
        source: STORED.to_owned(),
        event: format!("o-{number}"),
        event_ms: START_MS + number as i64,
        decided_ms: START_MS + number as i64,
        outcome: "granted".to_owned(),
        variant: None,
        cost: None,
        evidence: evidence.to_string(),
    }
}

fn fill_ledger(ledger: &CampaignLedger, decisions: u64) {
    let busy = (decisions..decisions + BUSY_DECISIONS).map(|number| (number, BUSY.to_owned()));
    let mut all = (0..decisions).map(|number| (number, subject(number))).chain(busy).peekable();
    while all.peek().is_some() {
        let some = all.by_ref().take(BATCH as usize);
        let decided: Vec<Decision> =
            some.map(|(number, subject)| decision(number, subject)).collect();
        let delivery = |decision: &Decision| Delivery {
            action: decision.action,
            campaign: CAMPAIGN,
            subject: decision.subject.clone(),
            destination: "messages".to_owned(),
            due_ms: decision.decided_ms,
            cost: None,
            body: vec![b'x'; 400],
        };
        commit_to(ledger, |commit| {
            commit.deliveries = decided.iter().map(delivery).collect();
            commit.decisions = decided;
        });
    }
}

async fn explain_stored(replay: &Replay, decisions: u64) {
    // A prime step meets subjects all over the ledger.
    let explained = (0..EXPLAINED).map(|number| number * 7_919 % decisions);
    let mut took_ms = Vec::new();
    for number in explained {
        took_ms.push(explain(replay, &subject(number), Some(number), "stored").await * 1e3);
    }
    took_ms.sort_by(f64::total_cmp);
    let [median, p99] = [took_ms.len() / 2, took_ms.len() * 99 / 100].map(|place| took_ms[place]);
    println!(
        "stored: of {decisions} decisions and as many deliveries, {} a subject: median {median:.2} \
         ms, p99 {p99:.2} ms",
        decisions / SUBJECTS
    );

    let busy = explain(replay, BUSY, Some(decisions), "stored").await * 1e3;
    println!("stored: a subject with {BUSY_DECISIONS} decisions: {busy:.2} ms");
}

async fn explain_replayed(replay: &Replay, events: u64) {
    // The last events of subjects at the end of the log, so that nearly all of it is read.
    for number in [events - 1, events - 3, events - 5] {
        let took_s = explain(replay, &subject(number), Some(number), "replayed").await;
        println!("replayed: {:.0} events/s, {took_s:.2} s", number as f64 / took_s);
    }
    let took_s = explain(replay, &subject(1), None, "replayed").await;
    println!("replayed, newest events: {:.0} events/s, {took_s:.2} s", events as f64 / took_s);
}

/// Explains an event, or the newest ones. Returns how long it took, in seconds.
async fn explain(replay: &Replay, subject: &str, event: Option<u64>, how: &str) -> f64 {
    // The events of the ledger are not those of the log, so that each way is taken.
    let source = if how == "stored" { STORED } else { REPLAYED };
    let event = event.map(|number| json!({"source": source, "id": format!("o-{number}")}));
    let request = json!({"subject": subject, "event": event}).to_string();
    let request = ExplainRequest::parse(request.as_bytes()).expect("a request");

    let began = Instant::now();
    let found = match replay.explain("bench", CAMPAIGN, request).await.expect("explained") {
        Explained::Now(explanation) => json!(*explanation),
        Explained::Job(job) => loop {
            let job = replay.jobs().get(&job.id).expect("a job");
            if let Some(result) = job.result {
                break serde_json::from_str(result.get()).expect("an explanation");
            }
            assert!(job.status.is_open(), "{:?}", job.error);
            tokio::time::sleep(PAUSE).await;
        },
    };
    let took = began.elapsed();
    assert_eq!(found["how"], how, "{found}");
    took.as_secs_f64()
}
