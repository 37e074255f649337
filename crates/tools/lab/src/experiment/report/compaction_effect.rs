//! The effect of the first daytime compaction on latencies: the time after it compared with the
//! same time of the previous day.

use super::analysis::Analysis;
use super::bins::{DAY_MS, HOUR_MS, Tally};
use super::phase::{Compaction, Phase};

/// The hours that count as daytime.
const DAY_HOURS: std::ops::Range<i8> = 8..20;
/// Minimum length of the compared intervals.
const COMPARED_MS_MIN: i64 = 2 * HOUR_MS;

/// Mean latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    pub before_ms: Option<f64>,
    pub after_ms: Option<f64>,
    pub compared_ms: i64,
}

/// The first daytime compaction, if there was one.
pub fn by_day(analysis: &Analysis) -> Option<Compaction> {
    let is_by_day = |one: &&Compaction| {
        analysis.zone.hour(one.from_ms).is_some_and(|hour| DAY_HOURS.contains(&hour))
    };
    analysis.compactions.iter().find(is_by_day).copied()
}

/// Compares up to a day after the compaction with the same hours before it began, both within one
/// phase and without another daytime compaction in the interval after it.
pub fn of_first_by_day(analysis: &Analysis) -> Option<Effect> {
    let compaction = by_day(analysis)?;
    let phase = analysis.phases.iter().find(|phase| phase.contains(compaction.from_ms))?;
    let compared_ms = compared_ms(&compaction, phase);
    if compared_ms < COMPARED_MS_MIN {
        return None;
    }
    let before_ms = compaction.to_ms - DAY_MS;
    Some(Effect {
        before_ms: mean_ms(analysis, before_ms, before_ms + compared_ms),
        after_ms: mean_ms(analysis, compaction.to_ms, compaction.to_ms + compared_ms),
        compared_ms,
    })
}

/// Limited by the end of the phase, and in the interval before by the start of the compaction.
fn compared_ms(compaction: &Compaction, phase: &Phase) -> i64 {
    if compaction.to_ms - DAY_MS < phase.from_ms {
        return 0;
    }
    let until_compaction_ms = DAY_MS - (compaction.to_ms - compaction.from_ms);
    (phase.to_ms - compaction.to_ms).min(until_compaction_ms)
}

fn mean_ms(analysis: &Analysis, from_ms: i64, to_ms: i64) -> Option<f64> {
    let mut tally = Tally::default();
    let within =
        analysis.record.answers.iter().filter(|answer| (from_ms..to_ms).contains(&answer.due_ms));
    within.for_each(|answer| tally.add(answer));
    tally.mean_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::tests::sample_run;

    #[test]
    fn the_same_hours_of_one_phase_are_compared() {
        let phase = Phase { share: 0.75, from_ms: 0, to_ms: 3 * DAY_MS };
        let compaction = |from_h: i64, to_h: i64| Compaction {
            from_ms: from_h * HOUR_MS,
            to_ms: to_h * HOUR_MS,
        };
        assert_eq!(compared_ms(&compaction(38, 41), &phase), 21 * HOUR_MS);
        assert_eq!(compared_ms(&compaction(62, 65), &phase), 7 * HOUR_MS);
        // A day earlier, a different share used the new strategy.
        assert_eq!(compared_ms(&compaction(14, 17), &phase), 0);
    }

    #[test]
    fn compactions_at_night_are_not_meant() {
        let record = sample_run::small();
        let analysis = Analysis::new(&record);
        assert_eq!(analysis.zone.hour(by_day(&analysis).unwrap().from_ms), Some(14));
        let effect = of_first_by_day(&analysis).unwrap();
        assert!(effect.after_ms.unwrap() < effect.before_ms.unwrap(), "{effect:?}");
        assert_eq!(by_day(&Analysis::new(&sample_run::empty())), None);
    }
}
