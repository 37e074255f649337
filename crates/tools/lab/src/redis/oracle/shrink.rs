//! Makes a failing case short: the fewest steps that still show a difference.

use super::play::{Mismatch, Table};
use super::steps::Step;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Cases that are played at most, and time for them.
const PLAYS_MAX: usize = 400;
const TIME_MAX: Duration = Duration::from_secs(30);

/// Removes steps, then commands of pipelines, as long as there is a difference. Returns the steps
/// that are left, with it.
pub fn shrink(
    table: &mut Table<'_>,
    steps: &[Step],
    first: Mismatch,
) -> Result<(Vec<Step>, Mismatch)> {
    let mut best = (steps[..=first.step].to_vec(), first);
    let mut budget = Budget { plays: 0, until: Instant::now() + TIME_MAX };
    remove_chunks(table, &mut best, &mut budget)?;

    // Each command of a pipeline becomes a step of its own, if the difference stays.
    let single = singles(&best.0);
    if single.len() > best.0.len()
        && let Some(found) = table.play(&single)?
    {
        best = (single[..=found.step].to_vec(), found);
        remove_chunks(table, &mut best, &mut budget)?;
    }
    Ok(best)
}

/// What shrinking may take.
struct Budget {
    plays: usize,
    until: Instant,
}

impl Budget {
    /// Whether one more case may be played.
    fn take(&mut self) -> bool {
        self.plays += 1;
        self.plays <= PLAYS_MAX && Instant::now() < self.until
    }
}

fn remove_chunks(
    table: &mut Table<'_>,
    best: &mut (Vec<Step>, Mismatch),
    budget: &mut Budget,
) -> Result<()> {
    let mut width = best.0.len() / 2;
    while width > 0 {
        let mut start = 0;
        while start < best.0.len() && budget.take() {
            let end = (start + width).min(best.0.len());
            let shorter = [&best.0[..start], &best.0[end..]].concat();
            match table.play(&shorter)? {
                Some(found) => *best = (shorter[..=found.step].to_vec(), found),
                None => start = end,
            }
        }
        width /= 2;
    }
    Ok(())
}

fn singles(steps: &[Step]) -> Vec<Step> {
    let single = |step: &Step| match step {
        Step::Batch { connection, commands, .. } => commands
            .iter()
            .map(|words| Step::Batch {
                connection: *connection,
                commands: vec![words.clone()],
                cuts: Vec::new(),
            })
            .collect(),
        other => vec![other.clone()],
    };
    steps.iter().flat_map(single).collect()
}
