//! Histories on a real server: Redis passes, and a server that answers from yesterday is caught.

use super::*;
use crate::redis::server::Redis;
use raingauge_resp_client::{Address, Connection, command};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

fn options(prefix: &str) -> Options {
    Options { clients: 6, keys: 2, operations: 150, seed: 1, prefix: prefix.to_owned() }
}

#[test]
fn a_right_server_has_an_order_even_if_connections_break() {
    let Some(redis) = Redis::start(&[]).unwrap() else {
        return;
    };
    let address = redis.address();
    let kills = |stop: &std::sync::atomic::AtomicBool| {
        let mut connection = Connection::open(&address)?;
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            connection.done(&[b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"yes"])?;
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        Ok(())
    };

    let events = record(&options("right"), &|| address.clone(), kills).unwrap();
    assert_eq!(check(&events), Ok(()));
    assert!(events.len() >= 900);
}

/// Answers GET with what it answered last, for some of the requests: a cache that nobody clears.
fn stale(server: Address) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::local(listener.local_addr().unwrap().port());
    let cache: Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>> = Arc::default();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let cache = cache.clone();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                let mut turn = 0;
                while let Ok(len @ 1..) = client.read(&mut buffer) {
                    let asked = buffer[..len].to_vec();
                    turn += 1;
                    let is_read = asked.starts_with(b"*2\r\n$3\r\nGET");
                    let known = cache.lock().unwrap().get(&asked).cloned();
                    let answer = match known.filter(|_| is_read && turn % 3 == 0) {
                        Some(known) => known,
                        None => {
                            server.write_all(&asked).unwrap();
                            let len = server.read(&mut buffer).unwrap();
                            buffer[..len].to_vec()
                        }
                    };
                    if is_read {
                        cache.lock().unwrap().insert(asked, answer.clone());
                    }
                    if client.write_all(&answer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_server_with_stale_reads_is_caught() {
    let Some(redis) = Redis::start(&[]).unwrap() else {
        return;
    };
    let address = stale(redis.address());
    let events = record(&options("stale"), &|| address.clone(), |_| Ok(())).unwrap();
    let violation = check(&events).unwrap_err();
    assert!(violation.explained < violation.events.len());
}

#[test]
fn commands_of_a_history_have_the_expected_form() {
    // The stale server above recognises reads by their bytes.
    let mut bytes = Vec::new();
    command(&mut bytes, &[b"GET", b"k"]);
    assert!(bytes.starts_with(b"*2\r\n$3\r\nGET"));
}
