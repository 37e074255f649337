//! Generated files: none of them causes a panic, and what is written as CSV is what is read.

mod support;

use proptest::prelude::*;
use raingauge_import::{Mapping, Rows};
use std::io::Cursor;
use std::path::Path;
use support::{CSV_MAPPING, OwnedRow, mapping, read_all, rows_of};

const NDJSON_MAPPING: &str = r#"
format = "ndjson"
type = "t"
source = "s"
id = ["id", "a.b"]
[time]
column = "at"
format = "epoch_seconds"
"#;

/// Reads arbitrary bytes; the data of every event must be JSON that a strict parser accepts.
fn read_anything(bytes: Vec<u8>, mapping: &Mapping) -> Result<(), TestCaseError> {
    let Ok(mut rows) = Rows::read(Box::new(Cursor::new(bytes)), Path::new("test"), mapping) else {
        return Ok(());
    };
    while let Ok(Some(row)) = rows.next_row() {
        let Ok(event) = row.event else { continue };
        prop_assert!(
            serde_json::from_str::<serde_json::Value>(event.data).is_ok(),
            "{}",
            event.data
        );
        prop_assert!(!event.id.is_empty() && event.time_ms >= 0);
    }

    Ok(())
}

/// One JSON object per line, with some bytes changed.
fn nearly_ndjson() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("{\"at\":1,\"id\":\"x\",\"a\":{\"b\":-0.5e3},\"n\":null}\n"),
        Just("{\"at\":\"2\",\"id\":[{}],\"a\":true,\"s\":\"\\u00e9\\n\"}\r\n"),
        Just("{\"at\":3,\"s\":\"\\ud83d\\ude00\"}\n"),
        Just("\n"),
    ];

    let change = (any::<prop::sample::Index>(), any::<u8>());
    (prop::collection::vec(line, 1..6), prop::collection::vec(change, 0..3)).prop_map(
        |(lines, changes)| {
            let mut bytes = lines.concat().into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }

            bytes
        },
    )
}

#[derive(Clone, Debug)]
struct Cells {
    time_s: i64,
    zone: Option<i64>,
    note: String,
    cents: i64,
}

fn any_cells() -> impl Strategy<Value = Cells> {
    let note = prop_oneof!["[a-c,\"\r\n\té\u{1}]{0,12}", any::<String>()];
    (0i64..253_402_300_800, prop::option::of(any::<i64>()), note, -99_999i64..99_999)
        .prop_map(|(time_s, zone, note, cents)| Cells { time_s, zone, note, cents })
}

impl Cells {
    fn fare(&self) -> String {
        let sign = if self.cents < 0 { "-" } else { "" };
        format!("{sign}{}.{:02}", self.cents.abs() / 100, self.cents.abs() % 100)
    }

    fn record(&self) -> [String; 4] {
        let time =
            raingauge_core::time::format_rfc3339(self.time_s).replace('T', " ").replace('Z', "");
        [
            time,
            self.zone.map(|zone| zone.to_string()).unwrap_or_default(),
            self.note.clone(),
            self.fare(),
        ]
    }
}

fn write_csv(rows: &[Cells], line_end: &str) -> Vec<u8> {
    let terminator =
        if line_end == "\r\n" { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
    let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
    writer.write_record(["at", "zone", "note", "fare"]).unwrap();
    for row in rows {
        writer.write_record(row.record()).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Notes as the mapping is documented to read them: empty is null, a plain number is a number, all
/// else is text.
fn expected_note(note: &str) -> serde_json::Value {
    if note.is_empty() {
        return serde_json::Value::Null;
    }
    let number =
        serde_json::from_str::<serde_json::Value>(note).ok().filter(|value| value.is_number());
    number
        .filter(|_| !note.contains(['e', 'E']))
        .filter(|_| note.trim() == note)
        .unwrap_or_else(|| note.into())
}

fn check(seen: &OwnedRow, cells: &Cells) -> Result<(), TestCaseError> {
    let event = seen.event.as_ref().unwrap();
    prop_assert_eq!(event.time_ms, cells.time_s * 1_000);
    prop_assert_eq!(event.subject.clone(), cells.zone.map(|zone| zone.to_string()));
    let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
    prop_assert_eq!(&data["zone"], &cells.zone.map_or(serde_json::Value::Null, Into::into));
    prop_assert_eq!(&data["note"], &expected_note(&cells.note));
    let fare = format!("{{\"fare\":{},", cells.fare());
    prop_assert!(event.data.starts_with(&fare), "{} in {}", fare, event.data);
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_csv_or_refused(
        head in prop_oneof![Just("at,zone,note,fare\n"), Just("")],
        tail in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b",\"\n0123456789-: ".to_vec())],
            0..300,
        ),
    ) {
        read_anything([head.as_bytes(), &tail].concat(), &mapping(CSV_MAPPING))?;
    }

    #[test]
    fn any_bytes_are_gzip_or_refused(tail in prop::collection::vec(any::<u8>(), 0..300)) {
        read_anything([&[0x1f, 0x8b, 8, 0], &tail[..]].concat(), &mapping(CSV_MAPPING))?;
    }

    #[test]
    fn any_bytes_are_ndjson_or_refused(
        bytes in prop_oneof![nearly_ndjson(), prop::collection::vec(any::<u8>(), 0..200)],
    ) {
        read_anything(bytes.clone(), &mapping(NDJSON_MAPPING))?;
        let with_fields = format!("{NDJSON_MAPPING}[fields]\ns = \"s\"\nb = {{ column = \"a.b\", type = \"number\" }}\nn = \"id\"\n");
        read_anything(bytes, &mapping(&with_fields))?;
    }

    #[test]
    fn rows_that_were_written_are_read(
        cells in prop::collection::vec(any_cells(), 0..20),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let seen = read_all(&mut rows_of(&write_csv(&cells, line_end), &mapping(CSV_MAPPING)));
        prop_assert_eq!(seen.len(), cells.len());
        for (seen, cells) in seen.iter().zip(&cells) {
            check(seen, cells)?;
        }
    }

    /// A resumed import reads the same rows as an uninterrupted one, including ids and lines.
    #[test]
    fn skipping_leads_to_the_same_tail(
        cells in prop::collection::vec(any_cells(), 0..20),
        broken in prop::option::of(any::<prop::sample::Index>()),
        count in 0u64..25,
    ) {
        let mut bytes = write_csv(&cells, "\n");
        if let Some(at) = broken {
            let at = 18 + at.index(bytes.len() - 17);
            bytes.insert(at, b'"');
        }
        let mapping = mapping(CSV_MAPPING);
        let all = read_all(&mut rows_of(&bytes, &mapping));
        let mut resumed = rows_of(&bytes, &mapping);
        let skipped = resumed.skip(count).unwrap();
        prop_assert_eq!(skipped, count.min(all.len() as u64));
        let tail = read_all(&mut resumed);
        prop_assert_eq!(&tail[..], &all[skipped as usize..]);
    }
}

/// A recursive parser would overflow the stack.
#[test]
fn deep_nesting_is_read_or_refused() {
    for inner in ["[", "{\"a\":"] {
        let file = format!("{{\"at\":1,\"a\":{}", inner.repeat(10_000));
        let rows = read_all(&mut rows_of(file.as_bytes(), &mapping(NDJSON_MAPPING)));
        assert_eq!(rows.len(), 1);
        assert!(rows[0].event.is_err());
    }
}
