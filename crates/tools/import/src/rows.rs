//! Iterates over the rows of a file.

use crate::csv::{Cells, Scan, without_return};
use crate::error::Error;
use crate::input::Input;
use crate::limits::{REJECTED_ROW_LEN_MAX, ROW_LEN_MAX};
use crate::mapping::{Format, Mapping};
use crate::ndjson::{self, Object};
use crate::plan::{Columns, EventBuffers, Plan, Value};
use crate::progress::Identity;
use memchr::memchr;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Event;
use raingauge_core::field::Field;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::Utf8Error;
use std::time::UNIX_EPOCH;

/// One row of a file: the event built from it, or the reason for its rejection.
#[derive(Debug)]
pub struct Row<'a> {
    /// The row's number, from 1. RejectedRows rows count; the header and empty lines do not.
    pub number: u64,
    /// The line of the file, from 1, on which the row begins.
    pub line: u64,
    /// The raw row without its line end; only the start of a row that is too long.
    pub raw: &'a [u8],
    pub event: Result<Event<'a>, Refusal>,
}

/// Reads the rows of one file. Each call of [`Rows::next_row`] reuses the buffers of the previous
/// row.
pub struct Rows {
    path: PathBuf,
    len: u64,
    modified_ms: i64,
    input: Input,
    mapping: Mapping,
    fingerprint: String,
    plan: Plan,
    shape: Shape,
    parts: EventBuffers,
    /// The start of a row that exceeded the buffer.
    long_row: Vec<u8>,
    rows: u64,
    /// The line on which the next row begins.
    line: u64,
}

enum Shape {
    Csv {
        cells: Cells,
        width: usize,
        /// Position in the record of each column of the plan.
        positions: Vec<usize>,
    },
    Ndjson {
        members: Vec<Field>,
    },
}

/// A row that has been located but not yet parsed.
#[derive(Clone, Copy)]
enum RawRow {
    /// The row's bytes in the buffer, without the line end.
    Whole { start: usize, end: usize, line: u64 },
    /// An unclosed quoted cell: the rest of its line is dropped.
    Unclosed { start: usize, end: usize, line: u64 },
    /// The row exceeds the buffer; its start was kept.
    TooLong { line: u64 },
}

