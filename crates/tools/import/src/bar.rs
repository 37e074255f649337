//! Shows the progress of an import: a bar in a terminal, a line every few seconds elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use raingauge_console::note;
use raingauge_console::table::grouped;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// Interval between lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// How often the bar is drawn.
const DRAWS_PER_SECOND: u8 = 10;

pub struct Bar {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    bytes: u64,
    /// Rows and bytes of the files before this one.
    before: (u64, u64),
    /// Rows and bytes so far, including those of the files before.
    now: (u64, u64),
    /// Rows and bytes that an earlier run has handled; the rate leaves them out.
    first: (u64, u64),
    began: Instant,
    said: Instant,
}

impl Bar {
    /// For `bytes` of files, of which `first` rows and bytes were handled earlier.
    pub fn new(bytes: u64, first: (u64, u64)) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}")
                .expect("the template is sound");
            let bar = ProgressBar::with_draw_target(
                Some(bytes),
                ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND),
            );
            bar.set_style(style.progress_chars("━╸ "));

            bar
        });
        Self {
            bar,
            bytes,
            before: (0, 0),
            now: first,
            first,
            began: Instant::now(),
            said: Instant::now(),
        }
    }

    /// Begins the next file.
    pub(crate) fn next_file(&mut self) {
        self.before = self.now;
    }

    /// Records that the rows of this file up to `rows` are durable, for which `bytes` of it were
    /// read.
    pub(crate) fn advance(&mut self, rows: u64, bytes: u64) {
        self.now = (self.before.0 + rows, self.before.1 + bytes);
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.now.1.min(self.bytes));
                bar.set_message(self.text());
            }
            None if self.said.elapsed() >= LINE_INTERVAL => {
                self.said = Instant::now();
                note(&format!("{:>3} %  {}", self.now.1 * 100 / self.bytes.max(1), self.text()));
            }
            None => {}
        }
    }

    fn text(&self) -> String {
        let (rows, bytes) = self.now;
        let seconds = self.began.elapsed().as_secs_f64().max(1e-3);
        let rows_per_s = rows.saturating_sub(self.first.0) as f64 / seconds;
        let bytes_per_s = bytes.saturating_sub(self.first.1) as f64 / seconds;
        let left = if bytes_per_s > 0.0 {
            duration(self.bytes.saturating_sub(bytes) as f64 / bytes_per_s)
        } else {
            "…".to_owned()
        };
        let [rows, rate] = [rows as i64, rows_per_s as i64].map(grouped);
        format!("{rows} rows, {rate} rows/s, {left} left")
    }

    /// Leaves the terminal to the next output.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// An import that fails leaves the bar where it was.
impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.as_ref().filter(|bar| !bar.is_finished()) {
            bar.abandon();
        }
    }
}

/// Formats seconds for people.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        assert_eq!(
            [0.2, 59.4, 61.0, 7_260.0].map(duration),
            ["0 s", "59 s", "1 min 1 s", "2 h 1 min"]
        );
    }
}
