//! The requests of a commit, each repeated until it is answered.

use super::tiles::{Slot, Tiles};
use crate::session::Statements;
use crate::{Cql, Error, cell, error, keys};
use futures_util::{StreamExt, TryStreamExt, stream};
use raingauge_core::bucket::Granularity;
use raingauge_core::tile::{OVERFLOWED, Tile};
use raingauge_ports::buckets::{self, Checkpoint, Generation};
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{Part, TileChanges, TileFeed};
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::{CqlTimestamp, CqlValue};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a request waits before it is made again: doubled each time, up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a store that does not answer is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

pub struct Flush<'a> {
    pub cql: &'a Cql,
    pub partition: Partition,
    pub gives_up: &'a AtomicBool,
    pub feed: Option<&'a dyn TileFeed>,
}

impl Flush<'_> {
    /// Reads back the tiles that changes wait for.
    pub async fn load(&self, tiles: &mut Tiles) -> Result<(), buckets::Error> {
        let loads = tiles.missing().map(|(generation, key, slots)| self.load_key(generation, key, slots));
        self.all(loads).await
    }

    async fn load_key(&self, generation: Generation, key: &str, slots: Vec<&mut Slot>) -> Result<(), buckets::Error> {
        let periods: Vec<i32> = slots.iter().map(|slot| cell::period_of(slot.id)).collect();
        let _permit = self.cql.writes.acquire().await;
        let writer = cell::writer_of(generation, self.partition);
        let mut stored =
            self.until_done("tiles are read back", async || self.stored(key, &periods, writer).await).await?;
        for slot in slots {
            let found = stored.remove(&cell::period_of(slot.id));
            if found.is_none() && slot.id.is_span() {
                self.until_done("a key is noted", async || self.put_key(generation, key).await).await?;
            }
            slot.fill(found);
        }
        Ok(())
    }

    async fn stored(&self, key: &str, periods: &[i32], writer: i64) -> Result<HashMap<i32, (Offset, Tile)>, Error> {
        let statement = &self.cql.statements.own_tiles;
        let found = self.cql.session.execute_unpaged(statement, (key, periods)).await.map_err(error::request)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let mut stored = HashMap::new();
        for row in rows.rows::<(i32, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (period, tiles) = row.map_err(error::request)?;
            if let Some(bytes) = tiles.get(&writer) {
                stored.insert(period, cell::decode(key, bytes)?);
            }
        }
        Ok(stored)
    }

    async fn put_key(&self, generation: Generation, key: &str) -> Result<(), Error> {
        let values = (keys::counter_of(generation), keys::shard_of(key), key);
        let put = self.cql.session.execute_unpaged(&self.cql.statements.put_key, values).await;
        put.map(drop).map_err(error::request)
    }

    /// Writes the tiles that changed, and their rows in the count tables, and tells what readers may not know.
    pub async fn write(&self, tiles: &mut Tiles) -> Result<(), buckets::Error> {
        let began = Instant::now();
        let writes = tiles.each_untold().map(|(generation, key, slots)| self.write_key(generation, key, slots));
        self.all(writes).await?;
        metrics::histogram!("raingauge_cql_flush_seconds").record(began.elapsed().as_secs_f64());
        Ok(())
    }

    async fn write_key(&self, generation: Generation, key: &str, slots: Vec<&mut Slot>) -> Result<(), buckets::Error> {
        let _permit = self.cql.writes.acquire().await;
        let writer = cell::writer_of(generation, self.partition);
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        let mut values = Vec::new();
        for slot in slots.iter().filter(|slot| slot.changed != 0) {
            push_tile(&self.cql.statements, writer, key, slot, &mut batch, &mut values);
            if self.cql.options.write_tables {
                push_rows(&self.cql.statements, writer, key, slot, &mut batch, &mut values);
            }
        }
        if !values.is_empty() {
            self.until_done("tiles are written", async || {
                self.cql.session.batch(&batch, &values).await.map(drop).map_err(error::request)
            })
            .await?;
            metrics::counter!("raingauge_cql_write_requests_total").increment(1);
            metrics::counter!("raingauge_cql_write_rows_total").increment(values.len() as u64);
        }
        for slot in slots {
            (slot.changed, slot.is_foreign) = (0, false);
            if let Some(feed) = self.feed {
                let part = Part { id: slot.id, writer, included: slot.included, tile: slot.tile.clone() };
                feed.publish(self.partition, TileChanges::Tile { key: key.to_owned(), part });
            }
        }
        Ok(())
    }

    pub async fn put_checkpoint(
        &self,
        log: &str,
        checkpoint: &Checkpoint,
        with_state: bool,
        timestamp_us: i64,
    ) -> Result<(), buckets::Error> {
        let Checkpoint { position, state, stamp_us } = checkpoint;
        let (session, statements) = (&self.cql.session, &self.cql.statements);
        let (partition, position) = (i32::from(self.partition), *position as i64);
        self.until_done("the checkpoint is written", async || {
            let put = if with_state {
                let values = (log, partition, position, stamp_us, state, timestamp_us);
                session.execute_unpaged(&statements.put_checkpoint, values).await
            } else {
                let values = (log, partition, position, stamp_us, timestamp_us);
                session.execute_unpaged(&statements.put_position, values).await
            };
            put.map(drop).map_err(error::request)
        })
        .await
    }

    /// Removes all that a writer has stored for these keys. Answers how many tiles went.
    pub async fn remove(&self, writer: i64, keys: &[String], stamp_us: i64) -> Result<u64, buckets::Error> {
        let removals = keys.iter().map(|key| {
            self.until_done("tiles are removed", async move || self.remove_key(writer, key, stamp_us).await)
        });
        let removed: Vec<u64> =
            stream::iter(removals).buffer_unordered(self.cql.options.in_flight_max).try_collect().await?;
        Ok(removed.into_iter().sum())
    }

    async fn remove_key(&self, writer: i64, key: &str, stamp_us: i64) -> Result<u64, Error> {
        let (session, statements) = (&self.cql.session, &self.cql.statements);
        let found = session.execute_unpaged(&statements.all_tiles, (key,)).await.map_err(error::request)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let mut removed = 0;
        for row in rows.rows::<(i32, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (period, tiles) = row.map_err(error::request)?;
            let Some(bytes) = tiles.get(&writer) else { continue };
            let (_, tile) = cell::decode(key, bytes)?;
            for (cell, _) in tile.cells() {
                let (granularity, time_s) = cell::id_of(period).bucket_of(cell);
                let delete = &statements.delete_count[granularity as usize];
                let values = (stamp_us, key, CqlTimestamp(time_s * 1_000), writer);
                session.execute_unpaged(delete, values).await.map_err(error::request)?;
            }
            let values = (writer, stamp_us, key, period);
            session.execute_unpaged(&statements.delete_tile, values).await.map_err(error::request)?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Runs requests side by side, as many as may be under way.
    async fn all<F: Future<Output = Result<(), buckets::Error>>>(
        &self,
        requests: impl Iterator<Item = F>,
    ) -> Result<(), buckets::Error> {
        stream::iter(requests).buffer_unordered(self.cql.options.in_flight_max).try_collect().await
    }

    /// Makes a request again until it succeeds: every one may be repeated. Ends with its error when what is stored cannot be
    /// read, or when the partition is counted by somebody else.
    pub async fn until_done<T>(
        &self,
        what: &str,
        request: impl AsyncFn() -> Result<T, Error>,
    ) -> Result<T, buckets::Error> {
        let (mut pause, mut reported) = (PAUSE_MIN, None::<Instant>);
        loop {
            let error = match request().await {
                Ok(done) => return Ok(done),
                Err(corrupt @ Error::Corrupt(_)) => return Err(corrupt.into()),
                Err(error) => error,
            };
            if self.gives_up.load(Ordering::Acquire) {
                return Err(error.into());
            }
            metrics::counter!("raingauge_cql_retries_total").increment(1);
            if reported.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
                let place = self.cql.options.place();
                tracing::warn!(%error, %place, "counting waits until {what}; nothing is lost");
                reported = Some(Instant::now());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

fn push_tile(
    statements: &Statements,
    writer: i64,
    key: &str,
    slot: &Slot,
    batch: &mut Batch,
    values: &mut Vec<Vec<CqlValue>>,
) {
    // A day tile lasts as long as its hours, which are kept no shorter than its quarter hours.
    let granularity = if slot.id.is_span() { Granularity::Day } else { Granularity::Hour };
    batch.append_statement(statements.put_tile.clone());
    values.push(vec![
        CqlValue::BigInt(slot.stamp_us),
        CqlValue::Int(slot.lasting.ttl_s(granularity, slot.stamp_us)),
        CqlValue::BigInt(writer),
        CqlValue::Blob(cell::encode(slot.included, &slot.tile)),
        CqlValue::Text(key.to_owned()),
        CqlValue::Int(cell::period_of(slot.id)),
    ]);
}

fn push_rows(
    statements: &Statements,
    writer: i64,
    key: &str,
    slot: &Slot,
    batch: &mut Batch,
    values: &mut Vec<Vec<CqlValue>>,
) {
    for (cell, count) in slot.tile.cells().filter(|(cell, _)| slot.changed >> cell & 1 == 1) {
        let (granularity, time_s) = slot.id.bucket_of(cell);
        batch.append_statement(statements.put_count[granularity as usize].clone());
        values.push(vec![
            CqlValue::Text(key.to_owned()),
            CqlValue::Timestamp(CqlTimestamp(time_s * 1_000)),
            CqlValue::BigInt(writer),
            CqlValue::BigInt(count.unwrap_or(OVERFLOWED)),
            CqlValue::BigInt(slot.stamp_us),
            CqlValue::Int(slot.lasting.ttl_s(granularity, slot.stamp_us)),
        ]);
    }
}
