//! `raingauge serve`: services, doors, and an orderly end.

use crate::auth::{MadeTokens, Tokens};
use crate::http::{self, Door, Room};
use crate::portal::Watching;
use crate::services::{Services, Startup};
use crate::settings::{CommandOption, Role, Server as Limits, Settings};
use crate::{descriptors, grpc, observe, portal, settings};
use anyhow::Context;
use axum::Router;
use axum::serve::{Listener, ListenerExt};
use metrics_exporter_prometheus::PrometheusHandle;
use raingauge_portal::people::audit::Audit;
use raingauge_portal::{Portal, Watch};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long connections that came before the server was ready may take to end before they are left behind.
const EARLY_CONNECTIONS_MAX: Duration = Duration::from_secs(1);
/// How long a process whose counting has failed may take to end, beyond draining.
const FAILED_END_MAX: Duration = Duration::from_secs(5);
/// How long a process takes leave of the others.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    services: Arc<Services>,
    watch: Arc<Watch>,
    portal: Option<Portal>,
    stop: watch::Sender<bool>,
    serving: Vec<tokio::task::JoinHandle<std::io::Result<()>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    drain_timeout: Duration,
}

impl Server {
    /// Opens everything and begins to listen.
    pub async fn start(settings: &Settings, metrics: PrometheusHandle) -> anyhow::Result<Self> {
        // The addresses are taken before the data is opened, so that a taken one is said at once.
        let listener = bind(settings.server.listen).await?;
        let address = listener.local_addr()?;
        let grpc_listener = match settings.server.grpc_listen {
            Some(listen) => Some(bind(listen).await?),
            None => None,
        };
        let slots = Arc::new(Semaphore::new(settings.server.connections_max));
        let (listener, services) = open_services(settings, listener, &slots).await?;
        let watching = Watching::new(settings, &services, address, metrics.clone());
        let portal = match services.has(Role::Portal) {
            true => Some(portal::open(settings, &services, &watching)?),
            false => None,
        };
        let made = Arc::new(MadeTokens::new(Arc::clone(&services.people), Arc::clone(&services.clock)));
        let (stop, stopping) = watch::channel(false);
        let door = Arc::new(Door {
            services: Arc::clone(&services),
            tokens: Arc::new(Tokens::new(&settings.auth).with_made(Arc::clone(&made))),
            portal: portal.clone(),
            people_options: portal::options(settings),
            audit: Audit::new(Arc::clone(&services.people), Arc::clone(&services.clock)),
            metrics: metrics.clone(),
            body_bytes_max: settings.server.body_bytes_max,
            room: Room::new(settings.server.body_bytes_max),
            request_timeout: settings.server.request_timeout,
            draining: stopping.clone(),
        });
        let mut serving = vec![open_door(listener, &slots, http::router(Arc::clone(&door)), &stopping)];
        if let Some(listener) = grpc_listener {
            tracing::info!(grpc_address = %listener.local_addr()?, "the gRPC door is open");
            serving.push(open_door(listener, &slots, grpc::router(&door).await?, &stopping));
        }
        let (follower, watched) = (Arc::clone(&services), Arc::clone(&services));
        let mut tasks = vec![
            tokio::spawn(async move { follower.follow_catalog().await }),
            tokio::spawn(async move { watched.watch().await }),
            tokio::spawn(observe::keep_up(metrics)),
            tokio::spawn(async move { made.follow().await }),
        ];
        let (watch, is_portal) = (Arc::clone(&watching.watch), services.has(Role::Portal));
        tasks.push(tokio::spawn(async move { watch.run(is_portal).await }));
        if is_portal {
            tasks.push(tokio::spawn(watching.audit.run()));
            let rollouts = watching.rollouts;
            tasks.push(tokio::spawn(async move { rollouts.run().await }));
        }
        tasks.extend(portal.clone().map(|portal| tokio::spawn(portal::keep_tidy(portal))));
        let watch = watching.watch;
        Ok(Self {
            address,
            services,
            watch,
            portal,
            stop,
            serving,
            tasks,
            drain_timeout: settings.server.drain_timeout,
        })
    }

    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Writes a link for the first administrator to standard error while nobody can sign in. It is made anew with each
    /// start, and is the one secret that is ever shown there.
    pub async fn invite_first(&self, settings: &Settings) {
        let Some(portal) = &self.portal else { return };
        match portal.accounts.invite_first().await {
            Ok(None) => {}
            Ok(Some(path)) => eprintln!(
                "Nobody can sign in to the portal yet. Open this link within 24 hours to become its administrator: {}{path}",
                portal::base(settings, self.address)
            ),
            Err(error) => {
                tracing::warn!(%error, "whether anybody can sign in is not known; `raingauge portal invite` makes a link");
            }
        }
    }

    /// Answers why counting has failed, when it has.
    async fn failed(&self) -> Arc<str> {
        self.services.published.failed().await;
        self.services.published.failure().unwrap_or_else(|| "the writer stopped".into())
    }

