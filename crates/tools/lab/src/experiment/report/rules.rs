//! The rules by which a run agrees with the reference: one rule per statement, on plain numbers.
//!
//! The reference gives round numbers of a different system, so a rule checks the direction and the
//! order of magnitude, never the exact value. If a number is missing, there is no verdict.

use super::fold::Spike;
use serde::Serialize;

raingauge_core::names! {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Verdict {
        Agrees = "agrees",
        Differs = "differs",
        #[serde(rename = "cannotBeTold")]
        Undecided = "undecided",
    }
}

impl Verdict {
    /// Verb form for `len` findings ("agrees", "agree").
    pub const fn words_for(self, len: usize) -> &'static str {
        match self {
            Self::Agrees if len != 1 => "agree",
            Self::Differs if len != 1 => "differ",
            _ => self.name(),
        }
    }

    pub const fn class(self) -> &'static str {
        match self {
            Self::Undecided => "untold",
            _ => self.name(),
        }
    }

    /// The verdict of a rule.
    pub fn of(agrees: bool) -> Self {
        if agrees { Self::Agrees } else { Self::Differs }
    }

    /// The verdict if a number may be missing.
    pub fn known(agrees: Option<bool>) -> Self {
        agrees.map_or(Self::Undecided, Self::of)
    }
}

/// With fewer quarter hours, the superimposed values would show noise.
pub const QUARTERS_MIN: usize = 8;

/// About half of the counts come from the cache while it is in use.
pub fn half_is_cached(hit_share: Option<f64>) -> Verdict {
    Verdict::known(hit_share.map(|share| (0.35..=0.65).contains(&share)))
}

/// The store's share never falls by more than 2 points from one phase to the next, and ends at 98 %
/// or more.
pub fn store_takes_over(shares: &[Option<f64>], is_complete: bool) -> Verdict {
    let known: Option<Vec<f64>> = shares.iter().copied().collect();
    let Some(shares) = known.filter(|shares| is_complete && shares.len() >= 2) else {
        return Verdict::Undecided;
    };
    let rises = shares.windows(2).all(|pair| pair[1] >= pair[0] - 0.02);
    Verdict::of(rises && shares.last().is_some_and(|last| *last >= 0.98))
}

/// The turn of a quarter hour: values for the other quarter hours and for full hours.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub full_hours: Spike,
    pub others: Spike,
    pub quarters: usize,
}

/// The minimum height of a spike, and how much of it may remain.
#[derive(Debug, Clone, Copy)]
pub struct SpikeRule {
    /// Minimum of the first 30 seconds relative to the mean, before.
    pub spike_min: f64,
    /// Maximum remaining fraction of the excess over the mean.
    pub left_max: f64,
    /// Minimum difference between full hours and the other quarter hours, after.
    pub hourly_min: f64,
}

pub const LOAD_SPIKES: SpikeRule = SpikeRule { spike_min: 1.3, left_max: 0.25, hourly_min: 0.1 };
pub const LATENCY_SPIKES: SpikeRule =
    SpikeRule { spike_min: 1.15, left_max: 0.25, hourly_min: 0.03 };

/// Quarter hours have a spike before and none after, and full hours keep theirs.
pub fn spikes_vanish(before: Option<Turn>, after: Option<Turn>, rule: SpikeRule) -> Verdict {
    let enough = |turn: Option<Turn>| turn.filter(|turn| turn.quarters >= QUARTERS_MIN);
    let (Some(before), Some(after)) = (enough(before), enough(after)) else {
        return Verdict::Undecided;
    };
    let numbers =
        before.others.first_30_s.zip(after.others.first_30_s).zip(after.full_hours.first_30_s);
    Verdict::known(numbers.map(|((spike, rest), hourly)| {
        let was_there = spike >= rule.spike_min;
        let is_gone = rest - 1.0 <= (spike - 1.0) * rule.left_max;
        was_there && is_gone && hourly - rest >= rule.hourly_min
    }))
}

/// The value after is at least this multiple of the value before.
pub fn rises(before: Option<f64>, after: Option<f64>, times_min: f64) -> Verdict {
    Verdict::known(times(before, after).map(|times| times >= times_min))
}

/// The value after is at most this multiple of the value before.
pub fn stays_below(before: Option<f64>, after: Option<f64>, times_max: f64) -> Verdict {
    Verdict::known(times(before, after).map(|times| times <= times_max))
}

/// Misses are at most 1.25 times what they were, although the load rose to at least 1.3 times; with
/// a smaller rise there is no verdict.
pub fn misses_stay(load: [Option<f64>; 2], misses: [Option<f64>; 2]) -> Verdict {
    match rises(load[0], load[1], 1.3) {
        Verdict::Agrees => stays_below(misses[0], misses[1], 1.25),
        Verdict::Differs | Verdict::Undecided => Verdict::Undecided,
    }
}

/// `None` if either value is missing, or the first is 0.
pub fn times(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let before = before.filter(|before| *before > 0.0)?;
    Some(after? / before)
}

/// The store's own hit rate rises by at least 10 points.
pub fn own_cache_is_used(before: Option<f64>, after: Option<f64>) -> Verdict {
    Verdict::known(before.zip(after).map(|(before, after)| after - before >= 0.1))
}

