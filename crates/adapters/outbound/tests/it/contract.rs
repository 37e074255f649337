//! The contract of senders, and how connections are used.

use crate::server::Server;
use raingauge_outbound::{Client, Options};
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::contract::campaigns::sender::{ReceivedRequest, Reply, Stage, suite};
use std::time::Duration;

struct LocalStage {
    client: Client,
    server: Server,
}

impl Stage for LocalStage {
    fn sender(&self) -> &dyn Sender {
        &self.client
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    fn received(&self) -> Vec<ReceivedRequest> {
        self.server.received()
    }
}

#[tokio::test]
async fn the_contract_is_kept() {
    suite(async |replies| LocalStage {
        client: Client::new(&Options::default()).expect("a client"),
        server: Server::start(replies).await,
    })
    .await;
}

#[tokio::test]
async fn connections_are_used_again_and_closed_ones_replaced() {
    let client = Client::new(&Options::default()).expect("a client");
    let closing = Response {
        headers: vec![("connection".to_owned(), "close".to_owned())],
        ..Response::of_status(200)
    };
    let mut replies = vec![Reply::Answer(Response::of_status(200)); 20];
    replies.insert(10, Reply::Answer(closing));
    let server = Server::start(replies).await;

    for _ in 0..21 {
        let url = format!("http://{}/", server.address);
        let request = Request::get(url, Duration::from_secs(5), 100);
        let request = Request { allow_private: true, ..request };
        assert_eq!(client.send(&request).await.expect("a response").status, 200);
        // The connection returns to the pool once its task has run.
        tokio::task::yield_now().await;
    }
    assert!(server.connections() < 10, "{} connections", server.connections());

    let agent = &server.received()[0].headers;
    assert!(
        agent.iter().any(|(name, value)| name == "user-agent" && value.starts_with("raingauge/"))
    );
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    let client = Client::new(&Options::default()).expect("a client");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);

    let request = Request::get(format!("http://{address}/secret"), Duration::from_secs(5), 100);
    let error = client.send(&Request { allow_private: true, ..request }).await;
    let Err(SendError::Unreachable { host, why }) = error else { panic!("{error:?}") };
    assert_eq!(host, "127.0.0.1");
    assert!(!why.contains("secret"), "{why}");
}
