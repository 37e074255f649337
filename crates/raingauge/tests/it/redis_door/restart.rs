//! What was answered is there after the process ended, however it ended.

use super::{Client, home, ok, words};
use crate::server::{Home, Server};
use raingauge_resp_client::Reply;

fn written(client: &mut Client) {
    let commands: Vec<Vec<String>> = [
        "SET text value",
        "HSET hash a 1 b 2",
        "RPUSH list x y z",
        "SADD set m n",
        "ZADD sorted 1 a 2 b",
        "SET gone soon PX 1",
        "SET kept long EX 1000",
    ]
    .into_iter()
    .map(words)
    .collect();
    assert!(client.pipeline(&commands).iter().all(|reply| reply.error().is_none()));
    client.call(&["SELECT", "3"]);
    assert_eq!(client.call(&["SET", "text", "third"]), ok());
    client.call(&["SELECT", "0"]);
}

fn read(server: &Server) {
    let mut client = Client::new(server);
    let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
    assert_eq!(client.call(&["GET", "text"]), bulk("value"));
    assert_eq!(client.call(&["HGET", "hash", "b"]), bulk("2"));
    assert_eq!(
        client.call(&["LRANGE", "list", "0", "-1"]),
        Reply::Array(["x", "y", "z"].map(bulk).to_vec())
    );
    assert_eq!(client.integer(&["SCARD", "set"]), 2);
    assert_eq!(client.integer(&["ZRANK", "sorted", "b"]), 1);
    assert_eq!(client.integer(&["EXISTS", "gone"]), 0);
    assert!((1..=1_000).contains(&client.integer(&["TTL", "kept"])));
    client.call(&["SELECT", "3"]);
    assert_eq!(client.call(&["GET", "text"]), bulk("third"));
}

#[test]
fn objects_are_there_after_a_kill_and_after_a_clean_end() {
    let home = home();
    let server = home.start();
    written(&mut Client::new(&server));
    server.kill();

    let server = home.start();
    read(&server);
    let (status, _) = server.terminate();
    assert!(status.success());
    read(&home.start());
}

/// A pipeline of many writes in flight is either answered or not, but what was answered is there.
#[test]
fn what_a_client_was_answered_survives_a_kill() {
    let home = home();
    let server = home.start();
    let mut client = Client::new(&server);
    let sets: Vec<Vec<String>> = (0..5_000).map(|n| words(&format!("SET key:{n} {n}"))).collect();
    assert!(client.pipeline(&sets).iter().all(|reply| *reply == ok()));
    server.kill();

    let server = home.start();
    let mut client = Client::new(&server);
    let gets: Vec<Vec<String>> = (0..5_000).map(|n| words(&format!("GET key:{n}"))).collect();
    let found = client.pipeline(&gets);
    let is_there = |(n, reply): (usize, &Reply)| *reply == Reply::Bulk(n.to_string().into_bytes());
    assert!(found.iter().enumerate().all(is_there));
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(5_000));
}

#[test]
fn a_server_without_the_door_opens_no_objects() {
    let home = Home::new();
    let server = home.start();
    assert!(!home.data().join("objects").exists());
    let (status, _) = server.terminate();
    assert!(status.success());
}

/// A client that holds its connection open does not hold up the end of the process.
#[test]
fn the_end_of_the_process_closes_connections() {
    let home = home();
    let server = home.start();
    let mut idle = Client::new(&server);
    let mut waiting = Client::new(&server);
    idle.call(&["PING"]);
    waiting.call(&["SUBSCRIBE", "news"]);
    let (status, _) = server.terminate();
    assert!(status.success());
    assert!(!home.errors().contains("did not end in time"), "{}", home.errors());
}