impl Rows {
    /// Opens a file, plain or gzip, and reads the header of a CSV file.
    pub fn open(path: &Path, mapping: &Mapping) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let since_1970 =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mut rows = Self::read(Box::new(file), path, mapping)?;
        rows.len = metadata.len();
        rows.modified_ms =
            since_1970.and_then(|time| i64::try_from(time.as_millis()).ok()).unwrap_or_default();
        Ok(rows)
    }

    /// Reads rows from another source, such as standard input; `name` stands for the path in
    /// messages.
    pub fn read(file: Box<dyn Read + Send>, name: &Path, mapping: &Mapping) -> Result<Self, Error> {
        let input =
            Input::new(file).map_err(|source| Error::Open { path: name.to_owned(), source })?;
        let fingerprint = format!("{:016x}", input.fingerprint());
        let shape = match mapping.format {
            Format::Csv => Shape::Csv { cells: Cells::default(), width: 0, positions: Vec::new() },
            Format::Ndjson => Shape::Ndjson { members: Vec::new() },
        };
        let mut rows = Self {
            path: name.to_owned(),
            len: 0,
            modified_ms: 0,
            input,
            mapping: mapping.clone(),
            fingerprint,
            plan: Plan::new(mapping, None),
            shape,
            parts: EventBuffers::default(),
            long_row: Vec::new(),
            rows: 0,
            line: 1,
        };

        rows.bind()?;
        Ok(rows)
    }

    /// Resolves the columns of the mapping in the file.
    fn bind(&mut self) -> Result<(), Error> {
        if let Shape::Ndjson { members } = &mut self.shape {
            *members = ndjson::members(self.plan.columns());
            return Ok(());
        }

        let header = self.read_header()?;
        self.plan = Plan::new(&self.mapping, Some(&header));

        let mut found = Vec::new();
        let mut missing = Vec::new();
        let mut repeated = Vec::new();

        for name in self.plan.columns() {
            match header.iter().position(|column| column == name) {
                Some(at) if header[at + 1..].contains(name) => repeated.push(name.clone()),
                Some(at) => found.push(at),
                None => missing.push(name.clone()),
            }
        }

        let path = || self.path.clone();
        if !missing.is_empty() {
            return Err(Error::ColumnsMissing { path: path(), missing, existing: header });
        }

        if !repeated.is_empty() {
            return Err(Error::ColumnsRepeated { path: path(), repeated });
        }

        if let Shape::Csv { width, positions, .. } = &mut self.shape {
            (*width, *positions) = (header.len(), found);
        }
        Ok(())
    }

    fn read_header(&mut self) -> Result<Vec<String>, Error> {
        let failed = |rows: &Self, reason: &str| Error::Header {
            path: rows.path.clone(),
            reason: reason.to_owned(),
        };
        match self.find()? {
            Some(RawRow::Whole { start, end, .. }) => {
                let Shape::Csv { cells, .. } = &self.shape else {
                    unreachable!("only a CSV file has a header")
                };
                let raw = self.input.bytes(start, end);
                let names = (0..cells.count())
                    .map(|at| std::str::from_utf8(cells.get(raw, at)).map(str::to_owned));

                names.collect::<Result<_, _>>().map_err(|_| failed(self, "it is not UTF-8"))
            }
            Some(RawRow::Unclosed { .. }) => Err(failed(self, "it contains an unclosed quote")),
            Some(RawRow::TooLong { .. }) => Err(failed(self, "it is too long")),
            None => Err(failed(self, "the file is empty")),
        }
    }

    /// Returns the next row, or `None` after the last one.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        let Some(found) = self.find()? else {
            return Ok(None);
        };
        self.rows += 1;

        let number = self.rows;
        let (line, raw, fault) = match found {
            RawRow::Whole { start, end, line } => (line, self.input.bytes(start, end), None),
            RawRow::Unclosed { start, end, line } => {
                let detail = "a quoted cell is not closed; a quote inside one must be doubled";
                (
                    line,
                    self.input.bytes(start, end),
                    Some(Refusal::new(Code::QuoteUnclosed, detail)),
                )
            }
            RawRow::TooLong { line } => {
                let detail = format!("the row has more than {ROW_LEN_MAX} bytes");
                (line, &self.long_row[..], Some(Refusal::new(Code::RowTooLong, detail)))
            }
        };

        let event = match fault {
            Some(fault) => Err(fault),
            None => {
                let default_id = (self.fingerprint.as_str(), number);
                let parts = &mut self.parts;
                event_of(raw, &self.shape, &self.plan, &self.mapping, default_id, parts)
            }
        };
        Ok(Some(Row { number, line, raw, event }))
    }

    /// Skips up to `count` rows without parsing them, and returns the number of rows skipped.
    pub fn skip(&mut self, count: u64) -> Result<u64, Error> {
        for skipped in 0..count {
            if self.find()?.is_none() {
                return Ok(skipped);
            }
            self.rows += 1;
        }
        Ok(count)
    }

    /// Number of rows read so far, including skipped and rejected ones.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the file read so far, out of [`Rows::len_bytes`]; compressed bytes for a compressed
    /// file.
    pub fn bytes_read(&self) -> u64 {
        self.input.bytes_read()
    }

    /// Length of the file on disk; 0 if the input is not a file.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Returns the identity of this import.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            file: self.path.display().to_string(),
            size: self.len,
            modified_ms: self.modified_ms,
            fingerprint: self.fingerprint.clone(),
            mapping_hash: self.mapping.hash(),
        }
    }

    /// Locates the next row and consumes it.
    fn find(&mut self) -> Result<Option<RawRow>, Error> {
        loop {
            let rest = self.input.rest();
            let whole = self.input.ended();
            let blank_len = blank_len(rest, whole);
            if blank_len > 0 {
                self.input.consume(blank_len);
                self.line += 1;
                continue;
            }

            if whole && rest.is_empty() {
                return Ok(None);
            }
            let scan = match &mut self.shape {
                Shape::Csv { cells, .. } => cells.scan(rest, whole),
                Shape::Ndjson { .. } => scan_line(rest, whole),
            };
            match scan {
                Scan::Record { len, lines } => return Ok(Some(self.take(len, lines))),
                // Only an unclosed quote keeps a record from ending with the file.
                Scan::Partial if whole || self.input.full() => return self.take_line().map(Some),
                Scan::Partial => self.fill()?,
            }
        }
    }

    /// Consumes `len` bytes: the next row, including its line end.
    fn take(&mut self, len: usize, lines: u64) -> RawRow {
        let start = self.input.position();
        let line = self.line;
        let content = without_line_end(&self.input.rest()[..len]).len();
        self.input.consume(len);
        self.line += lines;
        RawRow::Whole { start, end: start + content, line }
    }

    /// Drops the first line of a row that has no end; reading continues on the next line.
    fn take_line(&mut self) -> Result<RawRow, Error> {
        let rest = self.input.rest();
        let line_len =
            memchr(b'\n', rest).map(|end| end + 1).or(self.input.ended().then_some(rest.len()));
        let Some(len) = line_len else {
            return self.drop_line();
        };
        match self.take(len, 1) {
            RawRow::Whole { start, end, line } => Ok(RawRow::Unclosed { start, end, line }),
            other => Ok(other),
        }
    }

    /// Skips a line that is longer than the buffer, and keeps its start.
    fn drop_line(&mut self) -> Result<RawRow, Error> {
        let line = self.line;
        self.long_row.clear();
        self.long_row.extend_from_slice(&self.input.rest()[..REJECTED_ROW_LEN_MAX]);

        loop {
            let rest = self.input.rest();
            if let Some(end) = memchr(b'\n', rest) {
                self.input.consume(end + 1);
                break;
            }

            self.input.consume(rest.len());

            if self.input.ended() {
                break;
            }
            self.fill()?;
        }

        self.line += 1;
        Ok(RawRow::TooLong { line })
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.input.fill().map_err(|source: io::Error| Error::Read {
            path: self.path.clone(),
            line: self.line.saturating_sub(1),
            source,
        })
    }
}

