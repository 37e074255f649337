//! How many random entries a command asks for, and which ones it gets.

use raingauge_resp::{Arguments, Failure};
use rand::Rng;

use super::ranges::symmetric;
use crate::limits::PICKS_MAX;

/// A number of random entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picks {
    /// Each entry at most once.
    Distinct(usize),
    /// Any entry any number of times.
    Repeated(usize),
}

impl Picks {
    /// Parses a count: a negative one allows repetitions.
    pub(super) fn parse(arguments: Arguments<'_>, index: usize) -> Result<Picks, Failure> {
        let count = symmetric(arguments, index)?;
        let picks = usize::try_from(count.unsigned_abs()).map_err(|_| Failure::OutOfRange)?;
        if count >= 0 {
            return Ok(Picks::Distinct(picks));
        }
        if picks > PICKS_MAX { Err(Failure::OutOfRange) } else { Ok(Picks::Repeated(picks)) }
    }

    /// Parses a count as [`Picks::parse`], for entries that each take two places of a reply.
    pub(super) fn parse_pairs(arguments: Arguments<'_>, index: usize) -> Result<Picks, Failure> {
        let picks = Picks::parse(arguments, index)?;
        if matches!(picks, Picks::Distinct(count) if count > i64::MAX as usize / 2) {
            return Err(Failure::OutOfRange);
        }
        Ok(picks)
    }

    /// Positions of the picked entries, of `len` that there are.
    pub(super) fn positions(self, len: usize, random: &mut impl Rng) -> Vec<usize> {
        match self {
            Picks::Distinct(count) if count >= len => (0..len).collect(),
            Picks::Distinct(count) => rand::seq::index::sample(random, len, count).into_vec(),
            Picks::Repeated(count) if len > 0 => {
                (0..count).map(|_| random.random_range(0..len)).collect()
            }
            Picks::Repeated(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn distinct_picks_are_distinct_and_repeated_ones_as_many_as_asked() {
        let mut random = SmallRng::seed_from_u64(7);
        for count in 0..12 {
            let positions = Picks::Distinct(count).positions(10, &mut random);
            let distinct: BTreeSet<usize> = positions.iter().copied().collect();
            assert_eq!((positions.len(), distinct.len()), (count.min(10), count.min(10)));

            let positions = Picks::Repeated(count).positions(3, &mut random);
            assert_eq!(positions.len(), count);
            assert!(positions.iter().all(|position| *position < 3));
        }
        assert!(Picks::Repeated(5).positions(0, &mut random).is_empty());
    }
}
