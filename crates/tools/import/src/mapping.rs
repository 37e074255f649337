//! The mapping: assigns the columns of a file to the parts of an event.
//!
//! ```toml
//! format = "csv"                 # csv | ndjson; gzip is detected automatically
//! type = "taxi.pickup"           # the CloudEvents type of every event
//! source = "nyc-taxi"            # its source; source and id together identify an event
//! id = ["TripID"]                # optional: these columns; by default the row's number
//! subject = "vendor_id"          # optional: a column
//! [time]
//! column = "pickup_datetime"
//! format = "%Y-%m-%d %H:%M:%S"   # strftime, or rfc3339 | epoch_seconds | epoch_millis
//! timezone = "America/New_York"  # optional: the zone of times without an offset; UTC by default
//! [fields]                       # the event's data; by default every column keeps its name
//! zone = "pickup_location_id"
//! total = { column = "total_amount", type = "number" }
//! amount = { multiply = ["Quantity", "UnitPrice"] }
//! ```
//!
//! Several `id` columns are joined with `/`; a `/` or `%` inside one of them is percent-encoded, so
//! that two different rows never share an id by accident. A local time that its zone skipped is
//! rejected; of an ambiguous local time, the earlier instant is used.
//!
//! The `type` of a field: `auto` makes a number of text that is a valid JSON number without an
//! exponent, and a string of any other text; in NDJSON the value keeps its own type. `string`,
//! `number`, `integer` and `boolean` are strict: a row with a different value is rejected. Numbers
//! keep their digits; `number` and `integer` only drop leading zeros. An empty cell is null,
//! whatever the type, and so are arrays and objects. `multiply` is an exact product, and null if
//! one of its factors is.
//!
//! In NDJSON a column is a top-level member; dots address nested members.

mod section;

use crate::error::Error;
use crate::limits::{FIELDS_MAX, SMALL_FILE_LEN_MAX};
use crate::times::Times;
use raingauge_core::field::Field;
use raingauge_core::names;
use section::Section;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use toml::{Table, Value};
use xxhash_rust::xxh3::xxh3_64;

names! {
    pub enum Format {
        Csv = "csv",
        Ndjson = "ndjson",
    }
}

names! {
    /// The required type of a data field.
    pub(crate) enum Kind {
        Auto = "auto",
        String = "string",
        Number = "number",
        Integer = "integer",
        Boolean = "boolean",
    }
}

/// The source of a data field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Column { column: String, kind: Kind },
    Multiply(Vec<String>),
}

/// A validated mapping.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(crate) format: Format,
    pub(crate) kind: String,
    pub(crate) source: String,
    pub(crate) id: Vec<String>,
    pub(crate) subject: Option<String>,
    pub(crate) time_column: String,
    pub(crate) times: Times,
    /// `None` if every column keeps its name.
    pub(crate) fields: Option<Vec<(String, Content)>>,
    hash: u64,
}

impl Mapping {
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path)
            .map_err(failed)?
            .take(SMALL_FILE_LEN_MAX + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;

        if text.len() as u64 > SMALL_FILE_LEN_MAX {
            return Err(failed(io::Error::other(format!(
                "a mapping has at most {SMALL_FILE_LEN_MAX} bytes"
            ))));
        }

        Self::parse(&text)
    }

    /// Parses a mapping; the error lists every problem.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let table: Table = toml::from_str(text)
            .map_err(|error| Error::Mapping(vec![error.to_string().trim_end().to_owned()]))?;
        // The hash covers the parsed table, so comments and order do not change it.
        let hash = xxh3_64(table.to_string().as_bytes());
        let mut problems = Vec::new();
        let read = Self::of_table(table, hash, &mut problems);
        read.filter(|_| problems.is_empty()).ok_or(Error::Mapping(problems))
    }

    fn of_table(table: Table, hash: u64, problems: &mut Vec<String>) -> Option<Self> {
        let mut top = Section { table, path: "", problems };
        let format = top.text("format");
        let format = format.and_then(|name| {
            let what = || format!("\"{name}\" is neither \"csv\" nor \"ndjson\"");
            Format::from_name(&name).or_else(|| top.problem("format", &what()))
        });

        let kind = top.attribute("type");
        let source = top.attribute("source");
        let id = top.columns("id", 1).unwrap_or_default();
        let subject = top.optional_text("subject");
        let time = top.table("time");

        let fields = top.optional_table("fields");
        top.finish();

        let time = time.and_then(|table| time_of(table, problems));
        let fields = fields.map(|table| fields_of(table, problems));
        let (time_column, times) = time?;

        Some(Self {
            format: format?,
            kind: kind?,
            source: source?,
            id,
            subject,
            time_column,
            times,
            fields,
            hash,
        })
    }

    /// The CloudEvents type of every event.
    pub fn event_type(&self) -> &str {
        &self.kind
    }

    /// The CloudEvents source of every event.
    pub fn event_source(&self) -> &str {
        &self.source
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// A fingerprint of the mapping's content, in 16 hexadecimal digits; comments and order do not
    /// change it.
    pub fn hash(&self) -> String {
        format!("{:016x}", self.hash)
    }
}

