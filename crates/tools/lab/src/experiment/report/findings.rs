//! The findings: the result of the reference, the result of this run, and whether they agree,
//! figure by figure. The rules are in [`rules`].

use super::analysis::Analysis;
use super::bins::HOUR_MS;
use super::compaction_effect;
use super::numbers::{Numbers, PhaseNumbers};
use super::rules::{self, Turn, Verdict};
use super::words::{aligned, fine_percent, memory, milliseconds, number, percent, times};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The figure that shows the finding.
    pub figure: u8,
    /// A short statement that may be true or false.
    pub claim: &'static str,
    /// The result of the reference.
    pub reference: &'static str,
    /// The result of this run.
    pub here: String,
    pub verdict: Verdict,
    /// The rule that gives the verdict.
    pub rule: &'static str,
}

/// The phases to compare, if the run has them.
struct ComparedPhases<'a> {
    analysis: &'a Analysis<'a>,
    phases: &'a [PhaseNumbers],
    before: Option<&'a PhaseNumbers>,
    after: Option<&'a PhaseNumbers>,
    /// The last phase in which most counters, but not all, had no cache.
    most: Option<&'a PhaseNumbers>,
}

/// In the order of their figures.
pub fn findings(analysis: &Analysis, numbers: &Numbers) -> Vec<Finding> {
    let phases = numbers.phases.as_slice();
    let compared = ComparedPhases {
        analysis,
        phases,
        before: analysis.before().map(|place| &phases[place]),
        after: analysis.after().map(|place| &phases[place]),
        most: phases.iter().rfind(|phase| (0.5..0.999).contains(&phase.share)),
    };

    vec![
        compared.half_is_cached(),
        compared.store_takes_over(),
        compared.load_spikes(),
        compared.latency_spikes(),
        compared.latency_rises(),
        compared.compaction_helps(),
        compared.latency_ends_as_before(),
        compared.p99_ends_as_before(),
        compared.own_cache_is_used(),
        compared.misses_stay(),
        compared.cpu_stays(),
        compared.memory_stays(),
        compared.counts_cost_less(),
        compared.breakers_stay_shut(),
        compared.failures_do_not_grow(),
    ]
}

