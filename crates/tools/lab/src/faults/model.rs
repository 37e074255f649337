//! The events of a run, and the expected value of every count: a sum per key and quarter hour,
//! computed naively.

use crate::plan::{self, DAY_S, QUARTER_S};
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const CITIES: u32 = 40;
const VEHICLES: u32 = 12;
/// Probability that an event is late, by up to `LATE_MAX_S`.
const LATE_PROBABILITY: f64 = 0.1;
const LATE_MAX_S: i64 = 5 * DAY_S;
/// Maximum lag of all other events behind the clock.
const SPREAD_S: i64 = 3 * plan::HOUR_S;
/// The filter passes events with at least this amount.
const BIG_CENTS: i64 = 5_000;

/// The names of a run's counters and events; they let several runs share their servers.
#[derive(Debug, Clone)]
pub struct Names {
    pub run: String,
}

impl Names {
    pub fn event_type(&self) -> String {
        format!("{}.ride", self.run)
    }

    /// Events of this type are not counted. They show how far the log has been processed.
    pub fn marker_type(&self) -> String {
        format!("{}.marker", self.run)
    }

    /// Events of this type show that every partition has the counters.
    pub fn probe_type(&self) -> String {
        format!("{}.probe", self.run)
    }

    pub fn probe_key(&self, round: usize) -> String {
        self.key("probe", round)
    }

    fn template(&self, what: &str, field: &str) -> String {
        format!("{}:{what}:{{{field}}}", self.run)
    }

    fn key(&self, what: &str, value: impl std::fmt::Display) -> String {
        format!("{}:{what}:{value}", self.run)
    }

    /// A counter of events, one of amounts, which may be negative, one with a filter, and one with
    /// a single key. The last one counts probes: a partition that has it has the previous ones too.
    pub fn counters(&self) -> Vec<Value> {
        let counter = |name: &str, template: String, value: Value, filter: Value| {
            let event_type = if name == "probes" { self.probe_type() } else { self.event_type() };
            json!({
                "name": format!("{}_{name}", self.run),
                "template": template,
                "eventType": event_type,
                "value": value,
                "filter": filter,
                "retentionDays": { "quarter": null, "hour": null, "day": null },
                "state": "active",
                "owner": "lab",
                "description": "",
            })
        };

        let big = json!({ "operator": "gte", "lhs": "data.amount", "rhs": BIG_CENTS / 100 });
        vec![
            counter("rides", self.template("ride", "city"), json!(1), Value::Null),
            counter(
                "amounts",
                self.template("amount", "city"),
                json!({ "field": "data.amount", "scale": 100 }),
                Value::Null,
            ),
            counter("big", self.template("big", "vehicle"), json!(1), big),
            counter("all", self.template("all", "kind"), json!(1), Value::Null),
            counter("probes", self.template("probe", "round"), json!(1), Value::Null),
        ]
    }
}

/// One event, identified by `id`; a repetition is the same line.
#[derive(Debug, Clone)]
pub struct Ride {
    pub id: String,
    pub time_s: i64,
    pub city: u32,
    pub vehicle: u32,
    pub amount_cents: i64,
    pub is_late: bool,
}

impl Ride {
    pub fn random(id: String, now_s: i64, random: &mut StdRng) -> Self {
        let is_late = random.random_bool(LATE_PROBABILITY);
        let behind_s = random.random_range(0..if is_late { LATE_MAX_S } else { SPREAD_S });

        // Skewed towards small numbers.
        let mut skewed =
            |count: u32| random.random_range(0..count).min(random.random_range(0..count));
        let city = skewed(CITIES);
        let vehicle = skewed(VEHICLES);

        Self {
            id,
            time_s: now_s - behind_s,
            city,
            vehicle,
            amount_cents: random.random_range(-2_000..10_000),
            is_late,
        }
    }

    pub fn line(&self, names: &Names) -> String {
        let sign = if self.amount_cents < 0 { "-" } else { "" };
        let whole = self.amount_cents.abs() / 100;
        let cents = self.amount_cents.abs() % 100;

        format!(
            "{{\"specversion\":\"1.0\",\"id\":\"{}\",\"source\":\"{}\",\"type\":\"{}\",\"time\":\"{}\",\"data\":\
             {{\"kind\":\"ride\",\"city\":\"c{}\",\"vehicle\":{},\"amount\":{sign}{whole}.{cents:02}}}}}\n",
            self.id,
            names.run,
            names.event_type(),
            jiff::Timestamp::from_second(self.time_s)
                .map(|time| time.to_string())
                .unwrap_or_default(),
            self.city,
            self.vehicle,
        )
    }
}

