//! `raingauge import`
//!
//! ```text
//!   file ─▶ reader ─▶ batches ─▶ senders ─▶ receipts ─▶ account: in the order of the rows
//!           1 thread            a few        any order     rejected rows, progress file, bar
//! ```
//!
//! Every event has an id that depends only on its file and row, so a batch whose outcome is unknown
//! can be sent again: the server reports what it had counted as duplicates. The progress file saves
//! the work of sending everything again; it never decides what is counted while the server still
//! remembers the ids.

mod account;
mod bar;
mod http;
mod local;
mod pipeline;
mod resume;
mod sink;

pub use account::{Account, Totals};
pub use bar::Bar;
pub use local::Local;
pub use pipeline::run as pump;

use super::session::Session;
use super::table::grouped;
use super::{note, print, print_json};
use crate::cli::Place;
use anyhow::Context;
use clap::Args;
use http::Http;
use raingauge_import::{Error, Mapping, Rows};
use resume::Start;
use serde_json::json;
use sink::Sink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a server remembers ids by default.
const DEDUPE_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// Turn the rows of a file into events and count them
///
/// The file is CSV or NDJSON, plain or packed with gzip; a mapping says which column becomes what.
/// An import that was interrupted goes on where it stopped when it is started again, and counts
/// nothing twice. Rows that are refused are kept in a file, with their lines and the reasons; they
/// are no failure.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge import demo/taxi.csv.gz --mapping demo/taxi.mapping.toml\n\
                        Example: raingauge import demo/taxi.csv.gz --mapping demo/taxi.mapping.toml --data-dir raingauge-data"
)]
pub struct Import {
    /// The file: CSV or NDJSON, plain or gzip
    file: PathBuf,
    /// Which column becomes which part of an event (TOML)
    #[arg(long, value_name = "FILE")]
    mapping: PathBuf,
    /// Where refused rows go [default: NAME.rejected.csv here, made when there is one]
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,
    /// Where progress is kept [default: NAME.MAPPING.progress.json here, removed at the end]
    #[arg(long, value_name = "FILE")]
    progress_file: Option<PathBuf>,
    /// Begin with the first row, whatever the progress file says
    #[arg(long)]
    restart: bool,
    /// Go on although the server may have forgotten the ids of the rows that were under way
    #[arg(long, conflicts_with = "restart")]
    resume_anyway: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// The outcome of an import.
struct Finished {
    totals: Totals,
    /// Rows that an earlier run had handled.
    resumed_after: u64,
    /// Time until everything was durable.
    durable_after: Duration,
    /// Time until everything was counted, if known.
    counted_after: Option<Duration>,
}

impl Import {
    pub fn run(self) -> anyhow::Result<()> {
        let mapping = Mapping::load(&self.mapping).map_err(|error| match error {
            Error::Mapping(_) => {
                anyhow::Error::from(error).context(self.mapping.display().to_string())
            }
            error => error.into(),
        })?;

        // The file is opened before the server is contacted: most mistakes show here. It is opened
        // once, as it may be a pipe.
        let rows = Rows::open(&self.file, &mapping)?;
        let finished = self.place.with(|session| match session.own() {
            Some(own) => self.import(&Local::new(own), rows, &mapping, own.dedupe_window),
            None => self.import(&self.http(session)?, rows, &mapping, DEDUPE_WINDOW),
        })?;
        self.report(&finished)
    }

    fn http(&self, session: &Session) -> anyhow::Result<Http> {
        // An unreachable server is reported at once, and not after many retries.
        session.client.get("/healthz", &[])?;
        Ok(Http::new(session.client.clone()))
    }

    fn import<S: Sink>(
        &self,
        sink: &S,
        rows: Rows,
        mapping: &Mapping,
        window: Duration,
    ) -> anyhow::Result<Finished> {
        let began = Instant::now();
        let progress_path = self.progress_path();
        let start = Start {
            path: &progress_path,
            restart: self.restart,
            resume_anyway: self.resume_anyway,
            window,
        };

        let (rows, progress) = start.rows(sink, rows, &self.file, mapping)?;
        let resumed_after = progress.rows_sent;
        if resumed_after > 0 {
            note(&format!("going on after row {}", grouped(resumed_after as i64)));
        }

        let mut bar = Bar::new(rows.len_bytes(), (resumed_after, rows.bytes_read()));
        let mut account =
            Account::new(progress, Some(progress_path.clone()), self.rejected_path(), &mut bar)?;
        let last = pump(rows, sink, &mut account)?;
        let totals = account.finish()?;

        bar.finish();
        let durable_after = began.elapsed();
        let counted = sink.wait_applied(last)?;

        if self.progress_file.is_none() {
            std::fs::remove_file(&progress_path)
                .with_context(|| format!("cannot remove {}", progress_path.display()))?;
        }

        Ok(Finished {
            totals,
            resumed_after,
            durable_after,
            counted_after: counted.then(|| began.elapsed()),
        })
    }

    fn report(&self, finished: &Finished) -> anyhow::Result<()> {
        let Finished { totals, resumed_after, durable_after, counted_after } = finished;
        let seconds = durable_after.as_secs_f64();
        let rows_per_second = (totals.rows - resumed_after) as f64 / seconds.max(1e-6);
        let rejected_file =
            (totals.rejected > 0).then(|| self.rejected_path().display().to_string());

        if self.json {
            return Ok(print_json(&json!({
                "rows": totals.rows, "accepted": totals.accepted, "duplicates": totals.duplicates,
                "rejected": totals.rejected, "resumedAfterRow": resumed_after, "seconds": seconds,
                "rowsPerSecond": rows_per_second, "countedSeconds": counted_after.map(|time| time.as_secs_f64()),
                "rejectedFile": rejected_file,
            }))?);
        }

        let [rows, accepted, duplicates, rejected] =
            [totals.rows, totals.accepted, totals.duplicates, totals.rejected]
                .map(|number| grouped(number as i64));
        let place = rejected_file.map(|file| format!(" (in {file})")).unwrap_or_default();
        print(&format!(
            "{rows} rows: {accepted} accepted, {duplicates} duplicates, {rejected} rejected{place}; \
             durable after {seconds:.2} s ({} rows/s), {}",
            grouped(rows_per_second as i64),
            match counted_after {
                Some(time) => format!("counted after {:.2} s", time.as_secs_f64()),
                None => "not yet all counted".to_owned(),
            }
        ))?;

        Ok(())
    }

    fn progress_path(&self) -> PathBuf {
        let mapping = name_of(&self.mapping);
        let mapping = mapping.strip_suffix(".toml").unwrap_or(&mapping);
        let default = || PathBuf::from(format!("{}.{mapping}.progress.json", name_of(&self.file)));
        self.progress_file.clone().unwrap_or_else(default)
    }

    fn rejected_path(&self) -> PathBuf {
        let default = || PathBuf::from(format!("{}.rejected.csv", name_of(&self.file)));
        self.rejected.clone().unwrap_or_else(default)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
