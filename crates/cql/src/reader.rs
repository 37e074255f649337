//! Reading: a range is one request for at most four rows.

use crate::tables::{self, Cost};
use crate::{Cql, Error, ReadPlan, cell, error, keys};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::id::{self, TileId};
use raingauge_core::tile::{Overflow, Tile};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{self, BucketReader, Cell, Generation, Largest, Query};
use raingauge_ports::log::Offset;
use raingauge_ports::tiles::{Part, TileSource};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Semaphore;

/// Keys that are looked at to find the largest ones, at most.
const KEYS_SCAN_MAX: usize = 200_000;
/// Keys that are read by one request, and requests under way.
const KEYS_TOGETHER: usize = 32;
const REQUESTS_IN_FLIGHT: usize = 8;

/// What a tile row holds: of each writer, the offset that it includes, and its tile.
type Row = (TileId, Vec<(i64, Offset, Tile)>);

#[derive(Clone)]
pub struct CqlReader {
    cql: Cql,
    in_flight: Arc<Semaphore>,
    /// All requests and rows so far.
    total: Arc<Cost>,
    requests: metrics::Counter,
    rows: metrics::Counter,
    counts: metrics::Counter,
}

impl CqlReader {
    pub fn new(cql: Cql) -> Self {
        Self {
            in_flight: Arc::new(Semaphore::new(cql.options.in_flight_max)),
            cql,
            total: Arc::default(),
            requests: metrics::counter!("raingauge_cql_read_requests_total"),
            rows: metrics::counter!("raingauge_cql_read_rows_total"),
            counts: metrics::counter!("raingauge_cql_range_counts_total"),
        }
    }

    /// How many requests were made so far, and how many rows they answered.
    pub fn cost(&self) -> (u64, u64) {
        (self.total.requests.load(Ordering::Relaxed), self.total.rows.load(Ordering::Relaxed))
    }

    async fn read(&self, key: &str, ids: &[TileId], cost: &Cost) -> Result<Vec<Row>, Error> {
        let periods: Vec<i32> = ids.iter().copied().map(cell::period_of).collect();
        let statement = &self.cql.statements.tiles;
        let found = self.cql.session.execute_unpaged(statement, (key, periods)).await.map_err(error::request)?;
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

    async fn sum(&self, query: &Query) -> Result<i128, buckets::Error> {
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
            for (_, _, tile) in tiles.iter().filter(|(writer, ..)| cell::is_of(*writer, *generation)) {
                sum += id::sum_of(plan, *id, tile)?;
            }
        }
        Ok(sum)
    }

