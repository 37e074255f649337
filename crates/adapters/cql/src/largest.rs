//! The largest keys of a counter over whole days.
//!
//! ```text
//!   span_table   (counter, list) -> 128 days, key -> tiles    one page has the days of many keys
//!   key_table    (counter, shard) -> key                      finds keys without a listed tile
//! ```
//!
//! Keys without a listed tile are read one by one, and so are spans that are not listed because
//! they are older than a migration.

use crate::keys::{self, Pages, SHARDS};
use crate::reader::Reader;
use crate::tables::{self, Cost};
use crate::{ReadPlan, cell, error};
use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::id::{self, TileId};
use raingauge_ports::buckets::{Error, Generation, Largest, Query};
use scylla::response::PagingState;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of keys examined, listed ones and those read one by one together.
const LISTED_MAX: usize = 1_000_000;
const KEYS_SCAN_MAX: usize = 200_000;
/// Keys of one shard that are held in memory until the shard has been read, as a share of the
/// limit.
const SHARE_OF_SHARD: usize = SHARDS as usize / 2;
const SHARD_KEYS_MIN: usize = 10_000;
/// Keys in one request, and requests in flight.
const KEYS_TOGETHER: usize = 32;
const REQUESTS_IN_FLIGHT: usize = 8;
/// Shards that are read at once.
const SHARDS_IN_FLIGHT: usize = 4;
/// Requests in flight for keys without tiles.
const LOOKUPS_IN_FLIGHT: usize = 64;

/// Examines a counter's keys until the time is over.
pub async fn find(
    reader: &Reader,
    generation: Generation,
    slice: Slice,
    len_max: usize,
    scan_max: usize,
) -> Result<Largest, Error> {
    let Ok(plan) = Plan::new(slice.from_s, slice.to_s) else {
        return Ok(Largest { keys: Vec::new(), is_complete: true });
    };
    let ids = id::of_plan(&plan);
    let is_listed = |id: &TileId| id.is_span() && id.period() >= reader.cql.spans_listed_from;
    let is_listed = reader.cql.options.read_plan == ReadPlan::Tiles && ids.iter().all(is_listed);
    let keys_max = scan_max.min(if is_listed { LISTED_MAX } else { KEYS_SCAN_MAX });
    let search = Search {
        reader,
        generation,
        plan,
        ids,
        len_max,
        keys_left: AtomicUsize::new(keys_max),
        shard_keys_max: (keys_max / SHARE_OF_SHARD).max(SHARD_KEYS_MIN),
        found: Mutex::default(),
    };

    let walk = async { if is_listed { search.lists().await } else { search.keys().await } };
    let is_complete =
        tokio::time::timeout(reader.cql.options.scan_time_max, walk).await.unwrap_or(Ok(false))?;
    search.keep_largest();

    Ok(Largest { keys: search.found.into_inner(), is_complete })
}

struct Search<'a> {
    reader: &'a Reader,
    generation: Generation,
    plan: Plan,
    ids: Vec<TileId>,
    len_max: usize,
    /// Keys that may still be examined.
    keys_left: AtomicUsize,
    shard_keys_max: usize,
    found: Mutex<Vec<(String, i64)>>,
}

