//! The requests of a commit, each retried until it succeeds.

use super::batch;
use super::tiles::{Record, Slot};
use crate::states::StateChunks;
use crate::{Cluster, Error, cell, error, keys, states, wall_s};
use futures_util::{StreamExt, TryStreamExt, stream};
use raingauge_core::tile::Tile;
use raingauge_ports::buckets::{Checkpoint, Generation, Progress};
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{Part, TileChanges, TileFeed};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause before a retry. It doubles up to the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a store that does not answer is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Number of a key's tiles that one request reads back.
const LOAD_TILES_MAX: usize = 128;

/// A changed span, with its generation and its key.
type Listed<'a> = (Generation, &'a str, &'a Slot);

pub struct Flush<'a> {
    pub cql: &'a Cluster,
    pub partition: Partition,
    pub gives_up: &'a AtomicBool,
    pub feed: Option<&'a dyn TileFeed>,
}

impl Flush<'_> {
    /// Reads back the tiles that changes wait for, and lists new keys.
    pub async fn load(&self, records: &mut [(u32, Record)]) -> Result<(), Error> {
        let loads = records.iter_mut().flat_map(|(_, record)| {
            let Record { generation, key, slots, .. } = record;
            let missing: Vec<&mut Slot> =
                slots.iter_mut().filter(|slot| slot.stored.is_none()).collect();
            let generation = *generation;
            let key = &**key;

            chunks(missing, LOAD_TILES_MAX)
                .map(move |slots| self.load_tiles(generation, key, slots))
        });

        self.all(loads).await?;

        let unnoted = records.iter_mut().filter(|(_, record)| record.is_new());
        self.all(unnoted.map(|(_, record)| self.note_key(record))).await
    }

    async fn load_tiles(
        &self,
        generation: Generation,
        key: &str,
        slots: Vec<&mut Slot>,
    ) -> Result<(), Error> {
        let _permit = self.permits(slots.len()).await;
        let periods: Vec<i32> = slots.iter().map(|slot| cell::period_of(slot.id)).collect();
        let writer = cell::writer_of(generation, self.partition);
        let mut stored = self
            .until_done("tiles are read back", async || self.stored(key, &periods, writer).await)
            .await?;
        for slot in slots {
            slot.fill(stored.remove(&cell::period_of(slot.id)));
        }
        Ok(())
    }

    async fn stored(
        &self,
        key: &str,
        periods: &[i32],
        writer: i64,
    ) -> Result<HashMap<i32, (Offset, Tile)>, Error> {
        let statement = &self.cql.statements.own_tiles;
        let found = self
            .cql
            .session
            .execute_unpaged(statement, (key, periods))
            .await
            .map_err(error::execution)?;

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

    /// Adds a key to its counter's list.
    async fn note_key(&self, record: &mut Record) -> Result<(), Error> {
        let _permit = self.permits(1).await;
        let key = &*record.key;
        let values = (keys::counter_of(record.generation), keys::shard_of(key), key);
        self.until_done("a key is noted", async || {
            let put = self.cql.session.execute_unpaged(&self.cql.statements.put_key, values).await;
            put.map(drop).map_err(error::execution)
        })
        .await?;
        record.is_noted = true;
        Ok(())
    }

    /// Writes the changed tiles and their rows in the count tables, and publishes tiles that
    /// readers may not have.
    pub async fn write(&self, records: &mut [(u32, Record)]) -> Result<(), Error> {
        let began = Instant::now();
        self.list_spans(records).await?;

        let has_rows = self.cql.options.write_tables;
        let writes = records.iter_mut().flat_map(|(_, record)| {
            let Record { generation, key, slots, .. } = record;
            let due = slots.iter_mut().filter(|slot| slot.is_due());
            let batches = batch::batches_of(due, key, has_rows);
            let generation = *generation;
            let key = &**key;

            batches.into_iter().map(move |slots| self.write_tiles(generation, key, slots))
        });

        self.all(writes).await?;
        metrics::histogram!("raingauge_cql_flush_seconds").record(began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Writes the changed spans into their counters' lists, those of one list together. This comes
    /// before the tiles: a stored tile is then always listed, and one that is only listed is
    /// written when its entries are applied again.
    async fn list_spans(&self, records: &[(u32, Record)]) -> Result<(), Error> {
        let mut lists = BTreeMap::<(i32, i32), Vec<Listed<'_>>>::new();
        for (_, Record { generation, key, slots, .. }) in records {
            for slot in slots.iter().filter(|slot| slot.is_to_be_listed()) {
                let place = (keys::counter_of(*generation), keys::list_of(key));
                lists.entry(place).or_default().push((*generation, &**key, slot));
            }
        }
        let batches: Vec<&[Listed<'_>]> =
            lists.values().flat_map(|spans| batches_of_spans(spans)).collect();
        self.all(batches.into_iter().map(|spans| self.write_spans(spans))).await
    }

    async fn write_spans(&self, spans: &[Listed<'_>]) -> Result<(), Error> {
        let _permit = self.permits(spans.len()).await;
        let statements = &self.cql.statements;
        let wall_s = wall_s();
        let write = |(generation, key, slot): &Listed<'_>| {
            let writer = cell::writer_of(*generation, self.partition);
            batch::changed_span(statements, (*generation, writer), key, slot, wall_s)
        };
        let writes: Vec<batch::Write> = spans.iter().map(write).collect();
        self.write_all(spans.first().map_or("", |(_, key, _)| key), &writes).await
    }

    async fn write_tiles(
        &self,
        generation: Generation,
        key: &str,
        slots: Vec<&mut Slot>,
    ) -> Result<(), Error> {
        let writer = cell::writer_of(generation, self.partition);
        let statements = &self.cql.statements;
        let wall_s = wall_s();

        // Acquired before the statements are made, so that waiting ones take no memory.
        let has_rows = self.cql.options.write_tables;
        let _permit =
            self.permits(slots.iter().map(|slot| batch::statements_of(slot, has_rows)).sum()).await;
        let mut writes = Vec::new();

        for slot in slots.iter().filter(|slot| slot.changed != 0) {
            writes.push(batch::changed_tile(statements, writer, key, slot, wall_s));
            if has_rows {
                writes.extend(batch::changed_rows(statements, writer, key, slot, wall_s));
            }
        }

        self.write_all(key, &writes).await?;

        for slot in slots {
            (slot.changed, slot.is_foreign) = (0, false);
            if let Some(feed) = self.feed {
                let part =
                    Part { id: slot.id, writer, included: slot.included, tile: slot.tile.clone() };
                feed.publish(self.partition, TileChanges::Tile { key: key.to_owned(), part });
            }
        }

        Ok(())
    }

    /// Writes the statements of one key in one request, or in halves if a server accepts less at
    /// once. The caller holds the permits.
    pub async fn write_all(&self, key: &str, writes: &[batch::Write]) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }

        let mut waiting = vec![writes];
        while let Some(part) = waiting.pop() {
            match self
                .until_done("tiles are written", async || batch::send(self.cql, part).await)
                .await
            {
                Ok(()) => {
                    metrics::counter!("raingauge_cql_write_requests_total").increment(1);
                    metrics::counter!("raingauge_cql_write_rows_total")
                        .increment(part.len() as u64);
                }
                Err(Error::Rejected(_)) if part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
                Err(Error::Rejected(reason)) => {
                    return Err(Error::Rejected(format!("a tile of {key}: {reason}")));
                }
                Err(error) => return Err(error),
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
    ) -> Result<(), Error> {
        let Checkpoint { position, state, stamp_us, .. } = checkpoint;
        let session = &self.cql.session;
        let statements = &self.cql.statements;
        let stored = with_state.then(|| states::in_checkpoint(state));
        let partition = i32::from(self.partition);

        let position = *position as i64;
        self.until_done("the checkpoint is written", async || {
            let put = if let Some(stored) = &stored {
                let values = (log, partition, position, stamp_us, stored, timestamp_us);
                session.execute_unpaged(&statements.put_checkpoint, values).await
            } else {
                let values = (log, partition, position, stamp_us, timestamp_us);
                session.execute_unpaged(&statements.put_position, values).await
            };
            put.map(drop).map_err(error::execution)
        })
        .await
    }

    /// Writes a backfill's progress under its rank, so that older progress never wins.
    pub async fn put_progress(&self, log: &str, progress: &Progress) -> Result<(), Error> {
        let Progress { rank, bytes } = progress;
        let session = &self.cql.session;
        let statement = &self.cql.statements.put_progress;
        let values = (log, i32::from(self.partition), rank, bytes, rank);
        self.until_done("the progress of a backfill is written", async || {
            session.execute_unpaged(statement, values).await.map(drop).map_err(error::request)
        })
        .await
    }

    /// Writes the rows of a large state. A smaller one has none.
    pub async fn put_state(&self, log: &str, state: &[u8], timestamp_us: i64) -> Result<(), Error> {
        self.until_done("the writer's state is written", async || {
            states::put(self.cql, log, self.partition, state, timestamp_us).await
        })
        .await
    }

    /// Deletes the rows of a replaced state unless they were written again since: a successor may
    /// still use them.
    pub async fn delete_state(
        &self,
        log: &str,
        chunks: StateChunks,
        written_us: i64,
    ) -> Result<(), Error> {
        self.until_done("a state is deleted", async || {
            states::delete(self.cql, log, self.partition, chunks, written_us).await
        })
        .await
    }

    /// Removes a key from its counter's list. A partition that counts it again lists it again.
    pub async fn forget_key(
        &self,
        generation: Generation,
        key: &str,
        stamp_us: i64,
    ) -> Result<(), Error> {
        let _permit = self.permits(1).await;
        let values = (stamp_us, keys::counter_of(generation), keys::shard_of(key), key);
        self.until_done("a key is forgotten", async || {
            let done =
                self.cql.session.execute_unpaged(&self.cql.statements.delete_key, values).await;
            done.map(drop).map_err(error::request)
        })
        .await
    }

    /// Acquires the permits for a request of this size.
    pub async fn permits(&self, statements: usize) -> Option<tokio::sync::SemaphorePermit<'_>> {
        let permits = batch::permits_of(statements, self.cql.options.in_flight_max);
        self.cql.writes.acquire_many(permits).await.ok()
    }

    /// Runs requests concurrently, within the limit.
    async fn all<F: Future<Output = Result<(), Error>>>(
        &self,
        requests: impl Iterator<Item = F>,
    ) -> Result<(), Error> {
        stream::iter(requests).buffer_unordered(self.cql.options.in_flight_max).try_collect().await
    }

    /// Retries an idempotent request until it succeeds. Fails if it can never succeed, or if
    /// another process counts the partition.
    pub async fn until_done<T>(
        &self,
        what: &str,
        mut request: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut pause = PAUSE_MIN;
        let mut reported = None::<Instant>;

        loop {
            let error = match request().await {
                Ok(done) => return Ok(done),
                Err(error) if error.is_permanent() => return Err(error),
                Err(error) => error,
            };

            if self.gives_up.load(Ordering::Acquire) {
                return Err(error);
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

/// Cuts the spans of one list into batches.
fn batches_of_spans<'a, 'b>(spans: &'b [Listed<'a>]) -> Vec<&'b [Listed<'a>]> {
    let mut batches = Vec::new();
    let mut rest = spans;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(batch::BATCH_STATEMENTS_MAX).take_while(|(_, key, slot)| {
            bytes += batch::bytes_of_span(key, slot);
            bytes <= batch::BATCH_BYTES_MAX
        });
        let (batch, others) = rest.split_at(fits.count().max(1));
        batches.push(batch);
        rest = others;
    }

    batches
}

/// Cuts a list into parts of at most `len_max`.
fn chunks<T>(mut all: Vec<T>, len_max: usize) -> impl Iterator<Item = Vec<T>> {
    std::iter::from_fn(move || {
        let rest = all.split_off(all.len().min(len_max));
        let part = std::mem::replace(&mut all, rest);
        (!part.is_empty()).then_some(part)
    })
}
