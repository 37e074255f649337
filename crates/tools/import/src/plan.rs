//! Builds events from rows: the mapping with its columns numbered, so that no row needs a lookup by
//! name.

use crate::json::push_string;
use crate::limits::COLUMNS_JOINED_MAX;
use crate::mapping::{Content, Kind, Mapping};
use crate::number::{Plain, Product};
use crate::times::Fault;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::{ATTRIBUTE_LEN_MAX, EVENT_LEN_MAX};
use std::fmt::Write;

/// The value of one column in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Absent, null, or a value that cannot be counted by (an array or object).
    Missing,
    /// Text of a file format without types.
    Untyped(&'a str),
    Text(&'a str),
    Number(&'a str),
    Bool(bool),
}

impl<'a> Value<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Missing | Self::Untyped("") | Self::Text("") => None,
            Self::Untyped(text) | Self::Text(text) | Self::Number(text) => Some(text),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
        }
    }
}

/// Access to the columns of a row; columns are numbered as in [`Plan::columns`].
pub(crate) trait Columns {
    /// Fails if the column holds bytes that are not UTF-8.
    fn value(&self, column: usize) -> Result<Value<'_>, std::str::Utf8Error>;
}

/// A mapping whose columns are identified by number.
pub(crate) struct Plan {
    /// The columns in use, without duplicates.
    columns: Vec<String>,
    time: usize,
    id: Vec<usize>,
    subject: Option<usize>,
    /// `None` if the row itself is the data.
    fields: Option<Vec<Field>>,
}

struct Field {
    /// The text before the value: `{"zone":` or `,"zone":`.
    lead: String,
    content: Numbered,
}

enum Numbered {
    Column(usize, Kind),
    Product(Vec<usize>),
}

/// The parts of an event that each row rewrites, in reusable buffers.
#[derive(Default)]
pub(crate) struct EventBuffers {
    pub id: String,
    pub subject: String,
    pub data: String,
    pub time_ms: i64,
}

