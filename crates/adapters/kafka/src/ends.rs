//! Where partitions begin and end, asked of the brokers by a thread of its own, in one request for all of them.

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

/// How old an answer may be while the brokers are in reach, besides their own time.
const INTERVAL: Duration = Duration::from_millis(50);
/// Beginnings move seldom: they are asked for once in so many rounds, and so are transactions.
const ROUNDS_PER_START: u32 = 20;
/// A partition that ends earlier than it did is believed only after this: a new leader may not know the end yet.
const SHRUNK_FOR: Duration = Duration::from_secs(30);
/// How often it is looked whether the topic still has as many partitions, and whether it is still the same.
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(60);
const TOPIC_INTERVAL: Duration = Duration::from_secs(2);

/// The offsets, in Kafka's count, between which a partition holds messages. Behind the end lie those of transactions
/// that are not committed yet.
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

/// The client that is asked, and whoever waits for its answers.
pub struct Ends {
    client: BaseConsumer<Context>,
    /// Sees the messages of transactions that are not over, too.
    uncommitted: BaseConsumer<Context>,
    connection: Arc<Connection>,
    topic: Arc<str>,
    partitions: Partition,
    /// What the brokers called the topic first; `None` where they know of no ids, or could not tell.
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

/// The thread; it ends when this is dropped.
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
    /// Finds the topic, and begins to watch it. Blocks the thread.
    pub fn watch(options: &Options, connection: Arc<Connection>) -> Result<Watching, Error> {
        let context = Context { connection: Arc::clone(&connection) };
        let uncommitted = options
            .uncommitted_config()
            .create_with_context(context.clone())
            .map_err(error::settings)?;
        let client: BaseConsumer<Context> =
            options.admin_config().create_with_context(context).map_err(error::settings)?;
        let partitions = partitions_of(&client, options, options.request_timeout)?;
        let topic_id = topic_id::ask(&client, &options.topic, options.request_timeout).unwrap_or_else(|error| {
            tracing::warn!(%error, topic = options.topic, "the brokers do not tell the id of the topic");
            None
        });
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

    /// Why the topic is not the one that was counted; nothing as long as it is.
    pub fn replaced(&self) -> Option<&str> {
        self.replaced.get().map(String::as_str)
    }

    /// Notes that the topic is not the one that was counted. From now on nothing of it is read.
    pub fn refuse(&self, reason: String) {
        if self.replaced.set(reason).is_ok() {
            tracing::error!(topic = %self.topic, reason = self.replaced(), "nothing of the topic is read any more");
            self.changed.notify_all();
        }
    }

    /// Asks where a partition begins and ends, and goes on asking while the answer is held. Blocks the thread.
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

    /// Asks for one partition at once. Blocks the thread.
    pub fn refresh(&self, span: &Span) -> Result<(), KafkaError> {
        let (start, end) =
            self.client.fetch_watermarks(&self.topic, span.partition, self.timeout)?;
        span.start.store(start, Ordering::Release);
        span.set_end(end);
        Ok(())
    }

    /// The offset of the first message that was appended at this time or later. Blocks the thread.
    pub fn first_since(&self, partition: i32, appended_ms: i64) -> Result<Option<i64>, KafkaError> {
        let time = Offset::Offset(appended_ms.max(0));
        let answers = ask(&self.client, &self.topic, &[partition], time, self.timeout)?;
        Ok(answers.first().map(|(_, offset)| *offset))
    }

    /// Notes that a partition is known to reach this far.
    pub fn reaches(&self, span: &Span, end: i64) {
        if span.end.fetch_max(end, Ordering::AcqRel) < end {
            drop(self.state.lock());
            self.changed.notify_all();
        }
    }

    /// Waits until a partition ends beyond this offset.
    pub fn wait(&self, span: &Span, offset: i64, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while span.end() <= offset && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    fn run(&self) {
        let mut round = 0_u32;
        let (mut counted, mut identified) = (Instant::now(), Instant::now());
        let mut pause = INTERVAL;
        while let Some(spans) = self.pause(pause) {
            // Whatever the client has to report, among it that no broker answers.
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

    /// Waits a little. Answers what is watched, or nothing when it is time to end.
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
        // Of one that is asked for twice, a broker answers neither.
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
            // Before the ends, so that messages that come in between are in no transaction.
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

    /// Looks whether the topic was made anew while it is read.
    fn check_topic(&self) {
        let Some(first) = self.topic_id.filter(|_| self.replaced().is_none()) else {
            return;
        };
        if let Ok(Some(found)) = topic_id::ask(&self.client, &self.topic, self.timeout)
            && found != first
        {
            self.refuse(made_anew(&self.topic));
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

/// A topic with the name of the one that was counted, and another id.
pub fn made_anew(topic: &str) -> String {
    format!(
        "the topic {topic} was made anew: its id is not the one of the topic that was counted; stop all processes, raise \
         kafka.epoch, and see docs/operations.md, \"The topic was made anew\""
    )
}

/// Asks for the offset of a time in each partition, or for their beginnings or ends. A partition without a leader is left
/// out; an error is that of all of them.
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
    let (mut offsets, mut failure) = (Vec::with_capacity(partitions.len()), None);
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

/// How many partitions the topic has, however many are wanted.
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

/// How many partitions the topic has.
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
