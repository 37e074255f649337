//! How connections come in, and how long they may stay: the accept loop of each door, its places,
//! and the time limits of a connection.
//!
//! ```text
//!   accept ─▶ Places ─ a place ────▶ TLS, if set ─▶ HTTP/1.1 or HTTP/2 ─▶ router
//!                    └ none left ──▶ TLS, if set ─▶ health checks; 503 for everything else
//! ```
//!
//! A connection is closed when its next request does not arrive in time, when it is idle for too
//! long, and when its client does not read the response. The guards limit the time of a request
//! once it has arrived.

mod activity;
mod answer;
mod expiry;
mod limits;
mod linger;
mod places;
mod settings;
pub mod tls;

pub use limits::Limits;
pub use places::{Places, RESERVE_MAX};
pub use settings::Settings;
pub use tls::Certificates;

use crate::problem::Problem;
use activity::{Activity, Expiry, Watched};
use answer::Answer;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use linger::{LINGER_MAX, RequestBody};
use raingauge_app::socket;
use raingauge_core::code::Code;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// Longest head of an HTTP/1.1 request, in bytes.
const HEAD_BYTES_MAX: usize = 128 * 1024;
/// Largest list of HTTP/2 headers, in bytes.
const HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;
/// Most concurrent requests of one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// Interval between pings to an HTTP/2 peer, and how long it may take to reply.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Limits of a connection in the reserve, which serves one health check.
const RESERVE_LIMITS: Limits = Limits {
    head: Duration::from_secs(2),
    idle: Duration::from_secs(2),
    write: Duration::from_secs(2),
};
/// Shortest and longest pause after the system could not accept a connection, such as for lack of
/// file descriptors.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// One door, ready to be opened.
pub struct Door {
    /// Its name in the metrics.
    pub name: &'static str,
    pub listener: TcpListener,
    pub places: Arc<Places>,
    pub limits: Limits,
    /// Set when the door speaks TLS.
    pub certificates: Option<Arc<Certificates>>,
    pub router: Router,
    /// Serves connections without a place: health checks, and a problem for everything else.
    pub reserve: Router,
}

impl Door {
    /// Serves the door until the server stops and the door's connections have ended.
    pub fn open(self, stopping: &watch::Receiver<bool>) -> JoinHandle<()> {
        tokio::spawn(self.accept_all(stopping.clone()))
    }

    async fn accept_all(self, stopping: watch::Receiver<bool>) {
        // Every connection holds a sender: when all are gone, all connections have ended.
        let (open, mut ended) = mpsc::channel::<Infallible>(1);
        let mut pause = ACCEPT_PAUSE.0;
        let mut stopped = pin!(stopped(stopping.clone()));

        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stopped => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    pause = ACCEPT_PAUSE.0;
                    self.begin(stream, address, stopping.clone(), open.clone());
                }
                Err(error) if is_of_one_connection(error.kind()) => {}
                Err(error) => {
                    tracing::error!(%error, door = self.name, "the system gives no more connections; trying again");
                    refused(self.name, "accept");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(ACCEPT_PAUSE.1),
                        () = &mut stopped => break,
                    }
                }
            }
        }

        let Self { listener, .. } = self;
        drop((listener, open));
        ended.recv().await;
    }

    /// Serves one connection on its own task, in a place or in the reserve.
    fn begin(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        stopping: watch::Receiver<bool>,
        open: mpsc::Sender<Infallible>,
    ) {
        socket::set_options(&stream);
        let place = self.places.take(address.ip());
        let has_place = place.is_ok();
        let connection = Connection {
            door: self.name,
            address,
            router: if has_place { self.router.clone() } else { self.reserve.clone() },
            limits: if has_place { self.limits } else { RESERVE_LIMITS },
            is_kept: has_place,
            certificates: self.certificates.clone(),
            activity: Arc::default(),
            stopping,
        };

        match place {
            Ok(place) => {
                tokio::spawn(async move {
                    connection.run(stream).await;
                    drop((place, open));
                });
            }
            Err(refusal) => {
                refused(self.name, refusal.name());
                let task = tokio::spawn(async move {
                    connection.run(stream).await;
                    drop(open);
                });
                if self.places.reserve(task.abort_handle()) {
                    refused(self.name, "reserve");
                }
            }
        }
    }
}

/// One connection and its limits.
struct Connection {
    door: &'static str,
    address: SocketAddr,
    router: Router,
    limits: Limits,
    /// Whether it stays open for further requests.
    is_kept: bool,
    certificates: Option<Arc<Certificates>>,
    activity: Arc<Activity>,
    stopping: watch::Receiver<bool>,
}

/// Events of a connection other than its requests.
enum Interrupt {
    Stop,
    Expired(Expiry),
    Lingered,
}

/// What a connection waits for besides its requests.
#[derive(Clone, Copy)]
enum Awaited {
    StopOrExpiry,
    /// The connection is ending, after its requests.
    Expiry,
    /// The connection is ending now.
    Linger,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        let Some(certificates) = &self.certificates else {
            return self.serve(stream).await;
        };
        let shaken = tokio::select! {
            shaken = shake_hands(certificates, stream) => shaken,
            _ = self.activity.expired(&self.limits) => return expired(self.door, "handshake"),
            () = stopped(self.stopping.clone()) => return,
        };

