//! Reading: a range is one request for at most four rows.

use crate::tables::{self, Cost};
use crate::{Cluster, Error, ReadPlan, cell, error, keys, largest};
use futures_util::future::join_all;
use raingauge_core::event::key_hash;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::id::{self, TileId};
use raingauge_core::tile::{Overflow, Tile};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    self, Answer, BucketReader, Cell, Generation, KeySource, Largest, Query, Sum,
};
use raingauge_ports::log::Offset;
use raingauge_ports::tiles::{Part, TileSource};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Semaphore;

/// A tile row: for each writer the offset that its tile includes, and the tile.
type Row = (TileId, Vec<(i64, Offset, Tile)>);

#[derive(Clone)]
pub struct Reader {
    pub(crate) cql: Cluster,
    pub(crate) in_flight: Arc<Semaphore>,
    /// All requests and rows so far.
    total: Arc<Cost>,
    requests: metrics::Counter,
    rows: metrics::Counter,
    counts: metrics::Counter,
}

impl Reader {
    pub fn new(cql: Cluster) -> Self {
        Self {
            in_flight: Arc::new(Semaphore::new(cql.options.in_flight_max)),
            cql,
            total: Arc::default(),
            requests: metrics::counter!("raingauge_cql_read_requests_total"),
            rows: metrics::counter!("raingauge_cql_read_rows_total"),
            counts: metrics::counter!("raingauge_cql_range_counts_total"),
        }
    }

    /// Number of requests so far, and of the rows they returned.
    pub fn cost(&self) -> (u64, u64) {
        (self.total.requests.load(Ordering::Relaxed), self.total.rows.load(Ordering::Relaxed))
    }

    async fn read(&self, key: &str, ids: &[TileId], cost: &Cost) -> Result<Vec<Row>, Error> {
        let periods: Vec<i32> = ids.iter().copied().map(cell::period_of).collect();
        let statement = &self.cql.statements.tiles;
        let found = self
            .cql
            .session
            .execute_unpaged(statement, (key, periods))
            .await
            .map_err(error::request)?;

        let rows = found.into_rows_result().map_err(error::request)?;
        cost.add(1, rows.rows_num() as u64);
        rows.rows::<(i32, HashMap<i64, &[u8]>)>()
            .map_err(error::request)?
            .map(|row| {
                let (period, tiles) = row.map_err(error::request)?;
                let tiles = tiles.into_iter().map(|(writer, bytes)| {
                    let (included, tile) = cell::decode(key, bytes)?;
                    Ok((writer, included, tile))
                });
                Ok((cell::id_of(period), tiles.collect::<Result<_, Error>>()?))
            })
            .collect()
    }

    pub(crate) async fn sum(&self, query: &Query) -> Result<i128, buckets::Error> {
        let _permit = self.in_flight.acquire().await;
        let cost = Cost::default();
        let sum = self.sum_within(query, &cost).await;
        self.report(&cost);
        self.counts.increment(1);
        sum
    }

    async fn sum_within(&self, query: &Query, cost: &Cost) -> Result<i128, buckets::Error> {
        let Query { generation, key, plan } = query;
        let ids = id::of_plan(plan);
        if ids.is_empty() {
            return Ok(0);
        }

        let rows = match self.cql.options.read_plan {
            ReadPlan::Tiles => self.read(key, &ids, cost).await?,
            ReadPlan::Tables => Vec::new(),
        };
        if rows.is_empty() {
            return tables::sum(&self.cql, *generation, key, plan, cost).await;
        }

        let mut sum = 0;
        for (id, tiles) in &rows {
            for (_, _, tile) in
                tiles.iter().filter(|(writer, ..)| cell::is_of(*writer, *generation))
            {
                sum += id::sum_of(plan, *id, tile)?;
            }
        }

        Ok(sum)
    }

    async fn cells_within(
        &self,
        generation: Generation,
        key: &str,
        slice: Slice,
    ) -> Result<Vec<Cell>, buckets::Error> {
        let cost = Cost::default();
        let ids: Vec<TileId> = id::of_slice(slice).collect();
        let rows = match self.cql.options.read_plan {
            ReadPlan::Tiles => self.read(key, &ids, &cost).await?,
            ReadPlan::Tables => Vec::new(),
        };
        if rows.is_empty() {
            let cells = tables::cells(&self.cql, generation, key, slice, &cost).await;
            self.report(&cost);
            return cells;
        }

        self.report(&cost);
        let mut counts = BTreeMap::<i64, i128>::new();
        for (id, tiles) in &rows {
            for (_, _, tile) in tiles.iter().filter(|(writer, ..)| cell::is_of(*writer, generation))
            {
                for (cell, count) in tile.cells() {
                    let (granularity, time_s) = id.bucket_of(cell);
                    if granularity == slice.granularity
                        && (slice.from_s..slice.to_s).contains(&time_s)
                    {
                        *counts.entry(time_s).or_default() += i128::from(count?);
                    }
                }
            }
        }

        let granularity = slice.granularity;
        let cell = |(time_s, count)| {
            Ok(Cell { granularity, time_s, count: i64::try_from(count).map_err(|_| Overflow)? })
        };
        counts.into_iter().map(cell).collect()
    }

    pub(crate) fn report(&self, cost: &Cost) {
        let requests = cost.requests.load(Ordering::Relaxed);
        let rows = cost.rows.load(Ordering::Relaxed);
        self.total.add(requests, rows);
        self.requests.increment(requests);
        self.rows.increment(rows);
    }
}

impl TileSource for Reader {
    fn tiles(&self, key: String, ids: Vec<TileId>) -> Answer<'_, Vec<Part>> {
        Box::pin(async move {
            let _permit = self.in_flight.acquire().await;
            let cost = Cost::default();
            let rows = self.read(&key, &ids, &cost).await;
            self.report(&cost);
            let part = |id| move |(writer, included, tile)| Part { id, writer, included, tile };
            Ok(rows?.into_iter().flat_map(|(id, tiles)| tiles.into_iter().map(part(id))).collect())
        })
    }
}

impl KeySource for Reader {
    fn key_hashes(&self, generation: Generation) -> Answer<'_, Vec<u64>> {
        Box::pin(async move {
            let mut pages = keys::Pages::new(&self.cql, generation);
            let mut hashes = Vec::new();
            while let Some(keys) = pages.next().await? {
                hashes.extend(keys.iter().map(|key| key_hash(key)));
            }

            let sorted = tokio::task::spawn_blocking(move || {
                hashes.sort_unstable();
                hashes.dedup();
                hashes
            });
            sorted.await.map_err(|error| error::request(error).into())
        })
    }
}

impl BucketReader for Reader {
    fn sum_cached(&self, _: Generation, _: &str, _: &Plan) -> Option<Sum> {
        None
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, buckets::Error>>> {
        Box::pin(async move { join_all(queries.iter().map(|query| self.sum(query))).await })
    }

    fn cells(&self, generation: Generation, key: String, slice: Slice) -> Answer<'_, Vec<Cell>> {
        Box::pin(async move { self.cells_within(generation, &key, slice).await })
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Answer<'_, Largest> {
        Box::pin(largest::find(self, generation, slice, len_max, scan_max))
    }
}
