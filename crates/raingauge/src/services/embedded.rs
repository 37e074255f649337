//! The services over the embedded engines, in one data folder.

use super::{BookPlace, Consumers, Engines, Running, TopicPlace, database, files};
use crate::settings::Settings;
use raingauge_consumers::{Overtaken, Registry};
use raingauge_counters as counters;
use raingauge_counters::Counters;
use raingauge_embedded::{
    LogClock, LogOptions, LogRepair, RepairAllowed, SegmentLog, StoreCompactor, TileStore,
};
use raingauge_memory as memory;
use raingauge_operations::Maintenance;
use raingauge_ports::buckets::{BucketReader, BucketWriter};
use raingauge_ports::catalog::Catalog;
use raingauge_ports::clock::Clock;
use raingauge_ports::consumers::{ConsumerStore, Name};
use raingauge_ports::log::{self, EventLog, EventSink, Offset, Partition};
use raingauge_ports::published::Published;
use raingauge_writer::states::States;
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::{belongs, worker};
use std::sync::Arc;
use std::time::Duration;

/// Opens the data folder and brings its store up to its log.
pub async fn open(settings: &Settings) -> anyhow::Result<Engines> {
    let folder = &settings.storage.data_dir;
    files::make_folder(folder)?;

    let wall_clock = settings.clock.clock();
    let ahead_ms_max = settings.clock.ahead_days_max as i64 * 86_400_000;
    let log_clock = Arc::new(LogClock::new(Arc::clone(&wall_clock), ahead_ms_max));
    let clock = Arc::clone(&log_clock) as Arc<dyn Clock>;

    // The contents of the log are read first, and changed last: a start that is refused leaves the
    // log as it is.
    let log = SegmentLog::inspect(&folder.join("log"), log_options(settings))?;
    let store = Arc::new(TileStore::open(&folder.join("tiles"), &settings.tiles)?);
    let database = database::in_data_folder(settings).await?;
    let published = Arc::new(Published::default());
    let applied_to = worker::applied_to(&*store, &published)?;

    check_catalog(settings, &*database.catalog, &published).await?;

    // Everything that may refuse the start must be checked before this.
    let log = Arc::new(log.open(applied_to, log_clock)?);

    // The log keeps entries for every consumer that ever committed, whether it runs or not.
    let registry = Arc::new(Registry::of(&*store, 0)?);
    let consumers = Consumers { store: Arc::clone(&store) as _, registry };
    let writer = start_writer(settings, &log, &store, &published, &clock, &consumers)?;
    let writer = Arc::new(writer);
    let maintenance = Maintenance::start(
        Arc::new(StoreCompactor::new(Arc::clone(&store))),
        Arc::new(memory::Lease),
        Arc::clone(&clock),
        settings.maintenance.clone(),
    );

    let sink = Arc::clone(&log) as Arc<dyn EventSink>;
    let watchdog = Watchdog {
        sink: Arc::clone(&sink),
        writer: Arc::clone(&writer),
        published: Arc::clone(&published),
    };

    let logs: Vec<Arc<dyn EventLog>> = vec![log];
    Ok(Engines {
        database,
        book_place: BookPlace::DataFolder,
        topic_place: TopicPlace::DataFolder,
        sink,
        consumers: Some(consumers),
        counted_here: logs.clone(),
        logs,
        buckets: Arc::clone(&store) as Arc<dyn BucketReader>,
        live: None,
        keys: store,
        published,
        states: Arc::clone(&writer) as Arc<dyn States>,
        writer_states: writer,
        takes_effect: None,
        object_clock: Arc::clone(&clock),
        clock,
        wall_clock,
        maintenance: Some(Arc::new(maintenance)),
        audit_lease: Arc::new(memory::Lease),
        points_lease: Arc::new(memory::Lease),
        // No other process can conduct a rollout: it continues at once.
        rollout_still_max: Duration::ZERO,
        disk: Some(folder.clone()),
        running: Running::Embedded(watchdog),
    })
}

