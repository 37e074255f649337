//! The services over the embedded engines: the only place that names adapters.

use crate::settings::Settings;
use anyhow::Context;
use raingauge_embedded::{LogOptions, SegmentLog, TileOptions, TileStore};
use raingauge_ports::buckets::{BucketReader, BucketWriter};
use raingauge_ports::catalog::Catalog;
use raingauge_ports::clock::{Clock, SystemClock};
use raingauge_ports::log::{EventLog, EventSink};
use raingauge_ports::published::Published;
use raingauge_reader::Reader;
use raingauge_sql::SqliteCatalog;
use raingauge_writer::recount::Recounter;
use raingauge_writer::{Counters, Ingest, Writer, worker};
use std::sync::Arc;
use std::time::Duration;

/// How often the catalog is asked whether somebody else has changed it.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Every service, over one data folder.
#[derive(Clone)]
pub struct Services {
    pub ingest: Arc<Ingest>,
    pub counters: Arc<Counters>,
    pub reader: Arc<Reader>,
    pub recounter: Arc<Recounter>,
    pub writer: Arc<Writer>,
    pub log: Arc<dyn EventLog>,
    pub published: Arc<Published>,
    pub clock: Arc<dyn Clock>,
}

impl Services {
    /// Opens the data folder and brings its store up to its log. Answers when counts can be asked.
    pub async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let folder = &settings.storage.data_dir;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the data folder {} cannot be made", folder.display()))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        // The store first: it is what tells that another program has the folder.
        let store = Arc::new(TileStore::open(&folder.join("tiles"), &tile_options(settings))?);
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::open(&folder.join("catalog.sqlite")).await?);
        let segments = Arc::new(SegmentLog::open(&folder.join("log"), log_options(settings), Arc::clone(&clock))?);
        let log: Arc<dyn EventLog> = Arc::clone(&segments) as Arc<dyn EventLog>;
        let published = Arc::new(Published::default());
        let future_allowance_s = settings.events.future_allowance.as_secs() as i64;
        let options = worker::Options {
            future_allowance_s,
            drain_timeout: settings.server.drain_timeout,
            ..worker::Options::default()
        };
        let writer = Arc::new(Writer::start(
            Arc::clone(&log),
            Arc::clone(&store) as Arc<dyn BucketWriter>,
            Arc::clone(&published),
            Arc::clone(&clock),
            options,
        )?);
        let buckets = Arc::clone(&store) as Arc<dyn BucketReader>;
        let counters = Counters::new(catalog, Arc::clone(&segments) as Arc<dyn EventSink>, Arc::clone(&published), Arc::clone(&clock));
        counters.follow().await?;
        Ok(Self {
            ingest: Arc::new(Ingest::new(
                segments,
                vec![Arc::clone(&log)],
                Arc::clone(&published),
                Arc::clone(&clock),
                future_allowance_s,
                settings.log.lag_events_max,
            )),
            counters: Arc::new(counters),
            reader: Arc::new(Reader::new(Arc::clone(&buckets), Arc::clone(&published), Arc::clone(&clock))),
            recounter: Arc::new(Recounter {
                log: Arc::clone(&log),
                buckets,
                published: Arc::clone(&published),
                writer: Arc::clone(&writer),
                future_allowance_s,
            }),
            writer,
            log,
            published,
            clock,
        })
    }

    /// Follows changes that others make in the catalog, for as long as it is polled.
    pub async fn follow_catalog(&self) {
        let mut interval = tokio::time::interval(FOLLOW_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if let Err(error) = self.counters.follow().await {
                tracing::warn!(%error, "the catalog could not be followed; counters stay as they are");
            }
        }
    }

    /// Applies what the log holds, as far as the drain time allows, and commits. Blocks the thread.
    pub fn close(&self) {
        self.writer.stop();
    }
}

fn tile_options(settings: &Settings) -> TileOptions {
    TileOptions {
        cache_bytes: settings.storage.tile_cache_bytes as usize,
        block_cache_bytes: settings.storage.block_cache_bytes,
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
    }
}
