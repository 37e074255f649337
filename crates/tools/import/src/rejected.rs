//! The file of rejected rows, for people and programs.

use crate::error::Error;
use crate::limits::REJECTED_ROW_LEN_MAX;
use raingauge_core::code::Refusal;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"line,code,detail,row\n";
/// How every version of the file begins.
const START: &[u8] = b"line,code,";

/// Appends rejected rows to a CSV file: the row's line number, a stable code, an explanation, and
/// the raw row (its first 4 KiB). If a resumed import rejects a row again, the row is appended
/// again with the same line number.
pub struct RejectedRows {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RejectedRows {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let open = || {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let new = file.metadata()?.len() == 0;
            let mut file = BufWriter::new(file);
            if new {
                file.write_all(HEADER)?;
            }
            Ok(file)
        };
        let file = open().map_err(|source| Error::Write { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Removes the rejected rows of an earlier import, which would be taken for those of this one.
    /// Any other file is left alone.
    pub fn remove(path: &Path) -> Result<(), Error> {
        let mut start = Vec::new();
        match File::open(path)
            .and_then(|file| file.take(START.len() as u64).read_to_end(&mut start))
        {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(Error::Open { path: path.to_owned(), source }),
        }

        match &start[..] {
            // An empty file may be anything, even a device: rows are appended to it.
            [] => Ok(()),
            START => std::fs::remove_file(path)
                .map_err(|source| Error::Write { path: path.to_owned(), source }),
            _ => Err(Error::NoRejectedRows { path: path.to_owned() }),
        }
    }

    /// `raw` may be empty if the row is no longer available.
    pub fn write(&mut self, line: u64, refusal: &Refusal, raw: &[u8]) -> Result<(), Error> {
        let raw = &raw[..raw.len().min(REJECTED_ROW_LEN_MAX)];
        let mut write = || {
            write!(self.file, "{line},{},", refusal.code.as_str())?;
            write_quoted(&mut self.file, refusal.detail.as_bytes())?;
            self.file.write_all(b",")?;
            write_quoted(&mut self.file, raw)?;
            self.file.write_all(b"\n")
        };
        write().map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Returns once all rows are on disk. Call this before saving progress past them.
    pub fn sync(&mut self) -> Result<(), Error> {
        let mut sync = || {
            self.file.flush()?;
            self.file.get_ref().sync_data()
        };
        sync().map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

fn write_quoted(out: &mut impl Write, cell: &[u8]) -> io::Result<()> {
    out.write_all(b"\"")?;
    for part in cell.split_inclusive(|byte| *byte == b'"') {
        out.write_all(part)?;
        if part.ends_with(b"\"") {
            out.write_all(b"\"")?;
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::code::Code;

    #[test]
    fn rows_read_back_and_are_appended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rejected.csv");
        let rows: [(u64, &str, &[u8]); 3] =
            [(7, "say \"when\"", b"a,\"b\nc\",\xff"), (9, "", b""), (11, "x", &[b'y'; 5_000])];
        for (line, detail, raw) in rows {
            let mut rejected = RejectedRows::open(&path).unwrap();
            rejected.write(line, &Refusal::new(Code::TimeInvalid, detail), raw).unwrap();
            rejected.sync().unwrap();
        }

        let mut reader = ::csv::Reader::from_path(&path).unwrap();
        assert_eq!(reader.headers().unwrap(), vec!["line", "code", "detail", "row"]);

        for (record, (line, detail, raw)) in reader.byte_records().zip(rows) {
            let record = record.unwrap();
            let raw = &raw[..raw.len().min(REJECTED_ROW_LEN_MAX)];
            assert_eq!(
                record,
                vec![line.to_string().as_bytes(), b"time_invalid", detail.as_bytes(), raw]
            );
        }
    }

    #[test]
    fn only_rejected_rows_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rejected.csv");
        RejectedRows::remove(&path).unwrap();

        let mut file = RejectedRows::open(&path).unwrap();
        file.write(7, &Refusal::new(Code::TooLate, "x"), b"row").unwrap();
        file.sync().unwrap();
        RejectedRows::remove(&path).unwrap();
        assert!(!path.exists());

        for other in ["my precious data", ""] {
            std::fs::write(&path, other).unwrap();
            let removed = RejectedRows::remove(&path).map_err(|error| error.to_string());
            assert_eq!(removed.is_err_and(|error| error.contains("--rejected")), !other.is_empty());
            assert!(path.exists());
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = RejectedRows::open(Path::new("/nowhere/rejected.csv")).err().unwrap();
        assert_eq!(error.to_string(), "cannot write /nowhere/rejected.csv");
    }
}
