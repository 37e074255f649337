//! Which partitions this process counts: membership of a consumer group that fetches nothing.

use crate::context::{self, Connection};
use crate::error::{self, Error};
use crate::topic::Topic;
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

/// How often the thread checks whether it must end.
const POLL: Duration = Duration::from_millis(100);
/// Pause before a process whose membership ended joins again. It doubles up to the maximum.
const REJOIN_MIN: Duration = Duration::from_secs(1);
const REJOIN_MAX: Duration = Duration::from_secs(30);

/// This process's share of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    pub partitions: BTreeSet<Partition>,
    /// Why this process is not in the group; `None` while it is.
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
        // Published before the revocation is confirmed, so predecessor and successor rarely count
        // at once.
        if let Rebalance::Revoke(partitions) = rebalance {
            self.change(partitions, |assigned, partition| assigned.remove(&partition));
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            if let Err(error) = consumer.pause(partitions) {
                tracing::debug!(%error, "messages were fetched although this client reads none");
            }
            self.assigned.send_if_modified(|assigned| assigned.failure.take().is_some());
            self.change(partitions, |assigned, partition| assigned.insert(partition));
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "a position could not be reported to the group");
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
        tracing::info!(partitions = ?assigned.partitions, "the group assigned partitions to this process");
    }
}

/// What is needed to become a member.
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

    /// Polls until it must stop. A membership can end permanently: after a broker outage the
    /// coordinator may take a member whose session expired for a second one with the same instance
    /// id. The thread then joins as a new member.
    fn keep(&self, member: &Mutex<Arc<BaseConsumer<Membership>>>, stop: &AtomicBool) {
        let mut pause = REJOIN_MIN;
        let mut joined = Instant::now();

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
                // The old member returns the same error at the next poll.
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
/// Membership decides who counts a partition, not whether counts are right: a process that was
/// paused for longer than its session briefly counts beside its successor, and both write the same.
pub struct Group {
    member: Arc<Mutex<Arc<BaseConsumer<Membership>>>>,
    assigned: watch::Sender<Assigned>,
    topic: Arc<str>,
    base: PortOffset,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Group {
    /// Joins the group in the background.
    pub fn join(topic: &Topic) -> Result<Self, Error> {
        let assigned = watch::Sender::new(Assigned::default());
        let join = Join {
            config: topic.options().group_config(),
            topic: topic.name(),
            connection: topic.connection(),
            assigned: assigned.clone(),
        };

        let member = Arc::new(Mutex::new(join.member()?));
        let stop = Arc::new(AtomicBool::new(false));
        let kept = Arc::clone(&member);
        let stopped = Arc::clone(&stop);
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

    /// The partitions that this process must count, now and after each change.
    pub fn assigned(&self) -> watch::Receiver<Assigned> {
        self.assigned.subscribe()
    }

    /// Reports a partition's position to the group and to the metrics, for tools that watch the
    /// lag. raingauge does not read it back.
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
            tracing::debug!(%error, partition, "a position could not be reported to the group");
        }
    }
}

impl Drop for Group {
    /// Leaves the group. A member with an instance id keeps its partitions until its session
    /// expires.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
