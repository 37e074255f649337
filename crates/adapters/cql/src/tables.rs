//! The plan of the published description: slices of the three count tables.

use crate::cell;
use crate::{Cluster, Error, error};
use futures_util::future::try_join_all;
use raingauge_core::bucket::Granularity;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::{OVERFLOWED, Overflow};
use raingauge_ports::buckets::{self, Cell, Generation};
use scylla::value::CqlTimestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sum of a range. A count that one table lacks is not looked up in another.
pub async fn sum(
    cql: &Cluster,
    generation: Generation,
    key: &str,
    plan: &Plan,
    cost: &Cost,
) -> Result<i128, buckets::Error> {
    let slices = plan.slices().map(|slice| async move {
        let counts = rows(cql, generation, key, slice, cost).await?;
        let counts = counts.into_iter().map(|(_, count)| count_of(count).map(i128::from));
        counts.sum::<Result<i128, _>>()
    });
    Ok(try_join_all(slices).await?.into_iter().sum())
}

/// A row's count; one value marks a count that overflowed.
fn count_of(count: i64) -> Result<i64, buckets::Error> {
    if count == OVERFLOWED { Err(Overflow.into()) } else { Ok(count) }
}

/// The cells of a slice; rows of the same bucket are added.
pub async fn cells(
    cql: &Cluster,
    generation: Generation,
    key: &str,
    slice: Slice,
    cost: &Cost,
) -> Result<Vec<Cell>, buckets::Error> {
    let mut counts = BTreeMap::<i64, i64>::new();
    for (time_s, count) in rows(cql, generation, key, slice, cost).await? {
        let sum = counts.entry(time_s).or_default();
        *sum = sum.checked_add(count_of(count)?).ok_or(Overflow)?;
    }
    let granularity = slice.granularity;
    Ok(counts.into_iter().map(|(time_s, count)| Cell { granularity, time_s, count }).collect())
}

/// Times and counts of a generation's rows.
async fn rows(
    cql: &Cluster,
    generation: Generation,
    key: &str,
    slice: Slice,
    cost: &Cost,
) -> Result<Vec<(i64, i64)>, Error> {
    let statement = &cql.statements.counts[slice.granularity as usize];
    let (from, to) = (CqlTimestamp(slice.from_s * 1_000), CqlTimestamp(slice.to_s * 1_000));
    let found =
        cql.session.execute_unpaged(statement, (key, from, to)).await.map_err(error::request)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    cost.add(1, rows.rows_num() as u64);
    let rows = rows.rows::<(CqlTimestamp, i64, Option<i64>)>().map_err(error::request)?;
    let rows = rows.collect::<Result<Vec<_>, _>>().map_err(error::request)?;
    let own = rows.into_iter().filter(|(_, writer, _)| cell::is_row_of(*writer, generation));
    Ok(own.map(|(time, _, count)| (time.0.div_euclid(1_000), count.unwrap_or(0))).collect())
}

/// Requests and rows that an answer has cost.
#[derive(Debug, Default)]
pub struct Cost {
    pub requests: AtomicU64,
    pub rows: AtomicU64,
}

impl Cost {
    pub fn add(&self, requests: u64, rows: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Statements are indexed by granularity.
const _: () = assert!(Granularity::Quarter as usize == 0 && Granularity::Day as usize == 2);
