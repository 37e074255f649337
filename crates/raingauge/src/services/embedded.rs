//! The services over the embedded engines, in one data folder.

use super::{Engines, Services, caching, files};
use crate::settings::{self, Settings};
use raingauge_embedded::{LogOptions, SegmentLog, StoreCompactor, TileOptions, TileStore};
use raingauge_maintenance::Maintenance;
use raingauge_ports::buckets::{BucketReader, BucketWriter};
use raingauge_ports::catalog::Catalog;
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::maintenance::Alone;
use raingauge_ports::memory::MemoryInstances;
use raingauge_ports::published::Published;
use raingauge_ports::scans::Scans;
use raingauge_sql::SqliteCatalog;
use raingauge_writer::recount::Recounter;
use raingauge_writer::states::{Shows, States};
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::{Counters, Ingest, Writer, belongs, worker};
use std::sync::Arc;
use std::time::Duration;

/// Opens the data folder and brings its store up to its log.
pub async fn open(settings: &Settings) -> anyhow::Result<Services> {
    let folder = &settings.storage.data_dir;
    files::make_folder(folder)?;
    let clock = settings::clock::clock(settings.clock);
    // The store first: it is what tells that another program has the folder.
    let store = Arc::new(TileStore::open(&folder.join("tiles"), &tile_options(settings))?);
    let database = SqliteCatalog::open(&folder.join("catalog.sqlite")).await?;
    let (people, drafts) = (Arc::new(database.people()), Arc::new(database.drafts()));
    let (checks, rollouts) = (Arc::new(database.checks()), Arc::new(database.rollouts()));
    let catalog: Arc<dyn Catalog> = Arc::new(database);
    let log = Arc::new(SegmentLog::open(&folder.join("log"), log_options(settings), Arc::clone(&clock))?);
    let (sink, logs): (Arc<dyn EventSink>, Vec<Arc<dyn EventLog>>) = (Arc::clone(&log) as _, vec![log]);
    let published = Arc::new(Published::default());
    let future_allowance_s = settings.events.future_allowance.as_secs() as i64;
    let options = worker::Options {
        future_allowance_s,
        drain_timeout: settings.server.drain_timeout,
        ..worker::Options::default()
    };
    let cells = Arc::clone(&store) as Arc<dyn BucketWriter>;
    let writer = Writer::start(Arc::clone(&logs[0]), cells, Arc::clone(&published), Arc::clone(&clock), options)?;
    let writer = Arc::new(writer);
    let maintenance = Maintenance::start(
        Arc::new(StoreCompactor::new(Arc::clone(&store))),
        Arc::new(Alone),
        Arc::clone(&clock),
        settings.maintenance.options.clone(),
    );
    let buckets = store as Arc<dyn BucketReader>;
    let counters = Counters::new(catalog, Arc::clone(&sink), Arc::clone(&published), Arc::clone(&clock))
        .with_conductor(Arc::clone(&writer) as Arc<dyn Shows>);
    match belongs::check(counters.catalog(), &published).await {
        Err(error @ belongs::Error::Behind(_)) if settings.storage.accepts_older_catalog => {
            tracing::warn!(%error, "the catalog is taken all the same");
        }
        checked => checked?,
    }
    counters.follow().await?;
    let watchdog = Watchdog { sink: Arc::clone(&sink), writer: Arc::clone(&writer), published: Arc::clone(&published) };
    let ingest = Ingest::new(
        sink,
        logs.clone(),
        Arc::clone(&published),
        Arc::clone(&clock),
        future_allowance_s,
        settings.log.lag_events_max,
    );
    let states = Arc::clone(&writer) as Arc<dyn States>;
    let recounter = Recounter {
        logs: logs.clone(),
        buckets: Arc::clone(&buckets),
        published: Arc::clone(&published),
        states: Arc::clone(&states),
        clock: Arc::clone(&clock),
        future_allowance_s,
    };
    let (reader, policies) = caching::reader(settings, counters.catalog(), buckets, None, &published, &clock).await?;
    Ok(Services {
        roles: settings.cluster.roles.clone(),
        ingest: Arc::new(ingest),
        counters: Arc::new(counters),
        reader,
        policies,
        recounter: Arc::new(recounter),
        states,
        scans: Scans::default(),
        logs,
        published,
        clock,
        maintenance: Some(Arc::new(maintenance)),
        drafts,
        // The data folder has one process, which need not tell itself over a disk that it is there.
        instances: Arc::<MemoryInstances>::default(),
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
        queue_bytes_max: settings.log.queue_bytes_max as usize,
        dedupe_window_ms: settings.dedupe.window.as_millis() as i64,
        dedupe_ids_max: settings.dedupe.ids_max as usize,
        reserve_bytes: settings.storage.reserve_bytes,
    }
}