/// Builds the event of a complete row.
fn event_of<'a>(
    raw: &'a [u8],
    shape: &Shape,
    plan: &Plan,
    mapping: &'a Mapping,
    default_id: (&str, u64),
    parts: &'a mut EventBuffers,
) -> Result<Event<'a>, Refusal> {
    let mut row_text = "";
    match shape {
        Shape::Csv { cells, width, positions } => {
            if cells.count() != *width {
                let detail = format!("the row has {} cells, the header has {width}", cells.count());
                return Err(Refusal::new(Code::RowCells, detail));
            }
            plan.fill(&Record { raw, cells, positions }, mapping, default_id, parts)?;
        }
        Shape::Ndjson { members } => {
            let (object, text) = Object::read(raw, members)?;
            plan.fill(&object, mapping, default_id, parts)?;
            row_text = text;
        }
    }

    Ok(Event {
        id: parts.id.as_str().into(),
        source: mapping.source.as_str().into(),
        kind: mapping.kind.as_str().into(),
        subject: (!parts.subject.is_empty()).then(|| parts.subject.as_str().into()),
        time_ms: parts.time_ms,
        data: if plan.row_is_data() { row_text } else { &parts.data },
        refused_keys: Default::default(),
    })
}

/// The columns of a CSV record.
struct Record<'a> {
    raw: &'a [u8],
    cells: &'a Cells,
    positions: &'a [usize],
}

impl Columns for Record<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, Utf8Error> {
        std::str::from_utf8(self.cells.get(self.raw, self.positions[column])).map(Value::Untyped)
    }
}

/// Length of the empty line at the start of `bytes`, or 0.
fn blank_len(bytes: &[u8], whole: bool) -> usize {
    match bytes {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        [b'\r'] if whole => 1,
        _ => 0,
    }
}

fn scan_line(bytes: &[u8], whole: bool) -> Scan {
    match memchr(b'\n', bytes) {
        Some(end) => Scan::Record { len: end + 1, lines: 1 },
        None if whole => Scan::Record { len: bytes.len(), lines: 1 },
        None => Scan::Partial,
    }
}

fn without_line_end(row: &[u8]) -> &[u8] {
    without_return(row.strip_suffix(b"\n").unwrap_or(row))
}
