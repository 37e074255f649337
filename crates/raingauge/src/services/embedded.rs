//! The services over the embedded engines, in one data folder.

use super::database::{self, Database};
use super::{Engines, Services, caching, files};
use crate::settings::{self, Settings};
use raingauge_consumers::Registry;
use raingauge_counters as counters;
use raingauge_counters::Counters;
use raingauge_counters::recount::Recounter;
use raingauge_embedded::{
    LogClock, LogOptions, LogRepair, RepairAllowed, SegmentLog, StoreCompactor, TileOptions,
    TileStore,
};
use raingauge_operations::Maintenance;
use raingauge_ports::buckets::{BucketReader, BucketWriter, KeySource};
use raingauge_ports::catalog::Catalog;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{self, EventLog, EventSink, Offset};
use raingauge_ports::maintenance::Alone;
use raingauge_ports::published::Published;
use raingauge_ports::scans::Scans;
use raingauge_writer::states::{Shows, States};
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::{Ingest, KeyLimit, KeyWatch, belongs, worker};
use std::sync::Arc;
use std::time::Duration;

/// Opens the data folder and brings its store up to its log.
pub async fn open(settings: &Settings) -> anyhow::Result<Services> {
    let folder = &settings.storage.data_dir;
    files::make_folder(folder)?;
    let machine_clock = settings::clock::clock(settings.clock);
    let ahead_ms_max = settings.clock_ahead_days_max as i64 * 86_400_000;
    let log_clock = Arc::new(LogClock::new(Arc::clone(&machine_clock), ahead_ms_max));
    let clock = Arc::clone(&log_clock) as Arc<dyn Clock>;
    // What the log holds is read first, and changed last: a start that is refused leaves it as it is.
    let log = SegmentLog::inspect(&folder.join("log"), log_options(settings))?;
    let store = Arc::new(TileStore::open(&folder.join("tiles"), &tile_options(settings))?);
    let Database { catalog, people, drafts, instances, checks, rollouts } =
        database::in_data_folder(settings).await?;
    let published = Arc::new(Published::default());
    let applied_to = worker::applied_to(&*store, &published)?;
    check_catalog(settings, &*catalog, &published).await?;
    // Whatever refuses the start has to be looked at before this.
    let log = Arc::new(log.open(applied_to, log_clock)?);
    let (sink, logs): (Arc<dyn EventSink>, Vec<Arc<dyn EventLog>>) =
        (Arc::clone(&log) as _, vec![log]);
    let future_allowance_s = settings.events.future_allowance.as_secs() as i64;
    // The log is kept for every consumer that ever committed, whether it runs or not.
    let consumers = Arc::new(Registry::of(&*store, 0)?);
    let options = worker::Options {
        future_allowance_s,
        consumers,
        drain_timeout: settings.server.drain_timeout,
        ..worker::Options::default()
    };
    let cells = Arc::clone(&store) as Arc<dyn BucketWriter>;
    let writer = worker::Handle::start(
        Arc::clone(&logs[0]),
        cells,
        Arc::clone(&published),
        Arc::clone(&clock),
        options,
    )?;
    let writer = Arc::new(writer);
    let maintenance = Maintenance::start(
        Arc::new(StoreCompactor::new(Arc::clone(&store))),
        Arc::new(Alone),
        Arc::clone(&clock),
        settings.maintenance.options.clone(),
    );
    let key_limit = Arc::new(KeyLimit::new(settings.events.keys_per_counter_max));
    let keys = Arc::clone(&store) as Arc<dyn KeySource>;
    let key_watch =
        KeyWatch::new(Arc::clone(&key_limit), keys, Arc::clone(&published), logs.clone());
    let buckets = store as Arc<dyn BucketReader>;
    let counters =
        Counters::new(catalog, Arc::clone(&sink), Arc::clone(&published), Arc::clone(&clock))
            .with_conductor(Arc::clone(&writer) as Arc<dyn Shows>)
            .with_key_limit(Arc::clone(&key_limit));
    check_catalog(settings, counters.catalog(), &published).await?;
    match counters.follow().await {
        // Counters are announced as soon as the clock is right; what is known already is counted and answered.
        Err(counters::Error::Log(log::Error::ClockUnsound(reason))) => {
            tracing::error!(%reason, "nothing is appended")
        }
        followed => followed?,
    }
    let watchdog = Watchdog {
        sink: Arc::clone(&sink),
        writer: Arc::clone(&writer),
        published: Arc::clone(&published),
    };
    let ingest = Ingest::new(
        sink,
        logs.clone(),
        Arc::clone(&published),
        Arc::clone(&clock),
        future_allowance_s,
        settings.log.lag_events_max,
    )
    .with_key_limit(key_limit);
    let states = Arc::clone(&writer) as Arc<dyn States>;
    let recounter = Recounter {
        logs: logs.clone(),
        buckets: Arc::clone(&buckets),
        published: Arc::clone(&published),
        states: Arc::clone(&states),
        clock: Arc::clone(&clock),
        future_allowance_s,
    };
    let (reader, policies) =
        caching::reader(settings, counters.catalog(), buckets, None, &published, &clock).await?;
    Ok(Services {
        roles: settings.cluster.roles.clone(),
        ingest: Arc::new(ingest),
        counters: Arc::new(counters),
        key_watch: Arc::new(key_watch),
        reader,
        policies,
        recounter: Arc::new(recounter),
        states,
        scans: Scans::default(),
        logs,
        published,
        // People and their sessions go by the clock on the wall, whatever the log thinks of it.
        clock: machine_clock,
        maintenance: Some(Arc::new(maintenance)),
        drafts,
        instances,
        checks,
        check_lease: Arc::new(Alone),
        rollouts,
        // Nobody else can conduct one: it is gone on with at once.
        rollout_still_max: Duration::ZERO,
        disk: Some(folder.clone()),
        people,
        engines: Engines::Embedded(watchdog),
    })
}

