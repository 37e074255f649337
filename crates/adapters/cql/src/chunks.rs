//! The dedupe windows of a log's partitions, in rows that expire.

use crate::{Cluster, Error, error};
use futures_util::{StreamExt, TryStreamExt, stream};
use raingauge_ports::cluster;
use raingauge_ports::dedupe::{Chunk, ChunkStore};
use raingauge_ports::log::Partition;
use std::ops::Range;
use std::time::Duration;
use tokio::runtime::Handle;

/// Chunks live for one and a half windows plus an hour, so that a process which was down for half a
/// window still finds them.
const MARGIN_S: u64 = 3_600;
/// The longest time to live that CQL accepts: 20 years.
const TTL_MAX_S: u64 = 630_720_000;

pub struct Chunks {
    cql: Cluster,
    /// The log's name: its topic.
    log: String,
    runtime: Handle,
    ttl_s: i32,
}

impl Chunks {
    /// For the log of this name, with windows of this length.
    pub fn new(cql: Cluster, log: impl Into<String>, window: Duration, runtime: Handle) -> Self {
        let ttl_s = window.as_secs().saturating_mul(3) / 2 + MARGIN_S;
        Self { cql, log: log.into(), runtime, ttl_s: ttl_s.min(TTL_MAX_S) as i32 }
    }

    async fn store(&self, partition: Partition, chunk: &Chunk) -> Result<(), Error> {
        // Every writer of this chunk uses the same timestamp, since it comes from the log.
        let timestamp_us = chunk.appended_ms.max(1).saturating_mul(1_000);
        let key = (&self.log, i32::from(partition), chunk.rules as i64, chunk.number as i64);
        let values = (key.0, key.1, key.2, key.3, &chunk.bytes[..], timestamp_us, self.ttl_s);
        let put = self.cql.session.execute_unpaged(&self.cql.statements.put_chunk, values).await;
        put.map(drop).map_err(error::execution)
    }

    async fn read(
        &self,
        partition: Partition,
        rules: u64,
        number: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let values = (&self.log, i32::from(partition), rules as i64, number as i64);
        let found = self.cql.session.execute_unpaged(&self.cql.statements.chunk, values).await;
        let rows = found.map_err(error::execution)?.into_rows_result().map_err(error::request)?;
        let row = rows.maybe_first_row::<(Vec<u8>,)>().map_err(error::request)?;
        Ok(row.map(|(bytes,)| bytes))
    }
}

impl ChunkStore for Chunks {
    fn put(&self, partition: Partition, chunk: &Chunk) -> Result<(), cluster::Error> {
        let stored = self.runtime.block_on(self.store(partition, chunk));
        stored.map_err(|error| cluster::Error(error.to_string()))
    }

    fn get(
        &self,
        partition: Partition,
        rules: u64,
        numbers: Range<u64>,
    ) -> Result<Vec<Option<Vec<u8>>>, cluster::Error> {
        let at_once = (numbers.end.saturating_sub(numbers.start) as usize).max(1);
        let reads = numbers.map(|number| self.read(partition, rules, number));
        let chunks = self.runtime.block_on(stream::iter(reads).buffered(at_once).try_collect());
        chunks.map_err(|error: Error| cluster::Error(error.to_string()))
    }
}
