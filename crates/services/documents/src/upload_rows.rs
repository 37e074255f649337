//! Rows of an upload, read as its bytes arrive.

use crate::error::Error;
use csv_core::{ReadRecordResult, Reader};
use raingauge_campaigns::documents::{ColumnType, Table};
use raingauge_campaigns::limits::{SUBJECT_LEN_MAX, TABLE_COLUMNS_MAX, UPLOAD_ROW_LEN_MAX};
use raingauge_ports::campaigns::TableRow;
use serde_json::{Map, Value as Json};

/// The member of a change that says that a row is removed.
const DELETED: &str = "deleted";

/// How the rows of an upload are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a header, whose first column is the key.
    Csv,
    /// One JSON object in each line.
    Lines,
}

/// A key with its row.
pub type Row = (String, TableRow);

/// Reads the rows of a table.
pub struct RowReader {
    table: Table,
    input: Input,
}

enum Input {
    Csv(Box<CsvInput>),
    Lines { rest: Vec<u8>, line: u64 },
}

struct CsvInput {
    reader: Reader,
    /// The fields of the current record, one behind the other, and their ends.
    fields: Vec<u8>,
    fields_len: usize,
    ends: [usize; TABLE_COLUMNS_MAX + 1],
    ends_len: usize,
    /// The columns behind the key, once the header has been read.
    columns: Option<Vec<(String, ColumnType)>>,
    /// The line in which the current record begins, and ends of lines before what is read next.
    line: u64,
    line_ends: u64,
    last: u8,
}

impl RowReader {
    pub fn new(table: Table, format: Format) -> Self {
        let input = match format {
            Format::Lines => Input::Lines { rest: Vec::new(), line: 0 },
            Format::Csv => Input::Csv(Box::new(CsvInput {
                reader: Reader::new(),
                fields: vec![0; UPLOAD_ROW_LEN_MAX],
                fields_len: 0,
                ends: [0; TABLE_COLUMNS_MAX + 1],
                ends_len: 0,
                columns: None,
                line: 1,
                line_ends: 0,
                last: 0,
            })),
        };
        Self { table, input }
    }

