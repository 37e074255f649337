//! The phases of a run, between its steps.

use crate::experiment::record::{Record, Step, StepKind};

/// A time during which one share of the counters used the new strategy.
///
/// The time of a canary belongs to no phase: it has neither the share before nor the one after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    pub share: f64,
    pub from_ms: i64,
    pub to_ms: i64,
}

impl Phase {
    pub fn contains(&self, at_ms: i64) -> bool {
        (self.from_ms..self.to_ms).contains(&at_ms)
    }

    pub fn length_ms(&self) -> i64 {
        self.to_ms - self.from_ms
    }
}

/// A time during which the store compacted all its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    pub from_ms: i64,
    pub to_ms: i64,
}

/// The phases in chronological order. Before the first step the share is 0; a rollback returns to
/// the previous share.
pub fn phases(record: &Record) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut open = Some(Phase { share: 0.0, from_ms: record.from_ms, to_ms: record.to_ms });
    let mut shares = vec![0.0];
    let mut is_canary = false;

    for step in ordered(record) {
        let share = match step.kind {
            StepKind::Canary { .. } => None,
            StepKind::Share { share } => {
                shares.push(share);
                Some(share)
            }
            StepKind::RolledBack => {
                // A canary that is rolled back has not changed the share yet.
                if !is_canary && shares.len() > 1 {
                    shares.pop();
                }
                shares.last().copied()
            }
            StepKind::CompactionBegan | StepKind::CompactionEnded => continue,
        };

        is_canary = share.is_none();
        close(&mut phases, open.take(), step.at_ms);
        open = share.map(|share| Phase { share, from_ms: step.at_ms, to_ms: record.to_ms });
    }

    close(&mut phases, open, record.to_ms);
    phases
}

fn close(phases: &mut Vec<Phase>, open: Option<Phase>, to_ms: i64) {
    if let Some(phase) = open.filter(|phase| phase.from_ms < to_ms) {
        phases.push(Phase { to_ms, ..phase });
    }
}

/// The compactions in chronological order; one that did not end lasts until the end of the run.
pub fn compactions(record: &Record) -> Vec<Compaction> {
    let mut found: Vec<Compaction> = Vec::new();
    let mut began = None;
    for step in ordered(record) {
        match step.kind {
            StepKind::CompactionBegan => began = began.or(Some(step.at_ms)),
            StepKind::CompactionEnded => {
                found.extend(began.take().map(|from_ms| Compaction { from_ms, to_ms: step.at_ms }));
            }
            _ => {}
        }
    }

    found.extend(began.map(|from_ms| Compaction { from_ms, to_ms: record.to_ms }));
    found
}

fn ordered(record: &Record) -> Vec<&Step> {
    let mut steps: Vec<&Step> = record.steps.iter().collect();
    steps.sort_by_key(|step| step.at_ms);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::tests::sample_run;

    fn step(at_ms: i64, kind: StepKind) -> Step {
        Step { at_ms, kind, label: String::new() }
    }

    fn run(steps: Vec<Step>) -> Record {
        Record { from_ms: 0, to_ms: 1_000, steps, ..sample_run::empty() }
    }

    fn shares(record: &Record) -> Vec<(f64, i64, i64)> {
        phases(record).iter().map(|phase| (phase.share, phase.from_ms, phase.to_ms)).collect()
    }

    #[test]
    fn a_run_without_steps_is_one_phase() {
        assert_eq!(shares(&run(Vec::new())), [(0.0, 0, 1_000)]);
    }

    #[test]
    fn a_canary_belongs_to_no_phase() {
        let steps = vec![
            step(500, StepKind::Share { share: 0.25 }),
            step(400, StepKind::Canary { share: 0.05 }),
            step(700, StepKind::CompactionBegan),
        ];
        assert_eq!(shares(&run(steps)), [(0.0, 0, 400), (0.25, 500, 1_000)]);
    }

    #[test]
    fn a_step_back_returns_to_the_share_before() {
        let share = |at_ms, share| step(at_ms, StepKind::Share { share });
        let back = |at_ms| step(at_ms, StepKind::RolledBack);
        let steps = vec![share(100, 0.25), share(200, 0.5), back(300)];
        assert_eq!(shares(&run(steps)).last(), Some(&(0.25, 300, 1_000)));
        let steps = vec![share(100, 0.25), step(200, StepKind::Canary { share: 0.05 }), back(300)];
        assert_eq!(shares(&run(steps)), [(0.0, 0, 100), (0.25, 100, 200), (0.25, 300, 1_000)]);
    }

    #[test]
    fn a_compaction_that_does_not_end_lasts_as_long_as_the_run() {
        let steps = vec![
            step(100, StepKind::CompactionBegan),
            step(200, StepKind::CompactionEnded),
            step(900, StepKind::CompactionBegan),
        ];
        let found = compactions(&run(steps));
        assert_eq!(
            found,
            [Compaction { from_ms: 100, to_ms: 200 }, Compaction { from_ms: 900, to_ms: 1_000 }]
        );
    }
}
