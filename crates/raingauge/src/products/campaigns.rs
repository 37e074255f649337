//! Campaigns, over the embedded engines.
//!
//! ```text
//!   log ──▶ worker ──▶ ledger ──▶ deliveries ──▶ destinations
//!             ▲  └── documents in effect ──▶ destinations, campaigns that are paused
//!             └── lookups: tables, counters, databases, services
//! ```

mod following;
mod gone;
mod history;
mod lookups;

use super::{Additions, Foundation, Opening, Product, Service};
use crate::services::engine_settings::DatabaseSettings;
use crate::services::{CampaignEngines, CampaignOptions};
use crate::settings::{Cluster, Origin};
use anyhow::Context as _;
use following::Following;
use raingauge_campaign_doors::history::{History, Sources};
use raingauge_campaign_doors::{Campaigns, Settings};
use raingauge_campaigner::{self as campaigner, Campaigner, Operator};
use raingauge_deliveries::{self as deliveries, Deliveries};
use raingauge_documents::{self as documents, CampaignRules, Documents, ProductKind, Uploads};
use raingauge_ports::campaigns::Lookups;
use raingauge_replay::{self as replay, Replay};
use raingauge_settings::Reader;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

pub const PRODUCT: Product =
    Product { groups: &[Settings::GROUP, DatabaseSettings::GROUP], configure };

/// Longest wait for requests that are under way when the process ends. One that takes longer is
/// sent again by the next process, with the same id.
const SENDING_MAX: Duration = Duration::from_secs(5);
/// The folder of the history, in the data folder.
pub const HISTORY: &str = "campaigns/history";
/// The switch of the whole product.
const ENABLED: &str = "campaigns.enabled";

fn configure(reader: &mut Reader) -> Opening {
    let mut settings = Settings::read(reader);
    let databases = DatabaseSettings::read(reader);
    if is_cluster(reader) {
        let is_given = reader.origin(ENABLED) != Origin::Default;
        if settings.enabled && is_given {
            let message = "campaigns are decided over the embedded engines only";
            let advice = "Leave it out, or set cluster.engines to \"embedded\"";
            reader.refuse(ENABLED, message, advice);
        }
        settings.enabled = false;
    }
    Opening::new((settings, databases), open)
}

