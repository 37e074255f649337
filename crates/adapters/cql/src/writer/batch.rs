//! Statements of a commit for tiles and their rows, cut into batches of bounded size.

use super::tiles::Slot;
use crate::statements::Statements;
use crate::{Cluster, Error, cell, error, keys};
use raingauge_core::bucket::Granularity;
use raingauge_core::tile::id::TileId;
use raingauge_core::tile::{OVERFLOWED, Overflow};
use raingauge_ports::buckets::Generation;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlTimestamp, CqlValue};

/// Maximum number of statements in a batch. The driver refuses more than 65,535, and servers become
/// slow long before that.
pub const BATCH_STATEMENTS_MAX: usize = 500;
/// Maximum bytes in a batch: a quarter of what Scylla refuses by default (1 MiB).
pub const BATCH_BYTES_MAX: usize = 256 << 10;
/// Approximate size of a statement besides its key and its tile.
const STATEMENT_BYTES: usize = 64;
/// Number of statements that weigh as much as one request in flight.
const STATEMENTS_PER_PERMIT: usize = 8;

/// A statement with its values.
pub struct Write {
    statement: PreparedStatement,
    values: Vec<CqlValue>,
}

/// Splits a key's tiles into batches. A tile and its rows share one.
pub fn batches_of<'a>(
    slots: impl Iterator<Item = &'a mut Slot>,
    key: &str,
    has_rows: bool,
) -> Vec<Vec<&'a mut Slot>> {
    let mut batches = Vec::<Vec<&mut Slot>>::new();
    let mut statements = 0;
    let mut bytes = 0;

    for slot in slots {
        let slot_statements = statements_of(slot, has_rows);
        let slot_bytes =
            slot_statements * (STATEMENT_BYTES + key.len()) + slot.tile.as_bytes().len();
        let is_full = statements + slot_statements > BATCH_STATEMENTS_MAX
            || bytes + slot_bytes > BATCH_BYTES_MAX;

        match batches.last_mut() {
            Some(batch) if !is_full => {
                batch.push(slot);
                (statements, bytes) = (statements + slot_statements, bytes + slot_bytes);
            }
            _ => {
                batches.push(vec![slot]);
                (statements, bytes) = (slot_statements, slot_bytes);
            }
        }
    }

    batches
}

/// Statements that a tile needs: its own, and one for each of its changed rows.
pub fn statements_of(slot: &Slot, has_rows: bool) -> usize {
    1 + if has_rows { slot.changed.count_ones() as usize } else { 0 }
}

/// Number of requests in flight that a batch counts as.
pub fn permits_of(statements: usize, in_flight_max: usize) -> u32 {
    statements.div_ceil(STATEMENTS_PER_PERMIT).clamp(1, in_flight_max) as u32
}

/// Writes a tile with a timestamp and a time to live.
pub fn tile(
    statements: &Statements,
    writer: i64,
    key: &str,
    id: TileId,
    bytes: Vec<u8>,
    (stamp_us, ttl_s): (i64, i32),
) -> Write {
    let values = vec![
        CqlValue::BigInt(stamp_us),
        CqlValue::Int(ttl_s),
        CqlValue::BigInt(writer),
        CqlValue::Blob(bytes),
        CqlValue::Text(key.to_owned()),
        CqlValue::Int(cell::period_of(id)),
    ];
    Write { statement: statements.put_tile.clone(), values }
}

/// Writes a span beside those of its counter's other keys.
pub fn span(
    statements: &Statements,
    (generation, writer): (Generation, i64),
    key: &str,
    id: TileId,
    bytes: Vec<u8>,
    (stamp_us, ttl_s): (i64, i32),
) -> Write {
    let values = [
        CqlValue::BigInt(stamp_us),
        CqlValue::Int(ttl_s),
        CqlValue::BigInt(writer),
        CqlValue::Blob(bytes),
    ];
    let values = values.into_iter().chain(place_of(generation, key, id)).collect();
    Write { statement: statements.put_span.clone(), values }
}

pub fn delete_span(
    statements: &Statements,
    (generation, writer): (Generation, i64),
    key: &str,
    id: TileId,
    stamp_us: i64,
) -> Write {
    let values = [CqlValue::BigInt(writer), CqlValue::BigInt(stamp_us)];
    let values = values.into_iter().chain(place_of(generation, key, id)).collect();
    Write { statement: statements.delete_span.clone(), values }
}

/// The list entry of a key's span.
fn place_of(generation: Generation, key: &str, id: TileId) -> [CqlValue; 4] {
    [
        CqlValue::Int(keys::counter_of(generation)),
        CqlValue::Int(keys::list_of(key)),
        CqlValue::Int(cell::period_of(id)),
        CqlValue::Text(key.to_owned()),
    ]
}