fn start_writer(
    settings: &Settings,
    log: &Arc<SegmentLog>,
    store: &Arc<TileStore>,
    published: &Arc<Published>,
    clock: &Arc<dyn Clock>,
    consumers: &Consumers,
) -> anyhow::Result<worker::Handle> {
    let options = worker::Options {
        future_allowance_s: settings.events.future_allowance.as_secs() as i64,
        consumers: Arc::clone(&consumers.registry),
        drain_timeout: settings.server.drain_timeout,
        ..worker::Options::default()
    };

    Ok(worker::Handle::start(
        Arc::clone(log) as Arc<dyn EventLog>,
        Arc::clone(store) as Arc<dyn BucketWriter>,
        Arc::clone(published),
        Arc::clone(clock),
        options,
    )?)
}

/// Announces the counters of the catalog to the writer of this process.
pub async fn begin_counting(
    settings: &Settings,
    catalog: &dyn Catalog,
    counters: &Counters,
    published: &Published,
) -> anyhow::Result<()> {
    check_catalog(settings, catalog, published).await?;
    match counters.follow().await {
        // Counters are announced as soon as the clock is right; known ones count and answer
        // already.
        Err(counters::Error::Log(log::Error::ClockUnsound(reason))) => {
            tracing::error!(%reason, "nothing is appended");
            Ok(())
        }
        followed => Ok(followed?),
    }
}

/// Refuses a catalog that is older than what is counted, unless the operator accepts it.
async fn check_catalog(
    settings: &Settings,
    catalog: &dyn Catalog,
    published: &Published,
) -> anyhow::Result<()> {
    match belongs::check(catalog, published).await {
        Err(error @ belongs::Error::Behind(_)) if settings.storage.accepts_older_catalog => {
            tracing::warn!(%error, "the catalog is taken all the same");
            Ok(())
        }
        checked => Ok(checked?),
    }
}

/// The findings of a repair of a data folder.
pub struct RepairReport {
    /// The store includes the log up to here.
    pub applied_to: Offset,
    pub faults: Vec<String>,
    /// Whether a finding was not repaired.
    pub is_left: bool,
}

/// Examines the event log of the data folder, and repairs what is allowed.
pub fn repair(
    settings: &Settings,
    accepts_loss: bool,
    restamps: bool,
) -> anyhow::Result<RepairReport> {
    let folder = &settings.storage.data_dir;
    let tiles = folder.join("tiles");
    anyhow::ensure!(folder.join("log").is_dir(), "{} holds no event log", folder.display());

    let applied_to = if tiles.is_dir() {
        TileStore::open(&tiles, &settings.tiles)?.checkpoint()?.position
    } else {
        0
    };

    let now_ms = settings.clock.clock().now_ms();
    let repair = LogRepair::examine(&folder.join("log"), applied_to, now_ms)?;
    let faults = repair.faults().iter().map(ToString::to_string).collect();
    let is_left = repair.apply(RepairAllowed { loss: accepts_loss, restamp: restamps })?;

    Ok(RepairReport { applied_to, faults, is_left })
}

/// Finds what the log of the data folder dropped before a consumer had read it. With `skips`, the
/// consumer continues behind it.
pub fn skip_lost(
    settings: &Settings,
    consumer: &Name,
    partition: Partition,
    skips: bool,
) -> anyhow::Result<Option<Overtaken>> {
    anyhow::ensure!(
        !settings.cluster.is_cluster() && partition == 0,
        "consumers other than counting have the log of a data folder, which is partition 0"
    );
    let folder = &settings.storage.data_dir;
    anyhow::ensure!(folder.join("log").is_dir(), "{} holds no event log", folder.display());

    let start = SegmentLog::inspect(&folder.join("log"), log_options(settings))?.start();
    let store = TileStore::open(&folder.join("tiles"), &settings.tiles)?;
    let stored = store.positions()?.into_iter().find(|(name, _)| name == consumer);
    let (_, position) =
        stored.ok_or_else(|| anyhow::anyhow!("no consumer {consumer} reads this log"))?;
    if start <= position {
        return Ok(None);
    }

    let lost = Overtaken { consumer: consumer.clone(), partition, position, start };
    if skips {
        lost.skip(&store)?;
    }
    Ok(Some(lost))
}

fn log_options(settings: &Settings) -> LogOptions {
    LogOptions {
        dedupe_window_ms: settings.dedupe.window.as_millis() as i64,
        dedupe_ids_max: settings.dedupe.ids_max as usize,
        reserve_bytes: settings.storage.reserve_bytes,
        ..settings.log.clone()
    }
}
