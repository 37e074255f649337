//! How a client that keeps quarter-hour, hour and day counts in a general store cuts a range into
//! buckets: whole days in the middle, whole hours at the edges, quarter hours for the rest. The
//! peers read by this plan.
//!
//! ```text
//!   from                                                        to
//!    |q q|h h h h h h|D D D D D D D D D D D D D D|h h h h h h h|q|
//! ```

pub use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};

/// Consecutive buckets of one granularity, `[from_s, to_s)`, both aligned to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub granularity: Granularity,
    pub from_s: i64,
    pub to_s: i64,
}

impl Slice {
    /// The starts of the buckets in the slice, in seconds.
    pub fn buckets(&self) -> impl Iterator<Item = i64> + use<> {
        (self.from_s..self.to_s).step_by(self.granularity.width_s() as usize)
    }
}

pub fn floor(time_s: i64, width_s: i64) -> i64 {
    time_s.div_euclid(width_s) * width_s
}

fn ceiling(time_s: i64, width_s: i64) -> i64 {
    floor(time_s + width_s - 1, width_s)
}

/// Splits `[floor(from), floor(to))` into at most five slices, oldest first.
pub fn slices(from_s: i64, to_s: i64) -> Vec<Slice> {
    let mut parts = Vec::with_capacity(5);
    split(floor(from_s, QUARTER_S), floor(to_s, QUARTER_S), Granularity::Day, &mut parts);
    parts
}

fn split(from_s: i64, to_s: i64, granularity: Granularity, parts: &mut Vec<Slice>) {
    if from_s >= to_s {
        return;
    }
    let width_s = granularity.width_s();
    let (first_s, last_s) = (ceiling(from_s, width_s), floor(to_s, width_s));

    let finer = match granularity {
        Granularity::Day => Some(Granularity::Hour),
        Granularity::Hour => Some(Granularity::Quarter),
        Granularity::Quarter => None,
    };
    match finer {
        Some(finer) if first_s >= last_s => split(from_s, to_s, finer, parts),
        Some(finer) => {
            split(from_s, first_s, finer, parts);
            parts.push(Slice { granularity, from_s: first_s, to_s: last_s });
            split(last_s, to_s, finer, parts);
        }
        None => parts.push(Slice { granularity, from_s, to_s }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn every_quarter_is_covered_once_and_never_by_more_than_five_slices() {
        let mut random = StdRng::seed_from_u64(7);
        for round in 0..20_000 {
            let from_s: i64 = random.random_range(-3 * DAY_S..400 * DAY_S);
            let to_s = from_s + random.random_range(-HOUR_S..100 * DAY_S);
            let parts = slices(from_s, to_s);
            assert!(parts.len() <= 5, "round {round}: {parts:?}");

            let mut covered_to_s = floor(from_s, QUARTER_S);
            for part in &parts {
                let width_s = part.granularity.width_s();
                assert_eq!(
                    part.from_s, covered_to_s,
                    "round {round}: a gap or an overlap in {parts:?}"
                );
                assert_eq!(
                    (part.from_s.rem_euclid(width_s), part.to_s.rem_euclid(width_s)),
                    (0, 0)
                );
                assert!(part.from_s < part.to_s);
                covered_to_s = part.to_s;
            }

            let expected_to_s = floor(to_s, QUARTER_S).max(floor(from_s, QUARTER_S));
            assert_eq!(covered_to_s, expected_to_s, "round {round}");
        }
    }

    #[test]
    fn buckets_of_the_plan_add_up_to_the_naive_sum_over_quarters() {
        let mut random = StdRng::seed_from_u64(8);
        let count_of_quarter = |time_s: i64| (time_s / QUARTER_S) % 17 - 3;
        let sum = |from_s: i64, to_s: i64| -> i64 {
            (from_s..to_s).step_by(QUARTER_S as usize).map(count_of_quarter).sum()
        };

        for _ in 0..500 {
            let from_s: i64 = random.random_range(0..40 * DAY_S);
            let to_s = from_s + random.random_range(0..30 * DAY_S);
            let planned: i64 = slices(from_s, to_s)
                .iter()
                .flat_map(|slice| {
                    slice.buckets().map(|time_s| sum(time_s, time_s + slice.granularity.width_s()))
                })
                .sum();
            assert_eq!(planned, sum(floor(from_s, QUARTER_S), floor(to_s, QUARTER_S)));
        }
    }

    #[test]
    fn the_middle_is_days_even_when_an_edge_is_empty() {
        let parts = slices(DAY_S, 3 * DAY_S + HOUR_S + QUARTER_S + 1);
        let widths: Vec<_> = parts.iter().map(|part| part.granularity).collect();
        assert_eq!(widths, [Granularity::Day, Granularity::Hour, Granularity::Quarter]);
    }
}
