//! Ingest: checks events one by one, and appends the valid ones to the log together.

use crate::keys::{Full, KeyLimit};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Event;
use raingauge_core::limits::EVENTS_PER_REQUEST_MAX;
use raingauge_core::time::format_rfc3339;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{self, Appended, Batch, EventLog, EventSink, Offset, Partition};
use raingauge_ports::published::{Published, View};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a request takes at most {EVENTS_PER_REQUEST_MAX} events: send them in parts")]
    TooMany,
    /// The writer is too far behind the log.
    #[error("{lag} events wait to be counted: send no more for a while")]
    Lagging { lag: u64, retry_after: Duration },
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error("counting has stopped: {0}")]
    Stopped(Arc<str>),
}

/// The answer to `POST /v1/events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub accepted: usize,
    pub duplicates: usize,
    pub rejected: Vec<RejectedEvent>,
}

/// One event that was refused, by its place in the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedEvent {
    pub index: usize,
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// The outcome of a request that waits until its events are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub receipt: Receipt,
    /// Entries of the log up to these events that were not counted in time; `None` when all were.
    pub lag: Option<u64>,
}

pub struct Ingest {
    sink: Arc<dyn EventSink>,
    /// The partitions that are counted in this process, and may be behind.
    counted: Vec<Arc<dyn EventLog>>,
    published: Arc<Published>,
    clock: Arc<dyn Clock>,
    future_allowance_s: i64,
    /// Most entries that may wait between the log and the store.
    lag_max: u64,
    keys: Arc<KeyLimit>,
}

/// The events of one request before they are appended.
pub struct Intake {
    batch: Batch,
    rejected: Vec<RejectedEvent>,
    next: usize,
    now_s: i64,
    future_allowance_s: i64,
    view: Arc<View>,
    /// The counters that take no new keys.
    full: Arc<Full>,
    /// The earliest time that the counters of an event type still accept; most requests hold one
    /// type.
    earliest: Option<(String, Option<i64>)>,
}

impl Ingest {
    pub fn new(
        sink: Arc<dyn EventSink>,
        counted: Vec<Arc<dyn EventLog>>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
        future_allowance_s: i64,
        lag_max: u64,
    ) -> Self {
        let keys = Arc::default();
        Self { sink, counted, published, clock, future_allowance_s, lag_max, keys }
    }

    /// Refuses new keys for counters that have reached this limit.
    pub fn with_key_limit(self, keys: Arc<KeyLimit>) -> Self {
        Self { keys, ..self }
    }

