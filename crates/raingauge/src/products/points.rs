//! Points, over the embedded engines or the database of a cluster.
//!
//! ```text
//!   log ──▶ teller ──▶ books ──▶ publisher ──▶ log          campaigns ──▶ port Points ──▶ teller
//!             ▲  └── programmes in force                    doors ──▶ teller, members
//!             └── queues: awards, retries, sweeps
//! ```

use super::{Additions, Foundation, Opening, Product, Service};
use crate::services::{OpenTopics, PointsEngines, PointsOptions, QueuePlace};
use crate::settings::{Cluster, Origin};
use anyhow::Context as _;
use raingauge_appraisal::{Appraisal, Sources};
use raingauge_awarding::{
    self as awarding, Effect, Handle as Teller, NotifyOptions, RetryOptions, SweepOptions,
};
use raingauge_campaigns::sign::Secret;
use raingauge_documents::{self as documents, Documents, ProgrammeRules};
use raingauge_points_doors::{Awarding, Points, Settings};
use raingauge_settings::{Group, Reader};
use std::sync::Arc;
use tokio::runtime::Handle;

pub const PRODUCT: Product = Product { groups: &[Settings::GROUP, QueuePlace::GROUP], configure };

/// The switch of the whole product.
const ENABLED: &str = "points.enabled";
/// The topic of entries.
const STREAM: &str = "points.kafka_topic";

fn configure(reader: &mut Reader) -> Opening {
    let mut settings = Settings::read(reader);
    let is_given = reader.origin(ENABLED) != Origin::Default;
    if let Some(cluster) = cluster_of(reader) {
        if settings.enabled && is_given && !cluster.catalog_is_mysql() {
            let message = "the points of a cluster are kept in MySQL";
            let advice = "Set cluster.catalog to \"mysql\", or leave this out";
            reader.refuse(ENABLED, message, advice);
        }
        settings.enabled &= is_given;
    }
    check_stream(&settings, reader);
    let queue_place = QueuePlace::read(reader);
    let stream = settings.kafka_topic.clone().filter(|_| settings.enabled);
    Opening::new((settings, queue_place), open).with_stream(stream)
}

/// The stream of entries needs the brokers of a cluster, and a topic that nothing else is in.
fn check_stream(settings: &Settings, reader: &mut Reader) {
    let Some(topic) = &settings.kafka_topic else { return };
    if cluster_of(reader).is_none() {
        let advice = "Set cluster.engines to \"cluster\", or leave this out";
        reader.refuse(STREAM, "only a cluster has topics of Kafka", advice);
    } else if topics_of(reader).contains(topic) {
        let message = "this topic has other messages, in partitions of another kind";
        reader.refuse(STREAM, message, "Name a topic of its own, such as \"raingauge-points\"");
    }
}

/// The topics that a cluster has in any case, as far as the settings say without a problem.
#[cfg(feature = "cluster")]
fn topics_of(reader: &mut Reader) -> Vec<String> {
    use crate::services::engine_settings::KafkaSettings;

    if !are_right(reader, &KafkaSettings::GROUP) {
        return Vec::new();
    }
    let KafkaSettings { topic, dead_letter_topic, .. } = KafkaSettings::read(reader);
    let own = ["changes", "leases"].map(|kind| format!("{topic}-{kind}"));
    own.into_iter().chain([topic, dead_letter_topic]).collect()
}

#[cfg(not(feature = "cluster"))]
fn topics_of(_: &mut Reader) -> Vec<String> {
    Vec::new()
}

/// The settings of a cluster, if the engines are those of one, as far as the settings say without
/// a problem.
fn cluster_of(reader: &mut Reader) -> Option<Cluster> {
    let cluster = are_right(reader, &Cluster::GROUP).then(|| Cluster::read(reader));
    cluster.filter(Cluster::is_cluster)
}

fn are_right(reader: &Reader, group: &Group) -> bool {
    group.settings.iter().all(|setting| reader.are_right(&[&setting.path()]))
}

async fn open(
    (settings, queue_place): (Settings, QueuePlace),
    foundation: Foundation,
) -> anyhow::Result<Additions> {
    if !settings.enabled {
        return Ok(Additions::default());
    }

    let options = PointsOptions {
        data_dir: foundation.data_dir.clone(),
        cache_bytes: settings.cache_bytes,
        reserve_bytes: foundation.reserve_bytes,
        open_files_max: foundation.open_files_max / 2,
        allow_private_addresses: settings.notify_allow_private,
        queue_place,
        clock: Arc::clone(&foundation.wall_clock),
    };
    let engines = PointsEngines::open(foundation.book_place.clone(), options).await?;
    let topics = foundation.topic_place.open(settings.kafka_topic.clone()).await?;
    let deps = deps(&foundation, &engines, topics);
    let options = teller_options(&settings)?;
    let start = move || awarding::Teller::start(deps, options);
    let teller = tokio::task::spawn_blocking(start).await??;
    let documents = documents(&foundation, &teller);

    let points = Points {
        documents: Arc::clone(&documents),
        teller: teller.clone(),
        books: Arc::clone(&engines.books),
        queues: Arc::clone(&engines.control),
        appraisal: appraisal(&foundation, &engines, &teller),
        clock: Arc::clone(&foundation.wall_clock),
        adjust_review: Some(settings.adjust_review).filter(|whole| *whole > 0),
    };
    Ok(Additions {
        kinds: points.kinds(),
        services: vec![Arc::new(Running(teller.clone()))],
        waits: vec![points.wait()],
        routes: points.routes(),
        methods: vec![Arc::new(points.clone())],
        pages: points.pages(),
        tasks: vec![Box::pin(documents.follow())],
        points: Some(Arc::new(teller)),
        ..Additions::default()
    })
}

