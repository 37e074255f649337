//! Connections of misbehaving clients: silent, slow or many, none of them keeps the server from
//! answering others.

use crate::client::Client;
use crate::grpc::{address_of, raw};
use crate::server::{Home, PATIENCE, Server, until};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use tokio::net::TcpSocket;
use tonic::codegen::http::Request;

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
const BATCH: &str = "/raingauge.v1.Counts/Batch";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// A connection that sends some bytes and then nothing.
fn silent(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.write_all(bytes).expect("the bytes can be sent");
    stream
}

/// Reads until the server has closed the connection, which it does on its own.
#[track_caller]
pub fn read_to_end(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server has not closed the connection: {error}"),
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads the head of one answer; the connection stays open.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn expired(server: &Server, reason: &str) -> f64 {
    server.metric(&format!(
        "raingauge_connections_expired_total{{door=\"http\",reason=\"{reason}\"}}"
    ))
}

#[test]
fn silence_and_a_slow_head_end_a_connection() {
    let server = Home::with(&[("server.head_timeout_s", "1")]).start();
    let silent_at_once = silent(&server.address, b"");
    let slow_head = silent(&server.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: ");
    let mut slow_second_head = silent(&server.address, HEALTH);
    assert!(read_head(&mut slow_second_head).starts_with("HTTP/1.1 200"));
    slow_second_head.write_all(b"G").expect("the connection is open");

    assert_eq!(read_to_end(silent_at_once), "");
    assert_eq!(read_to_end(slow_head), "");
    assert_eq!(read_to_end(slow_second_head), "live\n");
    assert_eq!(expired(&server, "head"), 3.0);
}

/// A head that arrives byte by byte has no more time than one that stops.
#[test]
fn a_head_that_drips_ends_a_connection() {
    let server = Home::with(&[("server.head_timeout_s", "1")]).start();
    let mut stream = silent(&server.address, b"GET /healthz HTTP/1.1\r\nx: ");
    until("the server closes the connection", || {
        let closed = stream.write_all(b"x").is_err();
        closed.then_some(())
    });
    assert_eq!(expired(&server, "head"), 1.0);
}

#[test]
fn a_connection_without_requests_is_closed() {
    let home = Home::with(&[("server.idle_timeout_s", "1"), ("server.grpc_listen", "127.0.0.1:0")]);
    let server = home.start();
    let http1 = silent(&server.address, HEALTH);
    assert!(read_to_end(http1).ends_with("live\n"));
    assert_eq!(expired(&server, "idle"), 1.0);

    let grpc = address_of(&server).expect("the address is in the log");
    wait(async {
        let stream = tokio::net::TcpStream::connect(&grpc).await.expect("the door is open");
        let (_sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        connection.await.expect("an HTTP/2 connection gets a GOAWAY before it is closed");
    });
    // The connection of the last question is as idle as that one was.
    let client = Client::new(&server.address);
    let series = "raingauge_connections_expired_total{door=\"grpc\",reason=\"idle\"}";
    assert_eq!(client.metric(series), 1.0);
}

#[test]
fn a_slow_body_is_given_up_by_the_api_and_by_the_pages() {
    let server = Home::with(&[("server.request_timeout_s", "1")]).start();
    let origin = format!("http://{}", server.address);
    let head = |path: &str, kind: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\norigin: {origin}\r\ncontent-type: {kind}\r\ncontent-length: 9000\r\n\r\na",
            server.address
        )
    };

    for (path, kind) in
        [("/v1/events", "application/json"), ("/sign-in", "application/x-www-form-urlencoded")]
    {
        let answer = read_to_end(silent(&server.address, head(path, kind).as_bytes()));
        assert!(answer.starts_with("HTTP/1.1 504"), "{path}: {answer}");
    }
}

/// A client that requests much and reads nothing is disconnected, over either version of HTTP.
#[test]
fn a_slow_reader_is_left() {
    let server = Home::with(&[("server.write_timeout_s", "1")]).start();
    let asked = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
    let reader = silent(&server.address, b"");
    let sending = reader.try_clone().expect("a second handle");

    // The requests themselves do not fit either: the server reads no more of them when it cannot
    // answer.
    let sender = std::thread::spawn(move || (&sending).write_all(&asked).is_ok());
    until("the server leaves", || (expired(&server, "write") == 1.0).then_some(()));

    let _ = read_to_end(reader);
    let _ = sender.join();

    wait(async {
        let stream =
            tokio::net::TcpStream::connect(&server.address).await.expect("the door is open");
        let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let request = Request::get(format!("http://{}/openapi.json", server.address))
            .body(())
            .expect("a request");
        let (response, _) =
            sender.ready().await.expect("ready").send_request(request, true).expect("sent");

        // The answer is larger than the window, which is never opened again.
        let _body = response.await.expect("an answer").into_body();
        let _ = connection.await;
    });
    assert_eq!(expired(&server, "write"), 2.0);
}

/// Silent clients hold 4 of 4 connections, and a hundred more try to connect.
#[test]
fn health_is_answered_while_every_connection_is_taken() {
    let home =
        Home::with(&[("server.connections_max", "4"), ("server.grpc_listen", "127.0.0.1:0")]);
    let server = home.start();
    let grpc = address_of(&server).expect("the address is in the log");
    let mut held: Vec<TcpStream> = (0..4).map(|_| silent(&server.address, b"")).collect();

    held.extend((0..100).map(|_| silent(&server.address, b"GET /")));

    for path in ["/healthz", "/readyz"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("connection"), "close");
    }

    let refused = server.get("/v1/counters");
    refused.expect_problem(503, "connections_full");
    assert_eq!(refused.header("retry-after"), "1");

    // The other door has its own places and its own reserve.
    wait(async {
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(raw::connect(&grpc).await);
        }

        let mut batch = raw::begin(&held[0], &grpc, BATCH, &[]).await;
        batch.stream.send_data(raw::framed(b"").into(), true).expect("sent");
        assert_eq!(batch.answer().await.header("grpc-status"), "0");

        let check = raw::call(&grpc, HEALTH_CHECK, &[], &raw::framed(b"")).await;
        assert_eq!(check.header("grpc-status"), "0");

        let refused = raw::call(&grpc, BATCH, &[], &raw::framed(b"")).await;
        assert_eq!(
            (refused.header("grpc-status"), refused.header("raingauge-code")),
            ("14", "connections_full")
        );
    });

    drop(held);
    until("there is a place again", || (server.get("/v1/counters").status == 200).then_some(()));

    let refused = |reason| {
        format!("raingauge_connections_refused_total{{door=\"http\",reason=\"{reason}\"}}")
    };
    assert!(server.metric(&refused("full")) >= 103.0);
    assert!(server.metric(&refused("reserve")) >= 60.0);
}

