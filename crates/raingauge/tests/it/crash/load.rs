//! Clients that send while the server is killed. Each remembers what was acknowledged, and what may
//! or may not have arrived; after a restart it sends the latter again.

use crate::client::{Answer, Client, event, forever, rfc3339};
use crate::model::Model;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Events happen in these hundred days before a fixed instant.
pub const END_S: i64 = 1_760_000_400;
pub const START_S: i64 = END_S - 100 * 86_400;

pub const CITIES: u32 = 6;
/// Most rides of one producer; after that it repeats itself. Fewer than the server is configured to
/// remember.
pub const RIDES_MAX: usize = 45_000;

pub fn create_counters(client: &Client) {
    let large = json!({"operator": "gte", "lhs": "data.amount", "rhs": 0});
    for counter in [
        json!({"id": 1, "name": "rides", "template": "rides:{city}", "eventType": "ride"}),
        json!({"id": 2, "name": "amounts", "template": "amounts:{shop}", "eventType": "ride",
            "value": {"field": "data.amount", "scale": 100}}),
        json!({"id": 3, "name": "gains", "template": "gains:{city}:{shop}", "eventType": "ride", "filter": large}),
        edited(1),
        json!({"id": 5, "name": "history", "template": "history:{name}", "eventType": "none"}),
    ] {
        let mut counter = counter;
        counter["retentionDays"] = forever();
        client.create(counter);
    }
}

