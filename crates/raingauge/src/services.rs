//! The services of a process. Which engines they work on is decided here, and nowhere else are adapters named.

mod caching;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "services/no_cluster.rs"]
mod cluster;
mod database;
mod embedded;
mod files;
mod openid;
mod waiting;

pub use cluster::{migrate, skip_lost};
pub use database::open_people;
pub use embedded::repair;
pub use openid::openid;
pub use waiting::Startup;

use crate::settings::Settings;
use raingauge_app::Role;
use raingauge_counters::Counters;
use raingauge_counters::recount::Recounter;
use raingauge_operations::Maintenance;
use raingauge_ports::checks::Checks;
use raingauge_ports::clock::Clock;
use raingauge_ports::drafts::Drafts;
use raingauge_ports::instances::Instances;
use raingauge_ports::log::EventLog;
use raingauge_ports::maintenance::Lease;
use raingauge_ports::people::People;
use raingauge_ports::published::Published;
use raingauge_ports::rollouts::Rollouts;
use raingauge_ports::scans::Scans;
use raingauge_reader::{CachePolicies, Reader};
use raingauge_writer::states::States;
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::{Ingest, KeyWatch};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often the catalog is asked whether somebody else has changed it.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Every service of a process.
pub struct Services {
    pub roles: Vec<Role>,
    pub ingest: Arc<Ingest>,
    pub counters: Arc<Counters>,
    /// Which counters take no new keys.
    pub key_watch: Arc<KeyWatch>,
    pub reader: Arc<Reader>,
    /// How this process caches the counts of each counter.
    pub policies: Arc<CachePolicies>,
    pub recounter: Arc<Recounter>,
    pub states: Arc<dyn States>,
    /// Turns for work that reads the whole log, or every tile.
    pub scans: Scans,
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    pub published: Arc<Published>,
    pub clock: Arc<dyn Clock>,
    /// Compaction of the engine; none in a process that has nothing to do with it.
    pub maintenance: Option<Arc<Maintenance>>,
    /// Configurations that somebody proposes, beside the catalog.
    pub drafts: Arc<dyn Drafts>,
    /// The processes of the deployment, each as it announces itself.
    pub instances: Arc<dyn Instances>,
    /// What the self-audit found, and the right to audit.
    pub checks: Arc<dyn Checks>,
    pub check_lease: Arc<dyn Lease>,
    /// Guarded rollouts, and how long one of them stands still before another process takes it over.
    pub rollouts: Arc<dyn Rollouts>,
    pub rollout_still_max: Duration,
    /// The disk of the data folder is watched where the events lie on it.
    pub disk: Option<PathBuf>,
    /// Those who use the portal, and the tokens that they made.
    pub people: Arc<dyn People>,
    engines: Engines,
}

/// What has to be kept going and ended.
enum Engines {
    /// The writer of the data folder, and what watches it.
    Embedded(Watchdog),
    #[cfg(feature = "cluster")]
    Cluster(cluster::Running),
}

impl Services {
    /// Opens the engines. Answers when counts can be asked.
    pub async fn open(settings: &Settings, startup: &Startup) -> anyhow::Result<Self> {
        match settings.cluster.is_cluster {
            true => cluster::open(settings, startup).await,
            false => embedded::open(settings).await,
        }
    }

    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Why events are not taken or counts not answered, in a sentence.
    pub fn unready(&self) -> Option<String> {
        self.ingest.check().err().map(|error| error.to_string())
    }

    /// Publishes a failure when the engines of this process can count no more.
    pub async fn watch(&self) {
        match &self.engines {
            Engines::Embedded(watchdog) => watchdog.run().await,
            #[cfg(feature = "cluster")]
            Engines::Cluster(running) => running.watch(&self.published).await,
        }
    }

    /// Why some of what this process should count is not counted, in sentences.
    pub fn troubles(&self) -> Vec<String> {
        match &self.engines {
            Engines::Embedded(_) => Vec::new(),
            #[cfg(feature = "cluster")]
            Engines::Cluster(running) => running.troubles(),
        }
    }

    /// Follows changes that others make in the catalog, for as long as it is polled.
    pub async fn follow_catalog(&self) {
        tokio::join!(
            self.follow_counters(),
            self.conduct_backfills(),
            self.key_watch.run(),
            caching::follow(self.counters.catalog(), &self.policies)
        );
    }

    /// Any process that writes or is a portal conducts; an entry that several write changes nothing.
    async fn conduct_backfills(&self) {
        let conductor =
            self.counters.conductor().filter(|_| self.has(Role::Writer) || self.has(Role::Portal));
        if let Some(conductor) = conductor {
            conductor.run().await;
        }
    }

    async fn follow_counters(&self) {
        #[cfg(feature = "cluster")]
        if let Engines::Cluster(running) = &self.engines {
            return running.follow().await;
        }
        let mut interval = tokio::time::interval(FOLLOW_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if let Err(error) = self.counters.follow().await {
                tracing::warn!(%error, "the catalog could not be followed; counters stay as they are");
            }
        }
    }

    /// Commits what is counted, and ends the writers. Over the embedded engines, what the log holds is counted first, as
    /// far as the drain time allows. Blocks the thread.
    pub fn close(&self) {
        match &self.engines {
            Engines::Embedded(watchdog) => watchdog.writer.stop(),
            #[cfg(feature = "cluster")]
            Engines::Cluster(running) => running.stop(),
        }
    }
}