    /// Reads more bytes, and adds the rows that they complete.
    pub fn feed(&mut self, bytes: &[u8], rows: &mut Vec<Row>) -> Result<(), Error> {
        match &mut self.input {
            Input::Csv(input) => input.feed(bytes, &self.table, rows),
            Input::Lines { rest, line } => {
                for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                    rest.extend_from_slice(part);
                    if rest.len() > UPLOAD_ROW_LEN_MAX {
                        return Err(too_long(*line + 1));
                    }
                    if part.ends_with(b"\n") {
                        *line += 1;
                        rows.extend(row_of_line(&self.table, rest, *line)?);
                        rest.clear();
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds the last row, which may lack its end.
    pub fn finish(mut self, rows: &mut Vec<Row>) -> Result<(), Error> {
        match &mut self.input {
            Input::Csv(input) => input.finish(&self.table, rows),
            Input::Lines { rest, line } => {
                rows.extend(row_of_line(&self.table, rest, *line + 1)?);
                Ok(())
            }
        }
    }
}

impl CsvInput {
    fn feed(&mut self, mut bytes: &[u8], table: &Table, rows: &mut Vec<Row>) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (result, read) = self.read(bytes);
            bytes = &bytes[read..];
            self.take(result, table, rows)?;
        }
        Ok(())
    }

    fn finish(&mut self, table: &Table, rows: &mut Vec<Row>) -> Result<(), Error> {
        loop {
            // Without input, the reader ends the last record, and then itself.
            let (result, _) = self.read(&[]);
            if result == ReadRecordResult::End {
                break;
            }
            self.take(result, table, rows)?;
        }
        match self.columns {
            Some(_) => Ok(()),
            None => Err(refused(1, "has to be a header, which begins with the key")),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> (ReadRecordResult, usize) {
        let fields = &mut self.fields[self.fields_len..];
        let ends = &mut self.ends[self.ends_len..];
        let (result, read, written, ended) = self.reader.read_record(bytes, fields, ends);
        self.fields_len += written;
        self.ends_len += ended;

        let read_now = &bytes[..read];
        self.line_ends += read_now.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.last = read_now.last().copied().unwrap_or(self.last);
        (result, read)
    }

    fn take(
        &mut self,
        result: ReadRecordResult,
        table: &Table,
        rows: &mut Vec<Row>,
    ) -> Result<(), Error> {
        let line = self.line;
        match result {
            ReadRecordResult::InputEmpty | ReadRecordResult::End => return Ok(()),
            ReadRecordResult::OutputFull => return Err(too_long(line)),
            ReadRecordResult::OutputEndsFull => {
                return Err(refused(line, "has more columns than a table may have"));
            }
            ReadRecordResult::Record => {}
        }

        // A record may end with the first of two bytes that end its line.
        self.line = self.line_ends + 1 + u64::from(self.last == b'\r');
        let mut from = 0;
        let mut fields = Vec::with_capacity(self.ends_len);
        for end in &self.ends[..self.ends_len] {
            let field = std::str::from_utf8(&self.fields[from..*end]);
            fields.push(field.map_err(|_| refused(line, "is no UTF-8 text"))?);
            from = *end;
        }
        match &self.columns {
            None => self.columns = Some(columns_of(table, &fields, line)?),
            Some(columns) => rows.push(row_of_fields(columns, &fields, line)?),
        }

        self.fields_len = 0;
        self.ends_len = 0;
        Ok(())
    }
}

fn refused(line: u64, detail: impl Into<String>) -> Error {
    Error::Row { line, detail: detail.into() }
}

fn too_long(line: u64) -> Error {
    refused(line, format!("has more than {UPLOAD_ROW_LEN_MAX} bytes"))
}

/// The columns of a header, behind the key.
fn columns_of(
    table: &Table,
    header: &[&str],
    line: u64,
) -> Result<Vec<(String, ColumnType)>, Error> {
    if header.first() != Some(&table.key.as_str()) {
        let expected = format!("must be a header whose first column is `{}`", table.key);
        return Err(refused(line, expected));
    }

    let mut columns: Vec<(String, ColumnType)> = Vec::new();
    for name in &header[1..] {
        let Some(column) = table.columns.get(*name) else {
            return Err(refused(line, format!("the table has no column `{name}`")));
        };
        if columns.iter().any(|(known, _)| known == name) {
            return Err(refused(line, format!("the column `{name}` occurs twice")));
        }
        columns.push(((*name).to_owned(), *column));
    }
    match table.columns.keys().find(|name| !header.contains(&name.as_str())) {
        Some(missing) => Err(refused(line, format!("the column `{missing}` is missing"))),
        None => Ok(columns),
    }
}

fn row_of_fields(
    columns: &[(String, ColumnType)],
    fields: &[&str],
    line: u64,
) -> Result<Row, Error> {
    if fields.len() != columns.len() + 1 {
        let detail =
            format!("has {} columns, and the header has {}", fields.len(), columns.len() + 1);
        return Err(refused(line, detail));
    }
    let mut row = TableRow::new();
    for ((name, column), field) in columns.iter().zip(&fields[1..]) {
        let value = column.value_of(field);
        let value = value.map_err(|why| refused(line, format!("the column `{name}` {why}")))?;
        put(&mut row, name, value);
    }
    Ok((key_of(fields[0], line)?, row))
}

fn row_of_line(table: &Table, line: &[u8], number: u64) -> Result<Option<Row>, Error> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let members: Map<String, Json> = serde_json::from_slice(line)
        .map_err(|error| refused(number, format!("is no JSON object: {error}")))?;
    row_of_object(table, members, number).map(Some)
}

fn row_of_object(table: &Table, mut members: Map<String, Json>, line: u64) -> Result<Row, Error> {
    let key = match members.remove(&table.key) {
        Some(Json::String(text)) => key_of(&text, line)?,
        Some(Json::Number(number)) => key_of(&number.to_string(), line)?,
        _ => {
            let detail = format!("needs the member `{}`, a text or a number", table.key);
            return Err(refused(line, detail));
        }
    };

    let mut row = TableRow::new();
    for (name, value) in members {
        let Some(column) = table.columns.get(&name) else {
            return Err(refused(line, format!("the table has no column `{name}`")));
        };
        let value = column.value_of_json(&value);
        let value = value.map_err(|why| refused(line, format!("the column `{name}` {why}")))?;
        put(&mut row, &name, value);
    }
    Ok((key, row))
}

/// Reads changes of single rows: lines of JSON, of which one with `"deleted": true` removes its
/// row.
pub fn changes(table: &Table, bytes: &[u8]) -> Result<Vec<(String, Option<TableRow>)>, Error> {
    let mut changes = Vec::new();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut members: Map<String, Json> = serde_json::from_slice(line)
            .map_err(|error| refused(number, format!("is no JSON object: {error}")))?;
        let is_column = table.columns.contains_key(DELETED);
        let is_deleted = !is_column && members.remove(DELETED) == Some(Json::Bool(true));
        let (key, row) = row_of_object(table, members, number)?;
        changes.push((key, (!is_deleted).then_some(row)));
    }
    Ok(changes)
}

fn key_of(text: &str, line: u64) -> Result<String, Error> {
    if text.is_empty() || text.len() > SUBJECT_LEN_MAX {
        return Err(refused(line, format!("its key must have 1 to {SUBJECT_LEN_MAX} bytes")));
    }
    Ok(text.to_owned())
}

/// An empty cell takes no room: it reads like one that is missing.
fn put(row: &mut TableRow, name: &str, value: Json) {
    if !value.is_null() {
        row.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::documents::{Document, Kind, Named};
    use serde_json::json;

    fn table(json: Json) -> Table {
        match Document::parse(Kind::Table, &json) {
            Ok(Document::Table(Named { content, .. })) => content,
            other => panic!("{other:?}"),
        }
    }

    fn users() -> Table {
        table(json!({ "name": "users", "columns": { "tier": "text", "age": "number" } }))
    }

    /// The rows of a text, fed in parts of this length.
    fn read(table: Table, format: Format, text: &str, len: usize) -> Result<Vec<Row>, String> {
        let mut reader = RowReader::new(table, format);
        let mut rows = Vec::new();
        let parts = text.as_bytes().chunks(len);
        for part in parts {
            reader.feed(part, &mut rows).map_err(|error| error.to_string())?;
        }
        reader.finish(&mut rows).map_err(|error| error.to_string())?;
        Ok(rows)
    }

    fn row(key: &str, json: Json) -> Row {
        (key.to_owned(), json.as_object().unwrap().clone())
    }

    #[test]
    fn rows_are_the_same_however_the_bytes_arrive() {
        let csv = "subject,age,tier\r\nu-1,41,gold\n\"u,2\",,\"a \"\"b\"\"\nc\"\nü ☔,-1.5,\n";
        let lines = "{\"subject\": \"u-1\", \"age\": 41, \"tier\": \"gold\"}\n\n\
                     {\"subject\":\"u,2\",\"age\":null,\"tier\":\"a \\\"b\\\"\\nc\"}\r\n\
                     {\"subject\":\"ü ☔\",\"age\":-1.5}";
        let expected = vec![
            row("u-1", json!({ "age": 41, "tier": "gold" })),
            row("u,2", json!({ "tier": "a \"b\"\nc" })),
            row("ü ☔", json!({ "age": -1.5 })),
        ];
        for len in [1, 2, 7, 1_000] {
            assert_eq!(read(users(), Format::Csv, csv, len).as_ref(), Ok(&expected), "{len}");
            assert_eq!(read(users(), Format::Lines, lines, len).as_ref(), Ok(&expected), "{len}");
        }

        // The last line may lack its end, and an empty list is a list.
        let vip = || table(json!({ "kind": "segment", "name": "vip", "key": "var.driver_id" }));
        let expected = vec![row("7", json!({})), row("8", json!({}))];
        assert_eq!(read(vip(), Format::Csv, "var.driver_id\n7\n8", 3), Ok(expected.clone()));
        let numbers = "{\"var.driver_id\":7}\n{\"var.driver_id\":\"8\"}";
        assert_eq!(read(vip(), Format::Lines, numbers, 3), Ok(expected));
        assert_eq!(read(vip(), Format::Csv, "\u{feff}var.driver_id\n", 100), Ok(Vec::new()));
    }

    #[test]
    fn a_wrong_row_is_refused_with_its_line() {
        let long = format!("subject,age,tier\nu,1,{}", "x".repeat(70_000));
        for (text, line, part) in [
            ("", 1, "header"),
            ("user,age,tier\n", 1, "first column is `subject`"),
            ("subject,age\n", 1, "`tier` is missing"),
            ("subject,age,tier,zone\n", 1, "no column `zone`"),
            ("subject,age,tier,age\n", 1, "occurs twice"),
            ("subject,age,tier\nu-1,41\n", 2, "has 2 columns"),
            ("subject,age,tier\nu-1,41,a\nu-2,old,a\n", 3, "`age` is no number"),
            ("subject,age,tier\n,41,a\n", 2, "its key"),
            (&long, 2, "more than"),
        ] {
            let refused = read(users(), Format::Csv, text, 50).unwrap_err();
            assert!(refused.starts_with(&format!("line {line}: ")), "{text:.50}: {refused}");
            assert!(refused.contains(part), "{text:.50}: {refused}");
        }

        for (text, line, part) in [
            ("[]", 1, "no JSON object"),
            ("{\"subject\":\"u\"}\n{", 2, "no JSON object"),
            ("{\"tier\":\"a\"}", 1, "needs the member `subject`"),
            ("{\"subject\":true}", 1, "needs the member `subject`"),
            ("{\"subject\":\"u\",\"age\":\"1\"}", 1, "`age` must be a number"),
            ("{\"subject\":\"u\",\"zone\":1}", 1, "no column `zone`"),
        ] {
            let refused = read(users(), Format::Lines, text, 5).unwrap_err();
            assert!(refused.starts_with(&format!("line {line}: ")), "{text}: {refused}");
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    #[test]
    fn changes_set_and_remove_rows() {
        let text = b"{\"subject\":\"u-1\",\"age\":2}\n\n{\"subject\":\"u-2\",\"deleted\":true}";
        let changed = changes(&users(), text).unwrap();
        let (_, set) = row("", json!({ "age": 2 }));
        assert_eq!(changed, [("u-1".to_owned(), Some(set)), ("u-2".to_owned(), None)]);
        assert!(changes(&users(), b"{\"subject\":\"u\",\"deleted\":1}").is_ok());
        assert!(changes(&users(), b"{\"subject\":\"\"}").is_err());
    }
}
