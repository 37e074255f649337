//! The services over CQL, Kafka and MySQL, as several processes.
//!
//! ```text
//!   every role:  Follower ── catalog, checkpoints ──▶ Published
//!   writer:      Group ──▶ Fleet ──▶ a Worker for each partition: kafka::Log, cql::Writer
//! ```

mod options;
mod redis;
mod stream;

pub use redis::redis_cache;

use super::database::{self, Database};
use super::topics::{is_final_for_kafka, open_logs};
use super::waiting::{Startup, until_there};
use super::{BookPlace, Engines, TopicPlace};
use crate::settings::Settings;
use anyhow::Context as _;
use options::{cql_options, fingerprint, kafka_options};
use parking_lot::Mutex;
use raingauge_app::Role;
use raingauge_consumers::Overtaken;
use raingauge_counters::TakesEffect;
use raingauge_cql::{self as cql, Feed, NodeCompactor};
use raingauge_embedded::LogClock;
use raingauge_kafka::{self as kafka, Group, Plan};
use raingauge_operations::Maintenance;
use raingauge_operations::rollouts::STILL_MAX;
use raingauge_ports::buckets::{BucketReader, BucketWriter};
use raingauge_ports::clock::Clock;
use raingauge_ports::cluster::{Checkpoints, Error, Membership, Partitions};
use raingauge_ports::log::{EventLog, EventSink, Offset, Partition};
use raingauge_ports::points::Verified;
use raingauge_ports::published::Published;
use raingauge_ports::tiles::{Hearing, TileFeed};
use raingauge_sql::MySqlCatalog;
use raingauge_writer::fleet::{Deps, Troubles};
use raingauge_writer::lost;
use raingauge_writer::states::{PublishedStates, States};
use raingauge_writer::{Fleet, Follower, NotThere, worker};
use std::sync::Arc;
use std::time::Duration;
use stream::{Stream, follow_tiles, open_leases};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest time for the writers to end. They bound their last commit themselves.
const STOP_MAX: Duration = Duration::from_secs(15);

/// Interval between checks whether the fleet is alive.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// `/readyz` reports a partition as not counted when events wait in it and nothing is committed for
/// this long.
const STALLED_AFTER: Duration = Duration::from_secs(15);

/// What has to be kept running and ended.
pub struct Running {
    follower: Arc<Follower>,
    stop: watch::Sender<bool>,
    fleet: Mutex<Option<JoinHandle<()>>>,
    troubles: Troubles,
    /// The stream of tiles and its lease, when readers answer from memory.
    stream: Mutex<Option<Stream>>,
    published: Arc<Published>,
    runtime: Handle,
}

impl Running {
    pub async fn follow(&self) {
        self.follower.run().await;
    }

    /// Returns why partitions of this process are not counted.
    pub fn troubles(&self) -> Vec<String> {
        let say = |(partition, reason)| format!("partition {partition} is not counted: {reason}");
        self.troubles.lock().iter().map(say).collect()
    }

    /// Publishes a failure when the fleet has ended by itself. The fleet restarts a partition that
    /// fails; it ends only with the process, or because of a defect.
    pub async fn watch(&self) {
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let is_stopping = *self.stop.borrow();
            if !is_stopping && self.fleet.lock().as_ref().is_some_and(JoinHandle::is_finished) {
                return self.published.fail(
                    "the writers of this process have ended, which is a defect of raingauge",
                );
            }
        }
    }

    /// Ends the fleet. Blocks the thread.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
        self.stream.lock().take();
        if let Some(fleet) = self.fleet.lock().take() {
            // What an unresponsive engine keeps from ending is left behind: nothing of it is
            // needed.
            if self.runtime.block_on(async { tokio::time::timeout(STOP_MAX, fleet).await }).is_err()
            {
                tracing::warn!("the writers did not end in time");
            }
        }
    }
}

