//! Campaigns of the demo: the examples of the published description, campaigns over the live
//! events, and a receiver of what they send.

use super::super::campaigns::{apply, parse};
use super::super::session::OwnServer;
use super::super::sink::{Received, Sink, line};
use super::super::{note, print};
use anyhow::Context;
use raingauge_console::{Client, Method};
use raingauge_core::time::{format_rfc3339, parse_time_s};
use raingauge_ports::clock::{Clock as _, SystemClock};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! document {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/campaigns/", $name))
    };
}

/// What campaigns share, and the campaigns.
const DOCUMENTS: [&str; 9] = [
    document!("shared.yaml"),
    document!("01-express-then-mart.yaml"),
    document!("02-rides-in-a-week.yaml"),
    document!("03-ride-home.yaml"),
    document!("04-late-delivery.yaml"),
    document!("05-driver-cancelled.yaml"),
    document!("06-ride-protocols.yaml"),
    document!("07-three-orders.yaml"),
    document!("live.yaml"),
];

/// Rows of tables and segments, by name.
const TABLES: [(&str, &str); 2] =
    [("users", document!("users.csv")), ("staff", document!("staff.csv"))];

/// Events on which the examples decide something.
const EVENTS: &str = document!("events.ndjson");

/// Where the documents expect the receiver.
const RECEIVER: &str = "127.0.0.1:9099";

/// The receiver. It prints deliveries for events from some moment on, and not those of the past.
pub struct Receiver {
    sink: Sink,
    shown_from_s: Arc<AtomicI64>,
}

impl Receiver {
    fn start(own: &OwnServer) -> anyhow::Result<Self> {
        let shown_from_s = Arc::new(AtomicI64::new(i64::MAX));
        let from_s = Arc::clone(&shown_from_s);
        let show = move |received: &Received| {
            let at_s = received.body["timestamp"].as_str().and_then(parse_time_s);
            if at_s >= Some(from_s.load(Ordering::Relaxed)) {
                // A terminal that is gone is no reason to refuse deliveries.
                let _ = print(&line(received, false));
            }
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let sink = own.runtime.block_on(Sink::start(address, Arc::new(show), Vec::new()))?;
        Ok(Self { sink, shown_from_s })
    }

    /// Prints what is delivered for events from now on.
    pub fn show(&self) {
        self.shown_from_s.store(SystemClock.now_s(), Ordering::Relaxed);
    }
}

/// Creates the campaigns, loads their tables and sends their events.
pub fn load(own: &OwnServer, client: &Client) -> anyhow::Result<Receiver> {
    let receiver = Receiver::start(own)?;
    let address = receiver.sink.address().to_string();
    let mut drafts = Vec::new();
    for text in DOCUMENTS {
        drafts.extend(parse(&text.replace(RECEIVER, &address))?);
    }

    let outcomes = apply(client, drafts, false, "the demo")?;
    let problems: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.problems).collect();
    anyhow::ensure!(problems.is_empty(), "the campaigns of the demo are refused: {problems:?}");
    for (name, rows) in TABLES {
        let headers = [("content-type", "text/csv")];
        client.send(Method::PUT, &format!("/v1/tables/{name}"), &headers, rows.as_bytes())?;
    }

    for event in events(SystemClock.now_s())? {
        let headers = [("content-type", "application/cloudevents+json")];
        let body = event.to_string();
        client.send(Method::POST, "/v1/events?wait=decided", &headers, body.as_bytes())?;
    }
    note(&format!("{} documents of campaigns", outcomes.len()));
    Ok(receiver)
}

