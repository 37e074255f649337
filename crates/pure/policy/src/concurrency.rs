//! How many requests may be under way to one service at a time, by how it answers.
//!
//! ```text
//!   it answers in time, and as many as may are under way ──▶ one more, up to the maximum
//!   it has too much to do ─────────────────────────────────▶ half as many, down to the minimum
//! ```
//!
//! Requests that set out before the number was halved say nothing about what came of it, so that
//! many that fail together halve it once. Times come from a clock that never goes back, in any
//! unit.

use std::ops::RangeInclusive;

/// The requests that may be under way at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    bounds: RangeInclusive<u16>,
    number: u16,
    lowered_at: i64,
}

impl Limit {
    /// Begins with the fewest. At least one is always allowed, and never fewer than the fewest.
    pub fn new(bounds: RangeInclusive<u16>) -> Self {
        let bounds = sound(&bounds);
        Self { number: *bounds.start(), bounds, lowered_at: i64::MIN }
    }

    /// Stays as it is where other bounds allow it.
    pub fn bound(&mut self, bounds: RangeInclusive<u16>) {
        self.bounds = sound(&bounds);
        self.number = self.number.clamp(*self.bounds.start(), *self.bounds.end());
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// Notes an answer in time. One more is allowed if all were in use, where `in_flight` requests
    /// are still under way.
    pub fn raise(&mut self, in_flight: usize) {
        if in_flight + 1 >= usize::from(self.number) {
            self.number = self.number.saturating_add(1).min(*self.bounds.end());
        }
    }

    /// Notes that a request which set out at `began` was too much. Half as many are allowed, unless
    /// it set out before that was done.
    pub fn lower(&mut self, began: i64, now: i64) {
        if began >= self.lowered_at {
            self.number = (self.number / 2).max(*self.bounds.start());
            self.lowered_at = now;
        }
    }
}

fn sound(bounds: &RangeInclusive<u16>) -> RangeInclusive<u16> {
    let min = (*bounds.start()).max(1);
    min..=(*bounds.end()).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_grows_while_all_are_in_use() {
        let mut limit = Limit::new(2..=4);
        assert_eq!(limit.number(), 2);
        limit.raise(0);
        assert_eq!(limit.number(), 2, "one would have been enough");
        for expected in [3, 4, 4] {
            limit.raise(usize::from(limit.number()) - 1);
            assert_eq!(limit.number(), expected);
        }
    }

    #[test]
    fn requests_that_set_out_before_it_was_halved_do_not_halve_it_again() {
        let mut limit = Limit::new(1..=16);
        for _ in 1..16 {
            limit.raise(16);
        }
        for (began, now, expected) in [(0, 5, 8), (4, 6, 8), (5, 7, 4), (8, 9, 2), (9, 10, 1)] {
            limit.lower(began, now);
            assert_eq!(limit.number(), expected, "{began} to {now}");
        }
        limit.lower(11, 12);
        assert_eq!(limit.number(), 1);
    }

    #[test]
    fn other_bounds_move_it_no_further_than_needed() {
        let mut limit = Limit::new(2..=8);
        limit.bound(5..=6);
        assert_eq!(limit.number(), 5);
        limit.bound(1..=3);
        assert_eq!(limit.number(), 3);
        limit.bound(1..=8);
        assert_eq!(limit.number(), 3);
    }

    proptest! {
        #[test]
        fn it_stays_within_its_bounds(
            (min, max) in any::<(u16, u16)>(),
            notes in prop::collection::vec((any::<bool>(), 0_usize..70_000, 0_i64..100), 0..200),
        ) {
            let mut limit = Limit::new(min..=max);
            for (is_fine, in_flight, at) in notes {
                if is_fine {
                    limit.raise(in_flight);
                } else {
                    limit.lower(at, at);
                }
                prop_assert!(limit.number() >= min.max(1));
                prop_assert!(limit.number() <= max.max(min).max(1));
            }
        }
    }
}
