//! Tiles in fjall.
//!
//! ```text
//! 0x00 "format"                      → version u32
//! 0x00 "position"                    → offset u64
//! 0x00 "state"                       → the writer's, as it came
//! 0x00 "progress"                    → rank i64, then the progress of a backfill, as it came
//! 0x01 generation u32 │ 0 span, 1 day │ key text │ 0x00 │ period u32
//!                                    → a tile, see raingauge_core::tile
//! 0x02 name …                        → a consumer's, see disk/consumers.rs
//! ```
//!
//! All in one keyspace ([`store`]), so that any prefix of fjall's journals is a state that the
//! store was in: if the last journal loses its end, the position goes back with the tiles, and the
//! log is read again. Numbers in keys are big-endian, so that they sort; those in values are
//! little-endian.

mod consumers;

use super::options::Options;
use crate::store::{self, Fault, Store};
use fjall::{OwnedWriteBatch, UserKey, UserValue};
use parking_lot::Mutex;
use raingauge_core::event::key_hash;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::buckets::{Checkpoint, Error, Generation, Progress};
use std::ops::Bound;
use std::path::Path;

/// Version of the keys above.
const FORMAT: u32 = 1;
const POSITION_KEY: &[u8] = b"\0position";
const STATE_KEY: &[u8] = b"\0state";
const PROGRESS_KEY: &[u8] = b"\0progress";
const TILE_TAG: u8 = 1;
/// Bytes before and behind the text of a key.
const HEAD_LEN: usize = 6;
const TAIL_LEN: usize = 5;
const ADVICE: &str = "restore the data folder from a backup, or, where the event log still begins \
                      at offset 0, remove the folder tiles, and everything is counted again";

pub struct Disk {
    store: Store,
    /// The state of the last commit, so that it is not written again unchanged.
    state: Mutex<Vec<u8>>,
}

/// A tile and its place.
pub type Found = (String, TileId, Tile);

impl Disk {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Error> {
        let options = store::Options {
            block_cache_bytes: options.block_cache_bytes,
            open_files_max: options.open_files_max,
            ..store::Options::new("tiles", FORMAT, options.memtable_bytes(), ADVICE)
        };
        let store = Store::open(folder, &options)?;
        let state = store.get(STATE_KEY)?.unwrap_or_default();
        Ok(Self { store, state: Mutex::new(state) })
    }

    pub fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let bytes = self.store.get(POSITION_KEY)?.unwrap_or_else(|| vec![0; 16]);
        // The first folders held only the position.
        let (position, stamp) = bytes.split_at(bytes.len().min(8));
        let malformed = || Error::Corrupt("its position is malformed".to_owned());
        let position = position.try_into().map(u64::from_le_bytes).map_err(|_| malformed())?;
        let stamp_us = match stamp {
            [] => 0,
            stamp => stamp.try_into().map(i64::from_le_bytes).map_err(|_| malformed())?,
        };
        let progress =
            self.store.get(PROGRESS_KEY)?.map(|bytes| progress_of(&bytes)).transpose()?;
        Ok(Checkpoint { position, state: self.state.lock().clone(), stamp_us, progress })
    }

    pub fn tile(
        &self,
        generation: Generation,
        key: &str,
        id: TileId,
    ) -> Result<Option<Tile>, Error> {
        let found = self.store.keyspace.get(tile_key(generation, key, id)).map_err(failed)?;
        found.map(|bytes| tile_of(key, &bytes)).transpose()
    }

    /// The tiles of a key.
    pub fn tiles_of(&self, generation: Generation, key: &str) -> Result<Vec<TileId>, Error> {
        let mut ids = Vec::new();
        for is_span in [true, false] {
            let mut prefix = head(generation, is_span).to_vec();
            prefix.extend_from_slice(key.as_bytes());
            prefix.push(0);

            for guard in self.store.keyspace.prefix(&prefix) {
                let (stored, value) = guard.into_inner().map_err(failed)?;
                let (text, id, _) = found(&stored, &value)?;

                // A key may contain a zero itself, and share its beginning with another one.
                if text == key {
                    ids.push(id);
                }
            }
        }

        Ok(ids)
    }

    /// Returns all spans of a generation.
    pub fn spans(&self, generation: Generation) -> impl Iterator<Item = Result<Found, Error>> {
        let prefix = head(generation, true);
        self.store.keyspace.prefix(prefix).map(|guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            found(&key, &value)
        })
    }

    /// Returns the hashes of the keys that have spans in a generation. The hash of a key with
    /// several spans may occur several times.
    pub fn key_hashes(&self, generation: Generation) -> Result<Vec<u64>, Error> {
        let prefix = head(generation, true);
        let mut hashes = Vec::new();
        for guard in self.store.keyspace.prefix(prefix) {
            let stored = guard.key().map_err(failed)?;
            let hash = key_hash(text_of(&stored)?);
            if hashes.last() != Some(&hash) {
                hashes.push(hash);
            }
        }
        Ok(hashes)
    }

    /// Returns up to `scan_max` tiles of a generation behind a cursor, and the cursor to continue
    /// from; `None` at the end.
    pub fn scan(
        &self,
        generation: Generation,
        cursor: Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<(Vec<Found>, Option<Vec<u8>>), Error> {
        let from =
            cursor.map_or(Bound::Included(head(generation, true)[..5].to_vec()), Bound::Excluded);
        let mut tiles = Vec::new();
        for guard in self.store.keyspace.range((from, Bound::Unbounded)).take(scan_max) {
            let (key, value) = guard.into_inner().map_err(failed)?;
            if !key.starts_with(&head(generation, true)[..5]) {
                return Ok((tiles, None));
            }
            tiles.push(found(&key, &value)?);

            if tiles.len() == scan_max {
                return Ok((tiles, Some(key.to_vec())));
            }
        }

        Ok((tiles, None))
    }

    pub fn batch(&self) -> Batch<'_> {
        Batch { disk: self, batch: self.store.synced_batch(), tiles: Vec::new() }
    }

    /// Writes a position in the form used before there were markers.
    #[cfg(test)]
    pub fn write_unmarked(&self, checkpoint: &Checkpoint) {
        let position =
            [checkpoint.position.to_le_bytes(), checkpoint.stamp_us.to_le_bytes()].concat();
        self.store.keyspace.insert(POSITION_KEY, position).expect("inserted");
        self.store.database.persist(fjall::PersistMode::SyncAll).expect("durable");
    }

    pub fn compact(&self) -> Result<(), Error> {
        Ok(self.store.compact()?)
    }
}

