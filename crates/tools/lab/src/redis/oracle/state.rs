//! The state of a server: every key of every database with its value and its expiry, and how many
//! there are.

use super::rules::{self, Rule};
use anyhow::{Context, Result};
use raingauge_resp_client::{Address, Connection, Reply};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const DATABASES: usize = 16;
/// What has expired is counted until it is removed: this long at most.
const SWEEP_PATIENCE: Duration = Duration::from_secs(4);
const SWEEP_PAUSE: Duration = Duration::from_millis(20);

pub struct State {
    /// By database and key: the value as text, and the reply to PEXPIRETIME.
    pub keys: BTreeMap<(usize, Vec<u8>), (String, Reply)>,
    /// The lines of `INFO keyspace`, without the mean time to live, which Redis estimates.
    counts: Vec<String>,
}

/// Reads the state of a server.
pub fn of(address: &Address) -> Result<State> {
    let mut connection = Connection::open(address)?;
    let mut keys = BTreeMap::new();
    let mut walked = Vec::new();
    for database in 0..DATABASES {
        connection.done(&[b"SELECT", database.to_string().as_bytes()])?;
        let names = connection.done(&[b"KEYS", b"*"])?;
        let names = names.elements().unwrap_or_default();
        let mut expiring = 0;
        for key in names {
            let key = key.bytes().context("a key is a string")?;
            let value = value(&mut connection, key)?;
            let expiry = connection.done(&[b"PEXPIRETIME", key])?;
            expiring += usize::from(expiry.integer() != Some(-1));
            keys.insert((database, key.to_vec()), (value, expiry));
        }
        if !names.is_empty() {
            walked.push(format!("db{database}:keys={},expires={expiring}", names.len()));
        }
    }

    let until = Instant::now() + SWEEP_PATIENCE;
    let mut counts = read_counts(&mut connection)?;
    while counts != walked && Instant::now() < until {
        std::thread::sleep(SWEEP_PAUSE);
        counts = read_counts(&mut connection)?;
    }
    Ok(State { keys, counts })
}

fn read_counts(connection: &mut Connection) -> Result<Vec<String>> {
    let reply = connection.done(&[b"INFO", b"keyspace"])?;
    let text = String::from_utf8_lossy(reply.bytes().context("INFO is a text")?);
    let counts = text.lines().filter_map(|line| line.split_once(",avg_ttl="));
    Ok(counts.map(|(counts, _)| counts.to_owned()).collect())
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

/// The first key that differs, with what both have, or how many they have.
pub fn difference(expected: &State, actual: &State) -> Option<(Vec<u8>, String, String)> {
    let places = expected.keys.keys().chain(actual.keys.keys());
    let different_key = places.into_iter().find_map(|place| {
        let (left, right) = (expected.keys.get(place), actual.keys.get(place));
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
    });

    different_key.or_else(|| {
        let [left, right] = [expected, actual].map(|state| format!("{:?}", state.counts));
        (left != right).then(|| (b"INFO keyspace".to_vec(), left, right))
    })
}
