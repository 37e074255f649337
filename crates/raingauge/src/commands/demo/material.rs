//! The data of the demo: the extracts of `demo/`, their mappings and counters, and the worked
//! example.

use serde_json::{Value, json};

/// One import: a file, and how to read it.
pub struct File {
    pub name: &'static str,
    pub content: &'static [u8],
    pub mapping: &'static str,
}

macro_rules! demo_text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/", $name))
    };
}

macro_rules! import {
    ($file:literal, $mapping:literal) => {
        File {
            name: $file,
            content: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/", $file)),
            mapping: demo_text!($mapping),
        }
    };
}

pub static TAXI: File = import!("taxi.csv.gz", "taxi.mapping.toml");

/// The shop's file is read three times: as lines, as invoices, and as lines that differ.
pub static FILES: [&File; 7] = [
    &TAXI,
    &import!("retail.csv.gz", "retail.mapping.toml"),
    &import!("retail.csv.gz", "retail-invoices.mapping.toml"),
    &import!("retail.csv.gz", "retail-distinct-lines.mapping.toml"),
    &import!("coffee.jsonl.gz", "coffee.mapping.toml"),
    &import!("chicago.csv.gz", "chicago.mapping.toml"),
    &import!("quakes.csv.gz", "quakes.mapping.toml"),
];

pub const COUNTERS: [&str; 7] = [
    demo_text!("taxi.counters.yaml"),
    demo_text!("retail.counters.yaml"),
    demo_text!("coffee.counters.yaml"),
    demo_text!("chicago.counters.yaml"),
    demo_text!("quakes.counters.yaml"),
    demo_text!("live.counters.yaml"),
    RAIN,
];

const RAIN: &str = "\
id: 34
name: count_rain_drops
template: 'rain_drops:city:{city_id}'
eventType: rain_drop
retentionDays: {quarter: null, hour: null, day: null}
owner: weather
description: Rain drops in each city; the worked example
";

pub const RAIN_KEY: &str = "rain_drops:city:111222";

pub const SOURCES: &str = "\
Extracts of public data; demo/SOURCES.md tells how they were cut.
  taxi     NYC Taxi & Limousine Commission, by great-expectations/great_expectations (Apache-2.0)
  retail   Online Retail, by allanvc/onlineretail (CC0)
  coffee   ElastiCoffee, elastic/examples (Apache-2.0)
  chicago  City of Chicago taxi trips, by tensorflow/tfx (Apache-2.0)
  quakes   Northern California Earthquake Data Center, doi:10.7932/NCEDC, by elastic/examples (Apache-2.0)
  rain     the worked example: counts that were made elsewhere, loaded as buckets";

/// The buckets of the worked example, as `POST /v1/buckets` takes them.
pub fn worked_example() -> Value {
    let rows = [
        ("quarter", "2024-09-24T22:00:00Z", 3),
        ("quarter", "2024-09-24T22:15:00Z", 2),
        ("quarter", "2024-09-24T22:30:00Z", 4),
        ("quarter", "2024-09-24T22:45:00Z", 1),
        ("quarter", "2024-09-27T01:00:00Z", 2),
        ("quarter", "2024-09-27T01:15:00Z", 3),
        ("hour", "2024-09-24T22:00:00Z", 18),
        ("hour", "2024-09-24T23:00:00Z", 22),
        ("hour", "2024-09-25T00:00:00Z", 15),
        ("hour", "2024-09-27T00:00:00Z", 11),
        ("hour", "2024-09-27T01:00:00Z", 9),
        ("day", "2024-09-24T00:00:00Z", 214),
        ("day", "2024-09-25T00:00:00Z", 189),
        ("day", "2024-09-26T00:00:00Z", 245),
        ("day", "2024-09-27T00:00:00Z", 78),
    ];

    let bucket = |(granularity, time, count): (&str, &str, i64)| {
        json!({
            "key": RAIN_KEY, "granularity": granularity, "time": time, "count": count,
        })
    };
    rows.into_iter().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::counters::Drafts;
    use raingauge_import::{Mapping, Rows};
    use std::path::Path;

    #[test]
    fn everything_built_in_can_be_read() {
        for file in &FILES {
            let mapping = Mapping::parse(file.mapping).unwrap();
            let mut rows =
                Rows::read(Box::new(file.content), Path::new(file.name), &mapping).unwrap();
            assert!(rows.next_row().unwrap().unwrap().event.is_ok(), "{}", file.name);
        }
        for counters in COUNTERS {
            Drafts::parse(counters).unwrap();
        }
    }
}
