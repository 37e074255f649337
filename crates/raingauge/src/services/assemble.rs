//! The services over the engines, wired in one place for every kind of deployment.

use super::{Engines, Running, caching, embedded};
use crate::products::{Additions, Foundation, Service};
use crate::settings::Settings;
use metrics::gauge;
use parking_lot::Mutex;
use raingauge_app::budget::BodyBudgets;
use raingauge_app::{App, CountedData, Limits, Node, Operations, People, Role};
use raingauge_consumers::Runner;
use raingauge_counters::documents::{CounterKind, DocumentKind};
use raingauge_counters::recount::Recounter;
use raingauge_counters::{Counters, Drafts, RecentEvents, RemoteLog};
use raingauge_operations::Measures;
use raingauge_operations::rollouts::{self, Conductor};
use raingauge_operations::self_audit::{self, SelfAudit};
use raingauge_operations::watch::{self, About, Watch};
use raingauge_people::audit::AuditLog;
use raingauge_people::tokens::{MadeTokens, Tokens};
use raingauge_ports::scans::Scans;
use raingauge_reader::{CachePolicies, Reader};
use raingauge_writer::{Ingest, KeyLimit, KeyWatch};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch as channel;

/// What a process needs beside its engines and settings.
pub struct Surroundings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Renders all metrics in the format of Prometheus.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Turns true when the server is about to stop.
    pub draining: channel::Receiver<bool>,
}

/// The services of a process, and what keeps them running.
pub struct Process {
    pub app: Arc<App>,
    running: Arc<Running>,
    /// Finds the counters that take no new keys.
    key_watch: KeyWatch,
    made_tokens: Arc<MadeTokens>,
    /// The consumers of products, until the process ends.
    consumers: Consumers,
    /// The other work of products.
    services: Arc<[Arc<dyn Service>]>,
}

/// The running consumers of products.
type Consumers = Arc<Mutex<Vec<Runner>>>;

impl Process {
    /// Assembles the services over the engines. Returns when counts can be queried, with what the
    /// products add to the doors.
    pub async fn assemble(
        engines: Engines,
        settings: &Settings,
        surroundings: Surroundings,
    ) -> anyhow::Result<(Self, Additions)> {
        let key_limit = Arc::new(KeyLimit::new(settings.events.keys_per_counter_max));
        let key_watch = KeyWatch::new(
            Arc::clone(&key_limit),
            Arc::clone(&engines.keys),
            Arc::clone(&engines.published),
            engines.logs.clone(),
        );

        let counters = Arc::new(counters(&engines, settings, &key_limit));
        if matches!(engines.running, Running::Embedded(_)) {
            let catalog = &*engines.database.catalog;
            embedded::begin_counting(settings, catalog, &counters, &engines.published).await?;
        }

        let ingest = Arc::new(ingest(&engines, settings, key_limit));
        let (reader, policies) = caching::reader(settings, &counters, &engines).await?;
        let counted = counted(&engines, settings);

        let operations =
            operations(&engines, settings, &surroundings, &counters, &reader, policies, &counted);
        let foundation = foundation(&engines, settings, &ingest, &counters, &reader, &counted);
        let mut added = settings.products.open(&foundation).await?;
        let consumers = Arc::new(Mutex::new(std::mem::take(&mut added.consumers)));
        let services: Arc<[_]> = std::mem::take(&mut added.services).into();

        let drafts = drafts(&engines, settings, &counters, std::mem::take(&mut added.kinds));
        let (people, made_tokens) = people(&engines, settings);
        let running = Arc::new(engines.running);
        let troubled = (Arc::clone(&running), Arc::clone(&consumers), Arc::clone(&services));
        let failing = Arc::clone(&services);
        let app = App {
            node: Node {
                roles: settings.cluster.roles.clone(),
                draining: surroundings.draining,
                failure: Box::new(move || failing.iter().find_map(|service| service.failure())),
                troubles: Box::new(move || {
                    let (running, consumers, services) = &troubled;
                    let consumers = consumers.lock();
                    let standing = consumers.iter().filter_map(Runner::trouble);
                    let troubled = services.iter().filter_map(|service| service.trouble());
                    running.troubles().into_iter().chain(standing).chain(troubled).collect()
                }),
                metrics: surroundings.metrics,
            },
            clock: engines.wall_clock,
            ingest,
            waits: std::mem::take(&mut added.waits),
            counters,
            drafts,
            reader,
            counted,
            people,
            operations,
            limits: Limits {
                body_bytes_max: settings.server.body_bytes_max,
                bodies: BodyBudgets::new(settings.server.body_bytes_max),
                request_timeout: settings.server.request_timeout,
                samples: settings.samples.clone(),
            },
            largest: raingauge_app::largest::Memory::default(),
        };

        let app = Arc::new(app);
        Ok((Self { app, running, key_watch, made_tokens, consumers, services }, added))
    }

