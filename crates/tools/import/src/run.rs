//! One import, from its first row to the report.

use crate::account::{Account, Totals};
use crate::bar::Bar;
use crate::progress::Progress;
use crate::sink::Sink;
use crate::{Error, Mapping, Rows, pipeline, resume};
use raingauge_console::note;
use raingauge_console::table::grouped;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub struct Options<'a> {
    pub file: &'a Path,
    pub mapping: &'a Mapping,
    pub progress_path: PathBuf,
    /// Keeps the progress file of a finished import.
    pub keep_progress: bool,
    pub rejected_path: PathBuf,
    /// Begins with the first row, whatever the progress file says.
    pub restart: bool,
    /// Resumes although the server may have forgotten the ids of the rows that were under way.
    pub resume_anyway: bool,
    /// How long the server remembers ids.
    pub window: Duration,
}

/// The outcome of an import.
pub struct Outcome {
    pub totals: Totals,
    /// Rows that an earlier run had handled.
    pub resumed_after: u64,
    /// Time until everything was durable.
    pub durable_after: Duration,
    /// Time until everything was counted, if known.
    pub counted_after: Option<Duration>,
}

/// Sends all `rows` that an earlier run has not sent, and waits until they are counted.
pub fn run<S: Sink>(sink: &S, rows: Rows, options: Options<'_>) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let (rows, progress) = resume::start(sink, rows, &options)?;
    let resumed_after = progress.rows_sent;
    if resumed_after > 0 {
        note(&format!("going on after row {}", grouped(resumed_after as i64)));
    }

    let path = options.progress_path;
    let mut bar = Bar::new(rows.len_bytes(), (resumed_after, rows.bytes_read()));
    let mut account = Account::new(progress, Some(path.clone()), options.rejected_path, &mut bar)?;
    let last = pipeline::send_all(rows, sink, &mut account)?;
    let totals = account.finish()?;

    bar.finish();
    let durable_after = began.elapsed();
    let counted = sink.wait_applied(last)?;

    if !options.keep_progress {
        std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
    }

    Ok(Outcome {
        totals,
        resumed_after,
        durable_after,
        counted_after: counted.then(|| began.elapsed()),
    })
}

/// Sends all rows of one of several files, without a progress file to resume from. The caller waits
/// until they are counted.
pub fn run_once<S: Sink>(
    sink: &S,
    rows: Rows,
    rejected_path: PathBuf,
    bar: &mut Bar,
) -> anyhow::Result<Totals> {
    let progress = Progress::new(rows.identity());
    let mut account = Account::new(progress, None, rejected_path, bar)?;
    pipeline::send_all(rows, sink, &mut account)?;
    let totals = account.finish()?;
    bar.next_file();

    Ok(totals)
}
