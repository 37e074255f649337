//! Which of 10,000 nested campaigns can act on an event, beside a map from the event type to its
//! campaigns.
//!
//! ```text
//! cargo bench -p raingauge-campaigns --bench matching
//! ```
//!
//! Each way starts with the fields of the event and finds the campaigns whose rule holds, or waits
//! for a lookup. All of them have to find the same ones. Medians and 99th percentiles over single
//! events are printed first.

use criterion::{Criterion, criterion_group, criterion_main};
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::index::{Builder, Index, Scratch, Sight};
use raingauge_campaigns::rule::{Leaf, Lhs, Rule, TimePart};
use raingauge_campaigns::tree::Tree;
use raingauge_campaigns::values::Values;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, extract};
use raingauge_core::filter::Condition;
use serde_json::{Value as Json, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

const CAMPAIGNS: usize = 10_000;
const EVENTS: usize = 1_024;

/// Fields of the events; the hour follows as the last slot.
const FIELDS: [&str; 7] = [
    "data.country",
    "data.taxi",
    "data.amount",
    "data.payment",
    "data.platform",
    "data.merchant",
    "data.new_user",
];
const HOUR: usize = FIELDS.len();

/// A linear congruential generator, so that every run has the same campaigns.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn leaf(operator: &str, lhs: &str, rhs: impl Into<Json>) -> Json {
    json!({"operator": operator, "lhs": lhs, "rhs": rhs.into()})
}

fn group(operator: &str, conditions: Vec<Json>) -> Json {
    json!({"operator": operator, "conditions": conditions})
}

/// A rule as those of the published description: a country, one of two kinds of taxi, an amount, a
/// payment or a platform for old users, an hour, sometimes a merchant, and up to two lookups.
fn rule(random: &mut Random) -> Json {
    let mut all = vec![
        leaf("eq", "var.country", format!("c{}", random.below(12))),
        group(
            "or",
            vec![leaf("eq", "var.taxi", random.below(8)), leaf("eq", "var.taxi", random.below(8))],
        ),
        leaf("gte", "var.amount", random.below(200)),
        group(
            "or",
            vec![
                leaf("eq", "var.payment", format!("p{}", random.below(5))),
                group(
                    "and",
                    vec![
                        leaf("eq", "var.platform", format!("o{}", random.below(3))),
                        group("not", vec![leaf("eq", "var.new_user", true)]),
                    ],
                ),
            ],
        ),
    ];

    let from = random.below(18);
    all.push(leaf("gte", "time.hour", from));
    all.push(leaf("lt", "time.hour", from + 6));
    if random.below(2) == 0 {
        all.push(leaf("lt", "var.amount", 100 + random.below(200)));
    }
    if random.below(4) == 0 {
        all.push(leaf("prefix", "var.merchant", format!("m{}-", random.below(50))));
    }
    for lookup in 0..random.below(3) {
        let lhs = ["segment.vip", "http.risk.score"][lookup as usize];
        all.push(leaf("eq", lhs, true));
    }
    group("and", all)
}

fn event_data(random: &mut Random) -> String {
    json!({
        "country": format!("c{}", random.below(12)), "taxi": random.below(8),
        "amount": random.below(40_000) as f64 / 100.0, "payment": format!("p{}", random.below(5)),
        "platform": format!("o{}", random.below(3)),
        "merchant": format!("m{}-{}", random.below(50), random.below(1_000)),
        "new_user": random.below(2) == 0, "user_id": format!("u-{}", random.below(100_000)),
        "order": {"lines": 3, "note": "ring twice"},
    })
    .to_string()
}

fn slot_of(leaf: &Leaf) -> Option<usize> {
    match &leaf.lhs {
        Lhs::Field(field) => FIELDS.iter().position(|path| *path == field.to_string()),
        Lhs::Time(TimePart::Hour) => Some(HOUR),
        _ => None,
    }
}

/// The campaigns of one event type.
struct Bucket {
    entries: Vec<Entry>,
    index: Index,
}

fn bucket(rules: &[Json]) -> Bucket {
    let conditions: Vec<Condition> =
        rules.iter().map(|rule| serde_json::from_value(rule.clone()).unwrap()).collect();
    let mut weigh = |lhs: &Lhs, _: &_| {
        Ok(match lhs {
            Lhs::Segment(_) => 3,
            Lhs::Http { .. } => 1_000,
            _ => 1,
        })
    };
    let rules: Vec<Rule> = conditions
        .iter()
        .map(|condition| Rule::compile(condition, "rule", &mut weigh).unwrap())
        .collect();

    let mut builder = Builder::default();
    for (number, rule) in (0..).zip(&rules) {
        builder.add(number, rule, &|leaf| slot_of(leaf).map_or(Sight::None, Sight::Slot));
    }

    Bucket { entries: rules.iter().map(Entry::new).collect(), index: builder.build() }
}