/// Writes a row of a count table with a timestamp and a time to live.
pub fn row(
    statements: &Statements,
    writer: i64,
    key: &str,
    (granularity, time_s): (Granularity, i64),
    count: Result<i64, Overflow>,
    (stamp_us, ttl_s): (i64, i32),
) -> Write {
    let values = vec![
        CqlValue::Text(key.to_owned()),
        CqlValue::Timestamp(CqlTimestamp(time_s * 1_000)),
        CqlValue::BigInt(writer),
        CqlValue::BigInt(count.unwrap_or(OVERFLOWED)),
        CqlValue::BigInt(stamp_us),
        CqlValue::Int(ttl_s),
    ];
    Write { statement: statements.put_count[granularity as usize].clone(), values }
}

pub fn delete_tile(
    statements: &Statements,
    writer: i64,
    key: &str,
    id: TileId,
    stamp_us: i64,
) -> Write {
    let values = vec![
        CqlValue::BigInt(writer),
        CqlValue::BigInt(stamp_us),
        CqlValue::Text(key.to_owned()),
        CqlValue::Int(cell::period_of(id)),
    ];
    Write { statement: statements.delete_tile.clone(), values }
}

pub fn delete_row(
    statements: &Statements,
    writer: i64,
    key: &str,
    (granularity, time_s): (Granularity, i64),
    stamp_us: i64,
) -> Write {
    let values = vec![
        CqlValue::BigInt(stamp_us),
        CqlValue::Text(key.to_owned()),
        CqlValue::Timestamp(CqlTimestamp(time_s * 1_000)),
        CqlValue::BigInt(writer),
    ];
    Write { statement: statements.delete_count[granularity as usize].clone(), values }
}

/// Writes a changed tile.
pub fn changed_tile(
    statements: &Statements,
    writer: i64,
    key: &str,
    slot: &Slot,
    wall_s: i64,
) -> Write {
    let bytes = cell::encode(slot.included, &slot.tile);
    tile(statements, writer, key, slot.id, bytes, (slot.stamp_us, slot.ttl_s(wall_s)))
}

/// Writes a changed span into its counter's list.
pub fn changed_span(
    statements: &Statements,
    (generation, writer): (Generation, i64),
    key: &str,
    slot: &Slot,
    wall_s: i64,
) -> Write {
    let bytes = cell::encode(slot.included, &slot.tile);
    span(statements, (generation, writer), key, slot.id, bytes, (slot.stamp_us, slot.ttl_s(wall_s)))
}

/// Approximate size of a listed span in a batch.
pub fn bytes_of_span(key: &str, slot: &Slot) -> usize {
    STATEMENT_BYTES + key.len() + slot.tile.as_bytes().len()
}

/// Writes the changed cells of a tile into the count tables.
pub fn changed_rows(
    statements: &Statements,
    writer: i64,
    key: &str,
    slot: &Slot,
    wall_s: i64,
) -> impl Iterator<Item = Write> {
    slot.tile.cells().filter(|(cell, _)| slot.changed >> cell & 1 == 1).map(move |(cell, count)| {
        let (granularity, time_s) = slot.id.bucket_of(cell);
        let ttl_s = slot.ttl_of_bucket_s(granularity, time_s, wall_s);
        row(statements, writer, key, (granularity, time_s), count, (slot.stamp_us, ttl_s))
    })
}

/// Sends statements as one request.
pub async fn send(cql: &Cluster, writes: &[Write]) -> Result<(), Error> {
    let mut batch = Batch::new(BatchType::Unlogged);
    batch.set_is_idempotent(true);
    for write in writes {
        batch.append_statement(write.statement.clone());
    }

    let values: Vec<&[CqlValue]> = writes.iter().map(|write| &*write.values).collect();
    cql.session.batch(&batch, &values).await.map(drop).map_err(error::execution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(len: u32, cells: u32) -> Vec<Slot> {
        let slot = |day| {
            let mut slot = Slot::new(TileId::day(day));
            slot.changed = (1 << cells) - 1;
            slot
        };
        (0..len).map(slot).collect()
    }

    #[test]
    fn batches_are_cut_between_tiles() {
        let mut many = slots(1_000, 120);
        let batches = batches_of(many.iter_mut(), "k", true);
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 1_000);
        assert!(batches.iter().all(|batch| batch.len() * 121 <= BATCH_STATEMENTS_MAX));

        let without_rows = batches_of(many.iter_mut(), "k", false);
        assert_eq!(without_rows.len(), 2);

        let long_key = "k".repeat(512);
        let batches = batches_of(many.iter_mut(), &long_key, false);
        assert!(
            batches.iter().all(|batch| batch.len() * (512 + STATEMENT_BYTES) <= BATCH_BYTES_MAX)
        );
        assert!(batches_of(std::iter::empty(), "k", true).is_empty());
    }

    #[test]
    fn large_batches_count_as_several_requests() {
        assert_eq!(
            [0, 1, 8, 9, 500].map(|statements| permits_of(statements, 512)),
            [1, 1, 1, 2, 63]
        );
        assert_eq!(permits_of(500, 4), 4);
    }
}
