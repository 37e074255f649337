//! The files: one for each day (UTC) that has lines, of JSON under gzip.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use raingauge_core::time::{civil_from_days, parse_rfc3339_ms};
use raingauge_ports::campaigns::Error;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

const DAY_MS: i64 = 86_400_000;
/// The years that names of files have, which are those of times as text.
const YEARS: Range<i64> = 0..10_000;
/// How the name of a file ends behind its day.
const ENDING: &str = ".ndjson.gz";
/// What is being written, and left behind by a crash.
const UNFINISHED: &str = "unfinished.tmp";

/// Days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// The day of a time in milliseconds since 1970.
    pub const fn of(at_ms: i64) -> Self {
        Self(at_ms.div_euclid(DAY_MS))
    }

    /// When it begins, in milliseconds since 1970.
    pub const fn start_ms(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The name of its file; `None` for days beyond any calendar.
    fn name(self) -> Option<String> {
        let (year, month, day) = civil_from_days(self.0);
        YEARS.contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}{ENDING}"))
    }

    fn of_name(name: &str) -> Option<Self> {
        let midnight = format!("{}T00:00:00Z", name.strip_suffix(ENDING)?);
        parse_rfc3339_ms(midnight.as_bytes()).map(Self::of)
    }
}

/// The files of a folder.
#[derive(Clone)]
pub struct Files {
    folder: PathBuf,
}

/// The file of a day that is being written.
pub struct DayFile {
    files: Files,
    day: Day,
    lines: GzEncoder<BufWriter<File>>,
    is_empty: bool,
}

/// The error about a path.
fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::Io(format!("{path}: {error}"))
}

impl Files {
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The newest day that has a file, which is certainly durable.
    pub fn last(&self) -> Result<Option<Day>, Error> {
        let last = self.days()?.last().copied();
        // The rename of the last file may not have been synced.
        if last.is_some() {
            self.sync()?;
        }
        Ok(last)
    }

    fn days(&self) -> Result<BTreeSet<Day>, Error> {
        let failed = failed(&self.folder);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries.map_err(&failed)?,
        };
        let days = entries.map(|entry| Ok(Day::of_name(&entry?.file_name().to_string_lossy())));
        days.filter_map(io::Result::transpose).collect::<io::Result<_>>().map_err(failed)
    }

    /// Begins the file of a day.
    pub fn begin(&self, day: Day) -> Result<DayFile, Error> {
        let path = self.folder.join(UNFINISHED);
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        if let Some(parent) = self.folder.parent() {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed(parent))?;
        }
        let file = File::create(&path).map_err(failed(&path))?;
        let lines = GzEncoder::new(BufWriter::new(file), Compression::default());
        Ok(DayFile { files: self.clone(), day, lines, is_empty: true })
    }

    pub fn remove_before(&self, day: Day) -> Result<(), Error> {
        for old in self.days()?.range(..day) {
            let path = self.path(*old)?;
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// Writes each file that has lines about a subject again, without them. A file without any line
    /// remains: it says that its day was written.
    pub fn erase(&self, subject: &str) -> Result<(), Error> {
        for day in self.days()? {
            let is_about = |line: &Value| line["subject"] == subject;
            let mut is_found = false;
            self.read(day, &mut |line| {
                is_found |= is_about(line);
                Ok(())
            })?;
            if !is_found {
                continue;
            }

            let mut file = self.begin(day)?;
            let path = self.folder.join(UNFINISHED);
            self.read(day, &mut |line| {
                if is_about(line) { Ok(()) } else { file.line(line).map_err(failed(&path)) }
            })?;
            file.is_empty = false;
            file.finish()?;
        }
        Ok(())
    }

    fn read(
        &self,
        day: Day,
        each: &mut impl FnMut(&Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = self.path(day)?;
        let failed = failed(&path);
        let file = File::open(&path).map_err(&failed)?;
        for line in BufReader::new(GzDecoder::new(BufReader::new(file))).lines() {
            let line = line.map_err(&failed)?;
            each(&serde_json::from_str(&line).map_err(|error| failed(error.into()))?)?;
        }
        Ok(())
    }

    fn path(&self, day: Day) -> Result<PathBuf, Error> {
        let name = day.name().ok_or_else(|| Error::Io("a day has no name".to_owned()))?;
        Ok(self.folder.join(name))
    }

    fn sync(&self) -> Result<(), Error> {
        let folder = File::open(&self.folder);
        folder.and_then(|folder| folder.sync_all()).map_err(failed(&self.folder))
    }
}

impl DayFile {
    pub fn append(mut self, lines: &[Value]) -> Result<Self, Error> {
        for line in lines {
            self.line(line).map_err(failed(&self.files.folder.join(UNFINISHED)))?;
        }
        Ok(self)
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        self.is_empty = false;
        writeln!(self.lines, "{line}")
    }

    /// Gives the file its name, once all of it is durable. Returns its size in bytes; a day without
    /// lines has no file.
    pub fn finish(self) -> Result<Option<u64>, Error> {
        let path = self.files.folder.join(UNFINISHED);
        if self.is_empty {
            fs::remove_file(&path).map_err(failed(&path))?;
            return Ok(None);
        }

        let written = self.lines.finish();
        let file = written.and_then(|file| file.into_inner().map_err(io::Error::from));
        let file = file.map_err(failed(&path))?;
        file.sync_all().map_err(failed(&path))?;
        let bytes = file.metadata().map_err(failed(&path))?.len();

        fs::rename(&path, self.files.path(self.day)?).map_err(failed(&path))?;
        self.files.sync()?;
        Ok(Some(bytes))
    }
}

/// Reads the lines of a range of seconds since 1970: the newest day first, and of a day first its
/// decisions, newest first, then the deliveries that ended in it. Blocks the thread.
pub fn read(
    folder: &Path,
    range: Range<i64>,
    mut each: impl FnMut(&Value) -> io::Result<()>,
) -> Result<(), Error> {
    let files = Files::new(folder.to_owned());
    let [from, last] = [range.start, range.end].map(|at_s| Day::of(at_s.saturating_mul(1_000)));
    if from > last {
        return Ok(());
    }
    for day in files.days()?.range(from..=last).rev() {
        files.read(*day, &mut |line| match at_s(line) {
            Some(at_s) if range.contains(&at_s) => {
                each(line).map_err(|error| Error::Io(error.to_string()))
            }
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// When a line was decided, or ended, in seconds since 1970.
fn at_s(line: &Value) -> Option<i64> {
    let at = line["decidedAt"].as_str().or_else(|| line["at"].as_str())?;
    raingauge_core::time::parse_time_s(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_the_name_of_its_date() {
        for (days, name) in [
            (0, "1970-01-01.ndjson.gz"),
            (-1, "1969-12-31.ndjson.gz"),
            (19_782, "2024-02-29.ndjson.gz"),
            (2_932_896, "9999-12-31.ndjson.gz"),
        ] {
            assert_eq!(Day(days).name().as_deref(), Some(name));
            assert_eq!(Day::of_name(name), Some(Day(days)));
        }

        for beyond in [2_932_897, Day::of(i64::MAX).0, Day::of(i64::MIN).0] {
            assert_eq!(Day(beyond).name(), None);
        }
        for other in ["2023-02-29.ndjson.gz", "2024-2-29.ndjson.gz", "2024-02-29.gz", UNFINISHED] {
            assert_eq!(Day::of_name(other), None, "{other}");
        }
    }
}
