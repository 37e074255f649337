//! Questions about public data that counts cannot answer, asked as campaigns over the extracts
//! of the demo, and answered beside them by a plain loop. `scripts/truth` asks them of whole files.

use flate2::read::GzDecoder;
use raingauge_campaigns::engine::Documents;
use raingauge_replay::answers::Answers;
use raingauge_replay::backtest::{Backtest, Setup, Source, StepReport, backtest};
use raingauge_replay::request::BacktestRequest;
use raingauge_replay::{Progress, documents};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::PathBuf;

fn demo(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../demo").join(name)
}

fn unpacked(name: &str) -> BufReader<GzDecoder<File>> {
    BufReader::new(GzDecoder::new(File::open(demo(name)).expect("an extract of the demo")))
}

/// An invoice of the shop that is no cancellation and has a customer, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sale {
    time: String,
    number: String,
    customer: String,
    total: i64,
}

/// The price with three decimals, in thousandths.
fn thousandths(price: &str) -> i64 {
    let (whole, part) = price.split_once('.').unwrap_or((price, ""));
    format!("{whole}{part:0<3}").parse().expect("a price of at most three decimals")
}

/// The sales by time and number.
fn sales() -> Vec<Sale> {
    let mut sales: BTreeMap<String, Sale> = BTreeMap::new();
    let mut rows = csv::Reader::from_reader(unpacked("retail.csv.gz"));
    for row in rows.records() {
        let row = row.expect("a row");
        let [number, time, customer] = [&row[0], &row[4], &row[6]];
        if number.starts_with('C') || customer.is_empty() {
            continue;
        }
        let quantity: i64 = row[3].parse().expect("a quantity");
        let sale = sales.entry(number.to_owned()).or_insert_with(|| Sale {
            time: time.to_owned(),
            number: number.to_owned(),
            customer: customer.to_owned(),
            total: 0,
        });
        sale.time = sale.time.clone().min(time.to_owned());
        sale.total += quantity * thousandths(&row[5]);
    }
    let mut sales: Vec<Sale> = sales.into_values().collect();
    sales.sort();
    sales
}

impl Sale {
    fn line(&self) -> String {
        let total = format!("{}.{:03}", self.total / 1_000, self.total % 1_000);
        format!(
            r#"{{"specversion":"1.0","source":"shop","type":"sale","id":"{}","time":"{}Z","data":{{"customer":"{}","total":{total}}}}}"#,
            self.number,
            self.time.replace(' ', "T"),
            self.customer,
        )
    }

    fn day(&self) -> &str {
        &self.time[..10]
    }

    fn minute(&self) -> i64 {
        let date: jiff::civil::DateTime = self.time.parse().expect("a time");
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).expect("a time");
        zoned.timestamp().as_second() / 60
    }
}

fn campaign(id: u32, kind: &str, subject: &str, count: Json, when: Json) -> Json {
    json!({
        "id": id, "name": format!("truth-{id}"), "eventTypes": [kind], "subject": subject,
        "counts": {"n": count},
        "steps": [{"name": "s", "when": when,
            "actions": [{"name": "a", "kind": "reward", "to": "r", "reward": "R"}]}]})
}

fn when(operator: &str, rhs: i64) -> Json {
    json!({"operator": operator, "lhs": "count.n", "rhs": rhs})
}

fn run(campaigns: &[Json], shared: &[Json], by: &str, lines: &[String]) -> Backtest {
    let documents =
        documents::resolve(campaigns, shared, &Documents::default()).expect("documents");
    let by = if by.is_empty() { Vec::new() } else { vec![by.to_owned()] };
    let request = BacktestRequest { by, ..BacktestRequest::default() };
    let setup = Setup::new(documents, &request, i64::MAX);
    let lookups = serde_json::from_value(json!({"segment.staff": {"share": 0},
        "table.users": {"answer": {"tier": "gold", "zone": "UTC", "commutes": "yes"}}}));
    let mut answers = Answers::assumed(lookups.expect("assumptions"));
    let source = Source::Lines(Box::new(Cursor::new(lines.join("\n"))));
    backtest(&setup, source, &mut answers, &Progress::default()).expect("a backtest")
}

fn step_of(found: &Backtest, campaign: u32) -> &StepReport {
    found.steps.iter().find(|step| step.campaign == campaign).expect("a step")
}

