//! Engines without a server, ClickHouse (as chdb) and DuckDB: a small Python program in
//! scripts/peers.d embeds one and serves it over loopback. `POST /query` takes SQL and returns
//! lines of numbers, `POST /insert` takes rows in the engine's fastest format. It handles one
//! request at a time, on the server's core.

use super::Writes;
use super::http::{self, Connection};
use crate::events::Drop;
use crate::workload::{Range, Workload, key_of};
use anyhow::{Context, Result, ensure};

/// Events per insert while the history is loaded.
const LOAD_EVENTS: usize = 100_000;

/// Renders one event in the engine's format.
pub type Render = fn(&mut Vec<u8>, key: &str, time_s: i64, id: u64);

pub struct Connected(Connection);

pub fn query(sql: &str) -> Vec<u8> {
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

impl Connected {
    pub async fn open(port: u16) -> Result<Self> {
        Ok(Self(Connection::open(port).await?))
    }

    pub async fn execute(&mut self, sql: &str) -> Result<()> {
        self.0
            .call(&query(sql))
            .await
            .with_context(|| sql.chars().take(200).collect::<String>())?;
        Ok(())
    }

    pub async fn rows(&mut self, request: &[u8]) -> Result<Vec<Vec<i64>>> {
        rows(&self.0.call(request).await?)
    }

    /// Returns the single number that a statement yields.
    pub async fn number(&mut self, sql: &str) -> Result<i64> {
        let rows = self.rows(&query(sql)).await?;
        ensure!(rows.len() == 1 && rows[0].len() == 1, "{sql} answered {rows:?}");
        Ok(rows[0][0])
    }

    pub async fn insert(&mut self, body: &[u8]) -> Result<()> {
        self.0.call(&http::post("/insert", "application/octet-stream", body)).await?;
        Ok(())
    }

    pub async fn write(&mut self, writes: &Writes, turn: u64, render: Render) -> Result<u64> {
        let batch = writes.batch(turn);
        let ids = writes.new_ids(batch.len());
        self.insert(&body(batch.iter().zip(ids), render)).await?;
        Ok(batch.len() as u64)
    }

    /// Inserts every drop of the history as an event.
    pub async fn load(&mut self, workload: &Workload, render: Render) -> Result<()> {
        let mut bytes = Vec::new();
        let mut pending = 0;
        for (number, (city, time_s)) in workload.drops().enumerate() {
            render(&mut bytes, &key_of(city), time_s, number as u64);
            pending += 1;
            if pending == LOAD_EVENTS {
                self.insert(&bytes).await?;
                bytes.clear();
                pending = 0;
            }
        }
        if pending > 0 { self.insert(&bytes).await } else { Ok(()) }
    }
}

fn body<'a>(events: impl Iterator<Item = (&'a Drop, u64)>, render: Render) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (drop, id) in events {
        render(&mut bytes, &key_of(drop.city), drop.time_s, id);
    }
    bytes
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