    /// Checks whether events can be accepted and counted at the moment.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(reason) = self.published.failure() {
            return Err(Error::Stopped(reason));
        }
        Ok(self.sink.check()?)
    }

    /// Begins a request, unless the log accepts no events or the writer is too far behind.
    pub fn begin(&self) -> Result<Intake, Error> {
        self.check()?;
        let lag_of = |log: &Arc<dyn EventLog>| {
            log.end().saturating_sub(self.published.applied(log.partition()))
        };
        let lag = self.counted.iter().map(lag_of).sum();
        if lag > self.lag_max {
            return Err(Error::Lagging { lag, retry_after: Duration::from_secs(1) });
        }

        Ok(Intake {
            batch: Batch::default(),
            rejected: Vec::new(),
            next: 0,
            now_s: self.clock.now_s(),
            future_allowance_s: self.future_allowance_s,
            view: Arc::clone(&self.published.view()),
            full: self.keys.full(),
            earliest: None,
        })
    }

    /// Makes the valid events durable, and waits until they are counted if requested.
    pub async fn finish(&self, intake: Intake, wait_applied: bool) -> Result<Receipt, Error> {
        let (receipt, ends) = self.append(intake).await?;
        if wait_applied {
            self.wait_applied(&ends).await?;
        }
        Ok(receipt)
    }

    /// Like [`Self::finish`], but waits until `deadline` at most: the events are durable by then,
    /// counted or not.
    pub async fn finish_by(&self, intake: Intake, deadline: Instant) -> Result<Completion, Error> {
        let (receipt, ends) = self.append(intake).await?;
        match timeout_at(deadline, self.wait_applied(&ends)).await {
            Ok(waited) => waited.map(|()| Completion { receipt, lag: None }),
            Err(_) => Ok(Completion { receipt, lag: Some(self.lag(&ends)) }),
        }
    }

    /// Makes the valid events durable. Returns also their ends in the log: for each partition, the
    /// offset behind the last of them.
    pub async fn append(
        &self,
        intake: Intake,
    ) -> Result<(Receipt, Vec<(Partition, Offset)>), Error> {
        let Intake { batch, rejected, .. } = intake;
        for RejectedEvent { refusal, .. } in &rejected {
            let code = refusal.code.as_str();
            metrics::counter!("raingauge_events_rejected_total", "code" => code).increment(1);
        }
        if batch.is_empty() {
            return Ok((Receipt { rejected, ..Receipt::default() }, Vec::new()));
        }
        let Appended { accepted, duplicates, ends } = self.sink.append(batch).await?;
        metrics::counter!("raingauge_events_accepted_total").increment(accepted as u64);
        metrics::counter!("raingauge_events_duplicate_total").increment(duplicates as u64);
        Ok((Receipt { accepted, duplicates, rejected }, ends))
    }

    async fn wait_applied(&self, ends: &[(Partition, Offset)]) -> Result<(), Error> {
        self.published.wait_applied(ends).await.map_err(Error::Stopped)
    }

    /// Returns the number of entries up to these ends that are not counted yet.
    fn lag(&self, ends: &[(Partition, Offset)]) -> u64 {
        ends.iter()
            .map(|(partition, end)| end.saturating_sub(self.published.applied(*partition)))
            .sum()
    }
}

impl Intake {
    /// Reserves room for events of about this many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.batch.bytes.reserve(bytes);
    }

    /// Adds one event in the JSON format of CloudEvents.
    pub fn push_json(&mut self, json: &[u8]) -> Result<(), Error> {
        self.push(Event::from_json(json))
    }

    /// Adds one event, or the reason why it could not be decoded.
    pub fn push(&mut self, event: Result<Event<'_>, Refusal>) -> Result<(), Error> {
        if self.next >= EVENTS_PER_REQUEST_MAX {
            return Err(Error::TooMany);
        }
        let index = self.next;
        self.next += 1;

        let added = event.and_then(|event| self.add(event));
        self.rejected.extend(added.err().map(|refusal| RejectedEvent { index, refusal }));

        Ok(())
    }

    fn add(&mut self, mut event: Event<'_>) -> Result<(), Refusal> {
        event.check_not_future(self.now_s, self.future_allowance_s)?;
        self.check_not_expired(&event)?;

        self.full.mark(&self.view.ruleset, &mut event);
        self.batch.push(&event);

        Ok(())
    }

    /// Returns the number of events so far, including refused ones.
    pub fn len(&self) -> usize {
        self.next
    }

    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Refuses an event for which no counter of its type has a bucket any more. An event without a
    /// counter is accepted: a counter may be created, and backfilled, later.
    fn check_not_expired(&mut self, event: &Event<'_>) -> Result<(), Refusal> {
        if self.earliest.as_ref().is_none_or(|(kind, _)| **kind != *event.kind) {
            let earliest = self.view.ruleset.earliest_s(&event.kind, self.now_s);
            self.earliest = Some((event.kind.to_string(), earliest));
        }
        match self.earliest {
            Some((_, Some(earliest_s))) if event.time_s() < earliest_s => Err(Refusal::new(
                Code::TooLate,
                format!(
                    "no counter of this type keeps counts from before {}: extend the retention of one",
                    format_rfc3339(earliest_s)
                ),
            )),
            _ => Ok(()),
        }
    }
}
