//! Real invoices month by month under a clock of an experiment: what every customer has at each
//! month's end, and what has expired by then, beside a computation of its own.
//!
//! `RAINGAUGE_RETAIL` names a file of a whole year, as in [`super::retail`].

use super::retail::{BEST_CUSTOMER, Invoice, invoices, is_sale, sale};
use super::{create, results, verify};
use crate::client::{Client, now_s};
use crate::crash::seed;
use crate::server::{Home, until};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Customers whose balances are also read afterwards, as of each month's end.
const SAMPLE: usize = 200;
/// Months behind the last invoice, in which everything of the shorter programmes expires.
const MONTHS_AFTER: i64 = 4;

/// How long points live behind the end of their last month.
const GRACE_HOURS: i64 = 24;

/// How points of a programme expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    /// All together, this number of months after the month of the last sale.
    Activity(i64),
    /// Those of each sale by themselves.
    Fixed(i64),
}

const PROGRAMMES: [(&str, Expiry); 3] = [
    ("half-year", Expiry::Activity(6)),
    ("quarter", Expiry::Activity(3)),
    ("each-alone", Expiry::Fixed(2)),
];

/// Months since the year 0.
type Month = i64;

/// One point a whole pound.
struct Sale {
    month: Month,
    points: i64,
}

#[test]
fn month_ends_of_real_invoices_agree_with_a_computation_of_their_own() {
    let sales: Vec<Invoice> = invoices().0.into_iter().filter(is_sale).collect();
    let model = Model::new(&sales);
    let mut by_month = BTreeMap::<Month, Vec<Value>>::new();
    for invoice in &sales {
        by_month.entry(month_of(&invoice.time)).or_default().push(sale(invoice));
    }
    let first = *by_month.keys().next().expect("invoices");
    let last = *by_month.keys().next_back().expect("invoices");

    // Each month is imported in its last hours; the clock then jumps to those of the next one.
    let mut random = StdRng::seed_from_u64(seed());
    let mut home = Home::with(&[("clock.ahead_days_max", "40")]);
    for month in first..=last + MONTHS_AFTER {
        set_clock(&mut home, late_on_last_day(month));
        let server = home.start();
        if month == first {
            PROGRAMMES.iter().for_each(|(name, expiry)| create(&server, &programme(name, *expiry)));
        }
        let mut events = by_month.remove(&month).unwrap_or_default();
        events.shuffle(&mut random);
        for chunk in events.chunks(2_000) {
            server.lines("/v1/events?wait=awarded", chunk).expect(200);
        }

        for (name, expiry) in PROGRAMMES {
            let expected = model.balances(expiry, month);
            let members: Vec<&String> = expected.keys().collect();
            let found = balances(&server, name, &members, None);
            let wanted: Vec<i64> = expected.values().map(|lots| lots.values().sum()).collect();
            assert_eq!(found, wanted, "{name} in {}", shown(month));
        }
        check_liabilities(&server, &model, month);
        server.kill();
    }

    check_the_past(&mut home, &model, first..=last + MONTHS_AFTER);
    let summary = verify(&home);
    let awards = sales.len() * PROGRAMMES.len();
    assert!(summary["entries"].as_u64() >= Some(awards as u64), "{summary}");
}

/// Lets a sweep write down what has expired, and compares what is owed, by the month in which it
/// expires.
fn check_liabilities(server: &Client, model: &Model, month: Month) {
    let begun = server.post("/v1/points/sweeps", &json!({})).expect(202);
    until("the sweep is finished", || {
        let listed = server.get("/v1/points/sweeps").expect(200);
        let sweeps = listed["sweeps"].as_array().expect("sweeps");
        let is_over = |sweep: &&Value| sweep["id"] == begun["id"] && sweep["state"] == "finished";
        sweeps.iter().find(is_over).map(|_| ())
    });

    for (name, expiry) in PROGRAMMES {
        let mut expected = BTreeMap::<String, i64>::new();
        for (until, points) in model.balances(expiry, month).into_values().flatten() {
            *expected.entry(shown(until)).or_insert(0) += points;
        }
        expected.retain(|_, points| *points != 0);

        let liability = server.get(&format!("/v1/points/{name}/liability")).expect(200);
        let months = liability["months"].as_array().expect("months").iter();
        let found: BTreeMap<String, i64> = months
            .map(|row| (row["month"].as_str().expect("a month").to_owned(), number(&row["points"])))
            .filter(|(_, points)| *points != 0)
            .collect();
        assert_eq!(found, expected, "{name} in {}", shown(month));

        let owed: i64 = expected.values().sum();
        let issued = model.issued(month);
        let sums = ["total", "issued", "expired"].map(|sum| number(&liability[sum]));
        assert_eq!(sums, [owed, issued, issued - owed], "{name} in {}", shown(month));
        let gone = liability["breakage"].as_array().expect("months").iter();
        let expired: i64 = gone.map(|row| number(&row["expired"])).sum();
        assert_eq!(expired, issued - owed, "by month, {name} in {}", shown(month));
    }
}