/// Rare failures do not become more frequent. A run without any gives no verdict.
pub fn harm_does_not_grow(
    before: Option<f64>,
    after: Option<f64>,
    of_whole_run: f64,
    slack: f64,
) -> Verdict {
    if of_whole_run == 0.0 {
        return Verdict::Undecided;
    }
    Verdict::known(before.zip(after).map(|(before, after)| after <= before * 1.1 + slack))
}

/// A count costs less than 95 % of what it did; a result between that and 105 % may be noise.
pub fn costs_less(before: Option<f64>, after: Option<f64>) -> Verdict {
    match times(before, after) {
        Some(times) if times <= 0.95 => Verdict::Agrees,
        Some(times) if times >= 1.05 => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Agrees, Differs, Undecided};
    use super::*;

    fn turn(hourly: f64, others: f64) -> Option<Turn> {
        let spike = |first| Spike { first_30_s: Some(first), first_5_min: None };
        Some(Turn { full_hours: spike(hourly), others: spike(others), quarters: QUARTERS_MIN })
    }

    #[test]
    fn about_half_is_cached() {
        assert_eq!(
            [0.34, 0.35, 0.65, 0.66].map(Some).map(half_is_cached),
            [Differs, Agrees, Agrees, Differs]
        );
        assert_eq!(half_is_cached(None), Undecided);
    }

    #[test]
    fn the_store_takes_over_step_by_step() {
        let shares = |shares: &[f64]| shares.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(store_takes_over(&shares(&[0.5, 0.49, 0.7, 0.98]), true), Agrees);
        assert_eq!(store_takes_over(&shares(&[0.5, 0.47, 0.7, 0.98]), true), Differs);
        assert_eq!(store_takes_over(&shares(&[0.5, 0.97]), true), Differs);
        assert_eq!(store_takes_over(&shares(&[0.5, 1.0]), false), Undecided);
        assert_eq!(store_takes_over(&[Some(0.5), None], true), Undecided);
        assert_eq!(store_takes_over(&shares(&[1.0]), true), Undecided);
    }

    #[test]
    fn spikes_are_gone_and_full_hours_keep_theirs() {
        assert_eq!(spikes_vanish(turn(2.0, 1.4), turn(1.3, 1.09), LOAD_SPIKES), Agrees);
        assert_eq!(
            spikes_vanish(turn(2.0, 1.25), turn(1.3, 1.0), LOAD_SPIKES),
            Differs,
            "there was no spike"
        );
        assert_eq!(
            spikes_vanish(turn(2.0, 1.4), turn(1.3, 1.11), LOAD_SPIKES),
            Differs,
            "a spike is left"
        );
        assert_eq!(
            spikes_vanish(turn(2.0, 1.4), turn(1.05, 1.0), LOAD_SPIKES),
            Differs,
            "the hourly one is gone"
        );
        assert_eq!(spikes_vanish(None, turn(1.3, 1.0), LOAD_SPIKES), Undecided);

        let few = turn(1.3, 1.0).map(|turn| Turn { quarters: QUARTERS_MIN - 1, ..turn });
        assert_eq!(spikes_vanish(turn(2.0, 1.4), few, LOAD_SPIKES), Undecided);
    }

    #[test]
    fn values_are_compared_with_what_they_were() {
        assert_eq!([1.1, 1.09].map(|after| rises(Some(1.0), Some(after), 1.1)), [Agrees, Differs]);
        assert_eq!(
            [1.15, 1.16].map(|after| stays_below(Some(1.0), Some(after), 1.15)),
            [Agrees, Differs]
        );
        assert_eq!(rises(Some(0.0), Some(1.0), 1.1), Undecided);
        assert_eq!(stays_below(Some(1.0), None, 1.1), Undecided);
    }

    #[test]
    fn misses_are_judged_only_under_more_load() {
        let misses =
            |load, after| misses_stay([Some(100.0), Some(load)], [Some(10.0), Some(after)]);
        assert_eq!(
            [misses(130.0, 12.5), misses(130.0, 12.6), misses(129.0, 10.0)],
            [Agrees, Differs, Undecided]
        );
        assert_eq!(misses_stay([None, Some(1.0)], [Some(1.0), Some(1.0)]), Undecided);
    }

    #[test]
    fn the_own_cache_is_used_more() {
        assert_eq!(own_cache_is_used(Some(0.3), Some(0.45)), Agrees);
        assert_eq!(own_cache_is_used(Some(0.3), Some(0.35)), Differs);
        assert_eq!(own_cache_is_used(None, Some(0.7)), Undecided);
    }

    #[test]
    fn harm_is_judged_only_where_there_was_any() {
        assert_eq!(harm_does_not_grow(Some(0.0), Some(0.0), 0.0, 1.0), Undecided);
        assert_eq!(harm_does_not_grow(Some(2.0), Some(3.2), 9.0, 1.0), Agrees);
        assert_eq!(harm_does_not_grow(Some(2.0), Some(3.3), 9.0, 1.0), Differs);
        assert_eq!(harm_does_not_grow(None, Some(3.3), 9.0, 1.0), Undecided);
    }

    #[test]
    fn a_small_difference_of_costs_may_be_noise() {
        assert_eq!(
            [0.95, 1.0, 1.05].map(|after| costs_less(Some(1.0), Some(after))),
            [Agrees, Undecided, Differs]
        );
    }
}
