//! Real invoices of a shop: one point a whole pound, in any order, twice, killed, and refunded.
//!
//! `RAINGAUGE_RETAIL` names another file of the same form; that of a whole year has 25,900
//! invoices, whose points are known.

use super::{create, pound, results, verify};
use crate::client::Client;
use crate::crash::seed;
use crate::server::Home;
use crate::truth::demo;
use flate2::read::MultiGzDecoder;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Invoices of the whole year; their points; and the most that one customer has.
const WHOLE: (usize, i64, i64) = (25_900, 8_902_670, 280_175);
pub const BEST_CUSTOMER: &str = "14646";

/// An invoice with a customer.
#[derive(Clone, Debug)]
pub struct Invoice {
    pub number: String,
    pub customer: String,
    /// Such as `2011-11-14T08:10:00Z`.
    pub time: String,
    /// Thousandths of a pound.
    pub thousandths: i64,
}

/// All invoices of the file, and how many there are without a customer too.
pub fn invoices() -> (Vec<Invoice>, usize) {
    let path = std::env::var("RAINGAUGE_RETAIL").unwrap_or_else(|_| demo("retail.csv.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut invoices = BTreeMap::<String, Invoice>::new();
    for line in BufReader::new(MultiGzDecoder::new(file)).lines().skip(1) {
        let line = line.expect("a line");
        let cells = cells(&line);
        let [number, _, _, quantity, time, price, customer, _] = &cells[..] else {
            panic!("a line has eight cells: {line}")
        };
        let invoice = invoices.entry(number.clone()).or_insert_with(|| Invoice {
            number: number.clone(),
            customer: customer.clone(),
            time: format!("{}Z", time.replace(' ', "T")),
            thousandths: 0,
        });
        let quantity: i64 = quantity.parse().expect("a quantity");
        invoice.thousandths += quantity * thousandths(price);
    }

    let count = invoices.len();
    let known = invoices.into_values().filter(|invoice| !invoice.customer.is_empty());
    (known.collect(), count)
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cells.last_mut().expect("a cell").push(other),
        }
    }
    cells
}

fn thousandths(price: &str) -> i64 {
    let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
    let sign = if price.starts_with('-') { -1 } else { 1 };
    let fraction: i64 = format!("{fraction:0<3}")[..3].parse().expect("digits");
    whole.parse::<i64>().expect("pounds") * 1_000 + sign * fraction
}

fn decimal(thousandths: i64) -> String {
    let sign = if thousandths < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", thousandths.abs() / 1_000, thousandths.abs() % 1_000)
}

pub fn is_sale(invoice: &Invoice) -> bool {
    !invoice.number.starts_with('C') && invoice.thousandths > 0
}

pub fn sale(invoice: &Invoice) -> Value {
    json!({
        "specversion": "1.0", "id": invoice.number, "source": "shop", "type": "retail.sale",
        "time": invoice.time,
        "data": {"customer": invoice.customer, "invoice": invoice.number,
                 "amount": decimal(invoice.thousandths)},
    })
}

/// What each customer has: one point a whole pound of each sale.
fn model(invoices: &[Invoice]) -> BTreeMap<String, i64> {
    let mut points = BTreeMap::new();
    for invoice in invoices.iter().filter(|invoice| is_sale(invoice)) {
        *points.entry(invoice.customer.clone()).or_insert(0) += invoice.thousandths / 1_000;
    }
    points
}

/// Available points less arrears of each member.
fn balances(server: &Client, members: &[&String]) -> Vec<i64> {
    let mut balances = Vec::new();
    for chunk in members.chunks(1_000) {
        let list: Vec<Value> =
            chunk.iter().map(|name| json!({"programme": "pound", "member": name})).collect();
        for found in results(server, "/v1/points/balances", "members", &list) {
            let points = |name: &str| found[name].as_i64().unwrap_or_else(|| panic!("{found}"));
            balances.push(points("available") - points("arrears"));
        }
    }
    balances
}