/// Waits for the engines and starts what the roles of this process need.
pub async fn open(settings: &Settings, startup: &Startup) -> anyhow::Result<Engines> {
    let clock = settings.clock.clock();
    let database = database::open(settings).await?;
    let cql = open_cql(settings, startup).await?;
    let topic = open_topic(settings, startup).await?;

    check_topic(startup, &cql, &topic).await?;
    topic.keep_windows_in(Arc::new(cql::Chunks::new(
        cql.clone(),
        &settings.kafka.topic,
        settings.dedupe.window,
        Handle::current(),
    )));

    let published = Arc::new(Published::default());
    let follower = start_follower(settings, startup, &database, &cql, &topic, &published).await?;
    let stored = Arc::new(cql::Reader::new(cql.clone()));
    let (live, stream) = if settings.cluster.publishes_tiles {
        let leases = open_leases(&topic, startup).await?;
        let stored = Arc::clone(&stored);
        let (live, stream) = follow_tiles(settings, &topic, stored, &leases, &published, &clock)?;
        if let Some(live) = &live {
            follower.follow_hearing(Arc::clone(live) as Arc<dyn Hearing>);
        }

        (live.map(|live| live as Arc<dyn BucketReader>), Some(stream))
    } else {
        (None, None)
    };

    let sink: Arc<dyn EventSink> = Arc::new(kafka::Sink::new(&topic)?);
    let what = event_log(topic.options());
    let open = async || open_logs(topic.clone()).await;
    let logs = until_there(startup, &what, is_final_for_kafka, open).await?;
    let maintenance =
        settings.cluster.has(Role::Portal).then(|| start_maintenance(settings, &cql, &clock));
    let lease = |name| Arc::new(cql::Lease::new(cql.clone(), name, holder(settings)));
    let audit_lease = lease("checks");
    let points_lease = lease("points");
    let (stop, stopping) = watch::channel(false);
    let (fleet, troubles) = if settings.cluster.has(Role::Writer) {
        let follows = Follows { follower: &follower, published: &published };
        let sink = Arc::clone(&sink);
        let clock = Arc::clone(&clock);
        start_fleet(settings, &topic, cql, sink, follows, clock, stopping)?
    } else {
        (None, Troubles::default())
    };

    Ok(Engines {
        database,
        book_place: BookPlace::of_cluster(settings, startup),
        topic_place: TopicPlace::Brokers { topic, startup: startup.clone() },
        sink,
        logs,
        consumers: None,
        counted_here: Vec::new(),
        buckets: Arc::clone(&stored) as Arc<dyn BucketReader>,
        live,
        keys: stored,
        published: Arc::clone(&published),
        states: Arc::clone(&follower) as Arc<dyn States>,
        writer_states: Arc::clone(&follower) as Arc<dyn PublishedStates>,
        takes_effect: Some(Arc::clone(&follower) as Arc<dyn TakesEffect>),
        object_clock: Arc::new(LogClock::watching(Arc::clone(&clock))),
        wall_clock: Arc::clone(&clock),
        clock,
        maintenance,
        audit_lease,
        points_lease,
        rollout_still_max: STILL_MAX,
        disk: None,
        running: super::Running::Cluster(Running {
            follower,
            stop,
            fleet: Mutex::new(fleet),
            troubles,
            stream: Mutex::new(stream),
            published,
            runtime: Handle::current(),
        }),
    })
}

/// Follows the catalog and the checkpoints of the writers, once both are available.
async fn start_follower(
    settings: &Settings,
    startup: &Startup,
    database: &Database,
    cql: &cql::Cluster,
    topic: &kafka::Topic,
    published: &Arc<Published>,
) -> anyhow::Result<Arc<Follower>> {
    let checkpoints: Arc<dyn Checkpoints> =
        Arc::new(cql::Checkpoints::new(cql.clone(), &settings.kafka.topic));
    let never = |_: &NotThere| false;
    let what = "the catalog and the checkpoints of the writers";
    let start = async || {
        let catalog = Arc::clone(&database.catalog);
        let checkpoints = Arc::clone(&checkpoints);
        Follower::start(catalog, checkpoints, Arc::clone(published), topic.partitions()).await
    };
    Ok(until_there(startup, what, never, start).await?)
}

async fn open_cql(settings: &Settings, startup: &Startup) -> anyhow::Result<cql::Cluster> {
    use raingauge_cql::Error::{Datacenter, Keyspace, Refused, SchemaTooNew, SettingsDiffer, Tls};

    let options = cql_options(settings);
    let settings_here = fingerprint(settings);
    let is_final = |error: &_| {
        let is_setting =
            matches!(error, Datacenter { .. } | SettingsDiffer { .. } | Keyspace(_) | Tls(_));
        is_setting || matches!(error, Refused { .. } | SchemaTooNew { .. })
    };

    let what = format!("the bucket store, {}", options.place());
    let open = async || {
        let cql = cql::Cluster::connect(options.clone()).await?;
        cql.check_settings(&settings.kafka.topic, &settings_here).await?;
        Ok(cql)
    };
    Ok(until_there(startup, &what, is_final, open).await?)
}