/// Changes that become durable together.
pub struct Batch<'a> {
    disk: &'a Disk,
    batch: OwnedWriteBatch,
    /// Tiles, and `None` for those to be removed.
    tiles: Vec<(UserKey, Option<UserValue>)>,
}

impl Batch<'_> {
    /// Writes a tile; removes it if it is empty.
    pub fn put(&mut self, generation: Generation, key: &str, id: TileId, tile: &Tile) {
        let value = (!tile.is_empty()).then(|| UserValue::from(tile.as_bytes()));
        self.tiles.push((tile_key(generation, key, id).into(), value));
    }

    pub fn commit(mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let keyspace = &self.disk.store.keyspace;

        // Sorted, because neighbours are found faster: much of a large commit is the search for
        // places in fjall's memory table.
        self.tiles.sort_unstable_by(|left, right| left.0.cmp(&right.0));

        for (key, value) in self.tiles {
            match value {
                Some(value) => self.batch.insert(keyspace, key, value),
                None => self.batch.remove(keyspace, key),
            }
        }

        let position =
            [checkpoint.position.to_le_bytes(), checkpoint.stamp_us.to_le_bytes()].concat();
        self.batch.insert(keyspace, POSITION_KEY, position);

        if let Some(Progress { rank, bytes }) = &checkpoint.progress {
            self.batch.insert(keyspace, PROGRESS_KEY, [&rank.to_le_bytes()[..], bytes].concat());
        }
        let mut last = self.disk.state.lock();
        if *last != checkpoint.state {
            self.batch.insert(keyspace, STATE_KEY, checkpoint.state.as_slice());
            last.clone_from(&checkpoint.state);
        }

        Ok(self.disk.store.commit(self.batch)?)
    }
}

fn failed(error: fjall::Error) -> Error {
    Fault::from(error).into()
}

fn progress_of(bytes: &[u8]) -> Result<Progress, Error> {
    let (rank, bytes) = bytes
        .split_first_chunk()
        .ok_or_else(|| Error::Corrupt("the progress of its backfill is malformed".to_owned()))?;
    Ok(Progress { rank: i64::from_le_bytes(*rank), bytes: bytes.to_vec() })
}

fn head(generation: Generation, is_span: bool) -> [u8; HEAD_LEN] {
    let [a, b, c, d] = generation.to_be_bytes();
    [TILE_TAG, a, b, c, d, u8::from(!is_span)]
}

fn tile_key(generation: Generation, key: &str, id: TileId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_LEN + key.len() + TAIL_LEN);
    bytes.extend_from_slice(&head(generation, id.is_span()));
    bytes.extend_from_slice(key.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&id.period().to_be_bytes());
    bytes
}

fn found(key: &[u8], value: &[u8]) -> Result<Found, Error> {
    let text = text_of(key)?;
    let period = key[HEAD_LEN + text.len() + 1..]
        .try_into()
        .map(u32::from_be_bytes)
        .map_err(|_| malformed_key())?;
    Ok((text.to_owned(), TileId::of_period(key[5] == 0, period), tile_of(text, value)?))
}

/// Returns the text of the counted key in the key of a tile.
fn text_of(key: &[u8]) -> Result<&str, Error> {
    let text = key
        .len()
        .checked_sub(TAIL_LEN)
        .and_then(|end| key.get(HEAD_LEN..end))
        .ok_or_else(malformed_key)?;
    std::str::from_utf8(text).map_err(|_| malformed_key())
}

fn malformed_key() -> Error {
    Error::Corrupt("a tile has a malformed key".to_owned())
}

fn tile_of(key: &str, bytes: &[u8]) -> Result<Tile, Error> {
    Tile::from_bytes(bytes).map_err(|error| Error::Corrupt(format!("a tile of {key}: {error}")))
}
