//! The state of a partition's writer: in its checkpoint's row, or, if it is large, in rows of its
//! own that the checkpoint names. A server refuses mutations larger than half a segment of its
//! commit log.
//!
//! ```text
//!   the state in the checkpoint   ┌─ JSON ───────────┐     or     ┌──────┬────────┬────────────┐
//!                                 └──────────────────┘            │ 0 u8 │ id i64 │ chunks u32 │
//!                                                                 └──────┴────────┴────────────┘
//! ```
//!
//! The id is a hash of the state, which verifies that it was read completely.

use crate::{Cluster, Error, error};
use raingauge_ports::log::Partition;

/// Largest state that is stored in its checkpoint's row.
const INLINE_MAX: usize = 1 << 20;
/// Bytes in one row of a larger state.
const CHUNK_BYTES: usize = 512 << 10;
/// No JSON begins with this byte.
const MARK: u8 = 0;

/// Identifies the rows of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChunks {
    id: i64,
    len: u32,
}

impl StateChunks {
    /// `None` for a state that fits its checkpoint.
    pub fn of(state: &[u8]) -> Option<Self> {
        let len = state.len().div_ceil(CHUNK_BYTES) as u32;
        (state.len() > INLINE_MAX).then(|| Self { id: id_of(state), len })
    }

    fn encode(self) -> Vec<u8> {
        [&[MARK][..], &self.id.to_le_bytes(), &self.len.to_le_bytes()].concat()
    }

    /// `None` if the checkpoint holds the state itself.
    pub fn decode(stored: &[u8]) -> Result<Option<Self>, Error> {
        let Some((&MARK, rest)) = stored.split_first() else {
            return Ok(None);
        };
        let cut = || Error::Corrupt("the name of a writer's state is cut short".to_owned());
        let (id, len) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        let len = <[u8; 4]>::try_from(len).map_err(|_| cut())?;
        Ok(Some(Self { id: i64::from_le_bytes(*id), len: u32::from_le_bytes(len) }))
    }
}

fn id_of(state: &[u8]) -> i64 {
    xxhash_rust::xxh3::xxh3_64(state) as i64
}

/// What a checkpoint stores for a state: the state itself, or the name of its rows.
pub fn in_checkpoint(state: &[u8]) -> Vec<u8> {
    StateChunks::of(state).map_or_else(|| state.to_vec(), StateChunks::encode)
}

/// Stores the rows of a large state.
pub async fn put(
    cql: &Cluster,
    log: &str,
    partition: Partition,
    state: &[u8],
    timestamp_us: i64,
) -> Result<(), Error> {
    let Some(chunks) = StateChunks::of(state) else {
        return Ok(());
    };
    for (number, bytes) in state.chunks(CHUNK_BYTES).enumerate() {
        let values = (log, i32::from(partition), chunks.id, number as i32, bytes, timestamp_us);
        cql.session
            .execute_unpaged(&cql.statements.put_state, values)
            .await
            .map_err(error::execution)?;
    }
    Ok(())
}

/// Returns the state that a checkpoint holds or names.
pub async fn get(
    cql: &Cluster,
    log: &str,
    partition: Partition,
    stored: Vec<u8>,
) -> Result<Vec<u8>, Error> {
    let Some(chunks) = StateChunks::decode(&stored)? else {
        return Ok(stored);
    };
    let mut state = Vec::new();
    for number in 0..chunks.len {
        let values = (log, i32::from(partition), chunks.id, number as i32);
        let found = cql
            .session
            .execute_unpaged(&cql.statements.get_state, values)
            .await
            .map_err(error::execution)?;

        let rows = found.into_rows_result().map_err(error::request)?;
        let row = rows.maybe_first_row::<(Vec<u8>,)>().map_err(error::request)?;
        state.extend(row.map(|(bytes,)| bytes).unwrap_or_default());
    }

    // Another state may have replaced it since the checkpoint was read.
    let is_whole = id_of(&state) == chunks.id;
    if is_whole {
        Ok(state)
    } else {
        Err(error::request("a writer's state was replaced while it was read"))
    }
}

/// Deletes the rows of a state that no checkpoint names any longer.
pub async fn delete(
    cql: &Cluster,
    log: &str,
    partition: Partition,
    chunks: StateChunks,
    written_us: i64,
) -> Result<(), Error> {
    let values = (written_us, log, i32::from(partition), chunks.id);
    let deleted = cql.session.execute_unpaged(&cql.statements.delete_state, values).await;
    deleted.map(drop).map_err(error::execution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_state_leads_back_to_it() {
        assert_eq!(StateChunks::of(&vec![b'x'; INLINE_MAX]), None);
        let large = vec![b'x'; INLINE_MAX + 1];
        let chunks = StateChunks::of(&large).expect("rows of its own");
        assert_eq!(chunks.len, 3);
        assert_eq!(StateChunks::decode(&chunks.encode()).unwrap(), Some(chunks));
        assert_eq!(StateChunks::decode(b"{}").unwrap(), None);
        assert_eq!(StateChunks::decode(b"").unwrap(), None);
        assert!(matches!(StateChunks::decode(&[0, 1, 2]), Err(Error::Corrupt(_))));
    }
}
