//! Noise on the wire: whatever a client sends, it gets an error or is disconnected, and the others
//! are served.
//!
//! `RAINGAUGE_NOISE_ROUNDS` makes more of it, `RAINGAUGE_NOISE_SEED` replays it.

use super::oracle::resp_address;
use super::{Client, home, ok};
use raingauge_resp_client::command;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const USUAL_ROUNDS: u64 = 300;
/// Longest wait for the end of a connection whose client sends nothing more.
const END_MAX: Duration = Duration::from_secs(30);
/// Most memory that the noise may make the server take.
const GROWTH_KB_MAX: u64 = 200_000;

fn from_environment(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// Commands with damages, or bytes that never were a command.
fn noise(random: &mut StdRng) -> Vec<u8> {
    let mut bytes = Vec::new();
    if random.random_bool(0.2) {
        bytes.resize(random.random_range(1..5_000), 0);
        random.fill_bytes(&mut bytes);
        return bytes;
    }

    for _ in 0..random.random_range(1..20) {
        let all: [&[&[u8]]; 6] = [
            &[b"SET", b"key", b"value"],
            &[b"MGET", b"a", b"b", b"c"],
            &[b"ZADD", b"board", b"1", b"m"],
            &[b"MULTI"],
            &[b"EXEC"],
            &[b"HELLO", b"3"],
        ];
        command(&mut bytes, all[random.random_range(0..all.len())]);
    }
    if random.random_bool(0.1) {
        bytes.extend_from_slice(b"SET inline \"quo ted\" 'x'\r\nGET inline\r\n");
    }

    let announced =
        ["*1073741825\r\n", "*-7\r\n", "$99999999999\r\n", "*1\r\n$-1\r\n", "*2147483648\r\n"];
    for _ in 0..random.random_range(1..6) {
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes[place] = random.random(),
            1 => bytes.truncate(place.max(1)),
            2 => drop(bytes.remove(place)),
            3 => bytes.insert(place, b"*$\r\n0-:"[random.random_range(0..7)]),
            _ => {
                let words = announced[random.random_range(0..announced.len())];
                bytes.splice(place..place, words.bytes());
            }
        }
        if bytes.is_empty() {
            bytes.push(b'*');
        }
    }
    bytes
}

fn resident_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn noise_is_answered_or_ends_a_connection_and_harms_nobody() {
    let home = home();
    let server = home.start();
    let address = resp_address(&server);
    let seed = from_environment("RAINGAUGE_NOISE_SEED", 7);
    let mut random = StdRng::seed_from_u64(seed);
    let mut other = Client::new(&server);
    assert_eq!(other.call(&["SET", "kept", "1"]), ok());
    let before_kb = resident_kb(server.pid());

    for round in 0..from_environment("RAINGAUGE_NOISE_ROUNDS", USUAL_ROUNDS) {
        let mut stream = TcpStream::connect((address.host.as_str(), address.port)).expect("a port");
        stream.set_read_timeout(Some(END_MAX)).expect("a timeout");
        let bytes = noise(&mut random);

        // The server may close the connection before it has read everything.
        let middle = random.random_range(0..=bytes.len());
        let _ = stream.write_all(&bytes[..middle]);
        let _ = stream.write_all(&bytes[middle..]);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let is_late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_late, "seed {seed}, round {round}: {}", bytes.escape_ascii());

        assert_eq!(other.integer(&["EXISTS", "kept"]), 1, "seed {seed}, round {round}");
    }

    let grown_kb = resident_kb(server.pid()).saturating_sub(before_kb);
    assert!(grown_kb < GROWTH_KB_MAX, "{grown_kb} KB more");
}
