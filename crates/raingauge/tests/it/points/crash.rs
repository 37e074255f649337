//! Kills under a load of awards, transactions and events: the real process dies at random moments,
//! repeatedly, over the same data. Afterwards each key has its entry, once, and the books verify.
//!
//! `RAINGAUGE_CRASH_ROUNDS` and `RAINGAUGE_CRASH_SEED` choose the number of kills and the seed;
//! `scripts/crash points` sets them.

use super::{create, pound, results, verify};
use crate::client::{Client, event, now_s};
use crate::crash::{number, seed};
use crate::server::{Home, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

/// Kills in a run of the suite.
const ROUNDS: u64 = 10;
/// Kills over one data folder; then a new one is begun.
const ROUNDS_PER_HOME: u64 = 50;
/// Kills after which the books are verified.
const ROUNDS_PER_VERIFY: u64 = 5;
const MEMBERS: u32 = 30;
/// Items of one request.
const BATCH_MAX: u64 = 20;

#[test]
fn points_survive_being_killed_at_random_moments() {
    let rounds = number("RAINGAUGE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let mut random = StdRng::seed_from_u64(seed());
    let mut done = 0;
    let mut acknowledged = 0;
    while done < rounds {
        let mut sequence = Sequence::new(&mut random);
        let rounds = ROUNDS_PER_HOME.min(rounds - done);
        sequence.run(rounds, &mut random);
        done += rounds;
        acknowledged += sequence.sent;
    }
    println!("{done} kills, {acknowledged} awards and events");
    assert!(acknowledged > 0, "there was a load");
}

/// An award or an event: its number, its member, its points.
#[derive(Clone, Copy, Debug)]
struct Gift {
    number: u64,
    member: u32,
    points: i64,
}

/// Kills over one data folder.
struct Sequence {
    home: Home,
    random: StdRng,
    sent: u64,
    /// Gifts that may be in the ledger or not, and whether they are events. They are sent again,
    /// before any other ones.
    pending: (Vec<Gift>, bool),
    /// What was acknowledged, by member.
    points: BTreeMap<u32, i64>,
    /// Keys of awards that were acknowledged, with their entries.
    entries: BTreeMap<u64, String>,
    time_s: i64,
}

impl Sequence {
    fn new(random: &mut StdRng) -> Self {
        let sequence = Self {
            home: Home::with(&[("points.cache_bytes", "1048576")]),
            random: StdRng::seed_from_u64(random.random()),
            sent: 0,
            pending: (Vec::new(), false),
            points: BTreeMap::new(),
            entries: BTreeMap::new(),
            time_s: now_s(),
        };
        create(&sequence.home.start(), &pound());
        sequence
    }

    fn run(&mut self, rounds: u64, random: &mut StdRng) {
        for round in 1..=rounds {
            if random.random_bool(0.2) {
                self.kill_while_starting(random);
            }
            let server = self.home.start();
            self.settle(&server);
            self.check(&server);
            self.load_and_kill(server, Duration::from_millis(random.random_range(1..300)));
            if round % ROUNDS_PER_VERIFY == 0 {
                verify(&self.home);
            }
        }

        let server = self.home.start();
        self.settle(&server);
        self.check(&server);
        server.kill();
        verify(&self.home);
    }

    /// A crash in the middle of the recovery from another one.
    fn kill_while_starting(&self, random: &mut StdRng) {
        let data = self.home.data().display().to_string();
        let arguments =
            ["serve", "--data-dir", &data, "--listen", "127.0.0.1:0"].map(str::to_owned);
        let mut command = self.home.command(&arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("it starts");
        std::thread::sleep(Duration::from_millis(random.random_range(0..150)));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// Sends until the server is killed. The moment of the kill is the random part.
    fn load_and_kill(&mut self, server: Server, life: Duration) {
        let client: Client = (*server).clone();
        std::thread::scope(|scope| {
            scope.spawn(|| while self.send(&client) {});
            std::thread::sleep(life);
            server.kill();
        });
    }

    /// Sends what is pending, or new gifts. Answers `false` if the server is gone.
    fn send(&mut self, client: &Client) -> bool {
        if self.pending.0.is_empty() {
            let len = self.random.random_range(1..=BATCH_MAX);
            let gift = |number| Gift {
                number,
                member: self.random.random_range(0..MEMBERS),
                points: self.random.random_range(1..1_000),
            };
            let gifts = (self.sent..self.sent + len).map(gift).collect();
            self.sent += len;
            self.pending = (gifts, self.random.random_bool(0.5));
        }
        if self.pending.1 { self.send_events(client) } else { self.send_awards(client) }
    }

    fn send_events(&mut self, client: &Client) -> bool {
        let event_of = |gift: &Gift| {
            let data = json!({"customer": format!("m-{}", gift.member), "amount": gift.points,
                              "invoice": format!("i-{}", gift.number)});
            event("retail.sale", &format!("e-{}", gift.number), self.time_s, data)
        };
        let lines: String =
            self.pending.0.iter().map(|gift| format!("{}\n", event_of(gift))).collect();
        let headers = [("content-type", "application/x-ndjson")];
        match client.try_send("POST", "/v1/events?wait=awarded", &headers, lines.as_bytes()) {
            // Whether they are awarded or not, they are in the log.
            Ok(answer) if [200, 202].contains(&answer.status) => {
                self.acknowledge(|_| None);
                true
            }
            Ok(answer) if [429, 503].contains(&answer.status) => true,
            Ok(answer) => panic!("{} {}", answer.status, answer.text()),
            Err(_) => false,
        }
    }

    fn send_awards(&mut self, client: &Client) -> bool {
        let awards: Vec<Value> = self.pending.0.iter().map(award_of).collect();
        let body = json!({ "awards": awards }).to_string();
        let headers = [("content-type", "application/json")];
        match client.try_send("POST", "/v1/points/awards", &headers, body.as_bytes()) {
            Ok(answer) if answer.status == 200 => {
                let answer = answer.json();
                let found = answer["results"].as_array().expect("results");
                if found.iter().any(|result| result["error"].is_object()) {
                    // The ledger closed in between: all of them are sent again.
                    let closed = ["ledger_closed", "ledger_busy", "unavailable"];
                    let is_closed = |result: &Value| {
                        result["error"]["code"].as_str().is_none_or(|code| closed.contains(&code))
                    };
                    assert!(found.iter().all(is_closed), "{answer}");
                    return true;
                }
                let entry = |place: usize| found[place]["entry"].as_str().map(str::to_owned);
                self.acknowledge(entry);
                true
            }
            Ok(answer) if [429, 503].contains(&answer.status) => true,
            Ok(answer) => panic!("{} {}", answer.status, answer.text()),
            Err(_) => false,
        }
    }

    /// Notes that all pending gifts are in the ledger, each with its entry where that is known.
    fn acknowledge(&mut self, entry: impl Fn(usize) -> Option<String>) {
        for (place, gift) in std::mem::take(&mut self.pending.0).into_iter().enumerate() {
            *self.points.entry(gift.member).or_insert(0) += gift.points;
            if let Some(entry) = entry(place) {
                self.entries.insert(gift.number, entry);
            }
        }
    }

    /// Sends again what may not have arrived, and waits until all events are awarded.
    fn settle(&mut self, server: &Client) {
        while !self.pending.0.is_empty() {
            assert!(self.send(server), "the server is there");
        }
        let none = event("other", &format!("mark-{}", self.sent), self.time_s, json!({}));
        server.lines("/v1/events?wait=awarded", &[none]).expect(200);
    }

    /// Every member has what was acknowledged, and keys have the entries that were answered.
    fn check(&mut self, server: &Client) {
        let members: Vec<Value> = (0..MEMBERS)
            .map(|member| json!({"programme": "pound", "member": format!("m-{member}")}))
            .collect();
        let found = results(server, "/v1/points/balances", "members", &members);
        for (member, found) in (0..MEMBERS).zip(&found) {
            let expected = self.points.get(&member).copied().unwrap_or(0);
            assert_eq!(found["available"], expected, "m-{member}: {found}");
        }

        if let Some((number, entry)) = self.entries.iter().next_back() {
            let path = format!("/v1/points/entries?programme=pound&key=k-{number}");
            let entries = server.get(&path).expect(200);
            assert_eq!(entries["entries"][0]["entry"], entry.as_str(), "{entries}");
        }
    }
}

fn award_of(gift: &Gift) -> Value {
    json!({"programme": "pound", "member": format!("m-{}", gift.member), "points": gift.points,
           "key": format!("k-{}", gift.number)})
}
