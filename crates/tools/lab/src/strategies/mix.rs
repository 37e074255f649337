//! Typical questions of services to a reader: windows that end within the last hour, of keys with
//! skewed popularity.

use crate::counts::CoveredCount;
use crate::plan::{self, DAY_S, HOUR_S, QUARTER_S};
use crate::strategies::truth::Truth;
use crate::workload::{BATCH_RANGES, Popularity, RangeQuery, key_of};
use anyhow::{Result, ensure};
use rand::Rng;
use rand::rngs::StdRng;

/// Lengths of windows with their shares in percent, as in the benchmark of the bucket store.
const WINDOWS: [(i64, u32); 5] =
    [(HOUR_S, 20), (DAY_S, 30), (7 * DAY_S, 25), (30 * DAY_S, 20), (90 * DAY_S, 5)];
/// Maximum age of a window's end.
const END_SPREAD_S: i64 = HOUR_S;

/// Random ranges relative to one moment.
pub fn batches(
    popularity: &Popularity,
    random: &mut StdRng,
    now_s: i64,
    len: usize,
) -> Vec<Vec<RangeQuery>> {
    let mut range = || {
        let to_s = now_s - random.random_range(0..END_SPREAD_S);
        RangeQuery { city: popularity.pick(random), from_s: to_s - window_s(random), to_s }
    };
    (0..len).map(|_| (0..BATCH_RANGES).map(|_| range()).collect()).collect()
}

fn window_s(random: &mut StdRng) -> i64 {
    let mut drawn = random.random_range(0..WINDOWS.iter().map(|(_, share)| share).sum());
    for (len_s, share) in WINDOWS {
        if drawn < share {
            return len_s;
        }
        drawn -= share;
    }
    unreachable!("the shares add up to what was drawn from")
}

/// The answer must belong to the question, and its count must be correct.
pub fn judge(
    asked: &RangeQuery,
    covered: CoveredCount,
    truth: &Truth<'_>,
    may_be_early: bool,
) -> Result<()> {
    let CoveredCount { from_s, to_s, count } = covered;
    ensure!(
        may_be_answered_as(asked, from_s, to_s, may_be_early),
        "the answer is for a different range: {covered:?}, requested was {asked:?}"
    );
    let right = truth.count(asked.city, from_s, to_s);
    ensure!(
        count == right,
        "WRONG COUNT: {} returned {covered:?}, expected {right}",
        key_of(asked.city)
    );
    Ok(())
}

/// Whether an answer may cover this range. Under the `phased` strategy a key may still be answered
/// up to the previous quarter hour.
fn may_be_answered_as(asked: &RangeQuery, from_s: i64, to_s: i64, may_be_early: bool) -> bool {
    let asked = (plan::floor(asked.from_s, QUARTER_S), plan::floor(asked.to_s, QUARTER_S));
    let early_to_s = asked.1 - QUARTER_S;
    (from_s, to_s) == asked
        || may_be_early
            && to_s == early_to_s
            && (from_s == asked.0 || from_s == asked.0 - QUARTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Settings, Workload};
    use rand::SeedableRng;

    const NOW_S: i64 = 1_795_000_123;

    #[test]
    fn windows_end_within_the_last_hour_and_have_the_shares_of_the_mix() {
        let mut random = StdRng::seed_from_u64(1);
        let asked = batches(&Popularity::new(50), &mut random, NOW_S, 2_000).concat();
        assert!(asked.iter().all(|asked| (NOW_S - HOUR_S..=NOW_S).contains(&asked.to_s)));
        for (len_s, share) in WINDOWS {
            let found = asked.iter().filter(|asked| asked.to_s - asked.from_s == len_s).count();
            assert!(
                (found as i64 / 200 - i64::from(share)).abs() <= 1,
                "{len_s} s: {found} of {}",
                asked.len()
            );
        }
    }

    #[test]
    fn only_a_phased_answer_may_cover_the_quarter_hour_before() {
        let workload = Workload::new(Settings { keys: 20, history: 5_000, seed: 1 }, NOW_S);
        let truth = Truth::new(&workload);
        let asked = RangeQuery { city: 3, from_s: NOW_S - DAY_S, to_s: NOW_S };
        let (from_s, to_s) = (plan::floor(NOW_S - DAY_S, QUARTER_S), plan::floor(NOW_S, QUARTER_S));
        let is_right = |may_be_early, from_s: i64, to_s: i64, count| {
            judge(&asked, CoveredCount { from_s, to_s, count }, &truth, may_be_early).is_ok()
        };

        let right = truth.count(3, from_s, to_s);
        let early = truth.count(3, from_s - QUARTER_S, to_s - QUARTER_S);
        assert!(is_right(false, from_s, to_s, right));
        assert!(!is_right(false, from_s, to_s, right + 1));
        assert!(!is_right(false, from_s - QUARTER_S, to_s - QUARTER_S, early));
        assert!(is_right(true, from_s - QUARTER_S, to_s - QUARTER_S, early));
        assert!(!is_right(true, from_s - 2 * QUARTER_S, to_s - 2 * QUARTER_S, early));
    }
}
