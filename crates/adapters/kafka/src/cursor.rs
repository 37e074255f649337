//! A position in a partition, from which messages are read in order.

use crate::context::Context;
use crate::ends;
use crate::error::{self, Error};
use crate::reader::{Answer, Reader, Unfit};
use crate::restore::Restoring;
use crate::shared::Shared;
use raingauge_core::time::format_rfc3339;
use raingauge_ports::dedupe;
use raingauge_ports::log::{self, Block, Offset as PortOffset};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message, Offset, Timestamp, TopicPartitionList};
use std::time::{Duration, Instant};

/// How long to wait for more messages that are known to exist, once there is something to return.
const MORE: Duration = Duration::from_millis(10);
/// An empty poll may be older than a message. Only after this delay does the cursor check whether
/// the offsets up to the end hold any messages.
const STALE: Duration = Duration::from_millis(100);
/// How long a broker waits for messages before it returns none, for a continued read and for a
/// probe.
const READ_ON: Duration = Duration::from_millis(200);
const ASK: Duration = Duration::from_millis(5);

/// Why a read failed.
#[derive(Debug)]
pub enum Trouble {
    /// The offset does not exist, or no longer exists.
    OutOfRange,
    /// The brokers do not answer or the client is unusable. Another cursor may succeed.
    Broken(String),
    /// The broker sent something other than what was written.
    Damaged(String),
    /// A permanent error.
    Log(log::Error),
}

