//! Two comparable intervals of a run: at the same time of day, before any step and after the last.

use super::analysis::Analysis;
use super::bins::{Bins, HOUR_MS, MINUTE_MS};

pub const WINDOW_MS: i64 = 2 * HOUR_MS;

/// The bins of both, one minute each.
#[derive(Debug)]
pub struct Windows {
    pub before: Bins,
    pub after: Bins,
}

/// An interval that starts at a full hour of local time.
struct Candidate {
    from_ms: i64,
    hour: i8,
    counts: u64,
    compacts: bool,
}

/// Chooses the busiest hours that occur in both, without a compaction if possible.
pub fn choose(analysis: &Analysis) -> Option<Windows> {
    let (first_ms, last_ms) = (analysis.first_step_ms(), analysis.last_step_ms());
    let before = candidates(analysis, analysis.record.from_ms, first_ms);
    let after = candidates(analysis, last_ms, analysis.record.to_ms);
    let pairs = before.iter().flat_map(|before| after.iter().map(move |after| (before, after)));
    let same_hour = pairs.filter(|(before, after)| before.hour == after.hour);

    let worth = |before: &Candidate, after: &Candidate| {
        (!before.compacts && !after.compacts, before.counts.min(after.counts), before.from_ms)
    };
    let (before, after) = same_hour.max_by_key(|(before, after)| worth(before, after))?;
    if before.counts == 0 || after.counts == 0 {
        return None;
    }

    Some(Windows {
        before: minutes(analysis, before.from_ms),
        after: minutes(analysis, after.from_ms),
    })
}

fn minutes(analysis: &Analysis, from_ms: i64) -> Bins {
    Bins::new(&analysis.record.answers, from_ms, from_ms + WINDOW_MS, MINUTE_MS)
}

fn candidates(analysis: &Analysis, from_ms: i64, to_ms: i64) -> Vec<Candidate> {
    let offset_ms = analysis.zone.offset_ms(from_ms);
    let first_ms = from_ms + (HOUR_MS - (from_ms + offset_ms).rem_euclid(HOUR_MS)) % HOUR_MS;
    let starts =
        (first_ms..).step_by(HOUR_MS as usize).take_while(|start_ms| start_ms + WINDOW_MS <= to_ms);
    let hours = Bins::new(&analysis.record.answers, first_ms, to_ms.max(first_ms), HOUR_MS);
    let candidate = |(place, from_ms): (usize, i64)| {
        let within = hours.bins.iter().skip(place).take((WINDOW_MS / HOUR_MS) as usize);
        let compacts = |to_ms| {
            analysis.compactions.iter().any(|one| one.from_ms < to_ms && from_ms < one.to_ms)
        };
        Some(Candidate {
            from_ms,
            hour: analysis.zone.hour(from_ms)?,
            counts: within.map(|bin| bin.tally.answered()).sum(),
            compacts: compacts(from_ms + WINDOW_MS),
        })
    };

    starts.enumerate().filter_map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::tests::sample_run;

    #[test]
    fn windows_are_at_the_same_time_of_the_day() {
        let record = sample_run::small();
        let analysis = Analysis::new(&record);
        let windows = choose(&analysis).unwrap();
        assert_eq!((windows.after.from_ms - windows.before.from_ms) % (24 * HOUR_MS), 0);
        assert!(windows.before.from_ms + WINDOW_MS <= analysis.first_step_ms());
        assert!(windows.after.from_ms >= analysis.last_step_ms());
        // The evening is the busiest time; the daytime compaction is over by then.
        assert!((17..=19).contains(&analysis.zone.hour(windows.before.from_ms).unwrap()));
    }

    #[test]
    fn a_run_that_ends_with_its_last_step_has_no_windows() {
        let record = sample_run::small();
        let record = crate::experiment::record::Record {
            to_ms: Analysis::new(&record).last_step_ms() + HOUR_MS,
            ..record
        };
        assert!(choose(&Analysis::new(&record)).is_none());
    }
}
