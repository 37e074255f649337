//! ClickHouse: events are inserted into a MergeTree ordered by key and time. A materialized view
//! adds each inserted block to counts of quarter hours in a SummingMergeTree ordered by key and
//! bucket, which answers all questions.
//!
//! Inserts are large, as its documentation recommends. A retried insert is detected by its token, a
//! repeated event is not: the view sums whatever is inserted.

use super::Writes;
use super::client::{Client, Mode, Peer};
use super::embedded::{Connected, keys, query, within};
use super::http::Asking;
use super::question::Question;
use crate::workload::{Workload, key_of};
use anyhow::{Context, Result};

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

pub struct ClickHouse {
    pub port: u16,
    /// Events of this day and later are new.
    pub live_from_s: i64,
}

/// RowBinary.
fn render(bytes: &mut Vec<u8>, key: &str, time_s: i64, id: u64) {
    bytes.push(key.len() as u8);
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(&(time_s as u32).to_le_bytes());
    bytes.extend_from_slice(&id.to_le_bytes());
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

impl Client for Connected {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        Asking { request: query(&sql(question)), question: question.clone() }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        let rows = self.rows(&asking.request).await?;
        asking.question.answer_of_rows(rows).context("ClickHouse")
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        Connected::write(self, writes, turn, render).await
    }
}

impl Peer for ClickHouse {
    type Client = Connected;

    fn how(&self) -> &'static str {
        "MergeTree of events, SummingMergeTree of quarter hours by a materialized view"
    }

    fn modes(&self) -> Vec<Mode> {
        let how = "RowBinary, materialized view".to_owned();
        vec![Mode {
            how,
            durable: false,
            exactly_once: false,
            batch_events: 50_000,
            connections: 2,
        }]
    }

    async fn connect(&self) -> Result<Connected> {
        Connected::open(self.port).await
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connected = self.connect().await?;
        for statement in SCHEMA {
            connected.execute(statement).await?;
        }
        connected.load(workload, render).await
    }

    /// Merges parts, as the server would do over time.
    async fn settle(&self) -> Result<()> {
        let mut connected = self.connect().await?;
        connected.execute("OPTIMIZE TABLE lab.counts FINAL").await?;
        connected.execute("OPTIMIZE TABLE lab.events FINAL").await
    }

    async fn total(&self) -> Result<i64> {
        let sql = format!("SELECT sum(n) FROM lab.counts WHERE bucket >= {}", self.live_from_s);
        self.connect().await?.number(&sql).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Kind, questions};
    use crate::workload::Settings;

    #[test]
    fn an_event_is_a_row_of_its_binary_form() {
        let mut bytes = Vec::new();
        render(&mut bytes, "abc", 1, 2);
        assert_eq!(bytes, b"\x03abc\x01\0\0\0\x02\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_batch_is_one_statement_over_its_keys() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        let one = sql(&questions(&workload, Kind::Week)[0]);
        assert!(one.starts_with("SELECT sum(n) FROM lab.counts WHERE key = 'lab:city:c0"), "{one}");
        let ten = sql(&questions(&workload, Kind::Batch)[0]);
        assert_eq!(ten.matches("sumIf(").count(), 10);
        assert!(ten.contains(" WHERE key IN ('lab:city:c0"), "{ten}");
    }
}
