//! Deliveries per second to a receiver on this machine, with the ledger on disk, signatures, and
//! results stored: `cargo bench -p raingauge-deliveries`.

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use raingauge_campaigns::schedule::Concurrency;
use raingauge_deliveries::{Deliveries, Deps, Destination, SecretSource, Target};
use raingauge_embedded::{CampaignLedger, LedgerOptions};
use raingauge_memory::Log;
use raingauge_outbound::{Client, Options};
use raingauge_ports::campaigns::{ActionId, Delivery};
use raingauge_ports::clock::SystemClock;
use raingauge_ports::contract::campaigns::commit_to;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

const DELIVERIES: usize = 100_000;
/// Of one commit.
const COMMIT: usize = 5_000;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, SECRET).expect("written");
    let options = LedgerOptions::default();
    let ledger = CampaignLedger::open(&folder.path().join("ledger"), &options).expect("a ledger");
    let ledger = Arc::new(ledger);
    fill(&ledger);

    let received = Arc::new(AtomicUsize::new(0));
    let address = listen(Arc::clone(&received));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");

    runtime.block_on(async {
        let client = Client::new(&Options { allow_private_addresses: true, ..Options::default() });
        let hook = Destination {
            name: "hook".to_owned(),
            target: Target::Http(format!("http://{address}/hook")),
            secret: Some(SecretSource::File(secret)),
            concurrency: Concurrency { min: 16, max: 64 },
            ..Destination::log()
        };
        let (_destinations, destinations) = watch::channel(vec![Arc::new(hook)]);
        let (_stopped, stopped) = watch::channel(Arc::default());

        let began = Instant::now();
        let deliveries = Deliveries::start(Deps {
            outbox: ledger.clone(),
            sender: Arc::new(client.expect("a client")),
            destinations,
            stopped,
            log: Arc::new(Log::default()),
            points: None,
            gone: mpsc::unbounded_channel().0,
            clock: Arc::new(SystemClock),
        });

        while received.load(Ordering::Relaxed) < DELIVERIES {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        deliveries.stop().await;

        let seconds = began.elapsed().as_secs_f64();
        let per_s = DELIVERIES as f64 / seconds;
        println!("{DELIVERIES} deliveries in {seconds:.1} s: {per_s:.0} a second");
    });
}

/// Puts deliveries of half a KiB into the ledger, all of which are due.
fn fill(ledger: &CampaignLedger) {
    let text = "x".repeat(400);
    for first in (0..DELIVERIES).step_by(COMMIT) {
        commit_to(ledger, |commit| {
            commit.deliveries = (first..first + COMMIT)
                .map(|number| {
                    let mut id = [0; 16];
                    id[..8].copy_from_slice(&(number as u64).to_be_bytes());
                    Delivery {
                        action: ActionId(id),
                        campaign: 7,
                        subject: format!("u-{number}"),
                        destination: "hook".to_owned(),
                        due_ms: number as i64,
                        cost: None,
                        body: format!(r#"{{"number":{number},"text":"{text}"}}"#).into_bytes(),
                    }
                })
                .collect();
        });
    }
}

/// Accepts everything, on a thread of its own.
fn listen(received: Arc<AtomicUsize>) -> SocketAddr {
    let (address, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            address.send(listener.local_addr().expect("an address")).expect("it is waited for");

            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let received = Arc::clone(&received);
                tokio::spawn(async move {
                    let accept = |request| accept(Arc::clone(&received), request);
                    let served = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(accept))
                        .await;
                    // A connection ends as the client pleases.
                    drop(served);
                });
            }
        });
    });
    found.recv().expect("it listens")
}

async fn accept(
    received: Arc<AtomicUsize>,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    // What broke off was not received.
    if request.into_body().collect().await.is_ok() {
        received.fetch_add(1, Ordering::Relaxed);
    }
    let mut response = Response::new(Empty::new());
    *response.status_mut() = hyper::StatusCode::NO_CONTENT;
    Ok(response)
}
