//! Helpers for tests of whole files.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use raingauge_core::code::Refusal;
use raingauge_import::{Mapping, Rows};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::path::Path;

pub const CSV_MAPPING: &str = r#"
format = "csv"
type = "t"
source = "s"
subject = "zone"
[time]
column = "at"
format = "%Y-%m-%d %H:%M:%S"
[fields]
zone = "zone"
fare = "fare"
note = "note"
"#;

/// A row that no longer borrows from its reader.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRow {
    pub number: u64,
    pub line: u64,
    pub raw: Vec<u8>,
    pub event: Result<OwnedEvent, Refusal>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OwnedEvent {
    pub id: String,
    pub source: String,
    pub kind: String,
    pub subject: Option<String>,
    pub time_ms: i64,
    pub data: String,
}

impl OwnedRow {
    #[allow(dead_code, reason = "not every test looks at it")]
    pub fn id(&self) -> String {
        self.event.as_ref().unwrap().id.clone()
    }

    #[allow(dead_code, reason = "not every test looks at it")]
    pub fn code(&self) -> &str {
        self.event.as_ref().err().map_or("ok", |refusal| refusal.code.as_str())
    }
}

pub fn mapping(text: &str) -> Mapping {
    Mapping::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn rows_of(bytes: &[u8], mapping: &Mapping) -> Rows {
    Rows::read(Box::new(Cursor::new(bytes.to_vec())), Path::new("test"), mapping).unwrap()
}

pub fn read_all(rows: &mut Rows) -> Vec<OwnedRow> {
    let mut seen = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        let event = row.event.map(|event| OwnedEvent {
            id: event.id.into_owned(),
            source: event.source.into_owned(),
            kind: event.kind.into_owned(),
            subject: event.subject.map(|subject| subject.into_owned()),
            time_ms: event.time_ms,
            data: event.data.to_owned(),
        });
        seen.push(OwnedRow { number: row.number, line: row.line, raw: row.raw.to_vec(), event });
    }

    seen
}

#[allow(dead_code, reason = "not every test looks at it")]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The number of rows in a compressed file according to other tools.
#[allow(dead_code, reason = "not every test looks at it")]
pub fn count_rows(path: &Path) -> usize {
    let bytes = GzDecoder::new(File::open(path).unwrap());
    if path.to_string_lossy().contains(".csv") {
        csv::Reader::from_reader(bytes).byte_records().count()
    } else {
        BufReader::new(bytes).lines().count()
    }
}