fn deps(foundation: &Foundation, engines: &PointsEngines, topics: OpenTopics) -> awarding::Deps {
    // Over the engines of a cluster there is no log that one process reads alone, but partitions.
    let consumers = foundation.consumers.as_ref();
    let log = consumers.and_then(|_| foundation.logs.first().cloned());
    awarding::Deps {
        books: Arc::clone(&engines.books),
        reader: Arc::clone(&engines.reader),
        log,
        partitions: topics.events,
        registry: consumers.map(|consumers| Arc::clone(&consumers.registry)),
        sink: Arc::clone(&foundation.sink),
        stream: topics.stream,
        queues: Arc::clone(&engines.queues),
        control: Arc::clone(&engines.control),
        documents: Arc::clone(&foundation.documents),
        sender: Arc::clone(&engines.sender),
        lease: Arc::clone(&foundation.points_lease),
        clock: foundation.guarded_clock(),
        runtime: Handle::current(),
    }
}

fn teller_options(settings: &Settings) -> anyhow::Result<awarding::Options> {
    let defaults = awarding::Options::default();
    let retry = RetryOptions {
        first_ms: settings.retry_first.as_millis() as i64,
        most_ms: settings.retry_most.as_millis() as i64,
        age_max_ms: settings.retry_age_max.as_millis() as i64,
        ..defaults.retry
    };
    let per_s = u32::try_from(settings.sweep_per_s).unwrap_or(u32::MAX);
    Ok(awarding::Options {
        awarding: match settings.awarding {
            Awarding::Direct => awarding::Awarding::Direct,
            Awarding::Queued => awarding::Awarding::Queued,
        },
        waiting_max: settings.waiting_max,
        retry,
        sweep: SweepOptions { per_s, ..defaults.sweep },
        publish: settings.publish,
        notify: notify(settings)?,
        ..defaults
    })
}

/// The webhook that members are notified through, if there is one.
fn notify(settings: &Settings) -> anyhow::Result<Option<NotifyOptions>> {
    let Some(url) = settings.notify_url.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let given = settings.notify_secret.as_deref().unwrap_or_default();
    let secrets: Result<Vec<Secret>, _> = given.split_whitespace().map(Secret::parse).collect();
    Ok(Some(NotifyOptions {
        secrets: secrets.context("points.notify_secret")?,
        per_day_max: u32::try_from(settings.notify_per_day).unwrap_or(u32::MAX),
        allow_private: settings.notify_allow_private,
        ..NotifyOptions::to(url)
    }))
}

fn documents(foundation: &Foundation, teller: &Teller) -> Arc<Documents> {
    let deps = documents::Deps {
        store: Arc::clone(&foundation.documents),
        rules: Arc::new(ProgrammeRules::new(false)),
        sink: Arc::clone(&foundation.sink),
        in_effect: Arc::new(Effect(teller.clone())),
        clock: Arc::clone(&foundation.wall_clock),
    };
    Arc::new(Documents::new(deps, documents::Options::default()))
}

fn appraisal(foundation: &Foundation, engines: &PointsEngines, teller: &Teller) -> Appraisal {
    let teller = teller.clone();
    let sources = Sources {
        logs: foundation.logs.clone(),
        reader: Arc::clone(&engines.reader),
        documents: Arc::clone(&foundation.documents),
        queues: Arc::clone(&engines.queues),
        control: Arc::clone(&engines.control),
        in_force: Arc::new(move || Arc::clone(teller.snapshot().programmes())),
    };
    Appraisal::new(sources, foundation.scans.clone(), Arc::clone(&foundation.wall_clock))
}

/// What ends with the process.
struct Running(Teller);

impl Service for Running {
    fn trouble(&self) -> Option<String> {
        self.0.trouble()
    }

    fn stop(&self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Problem, Settings as AllSettings};
    use std::io::Write as _;

    fn load(text: &str) -> Result<AllSettings, Vec<Problem>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        AllSettings::load_with(&[PRODUCT], Some(file.path()), std::iter::empty(), [])
    }

    #[test]
    fn a_cluster_keeps_points_in_mysql() {
        assert!(load("[points]\nenabled = true\n").is_ok());
        if !cfg!(feature = "cluster") {
            return;
        }

        let is_refused = |text: &str| {
            let problems = load(text).err().unwrap_or_default();
            problems.iter().any(|problem| problem.key == ENABLED)
        };
        let cluster = "[cluster]\nengines = \"cluster\"\n";
        assert!(!is_refused(cluster), "they are off where nobody asks for them");
        let asked = "[points]\nenabled = true\n";
        assert!(is_refused(&format!("{cluster}catalog = \"sqlite\"\n{asked}")));
        assert!(!is_refused(&format!("{cluster}catalog = \"mysql\"\n{asked}")));
    }

    #[test]
    fn the_stream_of_entries_has_a_topic_of_a_cluster_to_itself() {
        let is_refused = |text: &str| {
            let problems = load(text).err().unwrap_or_default();
            problems.iter().any(|problem| problem.key == STREAM)
        };
        let stream = |topic: &str| format!("[points]\nenabled = true\nkafka_topic = {topic:?}\n");
        assert!(is_refused(&stream("points")), "there are no brokers");
        if !cfg!(feature = "cluster") {
            return;
        }

        let cluster = "[cluster]\nengines = \"cluster\"\ncatalog = \"mysql\"\n[mysql]\n\
                       url = \"mysql://x@h/d\"\n[kafka]\ntopic = \"rain\"\n";
        assert!(!is_refused(&format!("{cluster}{}", stream("points"))));
        for taken in ["rain", "rain-changes", "raingauge-dead-letters"] {
            assert!(is_refused(&format!("{cluster}{}", stream(taken))), "{taken}");
        }
    }
}
