//! The positions of a record's tiles, found without reading the tiles.
//!
//! One bitmap marks which of the 128 days up to the last one are present, another one which of the
//! 64 spans from the first one on. The position of a tile is a population count of words that lie
//! beside the key: a count finds all its tiles at once, where a search would wait for memory at
//! each step.

use raingauge_core::tile::id::TileId;

/// The positions of tiles in a list that begins with spans and ends with days, both in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    /// Bit `n` stands for the day `n` days before the last one, which has bit 0.
    days: u128,
    /// Bit `n` stands for the span `n` spans behind the first one, which has bit 0.
    spans: u64,
    last_day: u32,
    first_span: u32,
}

impl Places {
    /// The index of a tile in the list of `len` tiles, or where it would be inserted. `None` when
    /// only a search can find it.
    #[inline]
    pub fn of(&self, id: TileId, len: usize) -> Option<Result<usize, usize>> {
        if id.is_span() { self.of_span(id.period()) } else { self.of_day(id.period(), len) }
    }

    fn of_span(&self, span: u32) -> Option<Result<usize, usize>> {
        if self.spans == 0 || span < self.first_span {
            return Some(Err(0));
        }
        let bit = 1_u64.checked_shl(span - self.first_span)?;
        let place = (self.spans & (bit - 1)).count_ones() as usize;
        Some(if self.spans & bit == 0 { Err(place) } else { Ok(place) })
    }

    fn of_day(&self, day: u32, len: usize) -> Option<Result<usize, usize>> {
        if self.days == 0 || day > self.last_day {
            return Some(Err(len));
        }
        let bit = 1_u128.checked_shl(self.last_day - day)?;
        let behind = (self.days & (bit - 1)).count_ones() as usize;
        Some(if self.days & bit == 0 { Err(len - behind) } else { Ok(len - behind - 1) })
    }

    /// Notes a tile that was inserted into the list.
    pub fn insert(&mut self, id: TileId) {
        let period = id.period();
        if id.is_span() {
            if self.spans == 0 || period < self.first_span {
                let moved = self.first_span.saturating_sub(period);
                self.spans = self.spans.checked_shl(moved).unwrap_or(0);
                self.first_span = period;
            }
            self.spans |= 1_u64.checked_shl(period - self.first_span).unwrap_or(0);
        } else {
            if self.days == 0 || period > self.last_day {
                let moved = period.saturating_sub(self.last_day);
                self.days = self.days.checked_shl(moved).unwrap_or(0);
                self.last_day = period;
            }
            self.days |= 1_u128.checked_shl(self.last_day - period).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_id() -> impl Strategy<Value = TileId> {
        (any::<bool>(), prop_oneof![0u32..20, 100u32..240, Just(5_000)])
            .prop_map(|(is_span, period)| TileId::of_period(is_span, period))
    }

    proptest! {
        /// A position equals that of a search, or is left to one. For recent days and near spans it
        /// is known.
        #[test]
        fn places_are_those_of_a_search(
            ids in proptest::collection::vec(any_id(), 0..80),
            sought in proptest::collection::vec(any_id(), 20),
        ) {
            let mut places = Places::default();
            let mut list = Vec::<TileId>::new();
            for id in ids {
                if let Err(at) = list.binary_search(&id) {
                    list.insert(at, id);
                    places.insert(id);
                }
                for id in list.iter().chain(&sought) {
                    let found = list.binary_search(id);
                    match places.of(*id, list.len()) {
                        Some(place) => prop_assert_eq!(place, found),
                        None => {
                            let last = list.last().expect("a tile").period();
                            let is_far = if id.is_span() {
                                id.period() >= list[0].period() + 64
                            } else {
                                id.period() + 128 <= last
                            };
                            prop_assert!(is_far, "{:?} is near", id);
                        }
                    }
                }
            }
        }
    }
}