/// Reads balances as of a second before the grace of each month ends, and a second behind it, when
/// what ends with that month is gone.
fn check_the_past(home: &mut Home, model: &Model, months: std::ops::RangeInclusive<Month>) {
    set_clock(home, late_on_last_day(months.end() + 1));
    let server = home.start();
    let all = model.sales.keys().filter(|name| *name != BEST_CUSTOMER);
    let step = (model.sales.len() / SAMPLE).max(1);
    let members: Vec<&String> = all.step_by(step).collect();
    let best = BEST_CUSTOMER.to_owned();
    let members = [vec![&best], members].concat();

    for month in months {
        let end_s = start_of(month + 1) + GRACE_HOURS * 3_600;
        for (name, expiry) in PROGRAMMES {
            let of = |balances: &BTreeMap<String, BTreeMap<Month, i64>>, from: Month| {
                let points = |member: &&String| {
                    let lots = balances.get(*member);
                    lots.map_or(0, |lots| lots.range(from..).map(|(_, points)| points).sum())
                };
                members.iter().map(points).collect::<Vec<i64>>()
            };
            let lots = model.balances(expiry, month);
            let found = balances(&server, name, &members, Some(end_s - 1));
            assert_eq!(found, of(&lots, month), "{name} at the end of {}", shown(month));
            let found = balances(&server, name, &members, Some(end_s + 1));
            assert_eq!(found, of(&lots, month + 1), "{name} behind {}", shown(month));
        }
    }
    server.kill();
}

fn programme(name: &str, expiry: Expiry) -> Value {
    let (kind, months) = match expiry {
        Expiry::Activity(months) => ("activity", months),
        Expiry::Fixed(months) => ("fixed", months),
    };
    json!({
        "programme": name, "unit": "points", "rounding": "down", "timezone": "Europe/London",
        "expiry": {"kind": kind, "months": months, "graceHours": GRACE_HOURS},
        "rules": [{"id": 1, "name": "invoice", "eventType": "retail.sale",
                   "member": "data.customer", "amount": "data.amount",
                   "reference": "data.invoice"}],
    })
}

/// The sales of each customer, in the order of their months.
struct Model {
    sales: BTreeMap<String, Vec<Sale>>,
}

impl Model {
    fn new(invoices: &[Invoice]) -> Self {
        let mut sales = BTreeMap::<String, Vec<Sale>>::new();
        for invoice in invoices {
            // So that the month of London is that of UTC, and no sale lies behind the import.
            let hour: u32 = invoice.time[11..13].parse().expect("an hour");
            assert!((1..21).contains(&hour), "{invoice:?}");
            let sale = Sale { month: month_of(&invoice.time), points: invoice.thousandths / 1_000 };
            sales.entry(invoice.customer.clone()).or_default().push(sale);
        }
        sales.values_mut().for_each(|sales| sales.sort_by_key(|sale| sale.month));
        Self { sales }
    }

    /// What each customer has on the last day of a month, by the month in which it expires.
    /// Customers without a sale until then are left out.
    fn balances(&self, expiry: Expiry, now: Month) -> BTreeMap<String, BTreeMap<Month, i64>> {
        let mut balances = BTreeMap::new();
        for (customer, sales) in &self.sales {
            let sales: Vec<&Sale> = sales.iter().filter(|sale| sale.month <= now).collect();
            if sales.is_empty() {
                continue;
            }
            let mut lots = match expiry {
                Expiry::Fixed(months) => {
                    let mut lots = BTreeMap::new();
                    for sale in sales {
                        *lots.entry(sale.month + months).or_insert(0) += sale.points;
                    }
                    lots
                }
                Expiry::Activity(months) => kept_by_activity(&sales, months),
            };
            // What expires with this month can still be spent on its last day.
            lots.retain(|until, _| *until >= now);
            balances.insert(customer.clone(), lots);
        }
        balances
    }

    /// Points of all sales until the end of a month.
    fn issued(&self, now: Month) -> i64 {
        let all = self.sales.values().flatten();
        all.filter(|sale| sale.month <= now).map(|sale| sale.points).sum()
    }
}

/// One lot, which each sale extends, unless it had expired before that month.
fn kept_by_activity(sales: &[&Sale], months: i64) -> BTreeMap<Month, i64> {
    let mut until = Month::MIN;
    let mut points = 0;
    for sale in sales {
        if until < sale.month {
            points = 0;
        }
        until = sale.month + months;
        points += sale.points;
    }
    BTreeMap::from([(until, points)])
}

/// Available points of each member, now or as of a moment.
fn balances(server: &Client, programme: &str, members: &[&String], at_s: Option<i64>) -> Vec<i64> {
    let mut balances = Vec::new();
    for chunk in members.chunks(1_000) {
        let list: Vec<Value> =
            chunk.iter().map(|name| json!({"programme": programme, "member": name})).collect();
        let found = match at_s {
            None => results(server, "/v1/points/balances", "members", &list),
            Some(at_s) => {
                let body = json!({"members": list, "at": at_s});
                let answer = server.post("/v1/points/balances", &body).expect(200);
                answer["results"].as_array().expect("results").clone()
            }
        };
        balances.extend(found.iter().map(|balance| number(&balance["available"])));
    }
    balances
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a whole number: {value}"))
}

/// The month of a time such as `2011-11-14T08:10:00Z`.
fn month_of(time: &str) -> Month {
    let digits = |range: std::ops::Range<usize>| time[range].parse::<i64>().expect("digits");
    digits(0..4) * 12 + digits(5..7) - 1
}

fn shown(month: Month) -> String {
    format!("{}-{:02}", month / 12, month % 12 + 1)
}

/// Midnight in London at which a month begins, in seconds since 1970.
fn start_of(month: Month) -> i64 {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (year, in_year) = (month / 12, month % 12);
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = lengths[..in_year as usize].iter().sum();

    // Summer time is in force on the first day of April to October.
    let ahead_s = if (3..=9).contains(&in_year) { 3_600 } else { 0 };
    (years + months) * 86_400 - ahead_s
}

/// Late on the last day of a month: everything that is imported has happened.
fn late_on_last_day(month: Month) -> i64 {
    start_of(month + 1) - 2 * 3_600
}

fn set_clock(home: &mut Home, time_s: i64) {
    home.set("clock.experiment", &format!("{time_s} at {} times 1", now_s()));
}
