//! `raingauge serve`: engines, services, doors, and a graceful shutdown.

use crate::products::{Additions, OpenObjects};
use crate::services::{Engines, Process, Startup, Surroundings};
use crate::settings::{CommandOption, Settings};
use crate::{descriptors, first_link, observe, pages, portal, settings};
use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use raingauge_app::{App, Role};
use raingauge_grpc::MethodSource;
use raingauge_http::Routes;
use raingauge_http::connections::{self, Certificates, Door, Limits, Places};
use raingauge_portal::{Pages, Portal};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest time for connections from before the server was ready to end.
const EARLY_CONNECTIONS_MAX: Duration = Duration::from_secs(1);
/// Longest time for a process whose counting has failed to end, beyond draining.
const FAILED_END_MAX: Duration = Duration::from_secs(5);
/// Longest time to remove this instance from the catalog on shutdown.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    /// Where Redis clients reach it, if that door is open.
    pub resp_address: Option<SocketAddr>,
    /// Whether the doors speak TLS.
    pub has_tls: bool,
    process: Arc<Process>,
    portal: Option<Portal>,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    tasks: Vec<JoinHandle<()>>,
    drain_timeout: Duration,
}

impl Server {
    /// Opens everything and begins to listen.
    pub async fn start(settings: &Settings, metrics: PrometheusHandle) -> anyhow::Result<Self> {
        // Binds the addresses before the data is opened, so that an address in use is reported at
        // once.
        let doors = Doors::bind(settings).await?;
        let address = doors.http.local_addr()?;
        let resp_address = doors.resp.as_ref().map(|(resp, _)| resp.local_addr()).transpose()?;
        warn_of_open_doors(settings, address);

        let engines = doors.open_engines(settings).await?;
        let (stop, stopping) = watch::channel(false);
        let render = metrics.clone();
        let surroundings = Surroundings {
            address,
            metrics: Arc::new(move || render.render()),
            draining: stopping.clone(),
        };

        let (process, added) = Process::assemble(engines, settings, surroundings).await?;
        let process = Arc::new(process);
        let Additions { routes, methods, pages, tasks: added_tasks, objects, .. } = added;

        let app = &process.app;
        let has_portal = app.node.has(Role::Portal);
        let portal = has_portal.then(|| portal::open(settings, app)).transpose()?;
        let portal = portal.map(|portal| portal.with_links(&pages));

        let certificates = doors.certificates.clone();
        let pages = portal.clone().map(|portal| (portal, pages));
        let serving = doors.open(app, routes, methods, pages, objects, &stopping).await?;
        let mut tasks = background(&process, portal.clone());
        tasks.push(tokio::spawn(observe::keep_up(metrics)));
        tasks.extend(added_tasks.into_iter().map(tokio::spawn));

        let has_tls = certificates.is_some();
        tasks.extend(certificates.map(|certificates| tokio::spawn(certificates.follow())));

        let drain_timeout = settings.server.drain_timeout;
        Ok(Self {
            address,
            resp_address,
            has_tls,
            process,
            portal,
            stop,
            serving,
            tasks,
            drain_timeout,
        })
    }

    pub fn app(&self) -> &App {
        &self.process.app
    }

    /// Creates a link for the first administrator while no one can sign in.
    pub async fn invite_first(&self, settings: &Settings) {
        let Some(portal) = &self.portal else { return };
        match portal.accounts.invite_first().await {
            Ok(path) => {
                let link =
                    path.map(|path| format!("{}{path}", portal::base(settings, self.address)));
                first_link::show(link.as_deref(), settings);
            }
            Err(error) => {
                tracing::warn!(%error, "whether anybody can sign in is not known; `raingauge portal invite` makes a link");
            }
        }
    }

    /// Returns why counting has failed, once it has.
    async fn failed(&self) -> Arc<str> {
        let published = &self.process.app.counted.published;
        published.failed().await;
        published.failure().unwrap_or_else(|| "the writer stopped".into())
    }

    /// Stops accepting connections, lets running requests end, applies what is in the log, and
    /// commits.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let _ = self.stop.send(true);
        let ended = async {
            for door in &mut self.serving {
                let _ = door.await;
            }
        };

        let compaction = async {
            if let Some(maintenance) = &self.process.app.operations.maintenance {
                maintenance.close().await;
            }
        };

        let time = self.drain_timeout;
        let (ended, compaction) =
            tokio::join!(tokio::time::timeout(time, ended), tokio::time::timeout(time, compaction));
        if compaction.is_err() {
            tracing::warn!("a compaction did not end in time and is left alone");
        }

        if ended.is_err() {
            tracing::warn!("some requests did not end in time and were cut off");
            self.serving.iter().for_each(|door| door.abort());
        }