fn read<'e>(event: &Event<'e>, fields: &[Field], zone: &Zone) -> Values<'e> {
    let mut scalars = Vec::with_capacity(fields.len() + 1);
    extract(event, fields, &mut scalars);
    let local = zone.local(event.time_ms);
    scalars.push(Some(TimePart::Hour.value(local)));
    Values::new(scalars)
}

/// A rule and where the values of its leaves are, as the engine keeps them.
struct Entry {
    tree: Tree,
    slots: Box<[Option<usize>]>,
}

impl Entry {
    fn new(rule: &Rule) -> Self {
        let tree = Tree::new(rule);
        let slots = tree.leaves().iter().map(slot_of).collect();
        Self { tree, slots }
    }

    /// Whether the rule holds or waits for a lookup.
    fn passes(&self, values: &Values<'_>) -> bool {
        let Self { tree, slots } = self;
        let mut progress = tree.start();
        let waits = tree.advance(&mut progress, |leaf| {
            slots[leaf].map(|slot| values.pass(slot, &tree.leaves()[leaf].test))
        });
        waits.is_some() || progress.result() == Some(true)
    }
}

fn by_index(bucket: &Bucket, values: &Values<'_>, scratch: &mut Scratch, found: &mut Vec<u32>) {
    found.clear();
    bucket.index.candidates(values, [], scratch, |number| {
        if bucket.entries[number as usize].passes(values) {
            found.push(number);
        }
    });
}

fn by_type(bucket: &Bucket, values: &Values<'_>, found: &mut Vec<u32>) {
    found.clear();
    let passing = (0..).zip(&bucket.entries).filter(|(_, entry)| entry.passes(values));
    found.extend(passing.map(|(number, _)| number));
}

/// Median and 99th percentile of single calls, one for each event in turn.
fn percentiles(mut run: impl FnMut(usize)) -> (Duration, Duration) {
    let mut times = Vec::new();
    for round in 0..9 {
        for event in 0..EVENTS {
            let start = Instant::now();
            run(event);
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn matching(criterion: &mut Criterion) {
    let zone = Zone::of_name("Asia/Singapore").unwrap();
    let fields: Vec<Field> = FIELDS.iter().map(|path| Field::of_path(path).unwrap()).collect();
    let mut random = Random(7);
    let data: Vec<(String, i64)> = (0..EVENTS)
        .map(|_| (event_data(&mut random), 1_727_136_000_000 + random.below(864_000_000) as i64))
        .collect();
    let events: Vec<Event<'_>> =
        data.iter().map(|(data, time_ms)| Event::of_data("t", *time_ms, data)).collect();

    for types in [1, 8] {
        let buckets: Vec<Bucket> = (0..types)
            .map(|_| {
                let rules: Vec<Json> = (0..CAMPAIGNS / types).map(|_| rule(&mut random)).collect();
                bucket(&rules)
            })
            .collect();
        let mut scratch = Scratch::default();
        let mut found = Vec::new();

        let mut total = 0;
        for (number, event) in events.iter().enumerate() {
            let bucket = &buckets[number % types];
            let values = read(event, &fields, &zone);
            by_index(bucket, &values, &mut scratch, &mut found);
            let mine = found.clone();
            total += mine.len();
            by_type(bucket, &values, &mut found);
            assert_eq!(mine, found);
        }
        let rows: usize = buckets.iter().map(|bucket| bucket.index.rows()).sum();
        let average = total as f64 / EVENTS as f64;
        println!("{CAMPAIGNS} campaigns of {types} types, {rows} rows; {average:.1} pass an event");

        let ways: [(&str, &mut dyn FnMut(usize)); 3] = [
            ("fields alone", &mut |event| {
                black_box(&read(&events[event], &fields, &zone));
            }),
            ("index", &mut |event| {
                let values = read(&events[event], &fields, &zone);
                by_index(&buckets[event % types], &values, &mut scratch, &mut found);
            }),
            ("type alone", &mut |event| {
                let values = read(&events[event], &fields, &zone);
                let mut found = Vec::new();
                by_type(&buckets[event % types], &values, &mut found);
                black_box(&found);
            }),
        ];
        let mut measured = criterion.benchmark_group(format!("matching, {types} types"));
        for (name, run) in ways {
            let (median, worst) = percentiles(&mut *run);
            println!("  {name:<13} median {median:>10.2?}, p99 {worst:>10.2?}");
            let mut event = 0;
            measured.bench_function(name, |bencher| {
                bencher.iter(|| {
                    run(event % EVENTS);
                    event += 1;
                });
            });
        }
        measured.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = matching
}
criterion_main!(benches);
