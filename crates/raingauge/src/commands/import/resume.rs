//! Where an import begins: at the first row, or after those of a run that was interrupted.
//!
//! A progress file tells how far a run came, but not where to: the folder behind an address may be
//! a new one. So before rows are skipped, the last few of them are sent again. A server that knows
//! them reports duplicates; one that does not gets everything from the first row on, which the ids
//! make safe in either case.

use super::super::note;
use super::account::now_s;
use super::pipeline::batch;
use super::sink::Sink;
use anyhow::bail;
use raingauge_core::time::format_rfc3339;
use raingauge_import::{Mapping, Progress, Rows};
use std::path::Path;
use std::time::Duration;

/// Rows that are sent again, to find out whether the server knows them.
const PROBE_ROWS: usize = 200;

pub struct Start<'a> {
    pub path: &'a Path,
    pub restart: bool,
    pub resume_anyway: bool,
    /// How long the server remembers ids.
    pub window: Duration,
}

impl Start<'_> {
    /// Returns the rows that are left, of all `rows`, and the progress so far.
    pub fn rows<S: Sink>(
        &self,
        sink: &S,
        mut rows: Rows,
        file: &Path,
        mapping: &Mapping,
    ) -> anyhow::Result<(Rows, Progress)> {
        let new = Progress::new(rows.identity());
        let found = if self.restart { None } else { Progress::load(self.path, &new.identity)? };
        let Some(found) = found.filter(|progress| progress.rows_sent > 0) else {
            return Ok((rows, new));
        };
        let age_s = now_s().saturating_sub(found.updated_at_s);
        let is_remembered = age_s < self.window.as_secs() as i64;
        if !is_remembered && !self.resume_anyway {
            bail!("{}", self.too_old(&found));
        }

        if found.finished && !self.resume_anyway {
            // The ids are still known: importing a file again reports all rows as duplicates.
            return Ok((rows, new));
        }

        let probe = if is_remembered { found.rows_sent.min(PROBE_ROWS as u64) } else { 0 };
        rows.skip(found.rows_sent - probe)?;

        if probe > 0 {
            let (payload, lines, _) = batch(&mut rows, sink, probe as usize)?;
            let receipt = sink.send(payload)?;
            let last = rows.skip(found.rows_sent - lines.last_row)? + lines.last_row;
            if receipt.accepted > 0 || last < found.rows_sent {
                note(
                    "the progress file tells of rows that are not known here: beginning with the first row",
                );
                return Ok((Rows::open(file, mapping)?, new));
            }
        }

        Ok((rows, found))
    }

    fn too_old(&self, progress: &Progress) -> String {
        let path = self.path.display();
        let at = format_rfc3339(progress.updated_at_s);
        let hours = self.window.as_secs() / 3_600;

        if progress.finished {
            return format!(
                "{path} tells that this import was finished at {at}; ids are remembered for {hours} h, so that its rows would be \
                 counted a second time: give --restart if that is meant"
            );
        }

        format!(
            "{path} was last written at {at}; ids are remembered for {hours} h, so that rows that were under way then could be \
             counted twice: give --resume-anyway to accept that, or --restart to begin with the first row in a new data folder"
        )
    }
}
