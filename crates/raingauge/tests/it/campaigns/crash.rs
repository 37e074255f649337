//! Kills under a load of events and deliveries: the real process dies at random moments,
//! repeatedly, over the same data, and what it decides and delivers equals a naive reading of the
//! events.
//!
//! `RAINGAUGE_CRASH_ROUNDS` and `RAINGAUGE_CRASH_SEED` choose the number of kills and the seed;
//! `scripts/crash campaigns` sets them.

use super::example::wait_until_active;
use super::receiver::Receiver;
use crate::client::{Client, event, now_s};
use crate::crash::{number, seed};
use crate::server::{Home, Server, until};
use raingauge_campaigns::decision::ActionId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

/// Kills in a run of the suite.
const ROUNDS: u64 = 12;
/// Kills over one data folder; then a new one is begun.
const ROUNDS_PER_HOME: u64 = 60;
/// Kills after which everything has to be delivered, and is compared.
const ROUNDS_PER_CHECK: u64 = 10;
const USERS: u32 = 40;
/// Events of one request.
const BATCH_MAX: u64 = 12;
/// What a voucher costs, and what there is for all of them. It is used up on the way.
const COST: i64 = 5;
const BUDGET: i64 = 100 * COST;

#[test]
fn campaigns_survive_being_killed_at_random_moments() {
    let rounds = number("RAINGAUGE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let mut random = StdRng::seed_from_u64(seed());
    let mut done = 0;
    let mut delivered = 0;
    while done < rounds {
        let mut sequence = Sequence::new(&mut random);
        let rounds = ROUNDS_PER_HOME.min(rounds - done);
        sequence.run(rounds, &mut random);
        done += rounds;
        delivered += sequence.oracle.granted.len();
    }
    println!("{done} kills, {delivered} actions");
    assert!(delivered > 0, "there was a load");
}

/// Something at the first order of a user, a voucher for every third, and a message soon after
/// every second.
fn campaign() -> Value {
    let message = |name: &str| json!({ "name": name, "kind": "message", "to": "messages", "template": "hello" });
    let mut later = message("msg");
    later["delay"] = json!({ "after": "PT1S" });
    let voucher = json!({
        "name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
        "cost": { "budget": "vouchers", "amount": COST },
    });
    let when = |operator: &str, rhs: u32| json!({ "operator": operator, "lhs": "count.orders", "rhs": rhs });
    json!({
        "id": 7, "name": "thirds", "eventTypes": ["mart.order"], "subject": "data.user",
        "state": "active",
        "counts": { "orders": { "window": "campaign", "history": "none" } },
        "steps": [
            { "name": "welcome", "when": when("reaches", 1), "actions": [message("msg")] },
            { "name": "third", "when": when("every", 3), "actions": [voucher, message("msg")] },
            { "name": "second", "when": when("every", 2), "actions": [later] },
        ],
        "budgets": { "vouchers": { "unit": "SGD_cents", "max": BUDGET, "period": "campaign" } },
        "templates": { "hello": { "en": "Hello, {{ subject }}!" } },
    })
}

/// An order: its number and its user.
type Order = (u64, u32);

fn event_of((number, user): Order, time_s: i64) -> Value {
    event("mart.order", &format!("o-{number}"), time_s, json!({ "user": format!("u-{user}") }))
}

/// Reads the orders one by one, as the campaign says.
#[derive(Clone, Debug, Default)]
struct Oracle {
    orders: BTreeMap<u32, u32>,
    spent: i64,
    /// The path that each granted action is delivered to.
    granted: BTreeMap<String, &'static str>,
}

impl Oracle {
    fn read(&mut self, order: Order) {
        let (_, user) = order;
        let orders = self.orders.entry(user).or_insert(0);
        *orders += 1;
        let orders = *orders;
        if orders == 1 {
            self.grant(order, "welcome", "msg", "/messages");
        }
        if orders.is_multiple_of(3) && self.spent + COST <= BUDGET {
            self.spent += COST;
            self.grant(order, "third", "voucher", "/rewards");
            self.grant(order, "third", "msg", "/messages");
        }
        if orders.is_multiple_of(2) {
            self.grant(order, "second", "msg", "/messages");
        }
    }

    fn grant(&mut self, (number, user): Order, step: &str, action: &str, path: &'static str) {
        let named = event_of((number, user), 0);
        let source = named["source"].as_str().expect("a text");
        let event = format!("o-{number}");
        let id = ActionId::new(7, (source, &event), &format!("u-{user}"), step, action);
        self.granted.insert(id.to_string(), path);
    }
}

/// Kills over one data folder.
struct Sequence {
    home: Home,
    receiver: Receiver,
    random: StdRng,
    sent: u64,
    /// Orders that may be in the log or not. They are sent again, before any other ones.
    pending: Vec<Order>,
    /// What was acknowledged, in the order in which it was sent.
    oracle: Oracle,
    time_s: i64,
}

impl Sequence {
    fn new(random: &mut StdRng) -> Self {
        let home = Home::with(&[("campaigns.allow_private_addresses", "true")]);
        let sequence = Self {
            home,
            receiver: Receiver::start(),
            random: StdRng::seed_from_u64(random.random()),
            sent: 0,
            pending: Vec::new(),
            oracle: Oracle::default(),
            time_s: now_s(),
        };
        let server = sequence.home.start();
        for name in ["messages", "rewards"] {
            let url = sequence.receiver.url(&format!("/{name}"));
            server.post("/v1/destinations", &json!({ "name": name, "url": url })).expect(201);
        }
        server.post("/v1/campaigns", &campaign()).expect(201);
        wait_until_active(&server, 7);
        sequence
    }

    fn run(&mut self, rounds: u64, random: &mut StdRng) {
        for round in 1..=rounds {
            if random.random_bool(0.2) {
                self.kill_while_starting(random);
            }
            let server = self.home.start();
            self.check_bounds(&server);
            self.settle(&server);
            if round % ROUNDS_PER_CHECK == 0 {
                self.check(&server);
            }
            self.load_and_kill(server, Duration::from_millis(random.random_range(1..400)));
        }

        let server = self.home.start();
        self.check_bounds(&server);
        self.settle(&server);
        self.check(&server);
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

    /// Sends orders until the server is killed. The moment of the kill is the random part.
    fn load_and_kill(&mut self, server: Server, life: Duration) {
        let client: Client = (*server).clone();
        std::thread::scope(|scope| {
            scope.spawn(|| while self.send(&client) {});
            std::thread::sleep(life);
            server.kill();
        });
    }

    /// Sends the orders that are pending, or new ones. Answers `false` if the server is gone.
    fn send(&mut self, client: &Client) -> bool {
        if self.pending.is_empty() {
            let len = self.random.random_range(1..=BATCH_MAX);
            let users = (0..len).map(|_| self.random.random_range(0..USERS));
            self.pending = (self.sent..).zip(users).collect();
            self.sent += len;
        }
        let lines: String = self
            .pending
            .iter()
            .map(|order| format!("{}\n", event_of(*order, self.time_s)))
            .collect();
        let headers = [("content-type", "application/x-ndjson")];
        let path =
            if self.random.random_bool(0.5) { "/v1/events?wait=decided" } else { "/v1/events" };
        match client.try_send("POST", path, &headers, lines.as_bytes()) {
            // Whether they are decided or not, they are in the log.
            Ok(answer) if [200, 202].contains(&answer.status) => {
                let pending = std::mem::take(&mut self.pending);
                pending.into_iter().for_each(|order| self.oracle.read(order));
                true
            }
            // The server is busy, or not ready yet.
            Ok(answer) if [429, 503].contains(&answer.status) => true,
            Ok(answer) => panic!("{} {}", answer.status, answer.text()),
            Err(_) => false,
        }
    }

    /// Sends again what may not have arrived.
    fn settle(&mut self, server: &Client) {
        while !self.pending.is_empty() {
            assert!(self.send(server), "the server is there");
        }
    }

    /// Right after a restart: nothing was delivered that was not to be, and no budget is exceeded.
    fn check_bounds(&self, server: &Client) {
        let mut most = self.oracle.clone();
        self.pending.iter().for_each(|order| most.read(*order));
        for (action, received) in self.receiver.by_action() {
            assert_eq!(most.granted.get(&action), Some(&received.path.as_str()), "{action}");
        }
        let budgets = server.get("/v1/campaigns/7/budgets").expect(200);
        let of = |name: &str| budgets["budgets"][0][name].as_i64().unwrap_or(0);
        assert!(of("spent") <= of("reserved") && of("reserved") <= most.spent, "{budgets}");
    }

    /// Everything that was to be is delivered and spent, and nothing else is decided.
    fn check(&self, server: &Client) {
        let expected: BTreeSet<&String> = self.oracle.granted.keys().collect();
        let received = until("everything is delivered", || {
            let received = self.receiver.by_action();
            (received.len() >= expected.len()).then_some(received)
        });
        assert_eq!(received.keys().collect::<BTreeSet<_>>(), expected);

        let lines = [("accept", "application/x-ndjson")];
        let decisions = server.send("GET", "/v1/decisions", &lines, b"").text();
        let decisions = decisions.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{line}: {error}"))
        });
        let mut decided = BTreeSet::new();
        for action in decisions.filter_map(|one| one["action"].as_str().map(str::to_owned)) {
            assert!(decided.insert(action.clone()), "{action} was granted twice");
        }
        assert_eq!(decided.iter().collect::<BTreeSet<_>>(), expected);

        until("everything is spent", || {
            let budgets = server.get("/v1/campaigns/7/budgets").expect(200);
            let budget = &budgets["budgets"][0];
            let spent = budget["spent"].as_i64().unwrap_or(0);
            assert!(spent <= self.oracle.spent, "{budgets}");
            (spent == self.oracle.spent).then_some(())
        });
    }
}
