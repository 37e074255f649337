//! What one log partition stores in a tile row, and under which number.
//!
//! ```text
//! ┌────────┬──────────┬─────────────┐
//! │ format │ included │ packed tile │   numbers are little-endian
//! │ 1 u8   │ u64      │             │
//! └────────┴──────────┴─────────────┘
//! ```

use crate::Error;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation};
use raingauge_ports::log::Offset;
pub use raingauge_ports::tiles::{is_of, writer_of};

const FORMAT: u8 = 1;
const HEADER_LEN: usize = 9;

/// Whether a row of the count tables belongs to a generation. A row written by another system
/// belongs to the first generation of its counter.
pub fn is_row_of(writer: i64, generation: Generation) -> bool {
    is_of(writer, generation) || (writer < 0 && generation.is_multiple_of(GENERATIONS_PER_COUNTER))
}

/// The clustering key of a tile: days count up from 0, spans down from -1.
pub fn period_of(id: TileId) -> i32 {
    let period = id.period() as i32;
    if id.is_span() { -period - 1 } else { period }
}

pub fn id_of(period: i32) -> TileId {
    if period < 0 {
        TileId::of_period(true, -(period + 1) as u32)
    } else {
        TileId::day(period as u32)
    }
}

/// Encodes a tile with the offset up to which it includes its log partition.
pub fn encode(included: Offset, tile: &Tile) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + tile.as_bytes().len());
    bytes.push(FORMAT);
    bytes.extend_from_slice(&included.to_le_bytes());
    bytes.extend_from_slice(tile.as_bytes());
    bytes
}

pub fn decode(key: &str, bytes: &[u8]) -> Result<(Offset, Tile), Error> {
    let corrupt = |reason: &str| Error::Corrupt(format!("a tile of {key} {reason}"));
    let (header, tile) =
        bytes.split_at_checked(HEADER_LEN).ok_or_else(|| corrupt("is cut short"))?;
    if header[0] != FORMAT {
        return Err(corrupt(&format!("has format {}, and this program reads {FORMAT}", header[0])));
    }
    let mut included = [0; 8];
    included.copy_from_slice(&header[1..]);
    let tile = Tile::from_bytes(tile).map_err(|error| corrupt(&error.to_string()))?;
    Ok((Offset::from_le_bytes(included), tile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::buckets::generation_of;

    #[test]
    fn numbers_lead_back() {
        let (first, second) = (generation_of(999_999, 0), generation_of(999_999, 1));
        assert_eq!(writer_of(first, 5) % 65_536, 5);
        assert!(is_of(writer_of(first, 5), first) && !is_of(writer_of(first, 5), second));
        assert!(!is_of(-1, first) && is_row_of(-1, first) && !is_row_of(-1, second));
        for id in [TileId::day(0), TileId::day(20_000), TileId::span(0), TileId::span(20_000)] {
            assert_eq!(id_of(period_of(id)), id);
        }
    }

    #[test]
    fn a_tile_of_version_1_still_opens() {
        let mut tile = Tile::default();
        tile.add(3, 5);
        let bytes = encode(513, &tile);
        assert_eq!(bytes[..HEADER_LEN], [1, 1, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode("k", &bytes).unwrap(), (513, tile));
        for wrong in [&bytes[..5], &[2; 40][..], &bytes[..bytes.len() - 1]] {
            assert!(matches!(decode("k", wrong), Err(Error::Corrupt(_))));
        }
    }
}
