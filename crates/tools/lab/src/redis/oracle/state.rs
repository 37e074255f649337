//! The state of a server: every key of every database with its value and its expiry.

use super::rules::{self, Rule};
use anyhow::{Context, Result};
use raingauge_resp_client::{Address, Connection, Reply};
use std::collections::BTreeMap;

const DATABASES: usize = 16;

/// By database and key: the value as text, and the reply to PEXPIRETIME.
pub type State = BTreeMap<(usize, Vec<u8>), (String, Reply)>;

/// Reads the state of a server.
pub fn of(address: &Address) -> Result<State> {
    let mut connection = Connection::open(address)?;
    let mut state = State::new();
    for database in 0..DATABASES {
        connection.done(&[b"SELECT", database.to_string().as_bytes()])?;
        let keys = connection.done(&[b"KEYS", b"*"])?;
        for key in keys.elements().unwrap_or_default() {
            let key = key.bytes().context("a key is a string")?;
            let value = value(&mut connection, key)?;
            let expiry = connection.done(&[b"PEXPIRETIME", key])?;
            state.insert((database, key.to_vec()), (value, expiry));
        }
    }
    Ok(state)
}

fn value(connection: &mut Connection, key: &[u8]) -> Result<String> {
    let kind = connection.done(&[b"TYPE", key])?;
    let kind = kind.bytes().context("a type is a string")?.to_vec();
    let (words, width): (Vec<&[u8]>, usize) = match kind.as_slice() {
        b"string" => (vec![b"GET", key], 0),
        b"hash" => (vec![b"HGETALL", key], 2),
        b"set" => (vec![b"SMEMBERS", key], 1),
        b"list" => (vec![b"LRANGE", key, b"0", b"-1"], 0),
        b"zset" => (vec![b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], 0),
        // It expired between the two commands.
        _ => return Ok("none".to_owned()),
    };

    let reply = connection.done(&words)?;
    let text = match width {
        0 if kind == b"zset" => scores(&reply),
        0 => format!("{reply:?}"),
        width => format!("{:?}", rules::sorted(&reply, width)),
    };
    Ok(format!("{} {text}", String::from_utf8_lossy(&kind)))
}

/// Members and scores, which are printed the same way whatever the server does.
fn scores(reply: &Reply) -> String {
    let pairs = reply.elements().unwrap_or_default().chunks(2).map(|pair| {
        let score = pair.get(1).and_then(Reply::bytes).map(String::from_utf8_lossy);
        // A zero has no sign here.
        let number = score.and_then(|text| text.parse().ok()).map(|number: f64| number + 0.0);
        format!("{:?}={number:?}", pair[0])
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// The first key that differs, with what both have.
pub fn difference(expected: &State, actual: &State) -> Option<(Vec<u8>, String, String)> {
    let places = expected.keys().chain(actual.keys());
    places.into_iter().find_map(|place| {
        let (left, right) = (expected.get(place), actual.get(place));
        let is_same = match (left, right) {
            (Some((left, left_expiry)), Some((right, right_expiry))) => {
                left == right && rules::is_same(Rule::Milliseconds, left_expiry, right_expiry)
            }
            _ => false,
        };

        (!is_same).then(|| {
            let name = format!("{}:{}", place.0, place.1.escape_ascii());
            (name.into_bytes(), format!("{left:?}"), format!("{right:?}"))
        })
    })
}