impl Plan {
    /// With `header`, a mapping without fields keeps all columns of the file.
    pub(crate) fn new(mapping: &Mapping, header: Option<&[String]>) -> Self {
        let mut columns = Vec::new();
        let time = number(&mut columns, &mapping.time_column);
        let id = mapping.id.iter().map(|name| number(&mut columns, name)).collect();
        let subject = mapping.subject.as_ref().map(|name| number(&mut columns, name));
        let contents = mapping.fields.clone().or_else(|| header.map(every_column));
        let fields = contents.map(|contents| {
            let numbered = contents.iter().enumerate().map(|(at, (name, content))| {
                let mut lead = String::from(if at == 0 { '{' } else { ',' });
                push_string(&mut lead, name);
                lead.push(':');

                let content = match content {
                    Content::Column { column, kind } => {
                        Numbered::Column(number(&mut columns, column), *kind)
                    }
                    Content::Multiply(factors) => Numbered::Product(
                        factors.iter().map(|name| number(&mut columns, name)).collect(),
                    ),
                };
                Field { lead, content }
            });
            numbered.collect()
        });

        Self { columns, time, id, subject, fields }
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether the row itself is the event's data; [`EventBuffers::data`] then stays empty.
    pub(crate) fn row_is_data(&self) -> bool {
        self.fields.is_none()
    }

    /// Converts a row into the parts of an event. `default_id` is used for rows without an id of
    /// their own.
    pub(crate) fn fill(
        &self,
        row: &impl Columns,
        mapping: &Mapping,
        default_id: (&str, u64),
        parts: &mut EventBuffers,
    ) -> Result<(), Refusal> {
        parts.time_ms = self.time_ms(row, mapping)?;
        self.write_id(row, default_id, &mut parts.id)?;
        parts.subject.clear();

        if let Some(column) = self.subject {
            parts.subject.push_str(self.value(row, column)?.text().unwrap_or_default());
            bounded("subject", &parts.subject)?;
        }

        parts.data.clear();

        for field in self.fields.iter().flatten() {
            parts.data.push_str(&field.lead);
            self.write_content(row, &field.content, &mut parts.data)?;
        }

        if !parts.data.is_empty() {
            parts.data.push('}');
        }

        if parts.data.len() > EVENT_LEN_MAX {
            let detail = format!(
                "the event's data has {} bytes; at most {EVENT_LEN_MAX} are allowed",
                parts.data.len()
            );
            return Err(Refusal::new(Code::EventTooLarge, detail));
        }

        Ok(())
    }

    fn value<'a>(&self, row: &'a impl Columns, column: usize) -> Result<Value<'a>, Refusal> {
        row.value(column).map_err(|_| {
            let detail =
                format!("the column \"{}\" holds bytes that are not UTF-8", self.columns[column]);
            Refusal::new(Code::RowNotUtf8, detail)
        })
    }

    fn time_ms(&self, row: &impl Columns, mapping: &Mapping) -> Result<i64, Refusal> {
        let name = &mapping.time_column;
        let text = self.value(row, self.time)?.text();
        let text = text.ok_or_else(|| {
            Refusal::new(Code::TimeMissing, format!("the column \"{name}\" is empty"))
        })?;

        mapping.times.read_ms(text).map_err(|fault| {
            let why = match fault {
                Fault::Unreadable => "does not match the format in the mapping",
                Fault::Skipped => "does not exist in the mapping's time zone",
                Fault::OutOfSpan => "is outside the years 1970 to 9999",
            };
            Refusal::new(
                Code::TimeInvalid,
                format!("the column \"{name}\" holds \"{}\", which {why}", start_of(text)),
            )
        })
    }

    /// Joins several columns so that rows with different columns never share an id.
    fn write_id(
        &self,
        row: &impl Columns,
        default_id: (&str, u64),
        out: &mut String,
    ) -> Result<(), Refusal> {
        out.clear();

        if let [column] = self.id[..] {
            out.push_str(self.value(row, column)?.text().unwrap_or_default());
        } else {
            let mut empty = true;
            for (at, column) in self.id.iter().enumerate() {
                if at > 0 {
                    out.push('/');
                }
                for character in self.value(row, *column)?.text().unwrap_or_default().chars() {
                    empty = false;
                    match character {
                        '/' => out.push_str("%2F"),
                        '%' => out.push_str("%25"),
                        other => out.push(other),
                    }
                }
            }

            if empty {
                out.clear();
            }
        }

        if out.is_empty() {
            let (fingerprint, row_number) = default_id;
            out.push_str(fingerprint);
            out.push(':');
            write!(out, "{row_number}").expect("writing to a string cannot fail");
        }

        bounded("id", out)
    }

    fn write_content(
        &self,
        row: &impl Columns,
        content: &Numbered,
        out: &mut String,
    ) -> Result<(), Refusal> {
        match content {
            Numbered::Column(column, kind) => {
                let value = self.value(row, *column)?;
                write_value(value, *kind, out)
                    .ok_or_else(|| self.mismatch(*column, value, kind_name(*kind)))
            }
            Numbered::Product(factors) => self.write_product(row, factors, out),
        }
    }

    fn write_product(
        &self,
        row: &impl Columns,
        factors: &[usize],
        out: &mut String,
    ) -> Result<(), Refusal> {
        let mut product = Some(Product::one());
        for column in factors {
            let value = self.value(row, *column)?;
            let Some(text) = value.text() else {
                product = None;
                continue;
            };
            let factor = Plain::of(text)
                .ok_or_else(|| self.mismatch(*column, value, "a number without an exponent"))?;

            product = match product {
                None => None,
                Some(product) => Some(product.times(factor).ok_or_else(|| {
                    Refusal::new(
                        Code::FieldInvalid,
                        "a product has more than 28 digits and cannot be added up exactly",
                    )
                })?),
            };
        }

        match product {
            Some(product) => product.write(out),
            None => out.push_str("null"),
        }

        Ok(())
    }

    fn mismatch(&self, column: usize, value: Value<'_>, wanted: &str) -> Refusal {
        let name = &self.columns[column];
        let text = start_of(value.text().unwrap_or_default());
        Refusal::new(
            Code::FieldInvalid,
            format!("the column \"{name}\" holds \"{text}\", which is not {wanted}"),
        )
    }
}

/// Returns the number of a column, adding it if it is new.
fn number(columns: &mut Vec<String>, name: &str) -> usize {
    columns.iter().position(|column| column == name).unwrap_or_else(|| {
        columns.push(name.to_owned());
        columns.len() - 1
    })
}

/// The fields of a mapping that lists none. A column without a name, which some programs write
/// first, cannot be a field.
fn every_column(header: &[String]) -> Vec<(String, Content)> {
    let named = header.iter().filter(|name| !name.is_empty());
    named
        .map(|name| (name.clone(), Content::Column { column: name.clone(), kind: Kind::Auto }))
        .collect()
}

fn bounded(name: &str, text: &str) -> Result<(), Refusal> {
    if text.len() > ATTRIBUTE_LEN_MAX {
        let detail = format!("the event's {name} is longer than {ATTRIBUTE_LEN_MAX} bytes");
        return Err(Refusal::new(Code::AttributeTooLong, detail));
    }
    Ok(())
}

