//! Tells others what happened to points: an event for each entry, in the event log.
//!
//! An event has the id of its entry, so the log takes each once, however often it is appended.

use crate::cloud_event::rfc3339_ms;
use crate::deps::Deps;
use crate::error::Error;
use crate::shared::Shared;
use crate::tail::Reader;
use raingauge_core::event::Event;
use raingauge_points::{Entry, Kind, Programmes};
use raingauge_ports::log::{self, Batch, EventSink};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The source of the events.
pub const SOURCE: &str = "raingauge/points";
/// The name under which the place is noted.
pub const PUBLISHER: &str = "publisher";
/// Bytes of events that are appended together.
const BATCH_BYTES: usize = 512 * 1_024;

/// Appends events to the log.
pub struct Publisher {
    sink: Arc<dyn EventSink>,
    shared: Arc<Shared>,
}

impl Publisher {
    pub fn new(deps: Deps, shared: Arc<Shared>) -> Self {
        Self { sink: deps.sink, shared }
    }

    async fn append(&self, batch: &mut Batch) -> Result<(), Error> {
        while !batch.is_empty() {
            match self.sink.append(batch.clone()).await {
                Ok(_) => *batch = Batch::default(),
                Err(log::Error::Busy { retry_after }) => tokio::time::sleep(retry_after).await,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Reader for Publisher {
    fn name(&self) -> &'static str {
        PUBLISHER
    }

    async fn deliver(&self, entries: Vec<Arc<Entry>>) -> Result<(), Error> {
        let snapshot = self.shared.snapshot();
        let mut batch = Batch::default();
        for entry in &entries {
            let Some(kind) = event_type(entry.kind) else { continue };
            let id = id_of(entry);
            let data = data_of(entry, snapshot.programmes()).to_string();
            batch.push(&Event {
                id: id.as_str().into(),
                source: SOURCE.into(),
                subject: entry.member.as_deref().map(Into::into),
                ..Event::of_data(kind, entry.recorded_ms, &data)
            });
            if batch.bytes.len() >= BATCH_BYTES {
                self.append(&mut batch).await?;
            }
        }
        self.append(&mut batch).await
    }
}

/// The id of an entry, in events and notifications: `programme:book:sequence`.
pub fn id_of(entry: &Entry) -> String {
    format!("{}:{}:{}", entry.programme, entry.book, entry.sequence)
}

/// The type of the event of an entry; `None` for what only the ledger needs to know.
pub fn event_type(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Earn | Kind::Bonus => "raingauge.points.awarded",
        Kind::Activate => "raingauge.points.activated",
        Kind::Burn => "raingauge.points.burned",
        Kind::Hold => "raingauge.points.held",
        Kind::Capture => "raingauge.points.captured",
        Kind::Release => "raingauge.points.released",
        Kind::TransferOut | Kind::TransferIn => "raingauge.points.transferred",
        Kind::ExchangeOut | Kind::ExchangeIn => "raingauge.points.exchanged",
        Kind::Reverse => "raingauge.points.reversed",
        Kind::Adjust => "raingauge.points.adjusted",
        Kind::Expire => "raingauge.points.expired",
        Kind::Reinstate => "raingauge.points.reinstated",
        Kind::Tier => "raingauge.points.tiered",
        Kind::Extend => "raingauge.points.extended",
        Kind::Remind => "raingauge.points.expiring",
        Kind::Close => "raingauge.points.closed",
        Kind::Programme | Kind::Refused => return None,
    })
}

/// What the event of an entry says. Points and balance are in the unit of the programme.
pub fn data_of(entry: &Entry, programmes: &Programmes) -> Json {
    let programme = programmes.get(&entry.programme);
    let points =
        |points| programme.map_or_else(|| points_text(points), |known| known.text_of(points));
    let mut data = json!({
        "programme": entry.programme,
        "member": entry.member,
        "kind": entry.kind.name(),
        "points": number(&points(entry.points())),
        "balance": number(&points(entry.balance_after)),
        "occurredAt": rfc3339_ms(entry.occurred_ms),
    });

    let expires_on = entry.expires_after.map(|day| json!(day.to_string()));
    let rule = entry.explain.as_ref().and_then(|explain| explain.rule_name.clone());
    for (name, value) in [
        ("tier", entry.tier_after.as_ref().map(|tier| json!(tier))),
        ("expiresOn", expires_on),
        ("reason", entry.reason.as_ref().map(|reason| json!(reason))),
        ("reference", entry.reference.as_ref().map(|reference| json!(reference))),
        ("rule", rule.map(|rule| json!(rule))),
        ("key", entry.key.as_ref().map(|key| json!(key.text))),
    ] {
        if let Some(value) = value {
            data[name] = value;
        }
    }
    data
}

fn points_text(points: i64) -> String {
    points.to_string()
}

/// A whole number as a number, and one with decimals as a text that loses nothing.
fn number(text: &str) -> Json {
    text.parse::<i64>().map_or_else(|_| json!(text), |whole| json!(whole))
}