/// Sums per key and quarter hour, with every event counted once.
#[derive(Debug, Default)]
pub struct Model {
    sums: HashMap<String, BTreeMap<i64, i64>>,
}

impl Model {
    pub fn add(&mut self, names: &Names, ride: &Ride) {
        let city = format!("c{}", ride.city);
        self.add_one(names.key("ride", &city), ride.time_s, 1);
        self.add_one(names.key("amount", &city), ride.time_s, ride.amount_cents);
        if ride.amount_cents >= BIG_CENTS {
            self.add_one(names.key("big", ride.vehicle), ride.time_s, 1);
        }
        self.add_one(names.key("all", "ride"), ride.time_s, 1);
    }

    fn add_one(&mut self, key: String, time_s: i64, value: i64) {
        *self.sums.entry(key).or_default().entry(plan::floor(time_s, QUARTER_S)).or_default() +=
            value;
    }

    pub fn count(&self, key: &str, from_s: i64, to_s: i64) -> i64 {
        let (from_s, to_s) = (plan::floor(from_s, QUARTER_S), plan::floor(to_s, QUARTER_S));
        self.sums
            .get(key)
            .map_or(0, |quarters| quarters.range(from_s..to_s).map(|(_, sum)| sum).sum())
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.sums.keys().cloned().collect();
        keys.sort_unstable();
        keys
    }
}

/// Whether the counts of a key never decrease.
pub fn only_grows(names: &Names, key: &str) -> bool {
    !key.starts_with(&names.key("amount", ""))
}

/// A key that is likely to have events.
pub fn random_key(names: &Names, random: &mut StdRng) -> String {
    match random.random_range(0..4) {
        0 => names.key("ride", format_args!("c{}", random.random_range(0..CITIES))),
        1 => names.key("amount", format_args!("c{}", random.random_range(0..CITIES))),
        2 => names.key("big", random.random_range(0..VEHICLES)),
        _ => names.key("all", "ride"),
    }
}

/// The possible event times of a run, in whole days plus one on either side.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from_s: i64,
    pub to_s: i64,
}

impl Span {
    pub fn of_run(start_s: i64) -> Self {
        let from_s = plan::floor(start_s - LATE_MAX_S, DAY_S) - DAY_S;
        Self { from_s, to_s: plan::floor(start_s, DAY_S) + 2 * DAY_S }
    }

    pub fn days(self) -> impl Iterator<Item = (i64, i64)> {
        (0..(self.to_s - self.from_s) / DAY_S)
            .map(move |day| (self.from_s + day * DAY_S, self.from_s + (day + 1) * DAY_S))
    }

    pub fn random_range(self, random: &mut StdRng) -> (i64, i64) {
        let from_s = random.random_range(self.from_s..self.to_s);
        (from_s, random.random_range(from_s..self.to_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn lines_say_what_the_model_counts() {
        let names = Names { run: "f1".to_owned() };
        let mut random = StdRng::seed_from_u64(3);
        let mut model = Model::default();
        let mut rides = 0;
        let mut cents = HashMap::<String, i64>::new();

        let mut big = 0;
        let now_s = 1_795_000_000;
        for number in 0..500 {
            let ride = Ride::random(number.to_string(), now_s, &mut random);
            let line: Value = serde_json::from_str(&ride.line(&names)).unwrap();
            let amount = line["data"]["amount"].as_f64().unwrap();
            let city = line["data"]["city"].as_str().unwrap().to_owned();

            *cents.entry(city).or_default() += (amount * 100.0).round() as i64;
            rides += 1;
            big += i64::from(amount >= 50.0);
            model.add(&names, &ride);
        }

        let span = Span::of_run(now_s);
        let total = |prefix: &str| -> i64 {
            let keys = model.keys().into_iter().filter(|key| key.starts_with(prefix));
            keys.map(|key| model.count(&key, span.from_s, span.to_s)).sum()
        };
        assert_eq!((total("f1:ride:"), total("f1:all:"), total("f1:big:")), (rides, rides, big));

        for (city, cents) in cents {
            assert_eq!(model.count(&format!("f1:amount:{city}"), span.from_s, span.to_s), cents);
        }
        let by_day: i64 =
            span.days().map(|(from_s, to_s)| model.count("f1:all:ride", from_s, to_s)).sum();
        assert_eq!(by_day, rides);
    }
}
