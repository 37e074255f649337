//! Requests that would lead inside.

use crate::server::Server;
use raingauge_outbound::{Client, Options, Resolver};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::contract::campaigns::sender::Reply;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Names of a test, each with its addresses; counts the look-ups.
struct Names {
    addresses: Vec<(&'static str, Vec<IpAddr>)>,
    calls: AtomicUsize,
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let found = self.addresses.iter().find(|(name, _)| *name == host);
        let found = found.map(|(_, addresses)| addresses.clone());
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn client(addresses: Vec<(&'static str, Vec<IpAddr>)>) -> (Client, Arc<Names>) {
    let names = Arc::new(Names { addresses, calls: AtomicUsize::new(0) });
    let options = Options { resolver: names.clone(), ..Options::default() };
    (Client::new(&options).expect("a client"), names)
}

fn request(url: String) -> Request {
    Request::get(url, Duration::from_secs(5), 100)
}

#[tokio::test]
async fn addresses_of_this_machine_and_its_network_are_refused() {
    let client = Client::new(&Options::default()).expect("a client");
    let server = Server::start(Vec::new()).await;
    let port = server.address.port();

    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "[::]",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        // Other ways to write 127.0.0.1, which the system's resolver reads.
        "2130706433",
        "0x7f000001",
        "127.1",
    ];

    for host in hosts {
        let error = client.send(&request(format!("http://{host}:{port}/"))).await;
        assert!(matches!(error, Err(SendError::Private { .. })), "{host}: {error:?}");
    }

    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let (client, names) = client(vec![("inside.example", vec![HERE]), ("empty.example", vec![])]);
    let server = Server::start(Vec::new()).await;
    let port = server.address.port();

    let error = client.send(&request(format!("http://inside.example:{port}/"))).await;
    let expected =
        SendError::Private { host: "inside.example".to_owned(), address: "127.0.0.1".to_owned() };
    assert_eq!(error, Err(expected));
    for name in ["empty.example", "unknown.example"] {
        let error = client.send(&request(format!("http://{name}:{port}/"))).await;
        assert!(matches!(error, Err(SendError::Unreachable { .. })), "{error:?}");
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(names.calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_used() {
    let (client, names) = client(vec![("sink.example", vec![HERE])]);
    let server = Server::start(vec![Reply::Answer(Response::of_status(200))]).await;
    let url = format!("http://sink.example:{}/", server.address.port());

    let allowed = Request { allow_private: true, ..request(url.clone()) };
    assert_eq!(client.send(&allowed).await.expect("a response").status, 200);
    assert_eq!(names.calls.load(Ordering::Relaxed), 1, "one look-up for check and connection");

    // A connection of a request that may lead inside is not used by one that may not.
    let error = client.send(&request(url)).await;
    assert!(matches!(error, Err(SendError::Private { .. })), "{error:?}");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_redirect_inside_is_an_answer_like_others() {
    let location = vec![("location".to_owned(), "http://169.254.169.254/".to_owned())];
    let redirect = Response { headers: location, ..Response::of_status(302) };
    let server = Server::start(vec![Reply::Answer(redirect)]).await;
    let client = Client::new(&Options::default()).expect("a client");

    let allowed = request(format!("http://{}/", server.address));
    let response = client.send(&Request { allow_private: true, ..allowed }).await;
    assert_eq!(response.expect("a response").status, 302);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_setting_allows_private_addresses() {
    let server = Server::start(vec![Reply::Answer(Response::of_status(200))]).await;
    let options = Options { allow_private_addresses: true, ..Options::default() };
    let client = Client::new(&options).expect("a client");
    let response = client.send(&request(format!("http://{}/", server.address))).await;
    assert_eq!(response.expect("a response").status, 200);
}
