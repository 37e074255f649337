//! Processes that end at any call of an engine, over events and commands in any order.
//!
//! The oracle knows no wallets: it lists what was asked for, and reads the journal as a plain list.

use super::random::{Random, play};
use super::stage::{HOUR_MS, Process, Stage, award, command, programme, wallet};
use crate::publisher::{event_type, id_of};
use raingauge_points::{Answer, Body, Command, Entry, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::points::{Letter, QueueName};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const MEMBERS: [&str; 4] = ["ann", "bob", "cat", "dan"];
const SEEDS: u64 = 150;

/// What was asked for.
#[derive(Default)]
struct Oracle {
    /// Member, amount and points of each order.
    orders: BTreeMap<String, (&'static str, i64, i64)>,
    refunded: BTreeSet<String>,
    commands: BTreeMap<String, Command>,
    /// The entries of the answers that callers got.
    answered: HashMap<String, String>,
}

struct World {
    stage: Stage,
    process: Process,
    random: Random,
    oracle: Oracle,
    has_mart: bool,
    next: u64,
}

/// Points do not expire here, and a member may owe as many as it likes.
fn rules(has_mart: bool) -> Json {
    let mut rules = programme();
    rules["expiry"] = json!({ "kind": "never" });
    rules["arrearsFloor"] = json!(-1_000_000_000);
    if has_mart {
        rules["tables"]["vertical"]["rows"]["SG.mart"] = json!(3);
    }
    rules
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::of(seed);
        let books = *random.pick(&[1, 1, 3]);
        let mut script = Random::of(seed ^ 0x5eed);
        let mut stage = Stage::new(books, move |_| {
            let is_away = script.one_in(3);
            Ok(Response::of_status(if is_away { 503 } else { 200 }))
        });
        if random.one_in(3) {
            stage.options.awarding = crate::Awarding::Queued;
        }
        let mut process = stage.open();
        stage.save(rules(false));
        stage.turn(&mut process).unwrap();
        Self { stage, process, random, oracle: Oracle::default(), has_mart: false, next: 0 }
    }

    fn name(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}", self.next)
    }

    fn order(&mut self) {
        let id = self.name("o");
        let member = *self.random.pick(&MEMBERS);
        let (vertical, factor) = *self.random.pick(&[("food", 2), ("ride", 1), ("mart", 3)]);
        let amount = self.random.below(50) as i64;
        self.stage.order(&id, member, vertical, amount);
        // The payment doubles.
        self.oracle.orders.insert(id, (member, amount, amount * factor * 2));
    }

    /// A refund of an order, sometimes of one that comes later.
    fn refund(&mut self) {
        let known: Vec<String> = self.oracle.orders.keys().cloned().collect();
        if known.is_empty() {
            return;
        }
        let id = self.random.pick(&known).clone();
        let (member, amount, points) = self.oracle.orders[&id];
        if points == 0 || !self.oracle.refunded.insert(id.clone()) {
            return;
        }
        let data = json!({ "member": member, "order_id": id, "amount": amount });
        let now_ms = raingauge_ports::clock::Clock::now_ms(&*self.stage.clock);
        self.stage.send_at(&format!("r-{id}"), "order.refunded", now_ms, &data);
    }

    fn ask(&mut self) -> Vec<Command> {
        let known: Vec<Command> = self.oracle.commands.values().cloned().collect();
        let mut commands = Vec::new();
        for _ in 0..=self.random.below(3) {
            if !known.is_empty() && self.random.one_in(4) {
                commands.push(self.random.pick(&known).clone());
                continue;
            }
            let key = self.name("k");
            let member = *self.random.pick(&MEMBERS);
            let points = 1 + self.random.below(60) as i64;
            let asked = match self.random.below(3) {
                0 => command(member, &key, Body::Burn { points }),
                1 => {
                    let to = MEMBERS.iter().find(|other| **other != member).copied().unwrap();
                    command(member, &key, Body::Transfer { to: to.into(), points })
                }
                _ => award(member, &key, points),
            };
            self.oracle.commands.insert(key, asked.clone());
            commands.push(asked);
        }
        commands
    }

    fn submit(&mut self, commands: Vec<Command>) {
        let answers = self.stage.submit(&mut self.process, commands.clone());
        for (command, answer) in commands.iter().zip(answers) {
            let entry = match answer {
                Ok(Answer::Done(entries)) => Arc::clone(&entries[0]),
                Ok(Answer::Replayed(entry) | Answer::Refused { entry, .. }) => entry,
                Ok(Answer::Invalid(refusal)) => panic!("{command:?}: {refusal:?}"),
                Err(_) => continue,
            };
            let known = self.oracle.answered.insert(command.key.to_string(), id_of(&entry));
            assert!(known.is_none_or(|known| known == id_of(&entry)), "{command:?}");
        }
    }

    /// Lets one part of the process do something, which may be the last thing it does.
    fn step(&mut self) {
        let awards = Arc::clone(&self.process.awards);
        let retry = Arc::clone(&self.process.retry);
        let stage = &self.stage;
        match self.random.below(13) {
            0 | 1 => self.order(),
            2 => self.refund(),
            3 => {
                let commands = self.ask();
                self.submit(commands);
            }
            4 => {
                let letters = self.ask();
                let letters = letters.iter().map(Letter::of_command).collect();
                let queues = self.stage.deps().queues;
                let sent = queues.send(QueueName::Award, letters, Duration::ZERO);
                let _ = self.stage.runtime.block_on(sent);
            }
            5 | 6 => drop(stage.turn(&mut self.process)),
            7 => drop(stage.during(&mut self.process, awards.step(Duration::ZERO))),
            8 => drop(stage.during(&mut self.process, retry.step(Duration::ZERO))),
            9 => drop(stage.runtime.block_on(self.process.publisher.step())),
            10 => {
                drop(stage.runtime.block_on(self.process.notices.step()));
                drop(stage.runtime.block_on(self.process.notifier.step_again(Duration::ZERO)));
            }
            11 => drop(stage.runtime.block_on(self.process.streamer.step())),
            _ => stage.clock.advance(self.random.below(1_800_000) as i64),
        }
    }

    fn begin_again(&mut self) {
        self.stage.fuse.replace();
        self.process = self.stage.open();
    }

    fn play(&mut self) {
        for _ in 0..60 {
            if self.random.one_in(4) {
                let calls = self.random.below(6) as u32;
                self.stage.fuse.arm(calls, self.random.one_in(2));
            }
            self.step();
            if self.stage.fuse.has_blown() || self.random.one_in(20) {
                self.begin_again();
            }
            if !self.has_mart && self.random.one_in(40) {
                self.has_mart = true;
                self.stage.save(rules(true));
            }
        }
    }

    /// Nothing crashes any more, every caller repeats what it got no answer to, and time passes.
    fn finish(&mut self) {
        self.begin_again();
        if !self.has_mart {
            self.stage.save(rules(true));
        }
        self.drain();
        let commands: Vec<Command> = self.oracle.commands.values().cloned().collect();
        for commands in commands.chunks(500) {
            self.submit(commands.to_vec());
        }
        self.drain();
    }

    /// Works until nothing waits in a queue.
    fn drain(&mut self) {
        for _ in 0..15 {
            self.stage.settle_down(&mut self.process);
            if QueueName::ALL.iter().all(|queue| self.stage.depth(*queue).0 == 0) {
                return;
            }
            self.stage.clock.advance(2 * HOUR_MS);
        }
    }

    fn check(&self) {
        let entries = self.stage.entries();
        let by_key = self.check_keys(&entries);
        let expected = self.expected(&by_key);
        check_journal(&entries);
        for member in MEMBERS {
            let balances = self.process.members.balances(vec![wallet(member)], None);
            let balance = self.stage.runtime.block_on(balances).unwrap().remove(0).unwrap();
            let found = balance.available - balance.arrears;
            assert_eq!(found, expected.get(member).copied().unwrap_or_default(), "{member}");
        }
        self.check_followers(&entries, &expected);
        for queue in QueueName::ALL {
            assert_eq!(self.stage.depth(queue), (0, 0), "{queue:?}");
        }
    }

    /// Each event and each command has one entry, and it is that of the answer.
    fn check_keys(&self, entries: &[Arc<Entry>]) -> HashMap<String, Arc<Entry>> {
        let mut by_key = HashMap::new();
        for entry in entries {
            let Some(key) = &entry.key else { continue };
            let twice = by_key.insert(key.text.to_string(), Arc::clone(entry));
            assert!(twice.is_none(), "{key:?} has two entries");
        }
        let asked = self.oracle.orders.len() + self.oracle.refunded.len();
        assert_eq!(by_key.len(), asked + self.oracle.commands.len());
        for (key, entry) in &self.oracle.answered {
            assert_eq!(id_of(&by_key[key]), *entry, "{key} was answered otherwise");
        }
        assert_eq!(self.oracle.answered.len(), self.oracle.commands.len());
        by_key
    }

    /// What each member should have, from what was asked for and whether it was refused.
    fn expected(&self, by_key: &HashMap<String, Arc<Entry>>) -> HashMap<&str, i64> {
        let mut expected: HashMap<&str, i64> = HashMap::new();
        for (id, (member, _, points)) in &self.oracle.orders {
            if !self.oracle.refunded.contains(id) {
                *expected.entry(member).or_default() += points;
            }
        }
        for (key, command) in &self.oracle.commands {
            let is_refused = by_key[key].kind == Kind::Refused;
            match &command.body {
                Body::Award(_) => assert!(!is_refused),
                _ if is_refused => continue,
                _ => {}
            }
            let (out, to, points) = match &command.body {
                Body::Burn { points } => (-points, None, 0),
                Body::Transfer { to, points } => (-points, Some(to), *points),
                _ => (by_key[key].points(), None, 0),
            };
            if let Body::Award(award) = &command.body {
                assert_eq!(award.basis, raingauge_points::Basis::Points(out));
            }
            *expected.entry(&command.member).or_default() += out;
            if let Some(to) = to {
                *expected.entry(to).or_default() += points;
            }
        }
        expected
    }

    /// Others have heard of every entry, and of nothing else.
    fn check_followers(&self, entries: &[Arc<Entry>], expected: &HashMap<&str, i64>) {
        let told: Vec<&Arc<Entry>> =
            entries.iter().filter(|entry| event_type(entry.kind).is_some()).collect();
        let ids: BTreeSet<String> = told.iter().map(|entry| id_of(entry)).collect();
        let published = self.stage.published();
        let heard: BTreeSet<String> = published.iter().map(|(id, ..)| id.clone()).collect();
        assert_eq!((heard.len(), &heard), (published.len(), &ids));

        let mut sums: HashMap<&str, i64> = HashMap::new();
        for (_, _, data) in &published {
            let member = data["member"].as_str().unwrap();
            *sums.entry(member).or_default() += data["points"].as_i64().unwrap();
        }
        for (member, points) in expected {
            assert_eq!(sums.get(member).copied().unwrap_or_default(), *points);
        }

        check_stream(&self.stage.streamed(), &ids);

        let quiet = &self.stage.options.notify.as_ref().unwrap().quiet;
        let loud = told.iter().filter(|entry| !quiet.contains(&entry.kind));
        let loud: BTreeSet<String> = loud.map(|entry| id_of(entry)).collect();
        let requests = self.stage.sender.requests();
        let ids = requests.iter().filter_map(|request| request.header("webhook-id"));
        assert_eq!(ids.map(str::to_owned).collect::<BTreeSet<_>>(), loud);
    }
}