#[test]
fn every_pound_of_real_invoices_is_a_point_once() {
    let (invoices, count) = invoices();
    let expected = model(&invoices);
    let total: i64 = expected.values().sum();
    if count == WHOLE.0 {
        assert_eq!((total, expected[BEST_CUSTOMER]), (WHOLE.1, WHOLE.2), "the model is right");
    }
    let mut random = StdRng::seed_from_u64(seed());
    let mut events: Vec<Value> =
        invoices.iter().filter(|invoice| is_sale(invoice)).map(sale).collect();
    events.shuffle(&mut random);

    let home = Home::new();
    let server = home.start();
    create(&server, &pound());
    let half = events.len() / 2;
    for chunk in events[..half].chunks(2_000) {
        server.lines("/v1/events", chunk).expect(200);
    }

    // Killed half way; then all of them once more, in another order.
    server.kill();
    let server = home.start();
    events.shuffle(&mut random);
    for chunk in events.chunks(2_000) {
        server.lines("/v1/events?wait=awarded", chunk).expect(200);
    }

    let members: Vec<&String> = expected.keys().collect();
    let wanted: Vec<i64> = expected.values().copied().collect();
    assert_eq!(balances(&server, &members), wanted);
    let liability = server.get("/v1/points/pound/liability").expect(200);
    assert_eq!((&liability["outstanding"], &liability["issued"]), (&json!(total), &json!(total)));

    server.kill();
    let summary = verify(&home);
    assert!(summary["entries"].as_u64() >= Some(events.len() as u64), "{summary}");
}

#[test]
fn refunds_in_parts_take_back_what_was_given() {
    let (invoices, _) = invoices();
    let sales: Vec<&Invoice> = invoices.iter().filter(|invoice| is_sale(invoice)).collect();
    let home = Home::new();
    let server = home.start();
    create(&server, &pound());
    let events: Vec<Value> = sales.iter().map(|invoice| sale(invoice)).collect();
    for chunk in events.chunks(2_000) {
        server.lines("/v1/events?wait=awarded", chunk).expect(200);
    }

    // A tenth of each, and then the rest: first what is left follows from the remaining amount.
    let expected = model(&invoices);
    let members: Vec<&String> = expected.keys().collect();
    let refund = |invoice: &Invoice, part: &str, thousandths: i64| {
        json!({
            "specversion": "1.0", "id": format!("{}-{part}", invoice.number), "source": "shop",
            "type": "retail.refund", "time": invoice.time,
            "data": {"customer": invoice.customer, "invoice": invoice.number,
                     "amount": decimal(thousandths)},
        })
    };
    let mut left = BTreeMap::<&String, i64>::new();
    let mut parts = Vec::new();
    for invoice in &sales {
        let tenth = invoice.thousandths / 10;
        parts.push(refund(invoice, "tenth", tenth));
        *left.entry(&invoice.customer).or_insert(0) += (invoice.thousandths - tenth) / 1_000;
    }
    for chunk in parts.chunks(2_000) {
        server.lines("/v1/events?wait=awarded", chunk).expect(200);
    }
    assert_eq!(balances(&server, &members), left.values().copied().collect::<Vec<_>>());

    // Half of the customers have spent everything before the rest comes back: they owe it.
    let spenders: Vec<&String> = members.iter().copied().step_by(2).collect();
    let burns: Vec<Value> = spenders
        .iter()
        .filter(|name| left[*name] > 0)
        .map(|name| {
            json!({"kind": "burn", "programme": "pound", "member": name, "points": left[*name],
                   "key": format!("all-{name}"), "reason": "spent"})
        })
        .collect();
    for chunk in burns.chunks(1_000) {
        let burned = results(&server, "/v1/points/transactions", "transactions", chunk);
        assert!(burned.iter().all(|result| result["error"].is_null()), "{burned:?}");
    }
    let rest: Vec<Value> = sales
        .iter()
        .map(|invoice| refund(invoice, "rest", invoice.thousandths - invoice.thousandths / 10))
        .collect();
    for chunk in rest.chunks(2_000) {
        server.lines("/v1/events?wait=awarded", chunk).expect(200);
    }

    let wanted: Vec<i64> =
        members.iter().map(|name| if spenders.contains(name) { -left[*name] } else { 0 }).collect();
    assert_eq!(balances(&server, &members), wanted);
    server.kill();
    verify(&home);
}