async fn open_topic(settings: &Settings, startup: &Startup) -> anyhow::Result<kafka::Topic> {
    let options = kafka_options(settings);
    let what = event_log(&options);
    let open = async || kafka::Topic::open(options.clone()).await;
    Ok(until_there(startup, &what, is_final_for_kafka, open).await?)
}

/// Names the event log in reports of a wait.
fn event_log(options: &kafka::Options) -> String {
    format!("the event log, topic {} of {}", options.topic, options.place())
}

/// Compares the topic with the one that was counted: a recreated topic is not read.
async fn check_topic(
    startup: &Startup,
    cql: &cql::Cluster,
    topic: &kafka::Topic,
) -> anyhow::Result<()> {
    let Some(id) = topic.id() else { return Ok(()) };
    let name = &topic.options().topic;
    let epoch = topic.options().epoch;
    let never = |_: &raingauge_cql::Error| false;
    let is_same = async || cql.is_same_topic(name, epoch, id).await;
    if !until_there(startup, "the id of the topic that was counted", never, is_same).await? {
        topic.refuse();
    }
    Ok(())
}

/// Starts compaction of the cluster, which one portal at a time runs.
fn start_maintenance(
    settings: &Settings,
    cql: &cql::Cluster,
    clock: &Arc<dyn Clock>,
) -> Arc<Maintenance> {
    Arc::new(Maintenance::start(
        Arc::new(NodeCompactor::new(cql.clone(), settings.compaction.clone())),
        Arc::new(cql::Lease::new(cql.clone(), "maintenance", holder(settings))),
        Arc::clone(clock),
        settings.maintenance.clone(),
    ))
}

/// Returns a unique name of this process.
fn holder(settings: &Settings) -> String {
    format!("{}-{}-{:08x}", settings.cluster.instance, std::process::id(), rand::random::<u32>())
}

/// What this process knows of the counters, and up to where partitions are stored.
struct Follows<'a> {
    follower: &'a Follower,
    published: &'a Arc<Published>,
}