        self.tasks.iter().for_each(|task| task.abort());

        // A catalog that is away does not prevent the shutdown.
        let _ = tokio::time::timeout(LEAVE_MAX, self.process.app.operations.watch.leave()).await;
        let process = Arc::clone(&self.process);
        tokio::task::spawn_blocking(move || process.close()).await.context("the writer did not end")
    }
}

/// The addresses of a server, and the limits of their connections.
struct Doors {
    http: std::net::TcpListener,
    http_places: Arc<Places>,
    grpc: Option<(TcpListener, Arc<Places>)>,
    resp: Option<(TcpListener, raingauge_resp_door::Settings)>,
    limits: Limits,
    certificates: Option<Arc<Certificates>>,
}

impl Doors {
    async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let server = &settings.server;
        let places =
            |door| Places::new(door, server.connections_max, server.connections_per_address_max);
        let http = bind(server.listen).await?.into_std()?;
        let grpc = match server.grpc_listen {
            Some(listen) => Some((bind(listen).await?, places("grpc"))),
            None => None,
        };
        let resp = match settings.resp.listen {
            Some(listen) => Some((bind(listen).await?, settings.resp.clone())),
            None => None,
        };
        let limits = Limits {
            head: server.head_timeout,
            idle: server.idle_timeout,
            write: server.write_timeout,
        };

        let certificates = server.tls.as_ref().map(Certificates::load).transpose()?;
        Ok(Self { http, http_places: places("http"), grpc, resp, limits, certificates })
    }

    /// Opens the engines, which may take as long as one is away. Until then the HTTP door reports
    /// what the process waits for.
    async fn open_engines(&self, settings: &Settings) -> anyhow::Result<Engines> {
        let startup = Startup::default();
        let awaited = startup.clone();
        let router = raingauge_http::before_ready(move || awaited.says());
        let (stop, stopping) = watch::channel(false);
        let early = self.http_door(router.clone(), router)?.open(&stopping);
        tracing::info!(address = %self.http.local_addr()?, "the HTTP door is open, and says what this process waits for");

        let engines = Engines::open(settings, &startup).await?;
        // When this has ended it gets no new connections.
        let _ = stop.send(true);
        let _ = tokio::time::timeout(EARLY_CONNECTIONS_MAX, early).await;
        Ok(engines)
    }

    /// Opens all doors over the services.
    async fn open(
        self,
        app: &Arc<App>,
        routes: Routes,
        methods: Vec<Arc<dyn MethodSource>>,
        pages: Option<(Portal, Pages)>,
        objects: Option<OpenObjects>,
        stopping: &watch::Receiver<bool>,
    ) -> anyhow::Result<Vec<JoinHandle<()>>> {
        let timeout = app.limits.request_timeout;
        let pages = pages.map(|(portal, pages)| pages::router(portal, pages, timeout));
        let router =
            raingauge_http::router(Arc::clone(app), routes).merge(pages.unwrap_or_default());
        let http = self.http_door(router, raingauge_http::reserve(Arc::clone(app)))?;
        let mut serving = vec![http.open(stopping)];

        if let Some((listener, places)) = self.grpc {
            tracing::info!(grpc_address = %listener.local_addr()?, "the gRPC door is open");
            let raingauge_grpc::Routers { router, reserve } =
                raingauge_grpc::routers(app, &methods).await?;
            let limits = self.limits;
            let certificates = self.certificates;
            let grpc =
                Door { name: "grpc", listener, places, limits, certificates, router, reserve };

            serving.push(grpc.open(stopping));
        }

        if let (Some((listener, settings)), Some(objects)) = (self.resp, objects) {
            tracing::info!(resp_address = %listener.local_addr()?, "the door for Redis clients is open");
            serving.push(objects.open(app, settings, listener, stopping)?);
        }

        Ok(serving)
    }

    fn http_door(&self, router: axum::Router, reserve: axum::Router) -> anyhow::Result<Door> {
        Ok(Door {
            name: "http",
            listener: TcpListener::from_std(self.http.try_clone()?)?,
            places: Arc::clone(&self.http_places),
            limits: self.limits,
            certificates: self.certificates.clone(),
            router,
            reserve,
        })
    }
}

/// Warns the operator of a server that accepts more callers, or distinguishes fewer of them, than
/// it may seem.
fn warn_of_open_doors(settings: &Settings, address: SocketAddr) {
    if !settings.auth.is_asked() {
        tracing::warn!(
            %address,
            "no token is asked for: every process of this machine may read and change everything under /v1; \
             auth.required or a token in auth.tokens closes it"
        );
    }
    if settings.people.has_one_address {
        tracing::warn!(
            "portal.public_url says that others reach the portal, and everybody who comes through a proxy has its address: \
             name its header in portal.address_header, or give none where there is no proxy"
        );
    }
}

