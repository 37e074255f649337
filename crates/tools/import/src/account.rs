//! The outcome of the rows so far: totals, the file of rejected rows, the progress file, the bar.

use crate::bar::Bar;
use crate::pipeline::BatchOutcome;
use crate::progress::Progress;
use crate::rejected::RejectedRows;
use anyhow::Context;
use raingauge_core::code::{Code, Refusal};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shortest time between saves of the progress: each save syncs two files and a folder to the disk,
/// which the event log needs too. A row that is sent again because of it is a duplicate.
const SAVE_INTERVAL: Duration = Duration::from_millis(200);

/// Rows of the file, and their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub rows: u64,
    pub accepted: u64,
    pub duplicates: u64,
    pub rejected: u64,
}

pub struct Account<'a> {
    progress: Progress,
    /// `None` when the import cannot be resumed.
    progress_path: Option<PathBuf>,
    saved: Instant,
    rejected: Option<RejectedRows>,
    rejected_path: PathBuf,
    bar: &'a mut Bar,
}

impl<'a> Account<'a> {
    pub fn new(
        progress: Progress,
        progress_path: Option<PathBuf>,
        rejected_path: PathBuf,
        bar: &'a mut Bar,
    ) -> anyhow::Result<Self> {
        if progress.rows_sent == 0 {
            RejectedRows::remove(&rejected_path)?;
        }
        let mut account = Self {
            progress,
            progress_path,
            saved: Instant::now(),
            rejected: None,
            rejected_path,
            bar,
        };

        // If progress cannot be saved, the import fails before anything is sent.
        account.save()?;
        Ok(account)
    }

    /// Takes the next batch, in the order of the rows.
    pub(crate) fn settle(&mut self, settled: &BatchOutcome) -> anyhow::Result<()> {
        let BatchOutcome { lines, receipt, .. } = settled;
        self.keep_rejected(settled)?;
        let progress = &mut self.progress;
        progress.rows_sent = lines.last_row;
        progress.accepted += receipt.accepted;
        progress.duplicates += receipt.duplicates;
        progress.rejected += (receipt.rejected.len() + lines.rejected.len()) as u64;
        if self.saved.elapsed() >= SAVE_INTERVAL {
            self.save()?;
        }
        self.bar.advance(self.progress.rows_sent, lines.bytes_read);
        Ok(())
    }

    fn keep_rejected(&mut self, settled: &BatchOutcome) -> anyhow::Result<()> {
        let BatchOutcome { lines, receipt, .. } = settled;
        if receipt.rejected.is_empty() && lines.rejected.is_empty() {
            return Ok(());
        }

        let mut rows: Vec<(u64, Refusal, &[u8])> = lines
            .rejected
            .iter()
            .map(|(line, refusal, raw)| (*line, refusal.clone(), &raw[..]))
            .collect();

        for refused in &receipt.rejected {
            let (line, raw) = lines
                .event(refused.index)
                .context("the server rejected an event that it was not sent")?;
            rows.push((line, refusal_of(&refused.code, &refused.detail), raw));
        }

        rows.sort_by_key(|(line, ..)| *line);
        let file = match &mut self.rejected {
            Some(file) => file,
            none => none.insert(RejectedRows::open(&self.rejected_path)?),
        };

        for (line, refusal, raw) in rows {
            file.write(line, &refusal, raw)?;
        }
        Ok(())
    }

    /// RejectedRows rows reach the disk before the progress that skips them.
    fn save(&mut self) -> anyhow::Result<()> {
        if let Some(rejected) = &mut self.rejected {
            rejected.sync()?;
        }
        if let Some(path) = &self.progress_path {
            self.progress.updated_at_s = now_s();
            self.progress.save(path)?;
        }
        self.saved = Instant::now();
        Ok(())
    }

    /// Ends the account once everything is durable.
    pub fn finish(mut self) -> anyhow::Result<Totals> {
        self.progress.finished = true;
        self.save()?;
        let Progress { rows_sent: rows, accepted, duplicates, rejected, .. } = self.progress;
        Ok(Totals { rows, accepted, duplicates, rejected })
    }
}

pub(crate) fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// Returns a server's refusal in the form of the file of rejected rows.
fn refusal_of(code: &str, detail: &str) -> Refusal {
    match Code::parse(code) {
        Some(known) => Refusal::new(known, detail),
        None => Refusal::new(Code::Refused, format!("{code}: {detail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_nobody_knows_is_kept_in_the_detail() {
        assert_eq!(refusal_of("too_late", "x"), Refusal::new(Code::TooLate, "x"));
        assert_eq!(refusal_of("new_code", "x"), Refusal::new(Code::Refused, "new_code: x"));
    }
}