impl From<KafkaError> for Trouble {
    fn from(error: KafkaError) -> Self {
        use RDKafkaErrorCode as Code;
        match error.rdkafka_error_code() {
            Some(Code::OffsetOutOfRange | Code::AutoOffsetReset) => Self::OutOfRange,
            Some(Code::BadMessage | Code::BadCompression | Code::InvalidMessage) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<Unfit> for Trouble {
    fn from(unfit: Unfit) -> Self {
        Self::Log(match unfit {
            Unfit::NotAppendTime { offset } => log::Error::Corrupt(format!(
                "the message at offset {offset} of the topic has its producer's time: message.timestamp.type was not \
                 LogAppendTime when it was appended, and it must be for all messages"
            )),
            Unfit::Replaced { offset, appended_ms } => replaced(offset + 1, appended_ms),
        })
    }
}

/// The error for an offset whose content has changed since it was read.
pub fn replaced(from: i64, appended_ms: i64) -> log::Error {
    let appended = format_rfc3339(appended_ms.div_euclid(1_000));
    log::Error::Replaced(format!(
        "the message before offset {from} of the topic was appended at {appended}, and is not the one that was counted: \
         the topic was recreated, or its brokers lost its end; see docs/operations/runbooks.md, \"The topic was recreated\""
    ))
}

/// Where a cursor begins.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub partition: i32,
    pub from: i64,
    /// The partition's first offset.
    pub start: i64,
    /// Everything before this position was appended no later than this; `None` if unknown.
    pub before_ms: Option<i64>,
}

pub struct Cursor {
    /// `None` until messages are needed.
    consumer: Option<BaseConsumer<Context>>,
    partition: i32,
    start: i64,
    reader: Reader,
    /// Stored chunks that are read in place of messages.
    restoring: Option<Restoring>,
    /// When rebuilding the window began, and from how many chunks; `None` once the window is
    /// complete.
    rebuilding: Option<(Instant, u64)>,
    /// The last answer, in case the caller consumed only a part of it.
    answered: Vec<Block>,
    used: Instant,
}

impl Cursor {
    /// Opens a cursor at a position. The first [`Cursor::fill`] restores the window before the
    /// position from chunks or messages, starting with the first message appended at or after the
    /// start of a slice; see [`dedupe::Window`]. Stores chunks of the window if it `records`.
    pub fn open(shared: &Shared, place: Place, records: bool) -> Result<Self, Trouble> {
        let Place { partition, from, start, before_ms } = place;
        let begin = match last_before(shared, partition, from, start)? {
            None => from,
            Some(appended_ms) if before_ms.is_some_and(|before_ms| appended_ms > before_ms) => {
                return Err(Trouble::Log(replaced(from, appended_ms)));
            }
            Some(appended_ms) => {
                let begin_ms = dedupe::begin_ms(shared.options.dedupe_window_ms, appended_ms);
                shared.ends().first_since(partition, begin_ms)?.unwrap_or(from).clamp(start, from)
            }
        };

        if begin == start && start > 0 && begin < from {
            tracing::warn!(
                partition,
                from,
                start,
                "the dedupe window reaches the start of the log: repetitions of trimmed events cannot be recognized"
            );
        }

        metrics::counter!("raingauge_log_cursors_total").increment(1);
        let now = Instant::now();
        Ok(Self {
            consumer: None,
            partition,
            start,
            reader: Reader::new(&shared.options, begin, from, records),
            restoring: None,
            rebuilding: Some((now, 0)),
            answered: Vec::new(),
            used: now,
        })
    }

    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    pub fn stands_at(&self, offset: i64) -> bool {
        self.reader.answers_from() == offset
    }

    pub fn used(&self) -> Instant {
        self.used
    }

    /// Returns the rest of the last answer from an offset on, if that offset lies in it.
    pub fn answered_from(&self, from: PortOffset) -> Option<Vec<Block>> {
        let place =
            self.answered.iter().position(|block| block.base <= from && from < block.end())?;
        Some(self.answered[place..].to_vec())
    }

    /// Takes the messages read so far.
    pub fn answer(&mut self) -> Answer {
        let made = self.reader.answer();
        self.answered.clone_from(&made.blocks);
        made
    }

    /// Reads until about `bytes_max` are available, until some are and no more are at hand, or
    /// until the time is over. The partition is known to reach to `end`.
    pub fn fill(
        &mut self,
        shared: &Shared,
        end: i64,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<(), Trouble> {
        self.used = Instant::now();
        let deadline = self.used + wait;
        let mut nothing_since: Option<Instant> = None;

        while self.reader.bytes() < bytes_max.max(1) {
            if !self.restore(shared, deadline) {
                return Ok(());
            }
            self.connect(shared)?;

            let Some(consumer) = &self.consumer else {
                return Ok(());
            };
            let ready = self.reader.bytes() > 0;
            let patience = match (ready, self.reader.next() < end) {
                (true, true) => MORE,
                (true, false) => Duration::ZERO,
                (false, _) => deadline.saturating_duration_since(Instant::now()).min(STALE),
            };

            match consumer.poll(patience) {
                Some(Ok(message)) => {
                    nothing_since = None;
                    self.reader.take(&message)?;
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    nothing_since = nothing_since.or(Some(Instant::now()))
                }
                Some(Err(error)) => self.meet(error)?,
                None if ready => break,
                None => {}
            }

            if nothing_since.is_some_and(|since| since.elapsed() >= STALE)
                && self.reader.next() < end
            {
                nothing_since = None;
                self.pass_over(shared)?;
            }

            if !ready && Instant::now() >= deadline {
                break;
            }
        }

        Ok(())
    }

    /// Reads stored chunks in place of messages, as far as there are any. Returns whether to read
    /// messages next; `false` if the time is over.
    fn restore(&mut self, shared: &Shared, deadline: Instant) -> bool {
        if self.restoring.is_none()
            && let Some(number) = self.reader.look_for()
        {
            self.restoring = Restoring::begin(shared, self.partition, &mut self.reader, number);
        }

        while let Some(restoring) = &mut self.restoring {
            if restoring.step(&mut self.reader) {
                if Instant::now() >= deadline {
                    return false;
                }
                continue;
            }

            if restoring.restored() > 0 {
                // A new client continues after the chunks, since the old one may have prefetched
                // messages.
                self.consumer = None;
            }

            self.rebuilding =
                self.rebuilding.map(|(began, chunks)| (began, chunks + restoring.restored()));
            self.restoring = None;
        }

        if self.reader.next() >= self.reader.answers_from()
            && let Some((began, chunks)) = self.rebuilding.take()
        {
            let partition = self.partition;
            let ids = self.reader.window().len();
            let took = began.elapsed();
            metrics::histogram!("raingauge_dedupe_rebuild_seconds").record(took.as_secs_f64());

            tracing::debug!(
                partition,
                chunks,
                ids,
                took_s = took.as_secs_f64(),
                "the dedupe window is complete"
            );
        }

        true
    }

    /// Creates the client that continues here, unless it exists.
    fn connect(&mut self, shared: &Shared) -> Result<(), Trouble> {
        if self.consumer.is_none() {
            let at = self.reader.resumes_at(self.start);
            self.consumer = Some(consumer_at(shared, self.partition, at, READ_ON)?);
        }
        Ok(())
    }

    /// Skips offsets without a message, such as a transaction's end marker.
    fn pass_over(&mut self, shared: &Shared) -> Result<(), Trouble> {
        if let Some(end) = empty_until(shared, self.partition, self.reader.next())? {
            self.reader.skip_to(end);
        }
        Ok(())
    }

    fn meet(&self, error: KafkaError) -> Result<(), Trouble> {
        let fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
        match Trouble::from(error) {
            Trouble::Broken(reason) if !fatal => {
                tracing::debug!(
                    partition = self.partition,
                    reason,
                    "the client goes on trying to read"
                );
                Ok(())
            }
            trouble => Err(trouble),
        }
    }
}

/// What lies at or after an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Message { offset: i64, appended_ms: i64 },
    End,
}

/// Finds the first message at or after an offset. Uses a client of its own, so that the result is
/// no older than the call.
pub fn probe(shared: &Shared, partition: i32, from: i64) -> Result<Found, Trouble> {
    first_message(&consumer_at(shared, partition, from, ASK)?, shared.options.request_timeout)
}

fn first_message(consumer: &BaseConsumer<Context>, timeout: Duration) -> Result<Found, Trouble> {
    let deadline = Instant::now() + timeout;
    while Instant::now() < deadline {
        match consumer.poll(STALE) {
            Some(Ok(message)) => {
                let Timestamp::LogAppendTime(appended_ms) = message.timestamp() else {
                    return Err(Unfit::NotAppendTime { offset: message.offset() }.into());
                };
                return Ok(Found::Message { offset: message.offset(), appended_ms });
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(Found::End),
            Some(Err(error)) => match Trouble::from(error) {
                Trouble::Broken(_) => {}
                trouble => return Err(trouble),
            },
            None => {}
        }
    }

    Err(Trouble::Broken("no broker answered in time".to_owned()))
}

/// Returns the end of a partition if no offset from `from` up to it holds a message.
///
/// A new leader may not know yet how far the partition reaches, and then answers with an end that
/// is too early. So the function first asks a leader for the end, which a new leader refuses until
/// it knows, and then asks for messages once more: that answer reaches at least to this end.
fn empty_until(shared: &Shared, partition: i32, from: i64) -> Result<Option<i64>, Trouble> {
    let timeout = shared.options.request_timeout;
    let consumer = consumer_at(shared, partition, from, ASK)?;
    let leader = leader_of(&consumer, shared, partition)?;

    if first_message(&consumer, timeout)? != Found::End {
        return Ok(None);
    }
    let ends = ends::ask(&consumer, &shared.options.topic, &[partition], Offset::End, timeout)?;
    let Some(end) = ends.first().map(|(_, end)| *end).filter(|end| *end > from) else {
        return Ok(None);
    };
    assign(&consumer, shared, partition, from)?;

    let is_empty = first_message(&consumer, timeout)? == Found::End;
    let is_same = leader_of(&consumer, shared, partition)? == leader;
    Ok(Some(end).filter(|_| is_empty && is_same))
}

fn leader_of(
    consumer: &BaseConsumer<Context>,
    shared: &Shared,
    partition: i32,
) -> Result<i32, Trouble> {
    let metadata =
        consumer.fetch_metadata(Some(&shared.options.topic), shared.options.request_timeout)?;
    let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
    let leader = partitions.find(|found| found.id() == partition).map(|found| found.leader());
    leader
        .filter(|leader| *leader >= 0)
        .ok_or_else(|| Trouble::Broken("the partition has no leader".to_owned()))
}

/// Returns the append time of some message shortly before an offset, or `None` without one. Looks
/// back in growing steps, since offsets need not hold a message.
pub fn last_before(
    shared: &Shared,
    partition: i32,
    from: i64,
    start: i64,
) -> Result<Option<i64>, Trouble> {
    let mut reach = 1;
    let mut at = from;
    while at > start {
        at = from.saturating_sub(reach).max(start);
        reach *= 8;

        match probe(shared, partition, at)? {
            Found::Message { offset, appended_ms } if offset < from => {
                return Ok(Some(appended_ms));
            }
            Found::Message { .. } | Found::End => {}
        }
    }

    Ok(None)
}

fn consumer_at(
    shared: &Shared,
    partition: i32,
    offset: i64,
    wait: Duration,
) -> Result<BaseConsumer<Context>, Trouble> {
    let context = Context { connection: shared.connection.clone() };
    let consumer: BaseConsumer<Context> =
        shared.options.cursor_config(wait).create_with_context(context).map_err(error::settings)?;
    assign(&consumer, shared, partition, offset)?;
    Ok(consumer)
}

fn assign(
    consumer: &BaseConsumer<Context>,
    shared: &Shared,
    partition: i32,
    offset: i64,
) -> Result<(), Trouble> {
    let mut place = TopicPartitionList::with_capacity(1);
    place.add_partition_offset(&shared.options.topic, partition, Offset::Offset(offset))?;
    Ok(consumer.assign(&place)?)
}