/// Shortens a text for use in a message.
fn start_of(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Appends a value as JSON; `None` if it does not have the required type.
fn write_value(value: Value<'_>, kind: Kind, out: &mut String) -> Option<()> {
    let text = match (value, kind) {
        // NDJSON distinguishes an empty string from null.
        (Value::Text(""), Kind::Auto | Kind::String) => "",
        _ => match value.text() {
            Some(text) => text,
            None => {
                out.push_str("null");
                return Some(());
            }
        },
    };

    match kind {
        Kind::Auto => match value {
            Value::Untyped(_) if Plain::of(text).is_some_and(|number| number.is_json()) => {
                out.push_str(text)
            }
            Value::Untyped(_) | Value::Text(_) | Value::Missing => push_string(out, text),
            Value::Number(_) | Value::Bool(_) => out.push_str(text),
        },
        Kind::String => push_string(out, text),
        Kind::Number => write_number(text, out)?,
        Kind::Integer => {
            let number = Plain::of(text).filter(|number| number.fraction.is_none())?;
            push_plain(number, out);
        }
        Kind::Boolean => out.push_str(match text {
            "true" | "True" | "TRUE" | "1" => "true",
            "false" | "False" | "FALSE" | "0" => "false",
            _ => return None,
        }),
    }

    Some(())
}

fn write_number(text: &str, out: &mut String) -> Option<()> {
    let exponent_at = text.find(['e', 'E']).unwrap_or(text.len());
    let (number, exponent) = text.split_at(exponent_at);
    let digits = exponent.get(1..).unwrap_or_default();
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if !exponent.is_empty()
        && (digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return None;
    }
    push_plain(Plain::of(number)?, out);
    out.push_str(exponent);
    Some(())
}

fn push_plain(number: Plain<'_>, out: &mut String) {
    if number.negative {
        out.push('-');
    }
    out.push_str(number.integer_trimmed());
    if let Some(fraction) = number.fraction {
        out.push('.');
        out.push_str(fraction);
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Auto | Kind::String => "text",
        Kind::Number => "a number",
        Kind::Integer => "a whole number",
        Kind::Boolean => "true or false",
    }
}

const _: () = assert!(COLUMNS_JOINED_MAX < ATTRIBUTE_LEN_MAX, "an id of empty columns fits");

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value<'_>, kind: Kind) -> Option<String> {
        let mut out = String::new();
        write_value(value, kind, &mut out).map(|()| out)
    }

    #[test]
    fn cells_by_kind() {
        for (text, kind, expected) in [
            ("12.50", Kind::Auto, Some("12.50")),
            ("-0", Kind::Auto, Some("-0")),
            ("007", Kind::Auto, Some("\"007\"")),
            ("1e3", Kind::Auto, Some("\"1e3\"")),
            ("85123A", Kind::Auto, Some("\"85123A\"")),
            ("", Kind::Auto, Some("null")),
            ("", Kind::String, Some("null")),
            ("7", Kind::String, Some("\"7\"")),
            ("007", Kind::Integer, Some("7")),
            ("-000", Kind::Integer, Some("-0")),
            ("7.0", Kind::Integer, None),
            ("007.50", Kind::Number, Some("7.50")),
            ("1e-3", Kind::Number, Some("1e-3")),
            ("1e", Kind::Number, None),
            ("1eé", Kind::Number, None),
            ("abc", Kind::Number, None),
            ("TRUE", Kind::Boolean, Some("true")),
            ("0", Kind::Boolean, Some("false")),
            ("yes", Kind::Boolean, None),
        ] {
            assert_eq!(
                written(Value::Untyped(text), kind).as_deref(),
                expected,
                "{text} as {kind:?}"
            );
        }
    }

    #[test]
    fn values_that_have_a_type_keep_it() {
        assert_eq!(written(Value::Text("7"), Kind::Auto).as_deref(), Some("\"7\""));
        assert_eq!(written(Value::Text(""), Kind::Auto).as_deref(), Some("\"\""));
        assert_eq!(written(Value::Number("1e3"), Kind::Auto).as_deref(), Some("1e3"));
        assert_eq!(written(Value::Bool(true), Kind::Auto).as_deref(), Some("true"));
        assert_eq!(written(Value::Number("7"), Kind::String).as_deref(), Some("\"7\""));
        assert_eq!(written(Value::Missing, Kind::Integer).as_deref(), Some("null"));
    }
}
