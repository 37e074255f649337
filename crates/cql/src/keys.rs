//! Which keys a counter has, spread over some partitions so that none grows too large.

use crate::{Cql, Error, error};
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation};
use scylla::response::PagingState;
use std::ops::ControlFlow;

/// Partitions that the keys of a counter are spread over.
const SHARDS: i32 = 16;

pub fn shard_of(key: &str) -> i32 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % SHARDS as u64) as i32
}

pub const fn counter_of(generation: Generation) -> i32 {
    (generation / GENERATIONS_PER_COUNTER) as i32
}

/// A walk through the keys of a counter, page by page.
pub struct Pages<'a> {
    cql: &'a Cql,
    counter: i32,
    shard: i32,
    paging: PagingState,
}

impl<'a> Pages<'a> {
    pub fn new(cql: &'a Cql, generation: Generation) -> Self {
        Self { cql, counter: counter_of(generation), shard: 0, paging: PagingState::start() }
    }

    /// The next keys, which may be none; `None` at the end. After an error the same page is read again.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, Error> {
        if self.shard == SHARDS {
            return Ok(None);
        }

        let statement = &self.cql.statements.keys;
        let values = (self.counter, self.shard);
        let page = self.cql.session.execute_single_page(statement, values, self.paging.clone()).await;
        let (found, next) = page.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let rows = rows.rows::<(String,)>().map_err(error::request)?;
        let keys = rows.map(|row| row.map(|(key,)| key)).collect::<Result<Vec<_>, _>>().map_err(error::request)?;

        match next.into_paging_control_flow() {
            ControlFlow::Continue(state) => self.paging = state,
            ControlFlow::Break(()) => (self.shard, self.paging) = (self.shard + 1, PagingState::start()),
        }
        Ok(Some(keys))
    }
}