    /// Follows changes of the catalog by other processes, and conducts backfills, while it is
    /// polled.
    pub async fn follow_catalog(&self) {
        let Self { app, running, key_watch, .. } = self;
        tokio::join!(
            running.follow(&app.counters),
            self.conduct_backfills(),
            key_watch.run(),
            caching::follow(&app.counters, &app.operations.policies)
        );
    }

    /// Follows the tokens that are created in the portal, while it is polled.
    pub async fn follow_tokens(&self) {
        self.made_tokens.follow().await;
    }

    /// Conducts backfills in any process that writes or is a portal; an entry that several write
    /// changes nothing.
    async fn conduct_backfills(&self) {
        let conducts = self.app.node.has(Role::Writer) || self.app.node.has(Role::Portal);
        if let Some(conductor) = self.app.counters.conductor().filter(|_| conducts) {
            conductor.run().await;
        }
    }

    /// Publishes a failure when the engines of this process can no longer count.
    pub async fn watch(&self) {
        self.running.watch().await;
    }

    /// Ends products and consumers, commits what is counted, and ends the writers. Blocks the
    /// thread.
    pub fn close(&self) {
        self.services.iter().for_each(|service| service.stop());
        let consumers = std::mem::take(&mut *self.consumers.lock());
        drop(consumers);
        self.running.close();
    }
}

fn counters(engines: &Engines, settings: &Settings, key_limit: &Arc<KeyLimit>) -> Counters {
    let counters = Counters::new(
        Arc::clone(&engines.database.catalog),
        Arc::clone(&engines.sink),
        Arc::clone(&engines.published),
        Arc::clone(&engines.clock),
    );

    let counters = match &engines.takes_effect {
        Some(effect) => {
            let covered = RemoteLog {
                logs: engines.logs.clone(),
                states: Arc::clone(&engines.states),
                future_allowance_s: settings.events.future_allowance.as_secs() as i64,
            };
            counters.of_cluster(Arc::clone(effect), covered)
        }
        None => counters,
    };
    counters
        .with_conductor(Arc::clone(&engines.writer_states))
        .with_key_limit(Arc::clone(key_limit))
}

fn ingest(engines: &Engines, settings: &Settings, key_limit: Arc<KeyLimit>) -> Ingest {
    Ingest::new(
        Arc::clone(&engines.sink),
        engines.counted_here.clone(),
        Arc::clone(&engines.published),
        Arc::clone(&engines.clock),
        settings.events.future_allowance.as_secs() as i64,
        settings.lag.lag_events_max,
    )
    .with_key_limit(key_limit)
}

fn counted(engines: &Engines, settings: &Settings) -> CountedData {
    let recounter = Recounter {
        logs: engines.logs.clone(),
        buckets: Arc::clone(&engines.buckets),
        published: Arc::clone(&engines.published),
        states: Arc::clone(&engines.states),
        clock: Arc::clone(&engines.clock),
        future_allowance_s: settings.events.future_allowance.as_secs() as i64,
    };

    let scans = Scans::default();
    let clock = Arc::clone(&engines.wall_clock);
    CountedData {
        recent: RecentEvents::new(engines.logs.clone(), scans.clone(), clock),
        published: Arc::clone(&engines.published),
        states: Arc::clone(&engines.states),
        logs: engines.logs.clone(),
        log_kept: (!settings.cluster.is_cluster()).then_some(settings.log.retention),
        recounter: Arc::new(recounter),
        scans,
    }
}

