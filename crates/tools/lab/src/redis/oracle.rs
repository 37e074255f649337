//! The oracle: random commands go to a real Redis and to another server, and the replies must be
//! the same, byte for byte.
//!
//! ```text
//!   seed ─▶ templates ─▶ steps ─┬─▶ Redis ────────────┐
//!                               └─▶ the server tested ─┴─▶ rules: equal │ Mismatch ─▶ shrink
//!                                     ▲ disturb: checkpoint, kill and reopen
//! ```
//!
//! A case has a seed, which replays it. Pipelines are cut anywhere, two connections speak RESP2 and
//! RESP3, keys expire, transactions fail. [`rules::EXCEPTIONS`] lists where replies may differ, and
//! why.

mod chance;
mod draw;
mod grammar;
mod play;
pub mod rules;
mod shrink;
mod state;
mod steps;
mod templates;

pub use play::{Disturb, Mismatch};
pub use steps::{Disturbance, Step};

use anyhow::{Result, bail};
use play::Table;
use raingauge_resp_client::Address;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Steps of a case.
const CASE_STEPS: usize = 250;

/// What is compared, and for how long.
pub struct Options {
    /// A real Redis. All of its objects are removed.
    pub redis: Address,
    /// The server under test. All of its objects are removed.
    pub against: Address,
    /// The first case has this seed, the next one the next.
    pub seed: u64,
    pub duration: Duration,
    /// Cases that are played at most.
    pub cases_max: u64,
    /// Commands that are left out, such as one whose difference is known.
    pub without: Vec<String>,
}

/// What was compared without a difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Agreement {
    pub cases: u64,
    pub replies: u64,
}

/// Plays cases until the time is over. A difference is an error that shows the shortest steps that
/// lead to it, and the seed.
pub fn run<'a>(options: &Options, disturb: Option<&'a mut Disturb<'a>>) -> Result<Agreement> {
    let against = options.against.clone();
    let mut nothing = move |_| Ok(against.clone());
    let is_disturbed = disturb.is_some();
    let mut table = match disturb {
        Some(disturb) => Table::new(&options.redis, &options.against, disturb)?,
        None => Table::new(&options.redis, &options.against, &mut nothing)?,
    };

    let until = Instant::now() + options.duration;
    let mut cases = 0;
    while cases == 0 || (Instant::now() < until && cases < options.cases_max) {
        let seed = options.seed.wrapping_add(cases);
        let steps = steps::draw(seed, CASE_STEPS, is_disturbed, &options.without);
        if let Some(first) = table.play(&steps)? {
            let (shortest, mismatch) = shrink::shrink(&mut table, &steps, first)?;
            bail!("{}", text(seed, &shortest, &mismatch));
        }
        cases += 1;
    }
    Ok(Agreement { cases, replies: table.compared() })
}

/// A difference, with the steps that lead to it.
fn text(seed: u64, steps: &[Step], mismatch: &Mismatch) -> String {
    let mut text = format!("the replies differ; seed {seed}\n");
    for (place, step) in steps.iter().enumerate() {
        // Writing to memory cannot fail.
        let _ = match step {
            Step::Batch { connection, commands, .. } => {
                let lines: Vec<String> = commands.iter().map(|words| shown(words)).collect();
                writeln!(text, "{place:>4} [{connection}] {}", lines.join("\n         "))
            }
            Step::Chance { connection, words } | Step::Walk { connection, words } => {
                writeln!(text, "{place:>4} [{connection}] {}", shown(words))
            }
            other => writeln!(text, "{place:>4} {other:?}"),
        };
    }

    let rule = play::rule_of(mismatch);
    let _ = write!(
        text,
        "{}\n  expected {}\n  received {}\n  rule {rule:?}",
        shown(&mismatch.command),
        mismatch.expected,
        mismatch.actual
    );
    text
}

fn shown(words: &[Vec<u8>]) -> String {
    let is_plain = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
    let word = |word: &Vec<u8>| {
        let escaped = word.escape_ascii().to_string();
        if is_plain(word) { escaped } else { format!("\"{escaped}\"") }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