/// Whether the engines are those of a cluster, as far as the settings say without a problem.
fn is_cluster(reader: &mut Reader) -> bool {
    let paths: Vec<String> = Cluster::GROUP.settings.iter().map(|setting| setting.path()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    reader.are_right(&paths) && Cluster::read(reader).is_cluster()
}

async fn open(
    (settings, databases): (Settings, DatabaseSettings),
    foundation: Foundation,
) -> anyhow::Result<Additions> {
    if !settings.enabled {
        return Ok(Additions::default());
    }

    let data_dir = foundation.data_dir.clone();
    let options = CampaignOptions {
        state_cache_bytes: settings.state_cache_bytes,
        reserve_bytes: foundation.reserve_bytes,
        open_files_max: foundation.open_files_max / 2,
        allow_private_addresses: settings.allow_private_addresses,
        databases,
    };
    let mut engines =
        tokio::task::spawn_blocking(move || CampaignEngines::open(&data_dir, options)).await??;

    let history = History::new(foundation.data_dir.join(HISTORY), settings.history);
    engines.retention = history.guard(engines.retention);

    let (lookups, definitions) = lookups::open(&foundation, &engines).await?;
    let worker = start_worker(&settings, &foundation, &engines, Arc::clone(&lookups)).await?;
    let following = Following::start(&worker, definitions);

    let (gone_sender, gone) = mpsc::unbounded_channel();
    let deliveries = Deliveries::start(deliveries::Deps {
        outbox: Arc::clone(&engines.outbox),
        sender: Arc::clone(&engines.sender),
        destinations: following.destinations(),
        stopped: following.stopped(),
        log: Arc::clone(&foundation.sink),
        points: foundation.points.clone(),
        gone: gone_sender,
        clock: Arc::clone(&foundation.wall_clock),
    });
    let documents = documents(&settings, &foundation, &engines, &worker);
    let uploads = Arc::new(Uploads::new(
        Arc::clone(&documents),
        Arc::clone(&engines.tables),
        Arc::clone(&engines.loads),
        Arc::clone(&foundation.wall_clock),
    ));

    let campaigns = Campaigns {
        documents: Arc::clone(&documents),
        worker: worker.clone(),
        operator: Operator::new(
            Arc::clone(&foundation.sink),
            Arc::clone(&engines.reader),
            worker.clone(),
        ),
        ledger: Arc::clone(&engines.reader),
        outbox: Arc::clone(&engines.outbox),
        history: history.clone(),
        deliveries: deliveries.clone(),
        uploads: Arc::clone(&uploads),
        replay: replay(&settings, &foundation, &engines, &worker, lookups),
        clock: Arc::clone(&foundation.wall_clock),
    };
    let exporter = history::Exporter {
        history,
        sources: Sources {
            ledger: Arc::clone(&engines.reader),
            outbox: Arc::clone(&engines.outbox),
        },
        log: Arc::clone(foundation.logs.first().context("there is no log")?),
        worker: worker.clone(),
        clock: Arc::clone(&foundation.clock),
        wall_clock: Arc::clone(&foundation.wall_clock),
        decisions_keep: settings.decisions_keep,
        history_keep: settings.history_keep,
    };
    let tidy = async move {
        if let Err(error) = uploads.remove_orphans().await {
            tracing::warn!(%error, "rows of deleted tables remain");
        }
    };

    Ok(Additions {
        kinds: vec![Arc::new(ProductKind::campaigns(Arc::clone(&documents)))],
        services: vec![Arc::new(Running { deliveries, worker, runtime: Handle::current() })],
        waits: vec![campaigns.wait()],
        routes: campaigns.routes(),
        pages: campaigns.pages(),
        tasks: vec![
            Box::pin(gone::disable(Arc::clone(&documents), gone)),
            Box::pin(documents.follow()),
            Box::pin(following.run()),
            Box::pin(tidy),
            Box::pin(exporter.run()),
        ],
        ..Additions::default()
    })
}

async fn start_worker(
    settings: &Settings,
    foundation: &Foundation,
    engines: &CampaignEngines,
    lookups: Arc<dyn Lookups>,
) -> anyhow::Result<campaigner::Handle> {
    let consumers = foundation.consumers.as_ref();
    let consumers = consumers.context("campaigns need the log of the embedded engines")?;
    let log = foundation.logs.first().context("there is no log")?;
    let deps = campaigner::Deps {
        log: Arc::clone(log),
        registry: Arc::clone(&consumers.registry),
        ledger: Arc::clone(&engines.ledger),
        retention: Arc::clone(&engines.retention),
        erasure: Arc::clone(&engines.erasure),
        outbox: Arc::clone(&engines.outbox),
        documents: Arc::clone(&foundation.documents),
        lookups,
        clock: Arc::clone(&foundation.clock),
        runtime: Handle::current(),
    };
    let options = campaigner::Options {
        commit_ms: settings.commit_interval.as_millis() as u64,
        batch_events: settings.batch_events,
        lookup_patience_ms: settings.lookup_patience.as_millis() as i64,
        late_after_ms: settings.late_after.as_millis() as i64,
        decisions_keep_ms: settings.decisions_keep.as_millis() as i64,
        actions_keep_ms: settings.actions_keep.as_millis() as i64,
        ..campaigner::Options::default()
    };
    Ok(tokio::task::spawn_blocking(move || Campaigner::start(deps, options)).await??)
}

fn documents(
    settings: &Settings,
    foundation: &Foundation,
    engines: &CampaignEngines,
    worker: &campaigner::Handle,
) -> Arc<Documents> {
    let approval_above =
        i64::try_from(settings.approval_above).ok().filter(|approval_above| *approval_above > 0);
    let deps = documents::Deps {
        store: Arc::clone(&foundation.documents),
        rules: Arc::new(CampaignRules::new(approval_above, engines.databases.connections())),
        sink: Arc::clone(&foundation.sink),
        in_effect: Arc::new(following::Effect(worker.clone())),
        clock: Arc::clone(&foundation.wall_clock),
    };
    Arc::new(Documents::new(deps, documents::Options::default()))
}

fn replay(
    settings: &Settings,
    foundation: &Foundation,
    engines: &CampaignEngines,
    worker: &campaigner::Handle,
    lookups: Arc<dyn Lookups>,
) -> Replay {
    let worker = worker.clone();
    let late_after_ms = settings.late_after.as_millis() as i64;
    let in_effect = move || {
        let snapshot = worker.snapshot();
        let warming = snapshot.warming.keys().copied().collect();
        snapshot.documents.engine_documents(&warming, late_after_ms)
    };

    let sources = replay::Sources {
        logs: foundation.logs.clone(),
        ledger: Arc::clone(&engines.reader),
        outbox: Arc::clone(&engines.outbox),
        documents: Arc::clone(&foundation.documents),
        in_effect: Arc::new(in_effect),
        lookups: Some(lookups),
    };
    Replay::new(sources, foundation.scans.clone(), Arc::clone(&foundation.wall_clock))
}

/// What ends with the process: first what sends, then what decides.
struct Running {
    deliveries: Deliveries,
    worker: campaigner::Handle,
    runtime: Handle,
}

impl Service for Running {
    fn trouble(&self) -> Option<String> {
        self.worker.trouble()
    }

    fn stop(&self) {
        let ended = async { tokio::time::timeout(SENDING_MAX, self.deliveries.stop()).await };
        if self.runtime.block_on(ended).is_err() {
            tracing::warn!("some deliveries did not end in time; they are sent again at the start");
        }
        self.worker.stop();
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
    fn campaigns_need_the_embedded_engines() {
        assert!(load("[campaigns]\nenabled = true\n").is_ok());
        if !cfg!(feature = "cluster") {
            return;
        }

        let cluster = "[cluster]\nengines = \"cluster\"\n";
        let is_refused = |text: &str| {
            let problems = load(text).err().unwrap_or_default();
            problems.iter().any(|problem| problem.key == ENABLED)
        };
        assert!(!is_refused(cluster), "they are off where nobody asks for them");
        assert!(!is_refused(&format!("{cluster}[campaigns]\nenabled = false\n")));
        assert!(is_refused(&format!("{cluster}[campaigns]\nenabled = true\n")));
    }
}
