//! Watches the first and last offsets of partitions: one thread asks the brokers for all of them in
//! one request.

use crate::context::{Connection, Context};
use crate::error::{self, Error};
use crate::options::Options;
use crate::topic_id;
use parking_lot::{Condvar, Mutex};
use raingauge_ports::log::Partition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum age of the offsets while the brokers are reachable, besides the brokers' own delay.
const INTERVAL: Duration = Duration::from_millis(50);
/// First offsets and open transactions change rarely; they are requested once in this many rounds.
const ROUNDS_PER_START: u32 = 20;
/// An end that moved back is believed only after this time, since a new leader may not know the
/// end.
const SHRUNK_FOR: Duration = Duration::from_secs(30);
/// How often the number of partitions and the topic's id are checked.
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(60);
const TOPIC_INTERVAL: Duration = Duration::from_secs(2);

/// The range of Kafka's offsets that hold messages. Messages of open transactions lie after the
/// end.
pub struct Span {
    partition: i32,
    start: AtomicI64,
    end: AtomicI64,
    shrunk_since: Mutex<Option<Instant>>,
}

impl Span {
    pub fn start(&self) -> i64 {
        self.start.load(Ordering::Acquire)
    }

    pub fn end(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    fn set_end(&self, end: i64) {
        let known = self.end();
        let mut shrunk_since = self.shrunk_since.lock();
        if end >= known {
            *shrunk_since = None;
        } else if shrunk_since.get_or_insert_with(Instant::now).elapsed() < SHRUNK_FOR {
            return;
        }
        self.end.store(end, Ordering::Release);
    }
}

/// The client that asks the brokers, and the waiting callers.
pub struct Ends {
    client: BaseConsumer<Context>,
    /// Also sees the messages of open transactions.
    uncommitted: BaseConsumer<Context>,
    connection: Arc<Connection>,
    topic: Arc<str>,
    partitions: Partition,
    /// The topic's id when it was first seen; `None` if the brokers have no ids or did not say.
    topic_id: Option<u128>,
    /// Why the topic is not the one that was counted, once that is known.
    replaced: OnceLock<String>,
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    spans: Vec<Weak<Span>>,
    stopped: bool,
}

/// The watching thread, which ends when this is dropped.
pub struct Watching {
    pub ends: Arc<Ends>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.ends.state.lock().stopped = true;
        self.ends.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Ends {
    /// Finds the topic and starts to watch it. Blocks the thread.
    pub fn watch(options: &Options, connection: Arc<Connection>) -> Result<Watching, Error> {
        let context = Context { connection: Arc::clone(&connection) };
        let uncommitted = options
            .uncommitted_config()
            .create_with_context(context.clone())
            .map_err(error::settings)?;
        let client: BaseConsumer<Context> =
            options.admin_config().create_with_context(context).map_err(error::settings)?;
        let partitions = partitions_of(&client, options, options.request_timeout)?;
        let unknown = |error| {
            tracing::warn!(%error, topic = options.topic, "the brokers do not report its id");
            None
        };
        let topic_id =
            topic_id::ask(&client, &options.topic, options.request_timeout).unwrap_or_else(unknown);
        let ends = Arc::new(Self {
            client,
            uncommitted,
            connection,
            topic: options.topic.as_str().into(),
            partitions,
            topic_id,
            replaced: OnceLock::new(),
            timeout: options.request_timeout,
            state: Mutex::default(),
            changed: Condvar::new(),
        });

        let asking = Arc::clone(&ends);
        let thread = std::thread::Builder::new()
            .name("kafka-ends".to_owned())
            .spawn(move || asking.run())?;
        Ok(Watching { ends, thread: Some(thread) })
    }

    pub fn partitions(&self) -> Partition {
        self.partitions
    }

    pub fn topic_id(&self) -> Option<u128> {
        self.topic_id
    }

    /// Why the topic is not the one that was counted; `None` while it is.
    pub fn replaced(&self) -> Option<&str> {
        self.replaced.get().map(String::as_str)
    }

    /// Notes that the topic is not the one that was counted, which ends all reading.
    pub fn refuse(&self, reason: String) {
        if self.replaced.set(reason).is_ok() {
            tracing::error!(topic = %self.topic, reason = self.replaced(), "reading the topic has stopped");
            self.changed.notify_all();
        }
    }

    /// Returns a partition's range, which is kept up to date while the caller holds it. Blocks the
    /// thread.
    pub fn span(&self, partition: Partition) -> Result<Arc<Span>, KafkaError> {
        let span = Arc::new(Span {
            partition: partition.into(),
            start: AtomicI64::new(0),
            end: AtomicI64::new(0),
            shrunk_since: Mutex::default(),
        });
        self.refresh(&span)?;
        self.state.lock().spans.push(Arc::downgrade(&span));
        Ok(span)
    }

    /// Refreshes one partition immediately. Blocks the thread.
    pub fn refresh(&self, span: &Span) -> Result<(), KafkaError> {
        let (start, end) =
            self.client.fetch_watermarks(&self.topic, span.partition, self.timeout)?;
        span.start.store(start, Ordering::Release);
        span.set_end(end);
        Ok(())
    }

    /// Returns the offset of the first message appended at or after a time, and `None` if there is
    /// none that late. Blocks the thread.
    pub fn first_since(&self, partition: i32, appended_ms: i64) -> Result<Option<i64>, KafkaError> {
        let time = Offset::Offset(appended_ms.max(0));
        let mut asked = TopicPartitionList::with_capacity(1);
        asked.add_partition_offset(&self.topic, partition, time)?;

        let answered = self.client.offsets_for_times(asked, self.timeout)?;
        let element = answered
            .find_partition(&self.topic, partition)
            .ok_or(KafkaError::OffsetFetch(RDKafkaErrorCode::UnknownPartition))?;
        element.error()?;
        match element.offset() {
            Offset::Offset(offset) => Ok(Some(offset)),
            _ => Ok(None),
        }
    }

    /// Notes that a partition reaches at least to this offset.
    pub fn reaches(&self, span: &Span, end: i64) {
        if span.end.fetch_max(end, Ordering::AcqRel) < end {
            drop(self.state.lock());
            self.changed.notify_all();
        }
    }

    /// Waits until a partition ends after this offset.
    pub fn wait(&self, span: &Span, offset: i64, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while span.end() <= offset && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    fn run(&self) {
        let mut round = 0_u32;
        let mut counted = Instant::now();
        let mut identified = Instant::now();
        let mut pause = INTERVAL;
        while let Some(spans) = self.pause(pause) {
            // Serves the client's callbacks, such as the one for unreachable brokers.
            let _ = self.client.poll(Duration::ZERO);
            pause = match self.ask_all(&spans, round.is_multiple_of(ROUNDS_PER_START)) {
                Ok(()) => INTERVAL,
                Err(error) => {
                    self.connection.lost(&error.to_string());
                    INTERVAL * 10
                }
            };
            round = round.wrapping_add(1);

            if identified.elapsed() > TOPIC_INTERVAL {
                identified = Instant::now();
                self.check_topic();
            }

            if counted.elapsed() > PARTITIONS_INTERVAL {
                counted = Instant::now();
                self.check_partitions();
            }
        }
    }

    /// Waits for a moment. Returns the watched partitions, or `None` when the thread must end.
    fn pause(&self, pause: Duration) -> Option<Vec<Arc<Span>>> {
        let deadline = Instant::now() + pause;
        let mut state = self.state.lock();
        while !state.stopped && !self.changed.wait_until(&mut state, deadline).timed_out() {}
        state.spans.retain(|span| span.strong_count() > 0);
        (!state.stopped).then(|| state.spans.iter().filter_map(Weak::upgrade).collect())
    }

    fn ask_all(&self, spans: &[Arc<Span>], seldom: bool) -> Result<(), KafkaError> {
        if spans.is_empty() {
            return Ok(());
        }

        // A broker returns nothing for a partition that is requested twice.
        let mut partitions: Vec<i32> = spans.iter().map(|span| span.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();

        let of = |partition: i32| spans.iter().filter(move |span| span.partition == partition);
        let mut uncommitted = HashMap::new();
        if seldom {
            for (partition, start) in
                ask(&self.client, &self.topic, &partitions, Offset::Beginning, self.timeout)?
            {
                of(partition).for_each(|span| span.start.store(start, Ordering::Release));
            }
            // Asked before the ends: a message that arrives in between then belongs to no
            // transaction.
            uncommitted.extend(ask(
                &self.uncommitted,
                &self.topic,
                &partitions,
                Offset::End,
                self.timeout,
            )?);
        }

        for (partition, end) in
            ask(&self.client, &self.topic, &partitions, Offset::End, self.timeout)?
        {
            of(partition).for_each(|span| span.set_end(end));
            let name = partition.to_string();
            if let Some(high) = uncommitted.get(&partition) {
                metrics::gauge!("raingauge_log_unstable_messages", "partition" => name.clone())
                    .set((high - end).max(0) as f64);
            }

            metrics::gauge!("raingauge_log_end_offset", "partition" => name).set(end as f64);
        }

        self.connection.restored();
        drop(self.state.lock());
        self.changed.notify_all();

        Ok(())
    }

    /// Checks whether the topic was replaced while it was read.
    fn check_topic(&self) {
        let Some(first) = self.topic_id.filter(|_| self.replaced().is_none()) else {
            return;
        };
        if let Ok(Some(found)) = topic_id::ask(&self.client, &self.topic, self.timeout)
            && found != first
        {
            self.refuse(recreated(&self.topic));
        }
    }

    fn check_partitions(&self) {
        let Ok(metadata) = self.client.fetch_metadata(Some(&self.topic), self.timeout) else {
            return;
        };
        let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        if found != 0 && found != usize::from(self.partitions) {
            tracing::error!(
                topic = %self.topic,
                found,
                wanted = self.partitions,
                "the topic was given another number of partitions while raingauge runs: repetitions of events may be \
                 counted again; begin a new topic, and raise kafka.epoch"
            );
        }
    }
}

/// The reason given for a topic that has the right name and another id.
pub fn recreated(topic: &str) -> String {
    format!(
        "the topic {topic} was recreated: its id is not the one of the topic that was counted; stop all processes, raise \
         kafka.epoch, and see docs/operations/runbooks.md, \"The topic was recreated\""
    )
}

/// Requests the offset of a time in each partition, or their first or last offsets. Leaves out a
/// partition without a leader; an error concerns all of them.
pub fn ask(
    client: &BaseConsumer<Context>,
    topic: &str,
    partitions: &[i32],
    time: Offset,
    timeout: Duration,
) -> Result<Vec<(i32, i64)>, KafkaError> {
    let mut asked = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        asked.add_partition_offset(topic, *partition, time)?;
    }

    let answered = client.offsets_for_times(asked, timeout)?;
    let mut offsets = Vec::with_capacity(partitions.len());
    let mut failure = None;

    for element in answered.elements() {
        match (element.error(), element.offset()) {
            (Err(error), _) => failure = Some(error),
            (Ok(()), Offset::Offset(offset)) => offsets.push((element.partition(), offset)),
            (Ok(()), _) => {}
        }
    }

    match failure {
        Some(error) if offsets.is_empty() => Err(error),
        _ => Ok(offsets),
    }
}

/// Returns how many partitions the topic has, whatever number is expected.
pub async fn find(options: &Options, connection: Arc<Connection>) -> Result<Partition, Error> {
    let options = Options { partitions: None, ..options.clone() };
    let find = move || {
        let client = options
            .admin_config()
            .create_with_context(Context { connection })
            .map_err(error::settings)?;
        partitions_of(&client, &options, options.request_timeout)
    };
    tokio::task::spawn_blocking(find)
        .await
        .map_err(|_| Error::Settings("raingauge is stopping".to_owned()))?
}

/// Returns how many partitions the topic has.
fn partitions_of(
    client: &BaseConsumer<Context>,
    options: &Options,
    timeout: Duration,
) -> Result<Partition, Error> {
    let topic = options.topic.clone();
    let unreachable = |reason: String| Error::Unreachable { brokers: options.place(), reason };
    let metadata = client.fetch_metadata(Some(&topic), timeout).map_err(|error| {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::BrokerTransportFailure) => {
                unreachable("no broker answers".to_owned())
            }
            _ => unreachable(error.to_string()),
        }
    })?;

    let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len() as i32);
    let code = metadata.topics().first().and_then(|topic| topic.error());
    if found == 0 {
        return match code.map(RDKafkaErrorCode::from) {
            None | Some(RDKafkaErrorCode::UnknownTopicOrPartition) => Err(Error::NoTopic { topic }),
            Some(code) => Err(Error::Refused { topic, reason: code.to_string() }),
        };
    }

    if let Some(wanted) = options.partitions.filter(|wanted| i32::from(*wanted) != found) {
        return Err(Error::PartitionsChanged { topic, found, wanted: wanted.into() });
    }
    Partition::try_from(found).map_err(|_| Error::TooManyPartitions { topic, found })
}
