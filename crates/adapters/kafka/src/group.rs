//! Which partitions this process counts: membership of a consumer group that fetches nothing.

use crate::context::{self, Connection};
use crate::error::{self, Error};
use crate::topic::KafkaTopic;
use parking_lot::Mutex;
use raingauge_ports::log::{Offset as PortOffset, Partition};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the thread looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);
/// How long a process whose membership ended waits before it joins again: doubled each time, up to the longest.
const REJOIN_MIN: Duration = Duration::from_secs(1);
const REJOIN_MAX: Duration = Duration::from_secs(30);

/// What this process has in the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    pub partitions: BTreeSet<Partition>,
    /// Why this process is out of the group, until it is in it again.
    pub failure: Option<Arc<str>>,
}

struct Membership {
    connection: Arc<Connection>,
    assigned: watch::Sender<Assigned>,
}

impl ClientContext for Membership {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::note(&self.connection, &error, reason);
    }
}

impl ConsumerContext for Membership {
    fn pre_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        // Told before it is confirmed, so that the successor seldom meets the predecessor.
        if let Rebalance::Revoke(partitions) = rebalance {
            self.change(partitions, |assigned, partition| assigned.remove(&partition));
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            if let Err(error) = consumer.pause(partitions) {
                tracing::debug!(%error, "messages are fetched for nothing");
            }
            self.assigned.send_if_modified(|assigned| assigned.failure.take().is_some());
            self.change(partitions, |assigned, partition| assigned.insert(partition));
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "a position could not be told to the group");
        }
    }
}

impl Membership {
    fn change(
        &self,
        partitions: &TopicPartitionList,
        apply: impl Fn(&mut BTreeSet<Partition>, Partition) -> bool,
    ) {
        let changed: Vec<Partition> = partitions
            .elements()
            .iter()
            .filter_map(|element| Partition::try_from(element.partition()).ok())
            .collect();
        self.assigned.send_if_modified(|assigned| {
            let mut any = false;
            for partition in &changed {
                any |= apply(&mut assigned.partitions, *partition);
            }
            any
        });
        let assigned = self.assigned.borrow();
        metrics::gauge!("raingauge_log_partitions").set(assigned.partitions.len() as f64);
        tracing::info!(partitions = ?assigned.partitions, "the group gives this process partitions to count");
    }
}

/// What it takes to become a member.
struct Join {
    config: ClientConfig,
    topic: Arc<str>,
    connection: Arc<Connection>,
    assigned: watch::Sender<Assigned>,
}

impl Join {
    fn member(&self) -> Result<Arc<BaseConsumer<Membership>>, Error> {
        let membership = Membership {
            connection: Arc::clone(&self.connection),
            assigned: self.assigned.clone(),
        };
        let consumer: BaseConsumer<Membership> =
            self.config.create_with_context(membership).map_err(error::settings)?;
        consumer.subscribe(&[&self.topic]).map_err(error::settings)?;
        Ok(Arc::new(consumer))
    }

    /// Polls until it is to stop. A membership can end for good: the coordinator takes a member with an instance id whose
    /// session was over, as when the broker was away, for a second one of that name. Then another one is begun.
    fn keep(&self, member: &Mutex<Arc<BaseConsumer<Membership>>>, stop: &AtomicBool) {
        let (mut pause, mut joined) = (REJOIN_MIN, Instant::now());
        while !stop.load(Ordering::Acquire) {
            let polled = Arc::clone(&member.lock());
            let Some(Err(KafkaError::MessageConsumptionFatal(code))) = polled.poll(POLL) else {
                continue;
            };
            pause = if joined.elapsed() > REJOIN_MAX {
                REJOIN_MIN
            } else {
                (pause * 2).min(REJOIN_MAX)
            };
            self.out(&code.to_string(), pause);
            let until = Instant::now() + pause;
            while Instant::now() < until && !stop.load(Ordering::Acquire) {
                std::thread::sleep(POLL);
            }
            joined = Instant::now();
            match self.member() {
                Ok(new) => *member.lock() = new,
                // The old one answers the same at the next poll.
                Err(error) => tracing::error!(%error, "the consumer group cannot be joined"),
            }
        }
    }

    fn out(&self, reason: &str, pause: Duration) {
        let pause_s = pause.as_secs();
        tracing::error!(
            reason,
            pause_s,
            "this process is out of the consumer group; it counts nothing until it has joined again"
        );
        self.assigned
            .send_replace(Assigned { partitions: BTreeSet::new(), failure: Some(reason.into()) });
        metrics::gauge!("raingauge_log_partitions").set(0.0);
    }
}

/// A member of the consumer group.
///
/// Membership decides who counts a partition, not whether counts are right: whoever was paused longer than the session lasts
/// goes on for a moment beside its successor, and what both write is the same.
pub struct Group {
    member: Arc<Mutex<Arc<BaseConsumer<Membership>>>>,
    assigned: watch::Sender<Assigned>,
    topic: Arc<str>,
    base: PortOffset,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Group {
    /// Joins the group, in the background.
    pub fn join(topic: &KafkaTopic) -> Result<Self, Error> {
        let assigned = watch::Sender::new(Assigned::default());
        let join = Join {
            config: topic.options().group_config(),
            topic: topic.name(),
            connection: topic.connection(),
            assigned: assigned.clone(),
        };
        let (member, stop) =
            (Arc::new(Mutex::new(join.member()?)), Arc::new(AtomicBool::new(false)));
        let (kept, stopped) = (Arc::clone(&member), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("kafka-group".to_owned())
            .spawn(move || join.keep(&kept, &stopped))?;
        Ok(Self {
            member,
            assigned,
            topic: topic.name(),
            base: topic.options().base(),
            stop,
            thread: Some(thread),
        })
    }

    /// The partitions that this process has to count, now and whenever they change.
    pub fn assigned(&self) -> watch::Receiver<Assigned> {
        self.assigned.subscribe()
    }

    /// Tells the group how far a partition is counted, and the metrics, for tools that watch the lag. Nothing is read from there.
    pub fn commit(&self, partition: Partition, position: PortOffset) {
        let Some(place) = position.checked_sub(self.base) else {
            return;
        };
        metrics::gauge!("raingauge_log_committed_offset", "partition" => partition.to_string())
            .set(place as f64);
        let mut offsets = TopicPartitionList::with_capacity(1);
        let committed = offsets
            .add_partition_offset(&self.topic, partition.into(), Offset::Offset(place as i64))
            .and_then(|()| self.member.lock().commit(&offsets, CommitMode::Async));
        if let Err(error) = committed {
            tracing::debug!(%error, partition, "a position could not be told to the group");
        }
    }
}

impl Drop for Group {
    /// Leaves the group. One with an instance id keeps its partitions until its session is over.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
