//! The given values of each key and their origins: the file first, then the environment, then the
//! options of the command line.

use super::keys::{self, Key, PREFIX};
use super::problem::{Origin, Problem};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A value before any check.
#[derive(Debug)]
pub enum Raw {
    /// Text of a variable or an option, which has no type of its own.
    Plain(String),
    Text(String),
    /// `None` is a number beyond 128 bits.
    Whole(Option<i128>),
    Switch(bool),
    List(Vec<Item>),
    Table(Vec<(String, Item)>),
    /// A type that no key accepts, by its name.
    Other(&'static str),
}

/// A raw value and its origin.
#[derive(Debug)]
pub struct Item {
    pub raw: Raw,
    pub origin: Origin,
}

/// Every given value, by the path of its key.
#[derive(Default)]
pub struct Given {
    items: HashMap<String, Item>,
    pub problems: Vec<Problem>,
    /// Whether the file is not TOML, so that some of its values are unknown.
    pub is_torn: bool,
}

impl Given {
    /// Takes the value of a key, if one was given.
    pub fn take(&mut self, key: &Key) -> Option<Item> {
        self.items.remove(&key.path())
    }

    pub fn read_file(&mut self, path: &Path) {
        match read_text(path) {
            Ok(text) => self.read_toml(path, &text),
            Err(message) => self.problems.push(Problem {
                key: String::new(),
                origin: Origin::File { path: path.to_owned(), line: 0 },
                message,
                advice: "Name a readable TOML file of at most 1 MiB".to_owned(),
            }),
        }
    }

    /// Reads a variable if its name has the prefix of the configuration; other variables are
    /// ignored.
    pub fn read_variable(&mut self, name: String, value: String) {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            return;
        };
        match keys::all().find(|key| key.variable() == name) {
            Some(key) => {
                self.items.insert(
                    key.path(),
                    Item { raw: Raw::Plain(value), origin: Origin::Variable(name) },
                );
            }
            None => {
                let rest = rest.to_lowercase();
                let (section, key) = rest.split_once("__").unwrap_or(("", &rest));
                let advice = match keys::nearest(section, key).and_then(|path| variable_of(&path)) {
                    Some(meant) => format!("Did you mean {meant}?"),
                    None => "Remove it; docs/configuration.md lists every key".to_owned(),
                };
                let message = "no key of the configuration has this variable".to_owned();

                self.problems.push(Problem {
                    key: String::new(),
                    origin: Origin::Variable(name),
                    message,
                    advice,
                });
            }
        }
    }

    /// Reads the value of a command line option for a key, `section.name`.
    pub fn read_option(&mut self, path: &str, option: &str, value: String) {
        assert!(keys::all().any(|key| key.path() == path), "{option} sets {path}, which is no key");
        self.items.insert(
            path.to_owned(),
            Item { raw: Raw::Plain(value), origin: Origin::Option(option.to_owned()) },
        );
    }

    fn read_toml(&mut self, path: &Path, text: &str) {
        let origin = |span: Range<usize>| Origin::File {
            path: path.to_owned(),
            line: line_of(text, span.start),
        };
        let (root, errors) = DeTable::parse_recoverable(text);
        self.is_torn = !errors.is_empty();

        for error in errors {
            self.problems.push(Problem {
                key: String::new(),
                origin: origin(error.span().unwrap_or(0..0)),
                message: format!("this is not TOML: {}", error.message().replace('\n', ", ")),
                advice: "Correct the line; text stands in quotes, numbers and lists do not"
                    .to_owned(),
            });
        }

        let before = self.problems.len();
        for (section, value) in root.into_inner() {
            self.read_section(section.get_ref(), section.span(), value, &origin);
        }

        if self.is_torn {
            // After a syntax error a key may seem to stand in the wrong place: further problems
            // would mislead.
            self.problems.truncate(before);
            let torn_lines: Vec<_> =
                self.problems.iter().filter_map(|problem| problem.origin.line()).collect();
            self.items.retain(|_, item| {
                item.origin.line().is_none_or(|line| !torn_lines.contains(&line))
            });
        }
    }

    fn read_section(
        &mut self,
        section: &str,
        span: Range<usize>,
        value: Spanned<DeValue<'_>>,
        origin: &dyn Fn(Range<usize>) -> Origin,
    ) {
        let table = match value.into_inner() {
            DeValue::Table(table) if keys::has_section(section) => table,
            DeValue::Table(_) => {
                let meant = keys::nearest_section(section).map(|meant| format!("[{meant}]"));
                return self.unknown(
                    section.to_owned(),
                    origin(span),
                    "there is no such section",
                    meant,
                );
            }
            _ if keys::has_section(section) => {
                let message = "this is a section, not a key";
                let meant = Some(format!("[{section}]"));
                return self.unknown(section.to_owned(), origin(span), message, meant);
            }
            _ => {
                let meant = keys::nearest("", section);
                return self.unknown(
                    section.to_owned(),
                    origin(span),
                    "there is no such key",
                    meant,
                );
            }
        };
        for (name, value) in table {
            match keys::find(section, name.get_ref()) {
                Some(key) => {
                    let item = Item { origin: origin(name.span()), raw: raw_of(value, origin) };
                    self.items.insert(key.path(), item);
                }
                None => {
                    let path = format!("{section}.{}", name.get_ref());
                    let meant = keys::nearest(section, name.get_ref());
                    self.unknown(path, origin(name.span()), "there is no such key", meant);
                }
            }
        }
    }

    fn unknown(&mut self, key: String, origin: Origin, message: &str, meant: Option<String>) {
        let advice = match meant {
            Some(meant) => format!("Did you mean {meant}?"),
            None => "Remove it; docs/configuration.md lists every key".to_owned(),
        };
        self.problems.push(Problem { key, origin, message: message.to_owned(), advice });
    }
}

/// Parses one TOML value, for a list from a variable. The variable is the origin of everything in
/// it.
pub fn parse_value(text: &str, origin: &Origin) -> Result<Raw, String> {
    let value = DeValue::parse(text.trim()).map_err(|error| error.message().replace('\n', ", "))?;
    Ok(raw_of(value, &|_| origin.clone()))
}

fn raw_of(value: Spanned<DeValue<'_>>, origin: &dyn Fn(Range<usize>) -> Origin) -> Raw {
    match value.into_inner() {
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(digits) => {
            Raw::Whole(i128::from_str_radix(digits.as_str(), digits.radix()).ok())
        }
        DeValue::Float(_) => Raw::Other("a number with a point or an exponent"),
        DeValue::Boolean(is_on) => Raw::Switch(is_on),
        DeValue::Datetime(_) => Raw::Other("a date or time"),
        DeValue::Array(values) => {
            let item = |value: Spanned<DeValue<'_>>| Item {
                origin: origin(value.span()),
                raw: raw_of(value, origin),
            };
            Raw::List(values.into_iter().map(item).collect())
        }
        DeValue::Table(table) => {
            let field = |(name, value): (Spanned<std::borrow::Cow<'_, str>>, _)| {
                let item = Item { origin: origin(name.span()), raw: raw_of(value, origin) };
                (name.into_inner().into_owned(), item)
            };
            Raw::Table(table.into_iter().map(field).collect())
        }
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file =
        File::open(path).map_err(|error| format!("the configuration cannot be opened: {error}"))?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    match read.map_err(|error| format!("the configuration cannot be read: {error}"))? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err("the configuration is too large".to_owned()),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

fn variable_of(path: &str) -> Option<String> {
    keys::all().find(|key| key.path() == path).map(Key::variable)
}
