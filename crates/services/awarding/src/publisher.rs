//! Tells others what happened to points: an event for each entry, in the event log and in the
//! stream of entries.
//!
//! An event has the id of its entry, so the log takes each once, however often it is appended, and
//! consumers of the stream recognize repetitions.

use crate::cloud_event::rfc3339_ms;
use crate::deps::Deps;
use crate::error::Error;
use crate::shared::Shared;
use crate::tail::Reader;
use raingauge_core::event::Event;
use raingauge_points::{Entry, Kind, Points, Programme, Programmes};
use raingauge_ports::log::{self, Batch, EventSink};
use raingauge_ports::points::EntryStream;
use serde::Serialize;
use std::sync::Arc;

/// The source of the events.
pub const SOURCE: &str = "raingauge/points";
/// The name under which the place in the log is noted, ...
pub const PUBLISHER: &str = "publisher";
/// ... and the one of the stream: each goes on when the other does not.
pub const STREAM: &str = "stream";
/// Bytes of events that are appended together.
const BATCH_BYTES: usize = 512 * 1_024;
/// Events that are encoded, in about 0.2 ms, before other tasks of the thread have their turn.
const ENCODED_AT_ONCE: usize = 32;

/// Publishes events in one place.
pub struct Publisher {
    outlet: Outlet,
    shared: Arc<Shared>,
}

/// Where events are published.
enum Outlet {
    Log(Arc<dyn EventSink>),
    Stream(Arc<dyn EntryStream>),
}

impl Outlet {
    async fn publish(&self, batch: Batch) -> Result<(), log::Error> {
        match self {
            Self::Log(sink) => sink.append(batch).await.map(drop),
            Self::Stream(stream) => stream.publish(batch).await,
        }
    }
}

impl Publisher {
    /// A publisher to the event log.
    pub fn to_log(deps: &Deps, shared: Arc<Shared>) -> Self {
        Self { outlet: Outlet::Log(Arc::clone(&deps.sink)), shared }
    }

    /// A publisher to the stream, if there is one.
    pub fn to_stream(deps: &Deps, shared: Arc<Shared>) -> Option<Self> {
        let stream = deps.stream.as_ref()?;
        Some(Self { outlet: Outlet::Stream(Arc::clone(stream)), shared })
    }

    async fn append(&self, batch: &mut Batch) -> Result<(), Error> {
        while !batch.is_empty() {
            match self.outlet.publish(batch.clone()).await {
                Ok(()) => *batch = Batch::default(),
                Err(log::Error::Busy { retry_after }) => tokio::time::sleep(retry_after).await,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Reader for Publisher {
    fn name(&self) -> &'static str {
        match self.outlet {
            Outlet::Log(_) => PUBLISHER,
            Outlet::Stream(_) => STREAM,
        }
    }

    async fn deliver(&self, entries: Vec<Arc<Entry>>) -> Result<(), Error> {
        let snapshot = self.shared.snapshot();
        let mut batch = Batch::default();
        for (number, entry) in entries.iter().enumerate() {
            if number % ENCODED_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            let Some(kind) = event_type(entry.kind) else { continue };
            let id = id_of(entry);
            let data = data_of(entry, snapshot.programmes());
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
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    balance: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    kind: &'static str,
    member: Option<&'a str>,
    occurred_at: String,
    points: Amount,
    programme: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'a str>,
}

/// A whole number as a number, and one with decimals as a text that loses nothing.
#[derive(Serialize)]
#[serde(untagged)]
enum Amount {
    Whole(i64),
    Text(String),
}

impl Amount {
    fn of(points: Points, programme: Option<&Programme>) -> Self {
        match programme {
            Some(programme) if programme.decimals() > 0 => Self::Text(programme.text_of(points)),
            _ => Self::Whole(points),
        }
    }
}

/// The data of the event of an entry, as JSON.
pub fn data_of(entry: &Entry, programmes: &Programmes) -> String {
    let programme = programmes.get(&entry.programme).map(|programme| &**programme);
    let explain = entry.explain.as_ref();
    let data = Data {
        balance: Amount::of(entry.balance_after, programme),
        expires_on: entry.expires_after.map(|day| day.to_string()),
        key: entry.key.as_ref().map(|key| &*key.text),
        kind: entry.kind.name(),
        member: entry.member.as_deref(),
        occurred_at: rfc3339_ms(entry.occurred_ms),
        points: Amount::of(entry.points(), programme),
        programme: &entry.programme,
        reason: entry.reason.as_deref(),
        reference: entry.reference.as_deref(),
        rule: explain.and_then(|explain| explain.rule_name.as_deref()),
        sequence: entry.member_sequence,
        tier: entry.tier_after.as_deref(),
    };
    serde_json::to_string(&data).expect("texts and numbers are JSON")
}