/// Refuses a catalog that is older than what is counted, unless the operator takes it.
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

/// What a repair found in a data folder.
pub struct RepairReport {
    /// The store includes the log up to here.
    pub applied_to: Offset,
    pub faults: Vec<String>,
    /// Whether anything was found and not mended.
    pub is_left: bool,
}

/// Examines the event log of the data folder, and mends what may be mended.
pub fn repair(
    settings: &Settings,
    accepts_loss: bool,
    restamps: bool,
) -> anyhow::Result<RepairReport> {
    let folder = &settings.storage.data_dir;
    let tiles = folder.join("tiles");
    anyhow::ensure!(folder.join("log").is_dir(), "{} holds no event log", folder.display());
    let applied_to = match tiles.is_dir() {
        true => TileStore::open(&tiles, &tile_options(settings))?.checkpoint()?.position,
        false => 0,
    };
    let now_ms = settings::clock::clock(settings.clock).now_ms();
    let repair = LogRepair::examine(&folder.join("log"), applied_to, now_ms)?;
    let faults = repair.faults().iter().map(ToString::to_string).collect();
    let is_left = repair.apply(RepairAllowed { loss: accepts_loss, restamp: restamps })?;
    Ok(RepairReport { applied_to, faults, is_left })
}

fn tile_options(settings: &Settings) -> TileOptions {
    TileOptions {
        cache_bytes: settings.storage.tile_cache_bytes as usize,
        block_cache_bytes: settings.storage.block_cache_bytes,
        open_files_max: settings.storage.open_files_max,
    }
}

fn log_options(settings: &Settings) -> LogOptions {
    LogOptions {
        segment_bytes: settings.log.segment_bytes,
        retention_ms: settings.log.retention.as_millis() as i64,
        retention_bytes: settings.log.retention_bytes,
        consumer_lag_bytes_max: settings.log.consumer_lag_bytes_max,
        queue_bytes_max: settings.log.queue_bytes_max as usize,
        dedupe_window_ms: settings.dedupe.window.as_millis() as i64,
        dedupe_ids_max: settings.dedupe.ids_max as usize,
        reserve_bytes: settings.storage.reserve_bytes,
        ..LogOptions::default()
    }
}
