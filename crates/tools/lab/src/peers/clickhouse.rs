//! ClickHouse: events are inserted into a MergeTree ordered by key and time. A materialized view
//! adds each inserted block to counts of quarter hours in a SummingMergeTree ordered by key and
//! bucket, which answers all questions.
//!
//! Inserts are large, as its documentation recommends. A retried insert is detected by its token, a
//! repeated event is not: the view sums whatever is inserted.

use super::client::Mode;
use super::embedded::{Dialect, keys, within};
use super::question::Question;
use crate::workload::key_of;

// Point reads need small granules; the default of 8,192 rows is meant for scans.
const SCHEMA: [&str; 4] = [
    "CREATE DATABASE lab",
    "CREATE TABLE lab.events (key LowCardinality(String), time DateTime('UTC'), id UInt64)
     ENGINE = MergeTree PARTITION BY toYYYYMM(time) ORDER BY (key, time)",
    "CREATE TABLE lab.counts (key LowCardinality(String), bucket DateTime('UTC'), n UInt64)
     ENGINE = SummingMergeTree ORDER BY (key, bucket) SETTINGS index_granularity = 1024",
    "CREATE MATERIALIZED VIEW lab.counting TO lab.counts AS
     SELECT key, toStartOfFifteenMinutes(time) AS bucket, count() AS n FROM lab.events GROUP BY key, bucket",
];

pub enum ClickHouse {}

impl Dialect for ClickHouse {
    const TITLE: &'static str = "ClickHouse";
    const HOW: &'static str =
        "MergeTree of events, SummingMergeTree of quarter hours by a materialized view";
    const SCHEMA: &'static [&'static str] = &SCHEMA;
    /// Merges parts, as the server would do over time.
    const SETTLE: &'static [&'static str] =
        &["OPTIMIZE TABLE lab.counts FINAL", "OPTIMIZE TABLE lab.events FINAL"];
    const TOTAL: &'static str = "SELECT sum(n) FROM lab.counts WHERE bucket >=";

    fn mode() -> Mode {
        Mode::new("RowBinary, materialized view", 50_000, 2)
    }

    fn sql(question: &Question) -> String {
        match question {
            Question::Counts(ranges) if ranges.len() == 1 => {
                format!("SELECT sum(n) FROM lab.counts WHERE {}", within(&ranges[0], "bucket"))
            }
            Question::Counts(ranges) => {
                let sums: Vec<String> = ranges
                    .iter()
                    .map(|range| format!("sumIf(n, {})", within(range, "bucket")))
                    .collect();
                let from_s = ranges.iter().map(|range| range.floored().0).min().unwrap_or_default();
                let to_s = ranges.iter().map(|range| range.floored().1).max().unwrap_or_default();

                format!(
                    "SELECT {} FROM lab.counts WHERE key IN ({}) AND bucket >= {from_s} AND bucket < {to_s}",
                    sums.join(", "),
                    keys(ranges)
                )
            }
            Question::Series(days, _) => format!(
                "SELECT toUnixTimestamp(toStartOfDay(bucket)) AS day, sum(n) FROM lab.counts
                 WHERE key = '{}' AND bucket >= {} AND bucket < {} GROUP BY day",
                key_of(days.city),
                days.from_s,
                days.to_s
            ),
        }
    }

    /// RowBinary.
    fn render(bytes: &mut Vec<u8>, key: &str, time_s: i64, id: u64) {
        bytes.push(key.len() as u8);
        bytes.extend_from_slice(key.as_bytes());
        bytes.extend_from_slice(&(time_s as u32).to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Kind, questions};
    use crate::workload::{Settings, Workload};

    #[test]
    fn an_event_is_a_row_of_its_binary_form() {
        let mut bytes = Vec::new();
        ClickHouse::render(&mut bytes, "abc", 1, 2);
        assert_eq!(bytes, b"\x03abc\x01\0\0\0\x02\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_batch_is_one_statement_over_its_keys() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        let one = ClickHouse::sql(&questions(&workload, Kind::Week)[0]);
        assert!(one.starts_with("SELECT sum(n) FROM lab.counts WHERE key = 'lab:city:c0"), "{one}");
        let ten = ClickHouse::sql(&questions(&workload, Kind::Batch)[0]);
        assert_eq!(ten.matches("sumIf(").count(), 10);
        assert!(ten.contains(" WHERE key IN ('lab:city:c0"), "{ten}");
    }
}
