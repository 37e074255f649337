//! Response times of the portal's pages, with many counters and a year of data.
//!
//! ```text
//!   load: COUNTERS counters; of one key of the first, a year of quarter hours, hours and days
//!   measure: each page repeatedly over one connection, from the request to its answer's last byte
//! ```
//!
//! Pages need no sign-in here: the server runs with `portal.sign_in = false`.

use crate::http::Target;
use crate::http::client::Client;
use crate::plan::{DAY_S, Granularity, QUARTER_S};
use crate::server::{BUCKETS_PER_REQUEST, bucket_json, set_buckets};
use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Instant;

/// Longer latencies are recorded as this value.
const LATENCY_MAX_US: u64 = 60_000_000;
/// Length of the loaded history, in days.
const DAYS: i64 = 365;
/// The key with a year of data; on the last of these days, 64 others have data too.
const KEY: &str = "lab_page:0:1";
const OTHER_KEYS: i64 = 64;

/// The latencies of one page.
#[derive(Debug)]
pub struct PageTiming {
    pub what: &'static str,
    pub bytes: usize,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub max_ms: f64,
}

/// Creates the counters and loads the year. Existing data stays.
pub fn load(target: &Target, counters: usize, now_s: i64) -> Result<u32> {
    let mut client = Client::connect(target)?;
    let listed = client.json("GET", "/v1/counters", b"")?;
    let known = listed["counters"].as_array().context("an answer without counters")?;
    let known: BTreeSet<&str> =
        known.iter().filter_map(|counter| counter["template"].as_str()).collect();

    for number in 0..counters {
        let template = template(number);
        if !known.contains(template.as_str()) {
            let counter = json!({
                "name": format!("lab page {number}"), "template": template, "eventType": format!("lab_page_{}", number % 20),
                "owner": format!("team {}", number % 12), "description": "One of many counters, for measuring pages",
                "filter": { "operator": "gte", "lhs": "data.fare", "rhs": number },
                "retentionDays": { "quarter": null, "hour": null, "day": null },
            });
            client.json("POST", "/v1/counters", &serde_json::to_vec(&counter)?)?;
        }
    }

    let listed = client.json("GET", "/v1/counters", b"")?;
    let first = listed["counters"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|counter| counter["template"] == template(0));

    let id =
        first.and_then(|counter| counter["id"].as_u64()).context("the first counter is missing")?;
    for chunk in year(now_s).chunks(BUCKETS_PER_REQUEST) {
        set_buckets(&mut client, chunk)?;
    }

    Ok(u32::try_from(id)?)
}

fn template(number: usize) -> String {
    format!("lab_page:{number}:{{city_id}}")
}

/// A year up to the last midnight: quarter hours with daily and weekly cycles, and the hours and
/// days that add them up.
fn year(now_s: i64) -> Vec<String> {
    let end_s = now_s - now_s % DAY_S;
    let start_s = end_s - DAYS * DAY_S;
    let count =
        |quarter: i64| 3 + (quarter % 96 - 48).abs() + if quarter / 96 % 7 < 2 { 20 } else { 0 };
    let of = |granularity: Granularity| {
        let bucket = move |time_s: i64| {
            let first = (time_s - start_s) / QUARTER_S;
            let sum = (first..first + granularity.width_s() / QUARTER_S).map(count).sum();
            bucket_json(KEY, granularity, time_s, sum)
        };
        (start_s..end_s).step_by(granularity.width_s() as usize).map(bucket)
    };

    let other =
        |city| bucket_json(&format!("lab_page:0:{city}"), Granularity::Day, end_s - DAY_S, city);
    Granularity::ALL.into_iter().flat_map(of).chain((2..2 + OTHER_KEYS).map(other)).collect()
}

/// Requests each page `requests` times, after a warm-up.
pub fn measure(target: &Target, id: u32, requests: u32, now_s: i64) -> Result<Vec<PageTiming>> {
    let end_s = now_s - now_s % DAY_S;
    let (from_s, to_s) = (end_s - DAYS * DAY_S + 900, end_s - 4_500);
    let key = "key=lab_page%3A0%3A1";
    let pages = [
        ("list of counters", "/".to_owned()),
        ("list, searched and sorted", "/?q=team+3&sort=-activity".to_owned()),
        ("a counter, latest data (a year of days)", format!("/counters/{id}")),
        (
            "a counter, a year of hours, compared",
            format!("/counters/{id}?{key}&range=1y&granularity=hour&compare=1"),
        ),
        ("chart alone, a year of days", format!("/counters/{id}/chart.svg?{key}&range=1y")),
        (
            "chart alone, a year of hours",
            format!("/counters/{id}/chart.svg?{key}&range=1y&granularity=hour"),
        ),
        (
            "CSV, a year of quarter hours",
            format!("/counters/{id}/series.csv?{key}&range=1y&granularity=quarter"),
        ),
        ("versions", format!("/counters/{id}/versions")),
        ("query, a year", format!("/query?{key}&from={from_s}&to={to_s}")),
    ];

    let mut client = Client::connect(target)?;
    pages.iter().map(|(what, path)| time(&mut client, what, path, requests)).collect()
}

fn time(client: &mut Client, what: &'static str, path: &str, requests: u32) -> Result<PageTiming> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LATENCY_MAX_US, 3)
        .map_err(|error| anyhow!("cannot create a histogram: {error}"))?;
    let mut bytes = 0;
    for number in 0..requests + requests / 10 + 2 {
        let began = Instant::now();
        let answer = client.call("GET", path, b"")?;
        let took = began.elapsed();
        ensure!(answer.status == 200, "GET {path} answered {}: {}", answer.status, answer.text());
        bytes = answer.body.len();

        if number > requests / 10 {
            histogram.saturating_record(took.as_micros() as u64);
        }
    }

    let ms = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(PageTiming { what, bytes, p50_ms: ms(0.5), p95_ms: ms(0.95), max_ms: ms(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_year_adds_up() {
        let year = year(1_795_000_000);
        let parse = |bucket: &String| serde_json::from_str::<Value>(bucket).unwrap();
        let buckets: Vec<Value> = year.iter().map(parse).collect();
        let sum = |granularity: &str| {
            let own = buckets
                .iter()
                .filter(|bucket| bucket["granularity"] == granularity && bucket["key"] == KEY);
            own.map(|bucket| bucket["count"].as_i64().unwrap_or_default()).sum::<i64>()
        };
        assert_eq!(buckets.len() as i64, DAYS * (96 + 24 + 1) + OTHER_KEYS);
        assert!(sum("quarter") > 0);
        assert_eq!((sum("hour"), sum("day")), (sum("quarter"), sum("quarter")));
    }
}