    /// Takes no more connections, lets running requests end, applies what is in the log, commits.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let _ = self.stop.send(true);
        let ended = async {
            for door in &mut self.serving {
                let _ = door.await;
            }
        };
        let compaction = async {
            if let Some(maintenance) = &self.services.maintenance {
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
        // A catalog that is away keeps nobody from ending.
        let _ = tokio::time::timeout(LEAVE_MAX, self.watch.leave()).await;
        let services = Arc::clone(&self.services);
        tokio::task::spawn_blocking(move || services.close()).await.context("the writer did not end")
    }
}

/// Opens the services, which may take as long as an engine is away. Meanwhile whoever asks is told so.
async fn open_services(
    settings: &Settings,
    listener: TcpListener,
    slots: &Arc<Semaphore>,
) -> anyhow::Result<(TcpListener, Arc<Services>)> {
    let listener = listener.into_std()?;
    let (startup, (stop, stopping)) = (Startup::default(), watch::channel(false));
    let early = TcpListener::from_std(listener.try_clone()?)?;
    tracing::info!(address = %listener.local_addr()?, "the HTTP door is open, and says what this process waits for");
    let early = open_door(early, slots, http::before_ready(startup.clone()), &stopping);
    let services = Arc::new(Services::open(settings, &startup).await?);
    // When this has ended no new connection comes to it.
    let _ = stop.send(true);
    let _ = tokio::time::timeout(EARLY_CONNECTIONS_MAX, early).await;
    Ok((TcpListener::from_std(listener)?, services))
}

async fn bind(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))
}

/// Serves a door until the server is to stop and its requests have ended.
fn open_door(
    listener: TcpListener,
    slots: &Arc<Semaphore>,
    router: Router,
    stopping: &watch::Receiver<bool>,
) -> tokio::task::JoinHandle<std::io::Result<()>> {
    let listener = Limited { listener, slots: Arc::clone(slots) }.tap_io(|io| {
        let _ = io.stream.set_nodelay(true);
    });
    let mut stopping = stopping.clone();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    });
    tokio::spawn(async move { serving.await })
}

/// Runs the server until the process is told to end.
pub fn run(mut settings: Settings) -> anyhow::Result<()> {
    let metrics = observe::install(&settings.observe)?;
    descriptors::fit(&mut settings)?;
    let settings = &settings;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ran = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = tokio::select! {
            server = Server::start(settings, metrics) => server?,
            () = signals.received() => {
                tracing::info!("stopping before everything was there");
                return Ok(());
            }
        };
        server.invite_first(settings).await;
        announce(server.address)?;
        tokio::select! {
            () = signals.received() => {
                tracing::info!("stopping: no more connections, running requests may end");
                server.stop().await
            }
            reason = server.failed() => end_failed(settings, server, &reason, &mut signals).await,
        }
    });
    // A try to reach an engine that is away may still be under way on a thread of its own: nobody waits for it.
    runtime.shutdown_background();
    ran
}

/// Ends a process whose counting has failed, after a grace period in which `/readyz` says so. Its supervisor starts it
/// again, and recovery finds out what the disk holds.
async fn end_failed(settings: &Settings, server: Server, reason: &str, signals: &mut Signals) -> anyhow::Result<()> {
    let Settings { server: Limits { failure_grace, drain_timeout, .. }, .. } = settings;
    tracing::error!(%reason, grace_s = failure_grace.as_secs(), "counting has failed: this process ends with an error");
    tokio::select! {
        () = tokio::time::sleep(*failure_grace) => {}
        () = signals.received() => {}
    }

    exit_by(*drain_timeout * 2 + FAILED_END_MAX);
    server.stop().await?;
    anyhow::bail!("counting has failed: {reason}")
}

/// Ends the process after this time, whatever hangs by then: a thread that waits for a broken disk cannot be stopped.
fn exit_by(time: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(time);
        tracing::error!("something does not end, and is cut off");
        std::process::exit(1);
    });
}

/// The one line on standard output that says where the server listens.
pub fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "raingauge is ready on http://{address}")?;
    out.flush()
}

/// SIGTERM and interrupts from the keyboard. Listened to before the server says that it is ready: one that arrives
/// right behind that line ends it in order too.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the first one.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Settings from a file, the environment and options of the command line, or every problem with them.
pub fn load_settings(
    config: Option<&std::path::Path>,
    data_dir: Option<&std::path::Path>,
    listen: Option<&str>,
) -> anyhow::Result<Settings> {
    settings(config, options(data_dir, listen))
}

/// The options of the command line that most commands have.
pub fn options(data_dir: Option<&std::path::Path>, listen: Option<&str>) -> Vec<CommandOption> {
    let data_dir = data_dir.map(|folder| ("storage.data_dir", "--data-dir", folder.display().to_string()));
    let listen = listen.map(|listen| ("server.listen", "--listen", listen.to_owned()));
    data_dir.into_iter().chain(listen).collect()
}

pub fn settings(config: Option<&std::path::Path>, options: Vec<CommandOption>) -> anyhow::Result<Settings> {
    Settings::load(config, settings::environment(), options).map_err(|problems| refused(&problems))
}

/// The error that lists everything that is wrong with a configuration.
pub fn refused(problems: &[settings::Problem]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    anyhow::anyhow!("the configuration has {} problem(s):\n{}", problems.len(), lines.join("\n"))
}

/// A listener that has no more than so many connections open; others wait to be accepted.
struct Limited {
    listener: TcpListener,
    slots: Arc<Semaphore>,
}

/// A connection, and its place among those that may be open.
struct Connection {
    stream: TcpStream,
    _slot: OwnedSemaphorePermit,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let (stream, address) = Listener::accept(&mut self.listener).await;
        match slot {
            Ok(slot) => (Connection { stream, _slot: slot }, address),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

mod connection {
    //! Reading and writing go to the stream.

    use super::Connection;
    use std::io::{IoSlice, Result};
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    impl AsyncRead for Connection {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Connection {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<Result<usize>> {
            Pin::new(&mut self.stream).poll_write_vectored(context, slices)
        }

        fn is_write_vectored(&self) -> bool {
            self.stream.is_write_vectored()
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }
}
