//! When a budget will be exhausted: a forecast from the spend of past days.
//!
//! The future is made of weeks of the past, drawn at random, a thousand times (a block bootstrap).
//! Whole weeks keep what the days of a week have in common, and they are cut so that each day of
//! the week stays in its place. The numbers follow from a seed: the same input has the same
//! forecast.

/// Days of a block.
const WEEK: usize = 7;
/// Fewest weeks of the past: one alone would be repeated for ever.
const WEEKS_MIN: usize = 2;
/// Futures that are drawn.
const DRAWS: usize = 1_000;
/// Days that a forecast covers.
pub const DAYS_MAX: u32 = 366;

/// Days until a budget is exhausted, in 10, 50 and 90 of 100 futures: 1 is the day after the last
/// one of the past. `None` where it lasts longer than [`DAYS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub p10: Option<u32>,
    pub p50: Option<u32>,
    pub p90: Option<u32>,
}

/// Forecasts from the spend of each past day, oldest first, and from what is left of the budget.
/// `None` if the past has less than two weeks.
pub fn forecast(spend: &[i64], free: i64, seed: u64) -> Option<Forecast> {
    // What does not fill a week is left out where it is oldest.
    let weeks: Vec<&[i64]> = spend.rchunks_exact(WEEK).collect();
    if weeks.len() < WEEKS_MIN {
        return None;
    }

    let mut random = Random(seed);
    let mut days: Vec<u32> = (0..DRAWS).map(|_| draw(&weeks, free, &mut random)).collect();
    days.sort_unstable();

    let percentile = |percent: usize| {
        let day = days[DRAWS * percent / 100 - 1];
        (day <= DAYS_MAX).then_some(day)
    };
    Some(Forecast { p10: percentile(10), p50: percentile(50), p90: percentile(90) })
}

/// The day on which one future has spent all, or the day after the last one.
fn draw(weeks: &[&[i64]], free: i64, random: &mut Random) -> u32 {
    if free <= 0 {
        return 0;
    }

    let mut spent: i128 = 0;
    let mut day = 0;
    while day < DAYS_MAX {
        for amount in weeks[random.below(weeks.len())] {
            day += 1;
            spent += i128::from(*amount);
            if spent >= i128::from(free) {
                return day;
            }
        }
    }
    DAYS_MAX + 1
}

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; the bias of the multiplication is below one in 2^32.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn days(days: [u32; 3]) -> Option<Forecast> {
        let [p10, p50, p90] = days.map(Some);
        Some(Forecast { p10, p50, p90 })
    }

    #[test]
    fn an_even_spend_leaves_no_doubt() {
        assert_eq!(forecast(&[10; 14], 100, 1), days([10; 3]));
        assert_eq!(forecast(&[10; 14], 101, 1), days([11; 3]));
        assert_eq!(forecast(&[10; 14], 0, 1), days([0; 3]));
        assert_eq!(forecast(&[10; 14], 3_660, 1), days([366; 3]));
        let never = Some(Forecast { p10: None, p50: None, p90: None });
        assert_eq!(forecast(&[10; 14], 3_661, 1), never);
        assert_eq!(forecast(&[0; 14], 1, 1), never);
        assert_eq!(forecast(&[10; 13], 100, 1), None);
    }

    #[test]
    fn days_of_the_week_stay_in_their_place() {
        // All is spent on the fourth day of each week, counted from the first day to come; the
        // oldest days do not fill a week.
        let week = [0, 0, 0, 10, 0, 0, 0];
        let past = [&[99, 99], &week[..], &week[..], &week[..]].concat();
        assert_eq!(forecast(&past, 10, 1), days([4; 3]));
        assert_eq!(forecast(&past, 11, 1), days([11; 3]));
    }

    #[test]
    fn an_uneven_spend_has_a_range() {
        let past = [[10; 7], [30; 7]].concat();
        let found = forecast(&past, 1_000, 7).unwrap();
        assert_eq!(Some(found), forecast(&past, 1_000, 7), "it follows from the seed");
        // Ten weeks of 20 a day on average: 50 days, between 34 and 100.
        let [p10, p50, p90] = [found.p10, found.p50, found.p90].map(Option::unwrap);
        assert!((46..=54).contains(&p50), "{p50}");
        assert!((36..p50).contains(&p10), "{p10}");
        assert!((p50 + 1..=70).contains(&p90), "{p90}");
        assert_ne!(Some(found), forecast(&past, 1_400, 8));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_forecast_lies_between_the_best_and_the_worst_weeks(
            past in prop::collection::vec(0..1_000_i64, 14..60),
            free in 1..50_000_i64,
            seed in any::<u64>(),
        ) {
            let found = forecast(&past, free, seed).unwrap();
            let last = |day: Option<u32>| day.unwrap_or(DAYS_MAX + 1);
            prop_assert!(last(found.p10) <= last(found.p50) && last(found.p50) <= last(found.p90));
            let most = past.iter().max().copied().unwrap().max(1);
            prop_assert!(i64::from(last(found.p10)) >= ((free + most - 1) / most).min(367));
        }
    }
}
