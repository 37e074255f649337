//! Which keys a counter has, spread over some partitions so that none grows too large.

use crate::{Cql, Error, error};
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation};
use scylla::response::PagingState;
use std::ops::ControlFlow;

/// Partitions that the keys of a counter are spread over, and those that their spans are listed in: a multiple, so
/// that each of the former has its keys in some of the latter.
pub const SHARDS: i32 = 16;
const LISTS: i32 = 64;

pub fn shard_of(key: &str) -> i32 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % SHARDS as u64) as i32
}

/// The list that the spans of a key are in.
pub fn list_of(key: &str) -> i32 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % LISTS as u64) as i32
}

/// The lists that the keys of a shard are in.
pub fn lists_of(shard: i32) -> impl Iterator<Item = i32> {
    (shard..LISTS).step_by(SHARDS as usize)
}

pub const fn counter_of(generation: Generation) -> i32 {
    (generation / GENERATIONS_PER_COUNTER) as i32
}

/// A walk through the keys of a counter, page by page.
pub struct Pages<'a> {
    cql: &'a Cql,
    counter: i32,
    shard: i32,
    shard_end: i32,
    paging: PagingState,
}

impl<'a> Pages<'a> {
    pub fn new(cql: &'a Cql, generation: Generation) -> Self {
        let counter = counter_of(generation);
        Self { cql, counter, shard: 0, shard_end: SHARDS, paging: PagingState::start() }
    }

    pub fn of_shard(cql: &'a Cql, generation: Generation, shard: i32) -> Self {
        Self { shard, shard_end: shard + 1, ..Self::new(cql, generation) }
    }

    /// The next keys, which may be none; `None` at the end. After an error the same page is read again.
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
