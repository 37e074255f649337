//! Cursors of walks through the entries of a collection.
//!
//! A walk visits positions downward. A removal moves the last entry into the gap: one that the walk
//! has visited already, or one that it still finds there. So a walk may repeat entries, and misses
//! none that was there all the time. A position means nothing once the collection was loaded again,
//! for its order is another then: the cursor carries a number of the load, and a walk with the
//! number of another load starts over.
//!
//! Clients that keep numbers as doubles know cursors below 2^53: 16 bits of the load, and as many
//! of the position as are left.

const POSITION_BITS: u32 = 53 - u16::BITS;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

/// The number of entries that a walk has yet to visit. They lie below that position.
pub fn position(cursor: u64, load: u16, len: usize) -> usize {
    let position = usize::try_from(cursor & POSITION_MASK).unwrap_or(usize::MAX);
    let same_load = cursor >> POSITION_BITS == u64::from(load);
    if same_load && position > 0 { position.min(len) } else { len }
}

/// The cursor of a walk that has yet to visit the entries below a position. Zero ends the walk.
pub fn at(position: usize, load: u16) -> u64 {
    if position == 0 { 0 } else { u64::from(load) << POSITION_BITS | position as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_whole_number_to_every_client() {
        let largest = at(POSITION_MASK as usize, u16::MAX);
        assert_eq!(largest, (1 << 53) - 1);
        assert_eq!(position(at(7, 65_535), 65_535, 10), 7);
        assert_eq!(position(at(7, 65_535), 3, 10), 10, "another load starts over");
    }
}
