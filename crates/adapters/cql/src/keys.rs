//! The keys of a counter, spread over several partitions so that none grows too large.

use crate::{Cluster, Error, error};
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation};
use scylla::response::PagingState;
use std::ops::ControlFlow;

/// Number of partitions with a counter's keys, and of those that list its spans: a multiple, so
/// that the keys of one key partition are listed in a fixed set of lists.
pub const SHARDS: i32 = 16;
const LISTS: i32 = 64;

pub fn shard_of(key: &str) -> i32 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % SHARDS as u64) as i32
}

/// The list that contains a key's spans.
pub fn list_of(key: &str) -> i32 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % LISTS as u64) as i32
}

/// The lists that contain a shard's keys.
pub fn lists_of(shard: i32) -> impl Iterator<Item = i32> {
    (shard..LISTS).step_by(SHARDS as usize)
}

pub const fn counter_of(generation: Generation) -> i32 {
    (generation / GENERATIONS_PER_COUNTER) as i32
}

/// Iterates over a counter's keys, page by page.
pub struct Pages<'a> {
    cql: &'a Cluster,
    counter: i32,
    shard: i32,
    shard_end: i32,
    paging: PagingState,
}

impl<'a> Pages<'a> {
    pub fn new(cql: &'a Cluster, generation: Generation) -> Self {
        let counter = counter_of(generation);
        Self { cql, counter, shard: 0, shard_end: SHARDS, paging: PagingState::start() }
    }

    pub fn of_shard(cql: &'a Cluster, generation: Generation, shard: i32) -> Self {
        Self { shard, shard_end: shard + 1, ..Self::new(cql, generation) }
    }

    /// Returns the next page, which may be empty; `None` at the end. After an error the same page
    /// is read again.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, Error> {
        if self.shard == self.shard_end {
            return Ok(None);
        }

        let statement = &self.cql.statements.keys;
        let values = (self.counter, self.shard);
        let page =
            self.cql.session.execute_single_page(statement, values, self.paging.clone()).await;
        let (found, next) = page.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let rows = rows.rows::<(String,)>().map_err(error::request)?;
        let keys = rows
            .map(|row| row.map(|(key,)| key))
            .collect::<Result<Vec<_>, _>>()
            .map_err(error::request)?;

        match next.into_paging_control_flow() {
            ControlFlow::Continue(state) => self.paging = state,
            ControlFlow::Break(()) => {
                (self.shard, self.paging) = (self.shard + 1, PagingState::start())
            }
        }

        Ok(Some(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_shard_is_in_one_of_its_lists() {
        for number in 0..1_000 {
            let key = format!("k{number}");
            assert!(lists_of(shard_of(&key)).any(|list| list == list_of(&key)));
        }
        assert_eq!((0..SHARDS).flat_map(lists_of).count(), LISTS as usize);
    }
}