    async fn cells_within(&self, generation: Generation, key: &str, slice: Slice) -> Result<Vec<Cell>, buckets::Error> {
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
            for (_, _, tile) in tiles.iter().filter(|(writer, ..)| cell::is_of(*writer, generation)) {
                for (cell, count) in tile.cells() {
                    let (granularity, time_s) = id.bucket_of(cell);
                    if granularity == slice.granularity && (slice.from_s..slice.to_s).contains(&time_s) {
                        *counts.entry(time_s).or_default() += i128::from(count?);
                    }
                }
            }
        }
        let granularity = slice.granularity;
        let cell =
            |(time_s, count)| Ok(Cell { granularity, time_s, count: i64::try_from(count).map_err(|_| Overflow)? });
        counts.into_iter().map(cell).collect()
    }

    /// Looks at the keys of the counter until the time for it is over.
    async fn largest(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> Result<Largest, buckets::Error> {
        let (mut sums, mut is_complete) = (Vec::new(), true);
        if let Ok(plan) = Plan::new(slice.from_s, slice.to_s) {
            let scan = self.sums_of_keys(generation, plan, scan_max.min(KEYS_SCAN_MAX), &mut sums);
            is_complete = match tokio::time::timeout(self.cql.options.scan_time_max, scan).await {
                Ok(is_complete) => is_complete?,
                Err(_) => false,
            };
        }

        sums.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        sums.truncate(len_max);
        Ok(Largest { keys: sums, is_complete })
    }

    /// Adds the sum of each key of a counter. Answers whether it has no more keys.
    async fn sums_of_keys(
        &self,
        generation: Generation,
        plan: Plan,
        keys_max: usize,
        sums: &mut Vec<(String, i64)>,
    ) -> Result<bool, buckets::Error> {
        let mut pages = keys::Pages::new(&self.cql, generation);
        let mut keys_left = keys_max;
        while let Some(mut keys) = pages.next().await? {
            let is_cut = keys.len() > keys_left;
            keys.truncate(keys_left);
            keys_left -= keys.len();

            let together = keys.chunks(KEYS_TOGETHER).map(<[String]>::to_vec);
            let reads = together.map(|keys| self.sums_together(generation, keys, plan));
            let mut reads = stream::iter(reads).buffer_unordered(REQUESTS_IN_FLIGHT);
            while let Some(found) = reads.next().await {
                let clamp = |sum: i128| sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                sums.extend(found?.into_iter().map(|(key, sum)| (key, clamp(sum))));
            }
            if is_cut {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sums of some keys over the days of a plan, by one request.
    async fn sums_together(
        &self,
        generation: Generation,
        keys: Vec<String>,
        plan: Plan,
    ) -> Result<Vec<(String, i128)>, buckets::Error> {
        let mut found = match self.cql.options.read_plan {
            ReadPlan::Tiles => self.sums_by_tiles(generation, &keys, &plan).await?,
            ReadPlan::Tables => HashMap::new(),
        };
        let mut sums = Vec::with_capacity(keys.len());
        for key in keys {
            let sum = match found.remove(&key) {
                Some(sum) => sum,
                // It has no tiles there, or is read by the tables.
                None => self.sum(&Query { generation, key: key.clone(), plan }).await?,
            };
            sums.push((key, sum));
        }
        Ok(sums)
    }

    /// The sums of those keys that have tiles there.
    async fn sums_by_tiles(
        &self,
        generation: Generation,
        keys: &[String],
        plan: &Plan,
    ) -> Result<HashMap<String, i128>, buckets::Error> {
        let _permit = self.in_flight.acquire().await;
        let periods: Vec<i32> = id::of_plan(plan).into_iter().map(cell::period_of).collect();
        let statement = &self.cql.statements.tiles_of;
        let found = self.cql.session.execute_unpaged(statement, (keys, periods)).await.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let cost = Cost::default();
        cost.add(1, rows.rows_num() as u64);
        self.report(&cost);

        let mut sums = HashMap::<String, i128>::new();
        for row in rows.rows::<(&str, i32, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (key, period, tiles) = row.map_err(error::request)?;
            let mut sum = 0;
            for (_, bytes) in tiles.into_iter().filter(|(writer, _)| cell::is_of(*writer, generation)) {
                let (_, tile) = cell::decode(key, bytes)?;
                sum += id::sum_of(plan, cell::id_of(period), &tile)?;
            }
            *sums.entry(key.to_owned()).or_default() += sum;
        }
        Ok(sums)
    }

    fn report(&self, cost: &Cost) {
        let (requests, rows) = (cost.requests.load(Ordering::Relaxed), cost.rows.load(Ordering::Relaxed));
        self.total.add(requests, rows);
        self.requests.increment(requests);
        self.rows.increment(rows);
    }
}

impl TileSource for CqlReader {
    fn tiles(&self, key: String, ids: Vec<TileId>) -> BoxFuture<'_, Result<Vec<Part>, buckets::Error>> {
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

impl BucketReader for CqlReader {
    fn sum_cached(&self, _generation: Generation, _key: &str, _plan: &Plan) -> Option<Result<i128, Overflow>> {
        None
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, buckets::Error>>> {
        Box::pin(async move { join_all(queries.iter().map(|query| self.sum(query))).await })
    }

    fn cells(
        &self,
        generation: Generation,
        key: String,
        slice: Slice,
    ) -> BoxFuture<'_, Result<Vec<Cell>, buckets::Error>> {
        Box::pin(async move { self.cells_within(generation, &key, slice).await })
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> BoxFuture<'_, Result<Largest, buckets::Error>> {
        Box::pin(self.largest(generation, slice, len_max, scan_max))
    }
}
