//! The stream of tiles: what a reader keeps in memory from it, and which writers wait for readers
//! to receive it.

use crate::services::topics::is_final_for_kafka;
use crate::services::waiting::{Startup, until_there};
use crate::settings::Settings;
use raingauge_app::Role;
use raingauge_cql as cql;
use raingauge_kafka::{self as kafka, Listening};
use raingauge_ports::buckets::BucketReader;
use raingauge_ports::clock::Clock;
use raingauge_ports::leases::LeaseTopic;
use raingauge_ports::published::{self, Published};
use raingauge_ports::tiles::TileSource;
use raingauge_reader::{LiveOptions, LiveTiles};
use raingauge_writer::audience::Audience;
use std::sync::Arc;
use tokio::task::JoinHandle;

pub async fn open_leases(
    topic: &kafka::Topic,
    startup: &Startup,
) -> anyhow::Result<Arc<kafka::Leases>> {
    let what = format!("the leases of readers, topic {}", topic.options().leases_topic());
    let open = async || kafka::Leases::open(topic).await;
    Ok(Arc::new(until_there(startup, &what, is_final_for_kafka, open).await?))
}

/// Receives the tiles that are written, and knows the readers that answer by them, until it is
/// dropped.
pub struct Stream {
    _listening: Vec<Listening>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Stream {
    /// A reader returns its lease.
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Keeps the tiles of active keys in memory, in a process that reads. Every process learns of such
/// readers, so that its acknowledgements wait for them.
pub fn follow_tiles(
    settings: &Settings,
    topic: &kafka::Topic,
    stored: Arc<cql::Reader>,
    leases: &Arc<kafka::Leases>,
    published: &Published,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(Option<Arc<LiveTiles>>, Stream)> {
    let lease_topic = Arc::clone(leases) as Arc<dyn LeaseTopic>;
    let audience =
        Arc::new(Audience::new(rand::random(), Arc::clone(&lease_topic), Arc::clone(clock)));
    published.set_audience(Arc::clone(&audience) as Arc<dyn published::Audience>);

    let told = Arc::clone(&audience);
    let mut listening = vec![leases.listen(move |message| told.note(message))?];
    let mut tasks = vec![tokio::spawn(async move { audience.open().await })];

    if !settings.cluster.has(Role::Reader) {
        return Ok((None, Stream { _listening: listening, tasks }));
    }
    let options = LiveOptions {
        cache_bytes: settings.tiles.cache_bytes,
        partitions: topic.partitions(),
        has_plain_rows: settings.cql.has_foreign_rows,
    };

    let inner = Arc::clone(&stored) as Arc<dyn BucketReader>;
    let source = stored as Arc<dyn TileSource>;
    let live = Arc::new(LiveTiles::new(inner, source, Arc::clone(clock), options));
    let told = Arc::clone(&live);

    listening.push(raingauge_kafka::listen(topic, move |change| told.apply(change))?);
    tasks.push(tokio::spawn(raingauge_reader::keep_lease(
        Arc::clone(&live),
        lease_topic,
        rand::random(),
    )));
    tasks.push(tokio::spawn(raingauge_reader::read_ahead(Arc::clone(&live))));

    Ok((Some(live), Stream { _listening: listening, tasks }))
}