fn start_fleet(
    settings: &Settings,
    topic: &kafka::Topic,
    cql: cql::Cluster,
    sink: Arc<dyn EventSink>,
    follows: Follows<'_>,
    clock: Arc<dyn Clock>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<(Option<JoinHandle<()>>, Troubles)> {
    let options = worker::Options {
        commit_interval: settings.cluster.commit_interval,
        future_allowance_s: settings.events.future_allowance.as_secs() as i64,
        catches_up: false,
        // The partition's next writer counts what is in the log.
        drain_timeout: Duration::ZERO,
        rereads: settings.cluster.rereads,
        tells_lag: false,
        ..worker::Options::default()
    };

    let feed = if settings.cluster.publishes_tiles {
        Some(Arc::new(kafka::Feed::new(topic)?) as Arc<dyn TileFeed>)
    } else {
        None
    };

    let runtime = Handle::current();
    let engines_feed = feed.clone().map(|feed| Feed { feed, clock: Arc::clone(&clock) });
    let deps = Deps {
        membership: Arc::new(Member::join(topic)?),
        partitions: Arc::new(PartitionEngines {
            topic: topic.clone(),
            cql,
            feed: engines_feed,
            runtime,
        }),
        sink,
        counters: follows.follower.newest(),
        stored: Arc::clone(follows.published),
        feed,
        clock,
        options,
        stalled_after: STALLED_AFTER,
    };

    let fleet = Fleet::new(deps);
    let troubles = fleet.troubles();
    Ok((Some(tokio::spawn(fleet.run(stopping))), troubles))
}

/// Membership of the consumer group.
struct Member {
    group: Mutex<Option<Group>>,
    assigned: watch::Receiver<Vec<Partition>>,
}

impl Member {
    fn join(topic: &kafka::Topic) -> anyhow::Result<Self> {
        let group = Group::join(topic)?;
        let mut told = group.assigned();
        let (assigned, receiver) = watch::channel(Vec::new());
        tokio::spawn(async move {
            loop {
                let now = told.borrow_and_update().clone();
                if let Some(reason) = now.failure {
                    tracing::error!(%reason, "this process counts nothing until it is in the group again");
                }
                assigned.send_replace(now.partitions.into_iter().collect());

                if told.changed().await.is_err() {
                    return;
                }
            }
        });

        Ok(Self { group: Mutex::new(Some(group)), assigned: receiver })
    }
}

impl Membership for Member {
    fn assigned(&self) -> watch::Receiver<Vec<Partition>> {
        self.assigned.clone()
    }

    fn committed(&self, partition: Partition, position: Offset) {
        if let Some(group) = &*self.group.lock() {
            group.commit(partition, position);
        }
    }

    fn leave(&self) {
        self.group.lock().take();
    }
}

struct PartitionEngines {
    topic: kafka::Topic,
    cql: cql::Cluster,
    feed: Option<Feed>,
    runtime: Handle,
}

impl Partitions for PartitionEngines {
    fn log(&self, partition: Partition) -> Result<Arc<dyn EventLog>, Error> {
        let log = self.topic.counting_log(partition).map_err(|error| Error(error.to_string()))?;
        Ok(Arc::new(log))
    }

    fn store(&self, partition: Partition) -> Arc<dyn BucketWriter> {
        let topic = self.topic.options().topic.clone();
        let writer = cql::Writer::new(self.cql.clone(), topic, partition, self.runtime.clone());
        Arc::new(match &self.feed {
            Some(feed) => writer.with_feed(feed.clone()),
            None => writer,
        })
    }
}

/// Finds what a partition of the log has lost, and continues behind it on request.
pub async fn skip_lost(
    settings: &Settings,
    partition: Partition,
    skips: bool,
) -> anyhow::Result<Option<Overtaken>> {
    anyhow::ensure!(
        settings.cluster.is_cluster(),
        "the log of a data folder drops nothing before it is counted: cluster.engines is not \"cluster\""
    );
    let cql = cql::Cluster::connect(cql_options(settings)).await?;
    let topic = kafka::Topic::open(kafka_options(settings)).await?;
    let engines = PartitionEngines { topic, cql, feed: None, runtime: Handle::current() };
    let find_and_skip = move || {
        let log = engines.topic.log(partition)?;
        let store = engines.store(partition);
        let found = lost::find(&log, &*store)?;
        if let Some(lost) = found.as_ref().filter(|_| skips) {
            lost::skip(&*store, lost)?;
        }

        Ok(found)
    };

    tokio::task::spawn_blocking(find_and_skip).await?
}

/// Finds what a partition of the log has lost for points, and continues behind it on request.
pub async fn skip_unpriced(
    settings: &Settings,
    partition: Partition,
    skips: bool,
) -> anyhow::Result<Option<Overtaken>> {
    let place = BookPlace::of_cluster(settings, &Startup::default());
    let opened = place.open_shared(&settings.clock.clock()).await?;
    let books = opened.context("the books of points are not in a database")?.books;
    let topic = kafka::Topic::open(kafka_options(settings)).await?;
    let find_and_skip = move || {
        let log = topic.log(partition)?;
        Ok(raingauge_awarding::skip_lost(&*books, &log, skips)?)
    };
    tokio::task::spawn_blocking(find_and_skip).await?
}

/// Computes again what follows from the entries of the books, and compares.
pub async fn verify_points(settings: &Settings) -> anyhow::Result<Verified> {
    BookPlace::of_cluster(settings, &Startup::default()).verify().await
}

/// Creates the schema, the topics and the catalog, and returns what was done, in sentences.
pub async fn migrate(settings: &Settings) -> anyhow::Result<Vec<String>> {
    let mut done = Vec::new();
    if settings.cluster.is_cluster() {
        let cql = cql_options(settings);
        let migrated = raingauge_cql::schema::migrate(&cql, &settings.cql.layout()).await?;
        let server = migrated.server;
        let from = migrated.from;

        let to = migrated.to;
        done.push(format!("{} ({server:?}): schema version {from} is now {to}", cql.place()));

        let topic = &settings.kafka.topic;
        cql::Cluster::connect(cql.clone())
            .await?
            .put_settings(topic, &fingerprint(settings))
            .await?;

        let kafka = &settings.kafka;
        let retention_ms = settings.log.retention.as_millis() as i64;
        let plan =
            Plan { partitions: kafka.partitions, replication: kafka.replication, retention_ms };
        let options = kafka_options(settings);
        let mut topics = kafka::migrate(&options, &plan).await?;
        for stream in settings.products.streams() {
            topics.push(kafka::migrate_entries(&options, &plan, stream).await?);
        }
        for topic in topics {
            let what = if topic.created { "was made" } else { "was there" };
            done.push(format!("topic {} {what}", topic.topic));
            done.extend(topic.warnings);
        }
    }

    if settings.cluster.catalog_is_mysql() {
        let migrated = MySqlCatalog::migrate(&database::mysql_options(settings)).await?;
        done.push(format!(
            "the catalog in MySQL: schema version {} is now {}",
            migrated.from, migrated.to
        ));
    }

    Ok(done)
}