#[test]
fn the_shop_is_counted_as_by_a_plain_loop() {
    let sales = sales();
    assert!(sales.len() > 300, "{}", sales.len());
    let sum = json!({"window": "campaign", "value": {"field": "data.total", "scale": 1000}});
    let of_sales = |id, count, when| campaign(id, "sale", "data.customer", count, when);
    let mut threshold = of_sales(1, sum, when("reaches", 1_000_000));
    threshold["limits"] = json!([{"per": "subject", "max": 1, "period": "campaign"}]);
    let campaigns = [
        threshold,
        of_sales(2, json!({"window": "campaign"}), when("every", 3)),
        of_sales(3, json!({"window": {"calendar": "day"}}), when("reaches", 2)),
        of_sales(4, json!({"window": {"last": "PT24H"}}), when("gte", 3)),
    ];
    let lines: Vec<String> = sales.iter().map(Sale::line).collect();
    let found = run(&campaigns, &[], "id", &lines);

    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    let mut days: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    let mut expected: [BTreeSet<&str>; 4] = Default::default();
    for (place, sale) in sales.iter().enumerate() {
        let sum = sums.entry(&sale.customer).or_default();
        let before = *sum;
        *sum += sale.total;
        let count = counts.entry(&sale.customer).or_default();
        *count += 1;
        let of_day = days.entry((&sale.customer, sale.day())).or_default();
        *of_day += 1;
        let recent = sales[..=place].iter().filter(|other| {
            other.customer == sale.customer && other.minute() >= sale.minute() - 24 * 60
        });

        let triggers = [
            before < 1_000_000 && *sum >= 1_000_000,
            *count % 3 == 0,
            *of_day == 2,
            recent.count() >= 3,
        ];
        for (expected, is_trigger) in expected.iter_mut().zip(triggers) {
            if is_trigger {
                expected.insert(&sale.number);
            }
        }
    }

    for (campaign, expected) in (1..).zip(&expected) {
        let step = step_of(&found, campaign);
        let triggers: BTreeSet<&str> = step.by["id"].keys().map(String::as_str).collect();
        assert_eq!(&triggers, expected, "campaign {campaign}");
        assert_eq!(step.triggers, expected.len() as u64);
        assert!(!expected.is_empty(), "campaign {campaign} has nothing to find");
    }
}

#[derive(Deserialize)]
struct Press {
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename = "@timestamp")]
    time: String,
    beverage: String,
}

/// When each drink came to fifty, as another tool computed it: the question `coffee.nth`.
#[test]
fn every_drink_comes_to_fifty() {
    let lines = unpacked("coffee.jsonl.gz").lines();
    let read = |line: std::io::Result<String>| -> Press {
        serde_json::from_str(&line.expect("a line")).expect("a press")
    };
    let mut presses: Vec<Press> = lines.map(read).collect();
    presses.sort_by_key(|press| (press.time.clone(), press.id.parse::<u32>().expect("a number")));
    let texts: Vec<String> = presses
        .iter()
        .map(|press| {
            json!({"specversion": "1.0", "source": "coffee", "type": "press", "id": press.id,
                "time": press.time, "data": {"beverage": press.beverage}})
            .to_string()
        })
        .collect();
    let fifty =
        campaign(1, "press", "data.beverage", json!({"window": "campaign"}), when("reaches", 50));
    let found = run(&[fifty], &[], "id", &texts);

    let by = &step_of(&found, 1).by["id"];
    let mut reached: Vec<(&str, &str, &str)> = presses
        .iter()
        .filter(|press| by.contains_key(&press.id))
        .map(|press| (&press.time[..19], press.beverage.as_str(), press.id.as_str()))
        .collect();
    reached.sort_unstable();
    assert_eq!(
        reached,
        [
            ("2018-02-28T18:51:37", "Latte", "228"),
            ("2018-02-28T19:00:18", "Other", "216"),
            ("2018-02-28T20:36:03", "Cappuccino", "309"),
            ("2018-02-28T21:08:42", "Espresso", "357"),
            ("2018-02-28T22:28:31", "Mocha", "487"),
            ("2018-03-01T18:19:03", "Macchiato", "885"),
            ("2018-03-01T19:30:19", "Coffee", "990"),
            ("2018-03-01T21:50:12", "Americano", "1194"),
        ]
    );
}

/// The campaigns of the demo do something on the events of the demo.
#[test]
fn the_campaigns_of_the_demo_are_replayed() {
    let read = |name: &str| -> Vec<Json> {
        let file = File::open(demo(&format!("campaigns/{name}"))).expect("a file of the demo");
        serde_yaml_ng::from_reader(file).expect("a list of documents")
    };
    let files = [
        "01-express-then-mart.yaml",
        "02-rides-in-a-week.yaml",
        "03-ride-home.yaml",
        "04-late-delivery.yaml",
        "05-driver-cancelled.yaml",
        "06-ride-protocols.yaml",
        "07-three-orders.yaml",
    ];
    let campaigns: Vec<Json> = files.into_iter().flat_map(read).collect();
    let events = File::open(demo("campaigns/events.ndjson")).expect("the events of the demo");
    let lines: Vec<String> =
        BufReader::new(events).lines().map(|line| line.expect("a line")).collect();
    let found = run(&campaigns, &read("shared.yaml"), "", &lines);

    for id in 1..=7 {
        let steps = found.steps.iter().filter(|step| step.campaign == id);
        let triggers: u64 = steps.map(|step| step.triggers).sum();
        assert!(triggers > 0, "campaign {id} does nothing: {:?}", found.steps);
    }
    let cancelled: u64 = found.steps.iter().filter_map(|step| step.refused.get("cancelled")).sum();
    assert!(cancelled > 0, "no event cancels an action");
}
