//! `raingauge import`

mod local;

pub use local::Local;

use super::table::grouped;
use super::{print, print_json};
use crate::commands::arguments::Place;
use clap::Args;
use raingauge_import::{Error, Http, Mapping, Options, Outcome, Rows, Sink};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        let outcome = self.place.with(|session| match session.own() {
            Some(own) => self.import(&Local::new(own), rows, &mapping, own.dedupe_window),
            None => {
                let http = Http::connect(session.client.clone())?;
                self.import(&http, rows, &mapping, DEDUPE_WINDOW)
            }
        })?;
        self.report(&outcome)
    }

    fn import<S: Sink>(
        &self,
        sink: &S,
        rows: Rows,
        mapping: &Mapping,
        window: Duration,
    ) -> anyhow::Result<Outcome> {
        let options = Options {
            file: &self.file,
            mapping,
            progress_path: self.progress_path(),
            keep_progress: self.progress_file.is_some(),
            rejected_path: self.rejected_path(),
            restart: self.restart,
            resume_anyway: self.resume_anyway,
            window,
        };
        raingauge_import::run(sink, rows, options)
    }

    fn report(&self, outcome: &Outcome) -> anyhow::Result<()> {
        let Outcome { totals, resumed_after, durable_after, counted_after } = outcome;
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
