//! Where an import begins: at the first row, or after those of a run that was interrupted.
//!
//! A progress file tells how far a run came, but not where to: the folder behind an address may be
//! a new one. So before rows are skipped, the last few of them are sent again. A server that knows
//! them reports duplicates; one that does not gets everything from the first row on, which the ids
//! make safe in either case.

use crate::Rows;
use crate::account::now_s;
use crate::pipeline::batch;
use crate::progress::Progress;
use crate::run::Options;
use crate::sink::Sink;
use anyhow::bail;
use raingauge_console::note;
use raingauge_core::time::format_rfc3339;

/// Rows that are sent again, to find out whether the server knows them.
const PROBE_ROWS: usize = 200;

/// Returns the rows that are left, of all `rows`, and the progress so far.
pub(crate) fn start<S: Sink>(
    sink: &S,
    mut rows: Rows,
    options: &Options<'_>,
) -> anyhow::Result<(Rows, Progress)> {
    let new = Progress::new(rows.identity());
    let found =
        if options.restart { None } else { Progress::load(&options.progress_path, &new.identity)? };
    let Some(found) = found.filter(|progress| progress.rows_sent > 0) else {
        return Ok((rows, new));
    };
    let age_s = now_s().saturating_sub(found.updated_at_s);
    let is_remembered = age_s < options.window.as_secs() as i64;
    if !is_remembered && !options.resume_anyway {
        bail!("{}", too_old(&found, options));
    }

    if found.finished && !options.resume_anyway {
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
            return Ok((Rows::open(options.file, options.mapping)?, new));
        }
    }

    Ok((rows, found))
}

fn too_old(progress: &Progress, options: &Options<'_>) -> String {
    let path = options.progress_path.display();
    let at = format_rfc3339(progress.updated_at_s);
    let hours = options.window.as_secs() / 3_600;

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