        match shaken {
            Ok(stream) => self.serve(stream).await,
            Err(error) => {
                tracing::debug!(%error, address = %self.address, "a connection began without TLS that holds");
                refused(self.door, "handshake");
            }
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S) {
        let stream = TokioIo::new(Watched::new(stream, Arc::clone(&self.activity)));
        let builder = self.builder();
        let service = service_fn(|request| self.answer(request));
        let mut serving = pin!(builder.serve_connection(stream, service));

        // The set polls a future only when it was woken: a request costs neither a timer nor a
        // lock.
        let mut interrupts = FuturesUnordered::new();
        interrupts.push(self.interrupt(Awaited::StopOrExpiry));

        loop {
            let interrupt = tokio::select! {
                biased;
                served = serving.as_mut() => {
                    if let Err(error) = served {
                        tracing::debug!(%error, address = %self.address, "a connection broke");
                    }
                    return;
                }
                Some(interrupt) = interrupts.next() => interrupt,
            };

            let awaited = match interrupt {
                Interrupt::Stop => Awaited::Expiry,
                Interrupt::Expired(expiry) => {
                    expired(self.door, expiry.name());

                    if expiry != Expiry::Idle {
                        return;
                    }
                    Awaited::Linger
                }
                Interrupt::Lingered => return,
            };

            serving.as_mut().graceful_shutdown();
            interrupts.push(self.interrupt(awaited));
        }
    }

    async fn interrupt(&self, awaited: Awaited) -> Interrupt {
        match awaited {
            Awaited::StopOrExpiry => tokio::select! {
                () = stopped(self.stopping.clone()) => Interrupt::Stop,
                expiry = self.activity.expired(&self.limits) => Interrupt::Expired(expiry),
            },
            Awaited::Expiry => Interrupt::Expired(self.activity.expired(&self.limits).await),
            Awaited::Linger => {
                tokio::time::sleep(self.limits.write).await;
                Interrupt::Lingered
            }
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());

        // `Activity` limits the time of a head, without a timer for each request.
        builder
            .http1()
            .header_read_timeout(None)
            .max_buf_size(HEAD_BYTES_MAX)
            .keep_alive(self.is_kept);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEADER_LIST_BYTES_MAX);
        builder
    }

    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<axum::http::Response<Answer>, Infallible>> + use<> {
        let handling = self.activity.begin();
        let is_http2 = request.version() == Version::HTTP_2;
        let mut request =
            request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&self.activity))));
        request.extensions_mut().insert(ConnectInfo(self.address));
        if is_http2 {
            name_host(&mut request);
        }

        let answering = self.router.clone().call(request);
        let activity = Arc::clone(&self.activity);
        async move {
            let mut response = answering.await?;
            // The connection ends behind this response: the client must not send another request.
            if !is_http2 && activity.is_body_unread() {
                response
                    .headers_mut()
                    .insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Answer::new(body, handling, is_http2)))
        }
    }
}

/// Copies the host of an HTTP/2 request from its address to the header where handlers look for it,
/// as in HTTP/1.1.
fn name_host(request: &mut Request<Body>) {
    let authority = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(authority) = authority.filter(|_| !request.headers().contains_key(header::HOST)) {
        request.headers_mut().insert(header::HOST, authority);
    }
}

/// Begins TLS. A client that speaks plain HTTP gets an answer that says so.
async fn shake_hands(
    certificates: &Certificates,
    stream: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    let is_http = stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase();
    if is_http {
        answer_without_tls(stream).await?;
        return Err(std::io::Error::new(ErrorKind::InvalidData, "HTTP without TLS"));
    }

    match certificates.accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, stream)) => {
            linger(stream).await;
            Err(error)
        }
    }
}

async fn answer_without_tls(mut stream: TcpStream) -> std::io::Result<()> {
    let detail = "this door speaks TLS: ask it by https://";
    let problem = Problem::new(Code::TlsRequired, detail).into_response();
    let body = axum::body::to_bytes(problem.into_body(), HEAD_BYTES_MAX)
        .await
        .map_err(std::io::Error::other)?;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );

    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    linger(stream).await;

    Ok(())
}

/// Reads what the client still sends, so that it sees the reason.
async fn linger(mut stream: TcpStream) {
    let mut unread = vec![0; 4 * 1024];
    let reading = async {
        stream.shutdown().await?;
        while stream.read(&mut unread).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(LINGER_MAX, reading).await;
}

/// Returns when the server stops.
async fn stopped(mut stopping: watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Whether the error concerns only this connection and not the next one to accept.
fn is_of_one_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

fn refused(door: &'static str, reason: &'static str) {
    metrics::counter!("raingauge_connections_refused_total", "door" => door, "reason" => reason)
        .increment(1);
}

fn expired(door: &'static str, reason: &'static str) {
    metrics::counter!("raingauge_connections_expired_total", "door" => door, "reason" => reason)
        .increment(1);
}

#[cfg(test)]
mod tests;
