//! Makes a failing case short: the fewest steps that still show a difference.

use super::play::{Mismatch, Table};
use super::steps::Step;
use anyhow::Result;

/// Cases that are played at most.
const PLAYS_MAX: usize = 400;

/// Removes steps, then commands of pipelines, as long as there is a difference. Returns the steps
/// that are left, with it.
pub fn shrink(
    table: &mut Table<'_>,
    steps: &[Step],
    first: Mismatch,
) -> Result<(Vec<Step>, Mismatch)> {
    let mut best = (steps[..=first.step].to_vec(), first);
    let mut plays = 0;
    remove_chunks(table, &mut best, &mut plays)?;

    // Each command of a pipeline becomes a step of its own, if the difference stays.
    let single = singles(&best.0);
    if single.len() > best.0.len() {
        plays += 1;
        if let Some(found) = table.play(&single)? {
            best = (single[..=found.step].to_vec(), found);
            remove_chunks(table, &mut best, &mut plays)?;
        }
    }
    Ok(best)
}

fn remove_chunks(
    table: &mut Table<'_>,
    best: &mut (Vec<Step>, Mismatch),
    plays: &mut usize,
) -> Result<()> {
    let mut width = best.0.len() / 2;
    while width > 0 {
        let mut start = 0;
        while start < best.0.len() && *plays < PLAYS_MAX {
            let end = (start + width).min(best.0.len());
            let shorter = [&best.0[..start], &best.0[end..]].concat();
            *plays += 1;
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