/// What watches the deployment, audits its counts and conducts rollouts.
fn operations(
    engines: &Engines,
    settings: &Settings,
    surroundings: &Surroundings,
    counters: &Arc<Counters>,
    reader: &Arc<Reader>,
    policies: Arc<CachePolicies>,
    counted: &CountedData,
) -> Operations {
    let clock = || Arc::clone(&engines.wall_clock);
    let measures = measures(engines, Arc::clone(&surroundings.metrics));
    let watch = Arc::new(Watch::new(watch::Deps {
        about: about(settings, surroundings.address, engines),
        measures: Arc::clone(&measures),
        instances: Arc::clone(&engines.database.instances),
        reader: Arc::clone(reader),
        policies: Arc::clone(&policies),
        published: Arc::clone(&engines.published),
        clock: clock(),
    }));

    let rollouts = Conductor::new(rollouts::Deps {
        rollouts: Arc::clone(&engines.database.rollouts),
        counters: Arc::clone(counters),
        policies: Arc::clone(&policies),
        measures: Arc::clone(&measures),
        watch: Arc::clone(&watch),
        clock: clock(),
        still_max: engines.rollout_still_max,
    });

    let self_audit = SelfAudit::new(self_audit::Deps {
        recounter: Arc::clone(&counted.recounter),
        reader: Arc::clone(reader),
        checks: Arc::clone(&engines.database.checks),
        lease: Arc::clone(&engines.audit_lease),
        logs: engines.logs.clone(),
        published: Arc::clone(&engines.published),
        clock: clock(),
        options: settings.self_audit,
    });

    Operations {
        policies,
        maintenance: engines.maintenance.clone(),
        measures,
        watch,
        self_audit: Arc::new(self_audit),
        rollouts: Arc::new(rollouts),
    }
}

/// What products build upon.
fn foundation(
    engines: &Engines,
    settings: &Settings,
    ingest: &Arc<Ingest>,
    counters: &Arc<Counters>,
    counts: &Arc<Reader>,
    counted: &CountedData,
) -> Foundation {
    Foundation {
        roles: settings.cluster.roles.clone(),
        data_dir: settings.storage.data_dir.clone(),
        reserve_bytes: settings.storage.reserve_bytes,
        open_files_max: settings.tiles.open_files_max,
        clock: Arc::clone(&engines.clock),
        object_clock: Arc::clone(&engines.object_clock),
        wall_clock: Arc::clone(&engines.wall_clock),
        logs: engines.logs.clone(),
        sink: Arc::clone(&engines.sink),
        documents: Arc::clone(&engines.database.documents),
        book_place: engines.book_place.clone(),
        topic_place: engines.topic_place.clone(),
        points_lease: Arc::clone(&engines.points_lease),
        points: None,
        published: Arc::clone(&engines.published),
        scans: counted.scans.clone(),
        consumers: engines.consumers.clone(),
        ingest: Arc::clone(ingest),
        counters: Arc::clone(counters),
        counts: Arc::clone(counts),
    }
}

/// The workflow of drafts: counters, and the kinds of documents of products.
fn drafts(
    engines: &Engines,
    settings: &Settings,
    counters: &Arc<Counters>,
    kinds: Vec<Arc<dyn DocumentKind>>,
) -> Arc<Drafts> {
    let drafts = Drafts::new(
        Arc::clone(&engines.database.drafts),
        Arc::clone(&engines.database.people),
        Arc::clone(&engines.wall_clock),
        settings.drafts.needs_approval,
    );
    let drafts = drafts.with(Arc::new(CounterKind::new(Arc::clone(counters))));
    Arc::new(kinds.into_iter().fold(drafts, Drafts::with))
}

/// The tokens of the settings and of the portal, and what follows the latter.
fn people(engines: &Engines, settings: &Settings) -> (People, Arc<MadeTokens>) {
    let store = &engines.database.people;
    let made = MadeTokens::new(store.clone(), Arc::clone(&engines.wall_clock));
    let made = Arc::new(made);
    let people = People {
        store: Arc::clone(store),
        tokens: Arc::new(Tokens::new(&settings.auth).with_made(Arc::clone(&made))),
        options: crate::portal::options(settings),
        audit: AuditLog::new(store.clone(), Arc::clone(&engines.wall_clock)),
    };
    (people, made)
}

fn measures(engines: &Engines, metrics: Arc<dyn Fn() -> String + Send + Sync>) -> Arc<Measures> {
    let disk = engines.disk.clone();
    let render = move || {
        disk.as_deref().inspect(|folder| look_at_disk(folder));
        metrics()
    };
    Arc::new(Measures::new(render, Arc::clone(&engines.wall_clock)))
}

/// Notes how much room the disk of a folder has. One that cannot be asked is left out.
fn look_at_disk(folder: &Path) {
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        gauge!("raingauge_disk_bytes").set((disk.f_blocks * disk.f_frsize) as f64);
        gauge!("raingauge_disk_free_bytes").set((disk.f_bavail * disk.f_frsize) as f64);
    }
}

fn about(settings: &Settings, address: SocketAddr, engines: &Engines) -> About {
    About {
        name: settings.cluster.instance.clone(),
        roles: settings.cluster.roles.iter().map(|role| role.name().to_owned()).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: address.to_string(),
        started_s: engines.wall_clock.now_s(),
    }
}
