//! A server that answers as a test says, and notes the requests.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use raingauge_ports::contract::campaigns::sender::{ReceivedRequest, Reply};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    replies: Mutex<VecDeque<Reply>>,
    received: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
}

/// Closes the connection without an answer.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("closed")
    }
}

impl std::error::Error for Closed {}

impl Server {
    /// Serves in the clear.
    pub async fn start(replies: Vec<Reply>) -> Self {
        Self::listen(replies, None).await
    }

    pub async fn start_tls(replies: Vec<Reply>, acceptor: TlsAcceptor) -> Self {
        Self::listen(replies, Some(acceptor)).await
    }

    async fn listen(replies: Vec<Reply>, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State { replies: Mutex::new(replies.into()), ..State::default() });
        let own = Arc::clone(&state);

        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let state = Arc::clone(&own);
                let acceptor = acceptor.clone();
                state.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let answer = |request| answer(Arc::clone(&state), request);
                    let service = service_fn(answer);
                    let http = http1::Builder::new();
                    // What becomes of a connection is the business of the client.
                    let _ = match acceptor {
                        None => http.serve_connection(TokioIo::new(stream), service).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            http.serve_connection(TokioIo::new(stream), service).await
                        }
                    };
                });
            }
        });

        Self { address, state }
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.received.lock().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Closed> {
    let (head, body) = request.into_parts();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("a text").to_owned()));

    let received = ReceivedRequest {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body: body.collect().await.map_err(|_| Closed)?.to_bytes().to_vec(),
    };
    state.received.lock().push(received);

    let reply = state.replies.lock().pop_front().expect("a reply");
    match reply {
        Reply::Close => Err(Closed),
        Reply::Silence => std::future::pending().await,
        Reply::Answer(response) => {
            let status = StatusCode::from_u16(response.status).expect("a status");
            let mut built = Response::builder().status(status);
            for (name, value) in response.headers {
                built = built.header(name, value);
            }
            Ok(built.body(Full::new(response.body.into())).expect("a response"))
        }
    }
}