/// The events, moved so that the last one happens now. Ids carry the time: another run within the
/// same folder sends other events.
fn events(now_s: i64) -> anyhow::Result<Vec<Value>> {
    let mut events: Vec<Value> =
        EVENTS.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let time_of = |event: &Value| {
        let time = event["time"].as_str().and_then(parse_time_s);
        time.context("an event of the demo has no time")
    };

    let last_s = time_of(events.last().context("there are no events")?)?;
    for event in &mut events {
        let time_s = time_of(event)?;
        let id = format!("{}-{now_s}", event["id"].as_str().unwrap_or_default());
        event["time"] = format_rfc3339(time_s - last_s + now_s).into();
        event["id"] = id.into();
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::campaign::Campaign;
    use raingauge_campaigns::documents::Kind;
    use raingauge_campaigns::engine::{
        At, Documents, Engine, LookupClass, LookupKey, LookupRule, Release,
    };
    use raingauge_campaigns::index::Scratch;
    use raingauge_campaigns::states::{MemoryBudgets, MemoryStates};
    use raingauge_core::event::Event;
    use std::collections::{BTreeMap, BTreeSet};

    /// All documents of the demo.
    fn documents() -> Documents {
        let mut documents = Documents { late_after_ms: 86_400_000, ..Documents::default() };
        for draft in DOCUMENTS.iter().flat_map(|text| parse(text).unwrap()) {
            let json = draft.configuration;
            let content = || {
                let mut content = json.clone();
                content.as_object_mut().unwrap().retain(|name, _| name != "name" && name != "kind");
                content
            };
            match draft.kind {
                Kind::Campaign => {
                    let campaign = Campaign::from_json(&json).unwrap();
                    documents.campaigns.push(Release { version: 1, campaign, is_warming: false });
                }
                Kind::Budget => {
                    documents
                        .budgets
                        .insert(draft.name, serde_json::from_value(content()).unwrap());
                }
                Kind::Cap => {
                    documents.caps.insert(draft.name, serde_json::from_value(content()).unwrap());
                }
                Kind::Holdout => {
                    let holdout = serde_json::from_value(content()).unwrap();
                    documents.holdouts.insert(draft.name, holdout);
                }
                Kind::Table => {
                    let class = json["kind"].as_str().unwrap_or("table");
                    documents
                        .lookups
                        .insert(format!("{class}.{}", draft.name), LookupRule::default());
                }
                Kind::Destination | Kind::Lookup => {}
            }
        }
        documents
    }

    /// Answers from the rows of the demo.
    fn answer(key: &LookupKey) -> Value {
        let rows = TABLES.iter().find(|(name, _)| *name == key.name).unwrap().1;
        let mut lines = rows.lines();
        let head: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row = lines.find(|line| line.split(',').next() == Some(&key.key));
        match key.class {
            LookupClass::Segment => row.is_some().into(),
            _ => row.map_or(Value::Null, |row| head.iter().copied().zip(row.split(',')).collect()),
        }
    }

    /// What is decided on the events: subject, step and action, and the reason, by campaign; and
    /// the campaigns whose actions were cancelled.
    fn decided(events: &[Value]) -> (BTreeMap<u32, Vec<String>>, BTreeSet<String>) {
        let engine = Engine::new(documents());
        let mut states = MemoryStates::default();
        let mut budgets = MemoryBudgets::default();
        let mut decisions = BTreeMap::<u32, Vec<String>>::new();
        let mut cancelled = BTreeSet::new();
        let mut names = BTreeMap::new();
        for json in events {
            let text = json.to_string();
            let event = Event::from_json(text.as_bytes()).unwrap();
            let at = At { appended_ms: event.time_ms };
            let mut pending = engine.begin(&event, at, &mut states, &mut Scratch::default());
            loop {
                let wanted = engine.wants(&pending);
                if wanted.is_empty() {
                    break;
                }
                for key in wanted {
                    let found = answer(&key);
                    engine.feed(&mut pending, key, Some(found));
                }
            }

            let outcome = engine.decide(pending, &mut states, &mut budgets);
            states.note(&outcome.decisions);
            for decision in &outcome.decisions {
                let line = format!(
                    "{} {}/{} {}",
                    decision.subject,
                    decision.step,
                    decision.name,
                    decision.reason.as_str()
                );
                names.insert(decision.action, line.clone());
                decisions.entry(decision.campaign).or_default().push(line);
            }
            cancelled.extend(outcome.cancelled.iter().map(|(_, action)| names[action].clone()));
        }
        (decisions, cancelled)
    }

    #[test]
    fn the_examples_decide_on_their_events() {
        let events: Vec<Value> =
            EVENTS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (decisions, cancelled) = decided(&events);

        assert_eq!(decisions[&1], ["u-1 invite/msg delayed", "u-2 invite/msg delayed"]);

        // Which of the two steps it is depends on the variant; the other one is refused.
        let granted: Vec<&String> =
            decisions[&2].iter().filter(|line| line.ends_with(" granted")).collect();
        let step = if granted[0].contains("four") { "after_four" } else { "after_five" };
        let food = ["voucher", "msg"].map(|name| format!("u-7 {step}/{name} granted"));
        assert_eq!(granted, food.iter().collect::<Vec<_>>());

        let home = ["u-1 home/voucher", "u-1 home/msg", "u-3 home/voucher", "u-3 home/msg"];
        assert_eq!(decisions[&3], home.map(|line| format!("{line} delayed")));
        assert_eq!(decisions[&4], ["u-7 sorry/free_delivery granted", "u-7 sorry/msg granted"]);
        assert_eq!(decisions[&5], ["u-1 gold/points granted", "u-2 others/points granted"]);
        assert_eq!(decisions[&6], ["u-42 remind/passenger granted", "u-42 remind/driver granted"]);

        let third = |subject: &str, reason: &str| {
            ["voucher", "msg"].map(|name| format!("{subject} reward/{name} {reason}"))
        };
        let mart: Vec<&String> =
            decisions[&7].iter().filter(|line| line.contains("reward/")).collect();
        let expected =
            [third("u-8", "granted"), third("u-9", "granted"), third("u-10", "budget_exhausted")];
        assert_eq!(mart, expected.iter().flatten().collect::<Vec<_>>());

        let by_orders_and_rides =
            ["u-2 invite/msg delayed", "u-3 home/msg delayed", "u-3 home/voucher delayed"];
        assert_eq!(cancelled, by_orders_and_rides.map(str::to_owned).into());
    }

    #[test]
    fn live_campaigns_decide_on_pickups() {
        let pickup = |number: u32| {
            serde_json::json!({
                "specversion": "1.0", "type": "live.pickup", "source": "nyc", "id": number.to_string(),
                "time": format!("2026-11-17T08:{:02}:00Z", number % 60),
                "data": {"zone": 132 + number % 3, "payment": 1, "tip": 5.5, "total": 62.3}})
        };
        let (decisions, _) = decided(&(0..30).map(pickup).collect::<Vec<_>>());
        let count = |campaign: u32, words: &str| {
            let lines = decisions.get(&campaign).into_iter().flatten();
            lines.filter(|line| line.contains(words)).count()
        };
        assert_eq!(count(101, "milestone/msg granted"), 6, "every fifth of three zones");
        assert_eq!(count(103, "132 welcome/msg shadow"), 10);
        assert!(count(102, "granted") > 0, "{decisions:?}");
    }

    #[test]
    fn the_last_event_happens_now() {
        let events = events(1_700_000_000).unwrap();
        assert_eq!(events.last().unwrap()["time"], "2023-11-14T22:13:20Z");
        assert_eq!(events[0]["time"], "2023-11-14T19:43:20Z");
        let ids: BTreeSet<String> = events.iter().map(|event| event["id"].to_string()).collect();
        assert_eq!(ids.len(), events.len());
    }
}
