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

/// The keys of a shard.
async fn keys_of_shard(cql: &Cql, counter: i32, shard: i32, len_max: usize) -> Result<Vec<String>, Error> {
    let mut keys = Vec::new();
    let mut paging = PagingState::start();
    loop {
        let statement = &cql.statements.keys;
        let page = cql.session.execute_single_page(statement, (counter, shard), paging).await;
        let (found, next) = page.map_err(error::request)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        for row in rows.rows::<(String,)>().map_err(error::request)? {
            keys.push(row.map_err(error::request)?.0);
        }
        match next.into_paging_control_flow() {
            ControlFlow::Continue(state) if keys.len() < len_max => paging = state,
            _ => return Ok(keys),
        }
    }
}

/// Keys of a counter, at most so many.
pub async fn keys_of(cql: &Cql, generation: Generation, len_max: usize) -> Result<Vec<String>, Error> {
    let mut keys = Vec::new();
    for shard in 0..SHARDS {
        keys.extend(keys_of_shard(cql, counter_of(generation), shard, len_max.saturating_sub(keys.len())).await?);
    }
    keys.truncate(len_max);
    Ok(keys)
}
