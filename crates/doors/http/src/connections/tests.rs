use super::*;
use axum::http::StatusCode;
use std::io::{Read, Write};
use std::net::TcpStream as Client;

/// More than the buffers of a connection hold.
const BODY_LEN: usize = 16 << 20;
/// Longer than a connection lingers, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A door that refuses every request without a look at its body.
async fn refusing() -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(async || StatusCode::PAYLOAD_TOO_LARGE);
    let door = Door {
        name: "test",
        listener,
        places: Places::new("test", 10, 10),
        limits: Limits { head: PATIENCE, idle: PATIENCE, write: PATIENCE },
        certificates: None,
        reserve: router.clone(),
        router,
    };

    let (stop, stopping) = watch::channel(false);
    (address, stop, door.open(&stopping))
}

/// Announces a body, and returns the open connection and the response.
fn announce(address: SocketAddr) -> (Client, String) {
    let mut client = Client::connect(address).expect("a connection");
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {BODY_LEN}\r\n\r\n");
    client.write_all(head.as_bytes()).expect("sent");

    let mut response = String::new();
    client.read_to_string(&mut response).expect("a response");
    (client, response)
}

/// Many clients read the response only after they have sent the whole body.
#[tokio::test]
async fn a_refused_body_is_read_on() {
    let (address, _stop, _open) = refusing().await;
    let client = move || {
        let (mut client, response) = announce(address);
        assert!(response.starts_with("HTTP/1.1 413"), "{response}");
        assert!(response.contains("connection: close\r\n"), "{response}");
        client.write_all(&vec![b'x'; BODY_LEN]).expect("the server reads on");
    };
    tokio::task::spawn_blocking(client).await.expect("a client without errors");
}

#[tokio::test]
async fn a_client_that_neither_sends_nor_closes_is_left() {
    let (address, stop, open) = refusing().await;
    let client = tokio::task::spawn_blocking(move || announce(address)).await.expect("a response");

    stop.send(true).expect("an open door");
    tokio::time::timeout(PATIENCE, open).await.expect("an end").expect("no panic");
    drop(client);
}
