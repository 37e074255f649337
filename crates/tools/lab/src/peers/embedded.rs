//! Engines without a server, ClickHouse (as chdb) and DuckDB: a small Python program in
//! scripts/peers.d embeds one and serves it over loopback. `POST /query` takes SQL and returns
//! lines of numbers, `POST /insert` takes rows in the engine's fastest format. It handles one
//! request at a time, on the server's core.

use super::Writes;
use super::client::{Client, Mode, Peer};
use super::http::{self, Asking, Connection};
use super::question::Question;
use crate::workload::{Range, Workload, key_of};
use anyhow::{Context, Result, ensure};
use std::marker::PhantomData;

/// Events per insert while the history is loaded.
const LOAD_EVENTS: usize = 100_000;

/// What differs between the engines.
pub trait Dialect: 'static {
    const TITLE: &'static str;
    const HOW: &'static str;
    const SCHEMA: &'static [&'static str];
    /// Statements that merge data and flush it to disk.
    const SETTLE: &'static [&'static str];
    /// The number of events from a time on, in seconds, which follows.
    const TOTAL: &'static str;

    fn mode() -> Mode;

    fn sql(question: &Question) -> String;

    /// Renders one event in the engine's fastest format.
    fn render(bytes: &mut Vec<u8>, key: &str, time_s: i64, id: u64);
}

pub struct Engine<D> {
    port: u16,
    /// Events from this time on are new.
    live_from_s: i64,
    dialect: PhantomData<D>,
}

impl<D> Engine<D> {
    pub fn new(port: u16, live_from_s: i64) -> Self {
        Self { port, live_from_s, dialect: PhantomData }
    }
}

pub struct Handle<D> {
    connection: Connection,
    dialect: PhantomData<D>,
}

fn query(sql: &str) -> Vec<u8> {
    http::post("/query", "text/plain", sql.as_bytes())
}

/// The SQL condition for a range.
pub fn within(range: &Range, column: &str) -> String {
    let (from_s, to_s) = range.floored();
    format!("key = '{}' AND {column} >= {from_s} AND {column} < {to_s}", key_of(range.asked.city))
}

/// The keys of a batch, for an `IN` list.
pub fn keys(ranges: &[Range]) -> String {
    ranges
        .iter()
        .map(|range| format!("'{}'", key_of(range.asked.city)))
        .collect::<Vec<_>>()
        .join(", ")
}

impl<D: Dialect> Handle<D> {
    async fn execute(&mut self, statements: &[&str]) -> Result<()> {
        for sql in statements {
            let answered = self.connection.call(&query(sql)).await;
            answered.with_context(|| sql.chars().take(200).collect::<String>())?;
        }
        Ok(())
    }

    async fn rows(&mut self, request: &[u8]) -> Result<Vec<Vec<i64>>> {
        rows(&self.connection.call(request).await?)
    }

    async fn insert(&mut self, body: &[u8]) -> Result<()> {
        self.connection.call(&http::post("/insert", "application/octet-stream", body)).await?;
        Ok(())
    }
}

impl<D: Dialect> Client for Handle<D> {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        Asking { request: query(&D::sql(question)), question: question.clone() }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        let rows = self.rows(&asking.request).await?;
        asking.question.answer_of_rows(rows).context(D::TITLE)
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        let mut bytes = Vec::new();
        for (drop, id) in batch.iter().zip(writes.new_ids(batch.len())) {
            D::render(&mut bytes, &key_of(drop.city), drop.time_s, id);
        }
        self.insert(&bytes).await?;
        Ok(batch.len() as u64)
    }
}

impl<D: Dialect> Peer for Engine<D> {
    type Client = Handle<D>;

    fn how(&self) -> &'static str {
        D::HOW
    }

    fn modes(&self) -> Vec<Mode> {
        vec![D::mode()]
    }

    async fn connect(&self) -> Result<Handle<D>> {
        Ok(Handle { connection: Connection::open(self.port).await?, dialect: PhantomData })
    }

    /// Inserts every drop of the history as an event.
    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connected = self.connect().await?;
        connected.execute(D::SCHEMA).await?;

        let drops: Vec<(u32, i64)> = workload.drops().collect();
        for (place, chunk) in drops.chunks(LOAD_EVENTS).enumerate() {
            let mut bytes = Vec::new();
            for (number, (city, time_s)) in chunk.iter().enumerate() {
                let id = (place * LOAD_EVENTS + number) as u64;
                D::render(&mut bytes, &key_of(*city), *time_s, id);
            }
            connected.insert(&bytes).await?;
        }

        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        self.connect().await?.execute(D::SETTLE).await
    }

    async fn total(&self) -> Result<i64> {
        let sql = format!("{} {}", D::TOTAL, self.live_from_s);
        let rows = self.connect().await?.rows(&query(&sql)).await?;
        ensure!(rows.len() == 1 && rows[0].len() == 1, "{sql} answered {rows:?}");
        Ok(rows[0][0])
    }
}

/// Parses lines of tab-separated integers; an empty value is 0, as for a sum over no rows.
fn rows(body: &[u8]) -> Result<Vec<Vec<i64>>> {
    let text = std::str::from_utf8(body).context("the answer is not text")?;
    let number = |word: &str| match word {
        "" | "\\N" | "None" => Ok(0),
        _ => word.parse().with_context(|| format!("not a whole number: {word:?}")),
    };
    text.lines().map(|line| line.split('\t').map(number).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_numbers_are_read() {
        assert_eq!(rows(b"1\t2\n3\t\\N\n").unwrap(), [[1, 2], [3, 0]]);
        assert_eq!(rows(b"").unwrap(), Vec::<Vec<i64>>::new());
        assert!(rows(b"1.5\n").is_err());
    }
}