fn time_of(table: Table, problems: &mut Vec<String>) -> Option<(String, Times)> {
    let mut section = Section { table, path: "time.", problems };
    let column = section.text("column");
    let format = section.text("format");
    let timezone = section.optional_text("timezone");
    section.finish();
    let times = Times::new(&format?, timezone.as_deref(), problems);
    Some((column?, times?))
}

fn fields_of(table: Table, problems: &mut Vec<String>) -> Vec<(String, Content)> {
    if table.len() > FIELDS_MAX {
        problems
            .push(format!("fields: has {} fields; at most {FIELDS_MAX} are allowed", table.len()));
        return Vec::new();
    }

    let mut fields = Vec::new();
    for (name, value) in table {
        if name.contains('.') || Field::of_path(&format!("data.{name}")).is_none() {
            problems.push(format!(
                "fields: \"{name}\" cannot be used by a counter; it must not contain {{ }} : or ."
            ));
        }
        if let Some(content) = content_of(&name, value, problems) {
            fields.push((name, content));
        }
    }

    fields
}

fn content_of(name: &str, value: Value, problems: &mut Vec<String>) -> Option<Content> {
    let table = match value {
        Value::String(column) => {
            return Some(Content::Column { column, kind: Kind::Auto });
        }
        Value::Table(table) => table,
        _ => {
            problems.push(format!(
                "fields.{name}: must be a column's name, {{ column = … }} or {{ multiply = [ … ] }}"
            ));
            return None;
        }
    };

    let path = format!("fields.{name}.");
    let mut section = Section { table, path: &path, problems };
    if section.table.contains_key("multiply") {
        let factors = section.columns("multiply", 2);
        section.finish();
        return factors.map(Content::Multiply);
    }

    let column = section.text("column");
    let kind = match section.optional_text("type") {
        None => Some(Kind::Auto),
        Some(name) => Kind::from_name(&name).or_else(|| {
            let kinds = Kind::ALL.map(Kind::name).join(", ");
            section.problem("type", &format!("\"{name}\" is not one of {kinds}"))
        }),
    };

    section.finish();
    Some(Content::Column { column: column?, kind: kind? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAXI: &str = include_str!("../../../../demo/taxi.mapping.toml");

    fn problems(text: &str) -> Vec<String> {
        match Mapping::parse(text) {
            Err(Error::Mapping(problems)) => problems,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_whole_mapping() {
        let mapping = Mapping::parse(TAXI).unwrap();
        assert_eq!((mapping.event_type(), mapping.event_source()), ("taxi.pickup", "nyc-taxi"));
        assert_eq!(
            (mapping.format(), mapping.time_column.as_str()),
            (Format::Csv, "pickup_datetime")
        );
        assert!(mapping.fields.unwrap().iter().any(|(name, _)| name == "zone"));
    }

    #[test]
    fn only_what_it_says_changes_its_hash() {
        let hash = |text: &str| Mapping::parse(text).unwrap().hash();
        assert_eq!(hash(TAXI), hash(&format!("# another comment\n{TAXI}")));
        assert_ne!(hash(TAXI), hash(&TAXI.replace("\"nyc-taxi\"", "\"taxi\"")));
    }

    #[test]
    fn all_problems_at_once_by_name() {
        let text = r#"
            format = "xml"
            source = 7
            id = []
            colour = "red"
            [time]
            format = "%H:%M"
            zone = "UTC"
            [fields]
            "a.b" = "c"
            n = 1
            t = { column = "t", type = "float", scale = 2 }
            m = { multiply = ["a"] }
        "#;

        let found = problems(text);
        for name in [
            "format:",
            "type: is missing",
            "source:",
            "id:",
            "colour: is not a known key",
            "time.column: is missing",
            "time.format:",
            "time.zone: is not a known key",
            "fields: \"a.b\"",
            "fields.n:",
            "fields.t.type:",
            "fields.t.scale: is not a known key",
            "fields.m.multiply:",
        ] {
            assert_eq!(
                found.iter().filter(|problem| problem.starts_with(name)).count(),
                1,
                "{name} in {found:#?}"
            );
        }

        assert_eq!(found.len(), 13, "{found:#?}");
    }

    #[test]
    fn what_is_no_toml_names_its_line() {
        assert!(problems("format = \"csv\"\nsource = ").first().unwrap().contains("line 2"));
    }
}