/// The stream has every entry, and those of a member in their order.
fn check_stream(streamed: &[(String, Json)], ids: &BTreeSet<String>) {
    let heard: BTreeSet<String> = streamed.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(heard, *ids);
    let mut members: HashMap<&str, u64> = HashMap::new();
    for (id, data) in streamed {
        let last = members.entry(data["member"].as_str().unwrap()).or_default();
        let sequence = data["sequence"].as_u64().unwrap();
        assert!(sequence > *last, "{id} comes after {last} of its member");
        *last = sequence;
    }
}

/// The journal as a plain list: no gap, and each balance is the one before and its own points. Only
/// what a member had was spent.
fn check_journal(entries: &[Arc<Entry>]) {
    let mut books: HashMap<u16, u64> = HashMap::new();
    let mut members: HashMap<&str, (u64, i64)> = HashMap::new();
    for entry in entries {
        let sequence = books.entry(entry.book).or_default();
        assert_eq!(entry.sequence, *sequence + 1);
        *sequence = entry.sequence;
        assert_eq!(entry.postings.iter().map(|posting| posting.amount).sum::<i64>(), 0);

        let Some(member) = &entry.member else { continue };
        let (sequence, balance) = members.entry(member).or_default();
        assert_eq!(entry.member_sequence, *sequence + 1);
        *sequence = entry.member_sequence;
        if matches!(entry.kind, Kind::Burn | Kind::TransferOut) {
            assert!(*balance + entry.points() >= 0, "{entry:?} of {balance}");
        }
        *balance += entry.points();
        assert_eq!(entry.balance_after, *balance);
    }
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice() {
    play(SEEDS, |seed| {
        let mut world = World::new(seed);
        world.play();
        world.finish();
        world.check();
    });
}
