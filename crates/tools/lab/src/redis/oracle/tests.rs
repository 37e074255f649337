//! The oracle on real servers: Redis agrees with itself, and not with a server that is wrong.

use super::*;
use crate::redis::server::Redis;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn options(redis: &Redis, against: Address) -> Options {
    Options {
        redis: redis.address(),
        against,
        seed: 1,
        duration: Duration::from_secs(3),
        cases_max: 40,
        without: vec![],
    }
}

#[test]
fn redis_agrees_with_itself() {
    let (Some(left), Some(right)) = (Redis::start(&[]).unwrap(), Redis::start(&[]).unwrap()) else {
        return;
    };
    let address = right.address();
    let mut disturbances = 0;
    // Nothing happens to it, but connections are replaced.
    let mut disturb = |_| {
        disturbances += 1;
        Ok(address.clone())
    };

    let agreed = run(&options(&left, right.address()), Some(&mut disturb)).unwrap();
    assert!(agreed.cases > 1 && agreed.replies > 1_000, "{agreed:?}");
    assert!(disturbances > 0);
}

/// Forwards everything, but replaces a word of commands by another one of the same length.
fn wrong(server: Address, word: &'static [u8], by: &'static [u8]) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::local(listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let (mut back_from, mut back_to) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while let Ok(len @ 1..) = client.read(&mut buffer) {
                    let part = &mut buffer[..len];
                    while let Some(at) = memchr::memmem::find(part, word) {
                        part[at..at + word.len()].copy_from_slice(by);
                    }
                    if server.write_all(part).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_wrong_server_is_found_and_shown_by_a_short_case() {
    let (Some(left), Some(right)) = (Redis::start(&[]).unwrap(), Redis::start(&[]).unwrap()) else {
        return;
    };
    for (word, by) in [(&b"INCRBY\r\n"[..], &b"DECRBY\r\n"[..]), (b"ZPOPMIN", b"ZPOPMAX")] {
        let against = wrong(right.address(), word, by);
        let options = Options { duration: Duration::from_secs(60), ..options(&left, against) };
        let found = run(&options, None).unwrap_err().to_string();
        let name = word.trim_ascii_end();
        assert!(memchr::memmem::find(found.as_bytes(), name).is_some(), "{found}");
        assert!(found.contains("seed") && found.lines().count() < 16, "{found}");
    }
}
