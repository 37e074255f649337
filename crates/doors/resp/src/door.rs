//! The listener: accepts connections, bounds their number, and ends them when the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use raingauge_app::socket;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::client::Listed;
use crate::connection::Connection;
use crate::ending::Ending;
use crate::limits::RESP_END_MAX;
use crate::server::{Deps, Server};
use crate::socket::State;

/// What a client reads that finds no place.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";
/// How long the door waits after the system refused a connection, for example for want of files.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// The door for clients of Redis.
pub struct Door;

impl Door {
    /// Serves the clients that connect to a listener. The task ends when all connections are
    /// closed after `stopping` turned true: idle ones at once, others when their commands are
    /// answered.
    pub fn serve(
        listener: TcpListener,
        deps: Deps,
        mut stopping: watch::Receiver<bool>,
    ) -> JoinHandle<()> {
        let server = Arc::new(Server::new(deps));

        tokio::spawn(async move {
            let mut connections = JoinSet::new();

            loop {
                tokio::select! {
                    biased;
                    () = stopped(&mut stopping) => break,
                    Some(_) = connections.join_next(), if !connections.is_empty() => {}
                    accepted = listener.accept() => match accepted {
                        Ok((stream, address)) => {
                            accept(&server, stream, address, &stopping, &mut connections);
                        }
                        Err(error) => {
                            tracing::warn!(%error, "a connection of a Redis client was not accepted");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    },
                }
            }

            drop(listener);
            while connections.join_next().await.is_some() {}
        })
    }
}

/// Returns when the server stops, or when nobody is left who could stop it.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}

fn accept(
    server: &Arc<Server>,
    stream: TcpStream,
    address: SocketAddr,
    stopping: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    // Among those that are gone may be one that waits to pop an element, which would be lost.
    socket::set_options(&stream);

    if server.clients.len() >= server.parameters.clients_max() {
        server.totals.refused_connections.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("raingauge_resp_refused_total").increment(1);
        connections.spawn(refuse(stream));
        return;
    }

    let local = stream.local_addr().unwrap_or(server.address);
    let listed = server.clients.enter(address, local, server.clock.now_ms());
    connections.spawn(serve(Arc::clone(server), listed, stream, stopping.clone()));
}

async fn refuse(mut stream: TcpStream) {
    let _ = stream.write_all(FULL).await;
}

/// Serves one client.
async fn serve(
    server: Arc<Server>,
    listed: Listed,
    stream: TcpStream,
    mut stopping: watch::Receiver<bool>,
) {
    metrics::gauge!("raingauge_resp_connections").increment(1.0);
    let state = Arc::new(State::default());
    let client = Arc::clone(&listed.client);
    let mut connection = Connection::new(server, Arc::clone(&client), stream, Arc::clone(&state));

    let ending = {
        let run = connection.run();
        tokio::pin!(run);

        tokio::select! {
            biased;
            ending = &mut run => ending,
            () = client.killed() => Ending::Killed,
            () = stopped(&mut stopping) => {
                state.is_ending.store(true, Ordering::Release);
                if state.is_busy.load(Ordering::Acquire) {
                    tokio::time::timeout(RESP_END_MAX, run).await.unwrap_or(Ending::Stopping)
                } else {
                    Ending::Stopping
                }
            }
        }
    };

    drop(connection);
    metrics::gauge!("raingauge_resp_connections").decrement(1.0);
    metrics::counter!("raingauge_resp_closed_total", "reason" => ending.name()).increment(1);
    tracing::debug!(client = client.id, reason = ending.name(), "a Redis client was disconnected");
}