#[test]
fn one_address_does_not_take_the_connections_of_others() {
    let server = Home::with(&[("server.connections_per_address_max", "3")]).start();
    let held: Vec<TcpStream> = (0..3).map(|_| silent(&server.address, b"")).collect();
    server.get("/v1/counters").expect_problem(503, "connections_full");
    assert_eq!(server.get("/healthz").status, 200);
    wait(async {
        let elsewhere = TcpSocket::new_v4().expect("a socket");
        elsewhere
            .bind("127.0.0.2:0".parse().expect("an address"))
            .expect("all of 127.0.0.0/8 is this machine");

        let address = server.address.parse().expect("an address");
        let stream = elsewhere
            .connect(address)
            .await
            .expect("the door is open")
            .into_std()
            .expect("a socket");

        stream.set_nonblocking(false).expect("a socket");
        let mut stream = stream;
        stream.write_all(b"GET /v1/counters HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").expect("sent");
        assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
    });
    drop(held);
    until("there is a place again", || (server.get("/v1/counters").status == 200).then_some(()));
}

/// Without file descriptors the door waits for some, and accepts connections again on its own.
#[test]
fn a_door_survives_that_the_system_gives_no_connections() {
    let home = Home::new();
    let server = home.start();
    let limit = |files: &str| {
        let set = Command::new("prlimit")
            .args(["--pid", &server.pid().to_string(), &format!("--nofile={files}")])
            .status();
        assert!(set.expect("prlimit is there").success());
    };

    limit("8:");
    let knocking = silent(&server.address, HEALTH);
    until("the server says so", || {
        server.errors().contains("gives no more connections").then_some(())
    });
    limit("4096:");

    let mut knocking = knocking;
    assert!(read_head(&mut knocking).starts_with("HTTP/1.1 200"));
    assert!(
        server.metric("raingauge_connections_refused_total{door=\"http\",reason=\"accept\"}")
            >= 1.0
    );
}

/// Requests that follow each other without a pause, or wait for each other, share a connection.
#[test]
fn a_connection_serves_many_requests() {
    let server = Home::with(&[("server.head_timeout_s", "1")]).start();
    let mut stream = silent(&server.address, &HEALTH.repeat(50));
    for _ in 0..50 {
        assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
        stream.read_exact(&mut [0; 5]).expect("the body");
    }
    // Longer than a head may take: between requests another limit holds.
    let other = silent(&server.address, b"G");
    assert_eq!(read_to_end(other), "");
    stream.write_all(HEALTH).expect("the connection is open");
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let waited = runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await });
    waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain"))
}
