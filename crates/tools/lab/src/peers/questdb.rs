//! QuestDB: events are sent in the InfluxDB line protocol over HTTP to a table partitioned by day
//! that deduplicates rows by time, key and id. A materialized view keeps the counts of quarter
//! hours, which answer all questions.
//!
//! The view is refreshed asynchronously: an acknowledged event becomes visible a moment later.

use super::Writes;
use super::client::{Client, Mode, Peer};
use super::http::{self, Asking, Connection};
use super::question::Question;
use crate::events::Drop;
use crate::plan::QUARTER_S;
use crate::workload::{Range, Workload, key_of};
use anyhow::{Context, Result};
use raingauge_console::encoded;
use serde::Deserialize;
use std::fmt::Write;
use std::time::Duration;

const MICROSECONDS: i64 = 1_000_000;
const LOAD_EVENTS: usize = 50_000;
const SCHEMA: [&str; 2] = [
    "CREATE TABLE events (key SYMBOL CAPACITY 16384, id LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY WAL
     DEDUP UPSERT KEYS(ts, key, id)",
    "CREATE MATERIALIZED VIEW counts AS (SELECT ts, key, count() AS n FROM events SAMPLE BY 15m) PARTITION BY WEEK",
];

pub struct QuestDb {
    pub port: u16,
    /// Events of this day and later are new.
    pub live_from_s: i64,
}

pub struct Handle(Connection);

#[derive(Deserialize)]
struct Answer {
    dataset: Vec<Vec<Option<i64>>>,
}

fn line(text: &mut String, city: u32, time_s: i64, id: u64) {
    // Writing to memory cannot fail. QuestDB's integers are signed.
    let _ = writeln!(text, "events,key={} id={}i {time_s}", key_of(city), id as i64);
}

fn lines<'a>(events: impl Iterator<Item = (&'a Drop, u64)>) -> String {
    let mut text = String::new();
    for (drop, id) in events {
        line(&mut text, drop.city, drop.time_s, id);
    }
    text
}

fn exec(sql: &str) -> Vec<u8> {
    http::get(&format!("/exec?query={}", encoded(sql)))
}

fn within(city: u32, from_s: i64, to_s: i64) -> String {
    format!(
        "key = '{}' AND ts >= {} AND ts < {}",
        key_of(city),
        from_s * MICROSECONDS,
        to_s * MICROSECONDS
    )
}

fn sql(question: &Question) -> String {
    match question {
        Question::Counts(ranges) => {
            let one = |range: &Range| {
                let (from_s, to_s) = range.floored();
                format!(
                    "SELECT sum(n) FROM counts WHERE {}",
                    within(range.asked.city, from_s, to_s)
                )
            };
            ranges.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ")
        }
        Question::Series(days, _) => format!(
            "SELECT cast(ts AS LONG) / {MICROSECONDS}, n FROM (SELECT ts, sum(n) AS n FROM counts WHERE {} SAMPLE BY 1d)",
            within(days.city, days.from_s, days.to_s)
        ),
    }
}

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        Asking { request: exec(&sql(question)), question: question.clone() }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        let answer: Answer = serde_json::from_slice(&self.0.call(&asking.request).await?)?;
        let rows = answer.dataset.into_iter();
        let mut rows: Vec<Vec<i64>> =
            rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect();
        if let Question::Counts(_) = asking.question {
            // One row per range.
            rows = vec![rows.concat()];
        }
        asking.question.answer_of_rows(rows).context("QuestDB")
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        let body = lines(batch.iter().zip(writes.new_ids(batch.len())));
        self.0.call(&http::post("/write?precision=s", "text/plain", body.as_bytes())).await?;
        Ok(batch.len() as u64)
    }
}

impl Peer for QuestDb {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a table of events by day, a materialized view of quarter hours, SQL over HTTP"
    }

    fn modes(&self) -> Vec<Mode> {
        vec![Mode::new("line protocol over HTTP, DEDUP UPSERT KEYS", 10_000, 4).exactly_once()]
    }

    /// Gives the JVM time to compile the hot paths.
    fn warm_up(&self) -> Duration {
        Duration::from_secs(5)
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle(Connection::open(self.port).await?))
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connected = self.connect().await?.0;
        for statement in SCHEMA {
            connected.call(&exec(statement)).await?;
        }

        // In chronological order, as live events would arrive.
        let mut drops: Vec<(u32, i64)> = workload.drops().collect();
        drops.sort_unstable_by_key(|&(_, time_s)| time_s);

        for (place, chunk) in drops.chunks(LOAD_EVENTS).enumerate() {
            let mut body = String::new();
            for (number, &(city, time_s)) in chunk.iter().enumerate() {
                line(&mut body, city, time_s, (place * LOAD_EVENTS + number) as u64);
            }
            connected
                .call(&http::post("/write?precision=s", "text/plain", body.as_bytes()))
                .await?;
        }

        Ok(())
    }

    async fn total(&self) -> Result<i64> {
        let from_s = self.live_from_s.div_euclid(QUARTER_S) * QUARTER_S;
        let sql = format!("SELECT sum(n) FROM counts WHERE ts >= {}", from_s * MICROSECONDS);
        let answer: Answer =
            serde_json::from_slice(&self.connect().await?.0.call(&exec(&sql)).await?)?;
        Ok(answer.dataset.first().and_then(|row| *row.first()?).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Kind, questions};
    use crate::workload::Settings;

    #[test]
    fn an_event_is_a_line() {
        let drop = Drop { city: 7, time_s: 1_795_000_000, amount_cents: 1 };
        assert_eq!(
            lines([(&drop, 5)].into_iter()),
            "events,key=lab:city:c00007 id=5i 1795000000\n"
        );
        assert_eq!(
            lines([(&drop, u64::MAX)].into_iter()),
            "events,key=lab:city:c00007 id=-1i 1795000000\n"
        );
    }

    #[test]
    fn a_batch_is_one_statement() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        let ten = sql(&questions(&workload, Kind::Batch)[0]);
        assert_eq!(ten.matches("SELECT sum(n) FROM counts WHERE key = 'lab:city:").count(), 10);
        assert_eq!(ten.matches(" UNION ALL ").count(), 9);
        assert!(exec("SELECT 1").starts_with(b"GET /exec?query=SELECT%201 HTTP"));
    }
}