/// Starts the background work for as long as the server runs.
fn background(process: &Arc<Process>, portal: Option<Portal>) -> Vec<JoinHandle<()>> {
    let [followed, counting, tokens] = std::array::from_fn(|_| Arc::clone(process));
    let mut tasks = vec![
        tokio::spawn(async move { followed.follow_catalog().await }),
        tokio::spawn(async move { counting.watch().await }),
        tokio::spawn(async move { tokens.follow_tokens().await }),
    ];

    let operations = &process.app.operations;
    let watch = Arc::clone(&operations.watch);
    let is_portal = portal.is_some();
    tasks.push(tokio::spawn(async move { watch.run(is_portal).await }));

    if let Some(portal) = portal {
        let rollouts = Arc::clone(&operations.rollouts);
        tasks.push(tokio::spawn(Arc::clone(&operations.self_audit).run()));
        tasks.push(tokio::spawn(async move { rollouts.run().await }));
        tasks.push(tokio::spawn(async move { portal.accounts.keep_tidy().await }));
    }

    tasks
}

async fn bind(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))
}

/// Runs the server until it gets a signal to end.
pub fn run(mut settings: Settings) -> anyhow::Result<()> {
    let metrics = observe::install(&settings.observe)?;
    descriptors::fit(&mut settings)?;

    let settings = &settings;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ran = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }

        let server = tokio::select! {
            server = Server::start(settings, metrics) => server?,
            () = signals.received() => {
                tracing::info!("stopping before everything was there");
                return Ok(());
            }
        };

        server.invite_first(settings).await;
        announce(server.has_tls, server.address)?;
        tokio::select! {
            () = signals.received() => {
                tracing::info!("stopping: no more connections, running requests may end");
                server.stop().await
            }
            reason = server.failed() => end_failed(settings, server, &reason, &mut signals).await,
        }
    });

    // An attempt to reach an engine that is away may still be running on its own thread; the
    // shutdown does not wait for it.
    runtime.shutdown_background();
    ran
}

/// Ends a process whose counting has failed, after a grace period in which `/readyz` reports the
/// failure. Its supervisor starts it again, and recovery finds out what is on the disk.
async fn end_failed(
    settings: &Settings,
    server: Server,
    reason: &str,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let connections::Settings { failure_grace, drain_timeout, .. } = &settings.server;
    tracing::error!(%reason, grace_s = failure_grace.as_secs(), "counting has failed: this process ends with an error");
    tokio::select! {
        () = tokio::time::sleep(*failure_grace) => {}
        () = signals.received() => {}
    }

    exit_by(*drain_timeout * 2 + FAILED_END_MAX);
    server.stop().await?;
    anyhow::bail!("counting has failed: {reason}")
}

/// Ends the process after this time, whatever hangs: a thread that waits for a broken disk cannot
/// be stopped.
fn exit_by(time: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(time);
        tracing::error!("something does not end, and is cut off");
        std::process::exit(1);
    });
}

/// Prints the one line on standard output with the server's address.
pub fn announce(has_tls: bool, address: SocketAddr) -> std::io::Result<()> {
    let scheme = if has_tls { "https" } else { "http" };
    let mut out = std::io::stdout().lock();
    writeln!(out, "raingauge is ready on {scheme}://{address}")?;
    out.flush()
}

/// SIGTERM and keyboard interrupts. The handlers are installed before the server reports that it is
/// ready, so that a signal right after that line also ends it gracefully.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first signal.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Loads settings from a file, the environment and options of the command line, or returns every
/// problem with them.
pub fn load_settings(
    config: Option<&std::path::Path>,
    data_dir: Option<&std::path::Path>,
    listen: Option<&str>,
) -> anyhow::Result<Settings> {
    settings(config, options(data_dir, listen))
}

/// Returns the command line options that most commands share.
pub fn options(data_dir: Option<&std::path::Path>, listen: Option<&str>) -> Vec<CommandOption> {
    let data_dir =
        data_dir.map(|folder| ("storage.data_dir", "--data-dir", folder.display().to_string()));
    let listen = listen.map(|listen| ("server.listen", "--listen", listen.to_owned()));
    data_dir.into_iter().chain(listen).collect()
}

pub fn settings(
    config: Option<&std::path::Path>,
    options: Vec<CommandOption>,
) -> anyhow::Result<Settings> {
    Settings::load(config, settings::environment(), options).map_err(|problems| refused(&problems))
}

/// Returns an error that lists every problem with a configuration.
pub fn refused(problems: &[settings::Problem]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    anyhow::anyhow!("the configuration has {} problem(s):\n{}", problems.len(), lines.join("\n"))
}