impl Search<'_> {
    /// Reads the lists of spans. Returns whether that covered all keys of the counter.
    async fn lists(&self) -> Result<bool, Error> {
        let shards = stream::iter(0..SHARDS)
            .map(|shard| self.shard(shard))
            .buffer_unordered(SHARDS_IN_FLIGHT);
        let shards: Vec<(Vec<String>, bool)> = shards.try_collect().await?;
        let is_cut = shards.iter().any(|(_, is_cut)| *is_cut);

        let unlisted = shards.into_iter().flat_map(|(unlisted, _)| unlisted);
        if !self.reader.cql.options.has_foreign_rows {
            self.add(unlisted.map(|key| (key, 0)));
            return Ok(!is_cut);
        }

        // Keys with rows from other systems may have no tile in the lists.
        let lookups =
            stream::iter(unlisted).map(|key| self.look_up(key)).buffer_unordered(LOOKUPS_IN_FLIGHT);
        lookups.try_collect::<()>().await?;
        Ok(!is_cut)
    }

    /// Sums the listed keys of one shard. Returns those that are not listed, and whether some were
    /// left out.
    async fn shard(&self, shard: i32) -> Result<(Vec<String>, bool), Error> {
        let sums = self.listed(shard).await?;
        let unlisted = self.unlisted(shard, &sums).await?;

        let len = sums.len() + unlisted.len();
        if len > self.shard_keys_max || self.take(len) < len {
            return Ok((Vec::new(), true));
        }
        self.add(sums);
        Ok((unlisted, false))
    }

    /// The sums of a shard's keys with listed tiles, up to the limit.
    async fn listed(&self, shard: i32) -> Result<HashMap<String, i128>, Error> {
        let mut sums = HashMap::new();
        for list in keys::lists_of(shard) {
            let mut paging = Some(PagingState::start());
            while let Some(from) = paging.filter(|_| sums.len() <= self.shard_keys_max) {
                paging = self.page(list, from, &mut sums).await?;
            }
        }
        Ok(sums)
    }

    /// The keys of a shard without listed tiles, up to the limit.
    async fn unlisted(
        &self,
        shard: i32,
        listed: &HashMap<String, i128>,
    ) -> Result<Vec<String>, Error> {
        let mut pages = Pages::of_shard(&self.reader.cql, self.generation, shard);
        let mut unlisted = Vec::new();
        while unlisted.len() <= self.shard_keys_max
            && let Some(keys) = pages.next().await?
        {
            unlisted.extend(keys.into_iter().filter(|key| !listed.contains_key(key)));
        }
        Ok(unlisted)
    }

    /// Adds one page of a list. Returns the state for the next page.
    async fn page(
        &self,
        list: i32,
        paging: PagingState,
        sums: &mut HashMap<String, i128>,
    ) -> Result<Option<PagingState>, Error> {
        let periods = || self.ids.iter().copied().map(cell::period_of);
        let (Some(first), Some(last)) = (periods().min(), periods().max()) else {
            return Ok(None);
        };
        let cql = &self.reader.cql;
        let _permit = self.reader.in_flight.acquire().await;
        let values = (keys::counter_of(self.generation), list, first, last);
        let page = cql.session.execute_single_page(&cql.statements.spans, values, paging).await;
        let (found, next) = page.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;

        self.report(rows.rows_num());

        for row in rows.rows::<(i32, &str, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (period, key, tiles) = row.map_err(error::request)?;
            let sum = self.sum_of(key, cell::id_of(period), tiles)?;

            match sums.get_mut(key) {
                Some(known) => *known += sum,
                None => drop(sums.insert(key.to_owned(), sum)),
            }
        }

        Ok(next.into_paging_control_flow().continue_value())
    }

    /// Adds a key without listed tiles.
    async fn look_up(&self, key: String) -> Result<(), Error> {
        let _permit = self.reader.in_flight.acquire().await;
        let cost = Cost::default();
        let sum = tables::sum(&self.reader.cql, self.generation, &key, &self.plan, &cost).await;
        self.reader.report(&cost);
        self.add([(key, sum?)]);
        Ok(())
    }

    /// Reads each key by itself. Returns whether that covered all keys of the counter.
    async fn keys(&self) -> Result<bool, Error> {
        let mut pages = Pages::new(&self.reader.cql, self.generation);
        while let Some(mut keys) = pages.next().await? {
            let len = self.take(keys.len());
            let is_cut = len < keys.len();
            keys.truncate(len);

            let together = keys.chunks(KEYS_TOGETHER).map(<[String]>::to_vec);
            let reads = stream::iter(together)
                .map(|keys| self.together(keys))
                .buffer_unordered(REQUESTS_IN_FLIGHT);
            reads.try_collect::<()>().await?;

            if is_cut {
                return Ok(false);
            }
        }

        Ok(true)
    }

    /// Adds some keys with one request.
    async fn together(&self, keys: Vec<String>) -> Result<(), Error> {
        let mut found = match self.reader.cql.options.read_plan {
            ReadPlan::Tiles => self.tiles_of(&keys).await?,
            ReadPlan::Tables => HashMap::new(),
        };
        for key in keys {
            let sum = found.remove(&key);
            let query = Query { generation: self.generation, key, plan: self.plan };
            let sum = match sum {
                Some(sum) => sum,
                // It has no tiles in the range, or is read from the count tables.
                None => self.reader.sum(&query).await?,
            };
            self.add([(query.key, sum)]);
        }

        Ok(())
    }

    /// The sums of those keys that have tiles in the range.
    async fn tiles_of(&self, keys: &[String]) -> Result<HashMap<String, i128>, Error> {
        let cql = &self.reader.cql;
        let _permit = self.reader.in_flight.acquire().await;
        let periods: Vec<i32> = self.ids.iter().copied().map(cell::period_of).collect();
        let found = cql.session.execute_unpaged(&cql.statements.tiles_of, (keys, periods)).await;
        let rows = found.map_err(error::execution)?.into_rows_result().map_err(error::request)?;

        self.report(rows.rows_num());

        let mut sums = HashMap::<String, i128>::new();
        for row in rows.rows::<(&str, i32, HashMap<i64, &[u8]>)>().map_err(error::request)? {
            let (key, period, tiles) = row.map_err(error::request)?;
            *sums.entry(key.to_owned()).or_default() +=
                self.sum_of(key, cell::id_of(period), tiles)?;
        }

        Ok(sums)
    }

    /// What a row's tiles add.
    fn sum_of(&self, key: &str, id: TileId, tiles: HashMap<i64, &[u8]>) -> Result<i128, Error> {
        let own = tiles.into_iter().filter(|(writer, _)| cell::is_of(*writer, self.generation));
        own.map(|(_, bytes)| {
            let (_, tile) = cell::decode(key, bytes)?;
            Ok(id::sum_of(&self.plan, id, &tile)?)
        })
        .sum()
    }

    /// Takes from the number of keys that may be examined; returns how many it got.
    fn take(&self, wanted: usize) -> usize {
        let rest = |left: usize| left.saturating_sub(wanted);
        self.keys_left.update(Ordering::AcqRel, Ordering::Acquire, rest).min(wanted)
    }

    /// Adds keys. When there are many, drops those that can no longer be among the largest.
    fn add(&self, sums: impl IntoIterator<Item = (String, i128)>) {
        let clamp = |sum: i128| sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let is_long = {
            let mut found = self.found.lock();
            found.extend(sums.into_iter().map(|(key, sum)| (key, clamp(sum))));
            found.len() > 10_000 + 2 * self.len_max
        };
        if is_long {
            self.keep_largest();
        }
    }

    fn keep_largest(&self) {
        let mut found = self.found.lock();
        found.sort_unstable_by(|left, right| {
            right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0))
        });
        found.truncate(self.len_max);
    }

    fn report(&self, rows: usize) {
        let cost = Cost::default();
        cost.add(1, rows as u64);
        self.reader.report(&cost);
    }
}
