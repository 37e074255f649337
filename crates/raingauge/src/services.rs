//! The engines of a deployment, and the services over them. Only this module names adapters.
//!
//! ```text
//!   settings ──▶ embedded::open ──┐
//!            └─▶ cluster::open  ──┴──▶ Engines (ports) ──▶ assemble ──▶ Process { App, … }
//! ```

mod assemble;
mod books;
mod caching;
mod campaigns;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "services/no_cluster.rs"]
mod cluster;
mod database;
mod embedded;
pub mod engine_settings;
mod files;
mod objects;
mod openid;
mod points;
mod queues;
mod topics;
mod waiting;

pub use assemble::{Process, Surroundings};
pub use books::{BookPlace, OpenBooks};
pub use campaigns::{CampaignEngines, CampaignOptions};
pub use cluster::{migrate, verify_points as verify_shared_points};
pub use database::open_people;
pub use embedded::repair;
pub use objects::{ObjectEngines, ObjectPlace, verify_store};
pub use openid::openid;
pub use points::{PointsEngines, PointsOptions, open_books, rebuild_points, verify_points};
pub use queues::QueuePlace;
pub use topics::{OpenTopics, TopicPlace};
pub use waiting::Startup;

use crate::settings::Settings;
use database::Database;
use raingauge_consumers::{Overtaken, Registry};
use raingauge_counters::{Counters, TakesEffect};
use raingauge_operations::Maintenance;
use raingauge_ports::buckets::{BucketReader, KeySource};
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::consumers::{ConsumerStore, Name};
use raingauge_ports::log::{EventLog, EventSink, Partition};
use raingauge_ports::maintenance::Lease;
use raingauge_ports::published::Published;
use raingauge_writer::states::{PublishedStates, States};
use raingauge_writer::watchdog::Watchdog;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Finds what the log dropped before a consumer had read it. With `skips`, the consumer continues
/// behind it.
pub async fn skip_lost(
    settings: &Settings,
    consumer: &Name,
    partition: Partition,
    skips: bool,
) -> anyhow::Result<Option<Overtaken>> {
    if settings.cluster.is_cluster() && consumer.as_str() == raingauge_awarding::CONSUMER {
        return cluster::skip_unpriced(settings, partition, skips).await;
    }
    if *consumer != Name::counting() {
        return embedded::skip_lost(settings, consumer, partition, skips);
    }
    cluster::skip_lost(settings, partition, skips).await
}

/// Interval between checks of the catalog for changes by other processes.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Where consumers other than counting keep their records, and what the log is kept for.
#[derive(Clone)]
pub struct Consumers {
    #[allow(dead_code, reason = "campaigns commit to a ledger of their own")]
    pub store: Arc<dyn ConsumerStore>,
    pub registry: Arc<Registry>,
}

/// The engines of a process as ports, of any kind, and what keeps them running.
pub struct Engines {
    /// The catalog and the other data in its database.
    pub database: Database,
    /// Where the books of points are.
    pub book_place: BookPlace,
    /// Where the topics of points are.
    pub topic_place: TopicPlace,
    /// Where events are appended.
    pub sink: Arc<dyn EventSink>,
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    /// `None` in a cluster, where only counting reads the log.
    pub consumers: Option<Consumers>,
    /// The partitions that only this process counts, so that events wait when it lags.
    pub counted_here: Vec<Arc<dyn EventLog>>,
    pub buckets: Arc<dyn BucketReader>,
    /// Tiles of active keys in memory, which a stream keeps current.
    pub live: Option<Arc<dyn BucketReader>>,
    pub keys: Arc<dyn KeySource>,
    pub published: Arc<Published>,
    pub states: Arc<dyn States>,
    pub writer_states: Arc<dyn PublishedStates>,
    /// How changes of the catalog reach writers in other processes; `None` announces them in the
    /// log.
    pub takes_effect: Option<Arc<dyn TakesEffect>>,
    /// The clock of events and counts.
    pub clock: Arc<dyn Clock>,
    /// The clock by which objects expire. It knows whether it is wrong.
    pub object_clock: Arc<dyn Clock>,
    /// The wall clock of people and their sessions, independent of the log.
    pub wall_clock: Arc<dyn Clock>,
    /// Compaction of the store; `None` in a process that has no part in it.
    pub maintenance: Option<Arc<Maintenance>>,
    /// The right to audit.
    pub audit_lease: Arc<dyn Lease>,
    /// The right to announce entries of points.
    pub points_lease: Arc<dyn Lease>,
    /// How long a guarded rollout may make no progress before another process takes it over.
    pub rollout_still_max: Duration,
    /// The data folder, whose disk is watched when the events are on it.
    pub disk: Option<PathBuf>,
    pub running: Running,
}

impl Engines {
    /// Opens the engines in the settings.
    pub async fn open(settings: &Settings, startup: &Startup) -> anyhow::Result<Self> {
        if settings.cluster.is_cluster() {
            cluster::open(settings, startup).await
        } else {
            embedded::open(settings).await
        }
    }
}

/// What has to be kept running and ended.
pub enum Running {
    /// The writer of the data folder, and what watches it.
    Embedded(Watchdog),
    #[cfg(feature = "cluster")]
    Cluster(cluster::Running),
}

impl Running {
    /// Publishes a failure when the engines of this process can no longer count.
    pub async fn watch(&self) {
        match self {
            Self::Embedded(watchdog) => watchdog.run().await,
            #[cfg(feature = "cluster")]
            Self::Cluster(running) => running.watch().await,
        }
    }

    /// Returns why some partitions of this process are not counted, in sentences.
    pub fn troubles(&self) -> Vec<String> {
        match self {
            Self::Embedded(_) => Vec::new(),
            #[cfg(feature = "cluster")]
            Self::Cluster(running) => running.troubles(),
        }
    }

    /// Follows changes of counters by other processes, while it is polled.
    async fn follow(&self, counters: &Counters) {
        #[cfg(feature = "cluster")]
        if let Self::Cluster(running) = self {
            return running.follow().await;
        }
        let follow = || async {
            if let Err(error) = counters.follow().await {
                tracing::warn!(%error, "the catalog could not be followed; counters stay as they are");
            }
        };
        every(FOLLOW_INTERVAL, follow).await;
    }

    /// Commits what is counted, and ends the writers. Over the embedded engines, the rest of the
    /// log is counted first, as far as the drain time allows. Blocks the thread.
    fn close(&self) {
        match self {
            Self::Embedded(watchdog) => watchdog.writer.stop(),
            #[cfg(feature = "cluster")]
            Self::Cluster(running) => running.stop(),
        }
    }
}