fn edited(value: i64) -> Value {
    json!({"id": 4, "name": "edited", "template": "edited", "eventType": "edit", "value": value,
        "retentionDays": forever()})
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Ride {
    id: String,
    time_s: i64,
    city: u32,
    shop: u32,
    cents: i64,
}

impl Ride {
    /// A ride of any place and time, most of them shortly before the end.
    pub fn random(id: String, random: &mut StdRng) -> Self {
        let time_s = if random.random_bool(0.3) {
            random.random_range(START_S..END_S)
        } else {
            END_S - random.random_range(1..7_200)
        };
        let city = random.random_range(0..CITIES);
        let shop = random.random_range(0..3);
        Self { id, time_s, city, shop, cents: random.random_range(-5_000..20_000) }
    }

    pub fn event(&self) -> Value {
        // A decimal is formatted by hand, so that it is exact.
        let amount = format!(
            "{}{}.{:02}",
            if self.cents < 0 { "-" } else { "" },
            self.cents.abs() / 100,
            self.cents.abs() % 100
        );

        let amount: Value = serde_json::from_str(&amount).expect("a number");
        event(
            "ride",
            &self.id,
            self.time_s,
            json!({"city": self.city, "shop": self.shop, "amount": amount}),
        )
    }

    pub fn count_in(&self, model: &mut Model) {
        model.add(&format!("rides:{}", self.city), self.time_s, 1);
        model.add(&format!("amounts:{}", self.shop), self.time_s, self.cents);
        if self.cents >= 0 {
            model.add(&format!("gains:{}:{}", self.city, self.shop), self.time_s, 1);
        }
    }
}

/// Sends batches of rides: new ones, duplicates of old ones, late ones, in any order.
pub struct Producer {
    name: String,
    random: StdRng,
    next_id: usize,
    acknowledged: Vec<Ride>,
    /// The counts of the acknowledged rides.
    counted: Model,
    /// Batches of new rides that got no answer.
    pending: Vec<Vec<Ride>>,
}

impl Producer {
    pub fn new(name: &str, random: &mut StdRng) -> Self {
        let random = StdRng::seed_from_u64(random.random());
        let acknowledged = Vec::new();
        let counted = Model::default();
        let pending = Vec::new();
        Self { name: name.to_owned(), random, next_id: 0, acknowledged, counted, pending }
    }

    /// Sends until the server is gone, or `batches_max` batches.
    pub fn run(&mut self, client: &Client, batches_max: usize) {
        for _ in 0..batches_max {
            let len = self.random.random_range(1..=120).min(RIDES_MAX - self.next_id);
            let fresh: Vec<Ride> = (0..len).map(|_| self.ride()).collect();
            if !self.send(client, fresh) {
                return;
            }
        }
    }

    fn ride(&mut self) -> Ride {
        self.next_id += 1;
        Ride::random(format!("{}-{}", self.name, self.next_id), &mut self.random)
    }

    /// Sends new rides, with old ones among them. Returns whether the server is still there.
    fn send(&mut self, client: &Client, fresh: Vec<Ride>) -> bool {
        let mut batch = fresh.clone();
        if !self.acknowledged.is_empty() && self.random.random_bool(0.4) {
            let repeated = self.random.random_range(1..40);
            batch.extend((0..repeated).map(|_| {
                self.acknowledged[self.random.random_range(0..self.acknowledged.len())].clone()
            }));
        }

        if self.random.random_bool(0.2) {
            batch.extend(fresh.iter().take(5).cloned());
        }
        batch.shuffle(&mut self.random);

        let path =
            if self.random.random_bool(0.3) { "/v1/events?wait=applied" } else { "/v1/events" };
        match post_rides(client, path, &batch) {
            Some(answer) if answer.status == 200 => {
                let answer = answer.json();

                // A lost acknowledged ride would be accepted again.
                assert_eq!(answer["accepted"], fresh.len(), "new rides: {answer}");
                assert_eq!(answer["duplicates"], batch.len() - fresh.len(), "old rides: {answer}");
                self.note_acknowledged(fresh);

                true
            }
            // The server is busy: the batch is sent again later.
            Some(answer) if [429, 503].contains(&answer.status) => {
                self.pending.push(fresh);
                true
            }
            Some(answer) => panic!("{} {}", answer.status, answer.text()),
            None => {
                self.pending.push(fresh);
                false
            }
        }
    }

    /// Sends again what may not have arrived: when this returns, all of it is counted once.
    pub fn settle(&mut self, client: &Client) {
        for batch in std::mem::take(&mut self.pending) {
            let answer = post_rides(client, "/v1/events?wait=applied", &batch)
                .expect("the server is there")
                .expect(200);
            let known = answer["accepted"].as_u64().zip(answer["duplicates"].as_u64());
            assert_eq!(
                known.map(|(accepted, duplicates)| accepted + duplicates),
                Some(batch.len() as u64),
                "{answer}"
            );
            self.note_acknowledged(batch);
        }
    }

    fn note_acknowledged(&mut self, rides: Vec<Ride>) {
        rides.iter().for_each(|ride| ride.count_in(&mut self.counted));
        self.acknowledged.extend(rides);
    }

    /// Sends some acknowledged rides again: none may be counted.
    pub fn repeat(&mut self, client: &Client, len: usize) -> Option<Answer> {
        let rides: Vec<Ride> =
            self.acknowledged.choose_multiple(&mut self.random, len).cloned().collect();
        post_rides(client, "/v1/events?wait=applied", &rides)
    }

    /// Whether the producer has sent all its rides.
    pub fn is_done(&self) -> bool {
        self.next_id == RIDES_MAX
    }

    pub fn acknowledged(&self) -> &Model {
        &self.counted
    }

    /// Returns the further counts if everything had arrived that may have.
    pub fn pending(&self) -> Model {
        let mut model = Model::default();
        self.pending.iter().flatten().for_each(|ride| ride.count_in(&mut model));
        model
    }
}

/// Returns the answer, or `None` when the connection failed.
pub fn post_rides(client: &Client, path: &str, rides: &[Ride]) -> Option<Answer> {
    let lines: String = rides.iter().map(|ride| format!("{}\n", ride.event())).collect();
    client
        .try_send("POST", path, &[("content-type", "application/x-ndjson")], lines.as_bytes())
        .ok()
}

/// Changes what a counter adds, and sends it events between the changes.
pub struct Editor {
    random: StdRng,
    value: i64,
    next_id: usize,
    total: i64,
    /// Whether the last change was not acknowledged.
    edit_pending: bool,
    /// The event that got no answer.
    event_pending: Option<Value>,
}

impl Editor {
    pub fn new(random: &mut StdRng) -> Self {
        let random = StdRng::seed_from_u64(random.random());
        Self { random, value: 1, next_id: 0, total: 0, edit_pending: false, event_pending: None }
    }

    pub fn run(&mut self, client: &Client) {
        loop {
            if self.random.random_bool(0.1) {
                self.value = self.random.random_range(1..1_000);
                self.edit_pending = true;

                if !self.edit(client) {
                    return;
                }
            }

            self.next_id += 1;
            let time_s = self.random.random_range(START_S..END_S);
            self.event_pending =
                Some(event("edit", &format!("edit-{}", self.next_id), time_s, json!({})));
            self.total += self.value;

            if !self.send(client) {
                return;
            }
        }
    }

    fn edit(&mut self, client: &Client) -> bool {
        let body = edited(self.value).to_string();
        let answer = client.try_send(
            "PUT",
            "/v1/counters/4",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );
        self.edit_pending = !answer.is_ok_and(|answer| answer.status == 200);
        !self.edit_pending
    }

    fn send(&mut self, client: &Client) -> bool {
        let Some(event) = &self.event_pending else {
            return true;
        };
        let body = event.to_string();
        let answer = client.try_send(
            "POST",
            "/v1/events",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );

        let acknowledged = answer.is_ok_and(|answer| answer.status == 200);
        if acknowledged {
            self.event_pending = None;
        }
        acknowledged
    }

    pub fn settle(&mut self, client: &Client) {
        assert!(!self.edit_pending || self.edit(client), "the edit is made again");
        assert!(self.send(client), "the event is sent again");
        // Waiting for an event of any type includes all events before it.
        let last = event("waited for", &self.next_id.to_string(), START_S, json!({}));
        client.lines("/v1/events?wait=applied", &[last]).expect(200);
    }

    /// Returns the expected count of the counter.
    pub fn total(&self) -> i64 {
        self.total
    }
}

/// Sets buckets of history repeatedly.
pub struct Setter {
    random: StdRng,
    set: BTreeMap<(String, &'static str, i64), i64>,
    pending: HashMap<(String, &'static str, i64), i64>,
}

impl Setter {
    pub fn new(random: &mut StdRng) -> Self {
        let random = StdRng::seed_from_u64(random.random());
        Self { random, set: BTreeMap::new(), pending: HashMap::new() }
    }

    pub fn run(&mut self, client: &Client) {
        loop {
            for _ in 0..self.random.random_range(1..10) {
                let (granularity, width_s) = [("quarter", 900), ("hour", 3_600), ("day", 86_400)]
                    [self.random.random_range(0..3)];
                let time_s = START_S - START_S % 86_400 + self.random.random_range(0..10) * width_s;
                let key = format!("history:{}", self.random.random_range(0..3));

                self.pending
                    .insert((key, granularity, time_s), self.random.random_range(-100..1_000));
            }
            if !self.send(client) {
                return;
            }
        }
    }

    fn send(&mut self, client: &Client) -> bool {
        let rows: Vec<Value> = self
            .pending
            .iter()
            .map(|((key, granularity, time_s), count)| {
                json!({"key": key, "granularity": granularity, "time": rfc3339(*time_s), "count": count})
            })
            .collect();

        let body = json!(rows).to_string();
        let answer = client.try_send(
            "POST",
            "/v1/buckets",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );

        let Some(answer) = answer.ok().filter(|answer| answer.status == 200) else {
            return false;
        };
        assert_eq!(answer.json()["accepted"], rows.len());
        self.set.extend(self.pending.drain());

        true
    }

    pub fn settle(&mut self, client: &Client) {
        assert!(self.send(client), "the buckets are set again");
    }

    /// Returns every bucket that was set: key, its range, its count.
    pub fn expected(&self) -> Vec<(String, i64, i64, i64)> {
        let width_s = |granularity: &str| match granularity {
            "quarter" => 900,
            "hour" => 3_600,
            _ => 86_400,
        };
        let rows = self.set.iter();
        rows.map(|((key, granularity, from), count)| {
            (key.clone(), *from, from + width_s(granularity), *count)
        })
        .collect()
    }
}