impl ComparedPhases<'_> {
    fn before(&self, value: impl Fn(&PhaseNumbers) -> Option<f64>) -> Option<f64> {
        self.before.and_then(value)
    }

    fn after(&self, value: impl Fn(&PhaseNumbers) -> Option<f64>) -> Option<f64> {
        self.after.and_then(value)
    }

    /// Describes the change from the first phase to the one without any cache.
    fn change(
        &self,
        value: impl Fn(&PhaseNumbers) -> Option<f64>,
        words: impl Fn(f64) -> String,
    ) -> String {
        let side = |value: Option<f64>| value.map_or("not measured".to_owned(), &words);
        format!(
            "{} with the cache, {} without any",
            side(self.before(&value)),
            side(self.after(&value))
        )
    }

    /// Lists the values of all phases.
    fn row(
        &self,
        value: impl Fn(&PhaseNumbers) -> Option<f64>,
        words: impl Fn(f64) -> String,
    ) -> String {
        let phase = |phase: &PhaseNumbers| {
            let value = value(phase).map_or("–".to_owned(), &words);
            format!("{value} at {}", percent(phase.share))
        };
        self.phases.iter().map(phase).collect::<Vec<_>>().join(", ")
    }

    fn half_is_cached(&self) -> Finding {
        let hits = self.before(|phase| phase.hit_share);
        Finding {
            figure: 2,
            claim: "About half of the counts come from the cache while it is in use",
            reference: "The result cache, with a lifetime of 5 minutes, answered roughly half of all requests.",
            here: format!("Hits per phase: {}.", self.row(|phase| phase.hit_share, percent)),
            verdict: rules::half_is_cached(hits),
            rule: "Agrees if 35 % to 65 % of the answered counts came from the cache before the first step.",
        }
    }

    fn store_takes_over(&self) -> Finding {
        let shares: Vec<Option<f64>> = self.phases.iter().map(|phase| phase.store_share).collect();
        Finding {
            figure: 5,
            claim: "The store answers more with every step, and everything in the end",
            reference: "With each step requests moved from the cache to the store: half of them went there at first, all \
                        of them in the end, which doubled the load of the store.",
            here: format!(
                "The store's part: {}. Its load: {}.",
                self.row(|phase| phase.store_share, percent),
                self.change(|phase| phase.store_per_s, |rate| format!("{} counts/s", number(rate)))
            ),
            verdict: rules::store_takes_over(
                &shares,
                self.before.is_some() && self.after.is_some(),
            ),
            rule: "Agrees if the store's part of the answered counts never falls by more than 2 points from a phase to \
                   the next and ends at 98 % or more.",
        }
    }

    fn load_spikes(&self) -> Finding {
        let turn = |phase: &PhaseNumbers| Turn {
            full_hours: phase.load_full_hours,
            others: phase.load_others,
            quarters: phase.quarters_other.min(phase.quarters_full_hour),
        };
        Finding {
            figure: 6,
            claim: "The load spikes at every quarter hour disappear, the hourly ones remain",
            reference: "While results were cached, the load of the store shot up at every quarter hour, when all cached \
                        results became useless at once. Without the cache only the spike at full hours was left, caused by \
                        the clients.",
            here: self.turns(turn),
            verdict: rules::spikes_vanish(
                self.before.map(turn),
                self.after.map(turn),
                rules::LOAD_SPIKES,
            ),
            rule: "Agrees if the first 30 seconds of quarter hours that do not start an hour had at least 1.3 times the mean \
                   load before, at most a quarter of that excess is left after, and full hours are then still at least \
                   0.1 above the others. At least 8 quarter hours of each kind.",
        }
    }

    fn latency_spikes(&self) -> Finding {
        let turn = |phase: &PhaseNumbers| Turn {
            full_hours: phase.latency_full_hours,
            others: phase.latency_others,
            quarters: phase.quarters_other.min(phase.quarters_full_hour),
        };
        Finding {
            figure: 7,
            claim: "The latency spikes at every quarter hour disappear, the hourly ones remain",
            reference: "Latency followed the load of the store: its spikes at quarter hours were gone with the cache, those \
                        at full hours remained.",
            here: self.turns(turn),
            verdict: rules::spikes_vanish(
                self.before.map(turn),
                self.after.map(turn),
                rules::LATENCY_SPIKES,
            ),
            rule: "As for the load, with at least 1.15 times the mean before, a quarter of that excess left at most, and \
                   full hours 0.03 above the others.",
        }
    }

    fn turns(&self, turn: impl Fn(&PhaseNumbers) -> Turn) -> String {
        format!(
            "The first 30 seconds relative to the mean of the phase, at quarter hours that do not start an hour: {}. At full hours: \
             {}.",
            self.row(|phase| turn(phase).others.first_30_s, times),
            self.row(|phase| turn(phase).full_hours.first_30_s, times)
        )
    }

    fn latency_rises(&self) -> Finding {
        let most = self.most.and_then(|phase| phase.mean_ms);
        Finding {
            figure: 8,
            claim: "Latency rises once most counters have no cache",
            reference: "At 75 % of the counters the mean went from 6–8 ms to 7–12 ms.",
            here: format!("Mean per phase: {}.", self.row(|phase| phase.mean_ms, milliseconds)),
            verdict: rules::rises(self.before(|phase| phase.mean_ms), most, 1.1),
            rule: "Agrees if the mean of the last phase with at least 50 % but not all of the counters is 1.1 times that \
                   of the first phase or more.",
        }
    }

    fn compaction_helps(&self) -> Finding {
        let effect = compaction_effect::of_first_by_day(self.analysis);
        let here = effect.map(|effect| {
            let side = |mean_ms: Option<f64>| mean_ms.map_or("no answers".to_owned(), milliseconds);
            format!(
                "Mean in the {} hours after the first daytime compaction: {}. In the same hours of the previous day: {}.",
                number((effect.compared_ms as f64 / HOUR_MS as f64 * 10.0).round() / 10.0),
                side(effect.after_ms),
                side(effect.before_ms)
            )
        });

        let verdict = effect.map_or(Verdict::Undecided, |effect| {
            rules::stays_below(effect.before_ms, effect.after_ms, 0.95)
        });
        Finding {
            figure: 8,
            claim: "A daytime compaction reduces latency",
            reference: "A second compaction every day, between 14:00 and 17:00, brought mean and 99th percentile almost \
                        back to where they had been with the cache.",
            here: here.unwrap_or_else(|| {
                "No daytime compaction with at least two hours after it, and the same hours of the previous day, in one phase."
                    .to_owned()
            }),
            verdict,
            rule: "Agrees if the mean after the first compaction that begins between 8:00 and 20:00 is at most 0.95 \
                   times that of the same hours of the previous day, within one phase.",
        }
    }

    fn latency_ends_as_before(&self) -> Finding {
        Finding {
            figure: 8,
            claim: "Without any cache the mean latency is as before",
            reference: "With the daytime compaction, removing the cache from the last quarter of the counters had no \
                        noticeable effect on latency.",
            here: format!("{}.", self.change(|phase| phase.mean_ms, milliseconds)),
            verdict: rules::stays_below(
                self.before(|phase| phase.mean_ms),
                self.after(|phase| phase.mean_ms),
                1.15,
            ),
            rule: "Agrees if the mean without any cache is at most 1.15 times the one before the first step.",
        }
    }

    fn p99_ends_as_before(&self) -> Finding {
        Finding {
            figure: 9,
            claim: "Without any cache the 99th percentile is as before",
            reference: "The 99th percentile went from 30–50 ms to 30–70 ms at 75 % of the counters and came back after the \
                        daytime compaction.",
            here: format!(
                "99th percentile per phase: {}.",
                self.row(|phase| phase.p99_ms, milliseconds)
            ),
            verdict: rules::stays_below(
                self.before(|phase| phase.p99_ms),
                self.after(|phase| phase.p99_ms),
                1.15,
            ),
            rule: "Agrees if the 99th percentile of all batches without any cache is at most 1.15 times the one before \
                   the first step.",
        }
    }

    fn own_cache_is_used(&self) -> Finding {
        Finding {
            figure: 10,
            claim: "The store's own cache is much more effective",
            reference: "The store found about 30 % of what it read in its own cache before, and about 70 % after.",
            here: format!(
                "Share of its own hits: {}. Hits: {}.",
                self.row(|phase| phase.own_hit_share, percent),
                self.change(
                    |phase| phase.own_hits_per_s,
                    |rate| format!("{} per second", number(rate))
                )
            ),
            verdict: rules::own_cache_is_used(
                self.before(|phase| phase.own_hit_share),
                self.after(|phase| phase.own_hit_share),
            ),
            rule: "Agrees if the share of the store's own hits is at least 10 points higher without any cache.",
        }
    }

    fn misses_stay(&self) -> Finding {
        let misses = |phase: &PhaseNumbers| phase.own_misses_per_s;
        let load = |phase: &PhaseNumbers| phase.store_per_s;
        Finding {
            figure: 11,
            claim: "The store misses its own cache no more often, at twice the load",
            reference: "Misses of the store's own cache stayed about the same although its load doubled.",
            here: format!(
                "{}.",
                self.change(misses, |rate| format!("{} misses per second", number(rate)))
            ),
            verdict: rules::misses_stay(
                [self.before(load), self.after(load)],
                [self.before(misses), self.after(misses)],
            ),
            rule: "Agrees if misses per second without any cache are at most 1.25 times those before the first step. Undecided if the store did not answer at least 1.3 times as many counts.",
        }
    }

    fn cpu_stays(&self) -> Finding {
        let peak = |phase: &PhaseNumbers| phase.store_cores_peak;
        Finding {
            figure: 12,
            claim: "The store uses hardly more processor time",
            reference: "At its peak the store used about 50 % of its processors before and about 52 % after.",
            here: format!(
                "In the busiest bin: {}. On average: {}.",
                self.change(peak, |cores| format!("{} cores", aligned(cores))),
                self.change(|phase| phase.store_cores, |cores| format!("{} cores", aligned(cores)))
            ),
            verdict: rules::stays_below(self.before(peak), self.after(peak), 1.1),
            rule: "Agrees if the busiest bin without any cache is at most 1.1 times the busiest one before the first step.",
        }
    }

    fn memory_stays(&self) -> Finding {
        let peak = |phase: &PhaseNumbers| phase.store_memory_bytes_peak;
        Finding {
            figure: 13,
            claim: "The store needs no more memory",
            reference: "Memory stayed the same; its daily peak, caused by compaction, came twice a day instead of once \
                        and was slightly lower.",
            here: format!("At most {}.", self.change(peak, memory)),
            verdict: rules::stays_below(self.before(peak), self.after(peak), 1.1),
            rule: "Agrees if the greatest sample without any cache is at most 1.1 times the greatest one before the \
                   first step.",
        }
    }

    fn counts_cost_less(&self) -> Finding {
        let cost = |phase: &PhaseNumbers| phase.per_million.cpu_s_all;
        Finding {
            figure: 14,
            claim: "A count costs less without the cache",
            reference: "The cache had been about a quarter of the cost of the service, which its removal saved.",
            here: format!(
                "Processor time of all parts except the lab, per million counts: {}.",
                self.change(cost, |cpu_s| format!("{}\u{a0}s", aligned(cpu_s)))
            ),
            verdict: rules::costs_less(self.before(cost), self.after(cost)),
            rule: "Money cannot be measured here, processor time can. Agrees at 0.95 times or less, differs at 1.05 times \
                   or more, and is undecided in between.",
        }
    }

    fn breakers_stay_shut(&self) -> Finding {
        let rate = |phase: &PhaseNumbers| phase.per_million.breakers;
        let openings = |phase: &PhaseNumbers| phase.breakers;
        let total: f64 = self.phases.iter().filter_map(openings).sum();

        Finding {
            figure: 15,
            claim: "Circuit breakers open no more often without any cache",
            reference: "Breakers opened more often at 75 % of the counters, less after the daytime compaction, and no more \
                        when the last counters followed.",
            here: format!("Openings: {}.", self.row(openings, number)),
            verdict: rules::harm_does_not_grow(self.before(rate), self.after(rate), total, 1.0),
            rule: "Agrees if openings per million counts are at most 1.1 times those before the first step, plus one. \
                   Undecided if no breaker ever opened.",
        }
    }

    fn failures_do_not_grow(&self) -> Finding {
        let failed = |phase: &PhaseNumbers| phase.failed_share;
        let total: u64 = self.phases.iter().map(|phase| phase.failed).sum();
        Finding {
            figure: 16,
            claim: "No more counts fail without any cache",
            reference: "The spikes had made requests time out at peak hours; the change did not increase them.",
            here: format!(
                "Failed share of the requested counts: {}.",
                self.row(failed, fine_percent)
            ),
            verdict: rules::harm_does_not_grow(
                self.before(failed),
                self.after(failed),
                total as f64,
                0.0001,
            ),
            rule: "Agrees if the failed share is at most 1.1 times the one before the first step, plus 0.01 points. \
                   Undecided if nothing failed in any phase.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::Record;
    use crate::experiment::report::tests::sample_run;

    fn verdicts(record: &Record) -> Vec<(u8, Verdict)> {
        let analysis = Analysis::new(record);
        let numbers = Numbers::new(&analysis);
        findings(&analysis, &numbers)
            .iter()
            .map(|finding| (finding.figure, finding.verdict))
            .collect()
    }

    #[test]
    fn a_run_with_the_shapes_of_the_reference_agrees_with_it() {
        let verdicts = verdicts(&sample_run::small());
        for figure in [2, 5, 6, 7, 10, 12, 13] {
            assert!(verdicts.contains(&(figure, Verdict::Agrees)), "figure {figure}: {verdicts:?}");
        }
    }

    #[test]
    fn without_samples_there_are_no_findings() {
        let verdicts = verdicts(&sample_run::empty());
        assert!(verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Undecided), "{verdicts:?}");
    }

    #[test]
    fn a_run_that_keeps_its_cache_has_no_after() {
        let record = sample_run::small();
        let record = Record { steps: Vec::new(), ..record };
        let verdicts = verdicts(&record);
        assert!(
            verdicts.contains(&(2, Verdict::Agrees)) || verdicts.contains(&(2, Verdict::Differs))
        );
        assert!(verdicts.contains(&(6, Verdict::Undecided)));
    }
}
