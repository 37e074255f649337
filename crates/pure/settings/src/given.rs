//! The given values of each setting and their origins: the file first, then the environment, then
//! the options of the command line.

use crate::{Origin, PROGRAM, Problem, Reader, Setting};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value before any check.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Item {
    pub raw: Raw,
    pub origin: Origin,
}

impl Reader {
    /// Takes a variable if its name has the prefix of the configuration; other variables are
    /// ignored.
    pub fn read_variable(&mut self, name: String, value: String) {
        let Some(rest) = name.strip_prefix(PROGRAM).and_then(|rest| rest.strip_prefix("__")) else {
            return;
        };
        let setting = self.settings().find(|setting| setting.variable() == name);
        if let Some(setting) = setting {
            let origin = Origin::Variable(name);
            self.items.insert(setting.path(), Item { raw: Raw::Plain(value), origin });
            return;
        }

        let rest = rest.to_lowercase();
        let (section, key) = rest.split_once("__").unwrap_or(("", &rest));
        let meant = self.nearest(section, key).map(Setting::variable);
        let message = "no key of the configuration has this variable";
        self.unknown(String::new(), Origin::Variable(name), message, meant);
    }

    /// Takes the value of a command line option for a setting, `section.name`.
    pub fn read_option(&mut self, path: &str, option: &str, value: String) {
        let is_known = self.settings().any(|setting| setting.path() == path);
        assert!(is_known, "{option} sets {path}, which is no key");
        let origin = Origin::Option(option.to_owned());
        self.items.insert(path.to_owned(), Item { raw: Raw::Plain(value), origin });
    }

    /// Takes the text of a configuration file.
    pub fn read_toml(&mut self, path: &Path, text: &str) {
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
        let origin_here = origin(span);
        let is_known = self.settings().any(|setting| setting.section == section);
        let table = match (value.into_inner(), is_known) {
            (DeValue::Table(table), true) => table,
            (DeValue::Table(_), false) => {
                let meant = self.nearest_section(section).map(|meant| format!("[{meant}]"));
                let message = "there is no such section";
                return self.unknown(section.to_owned(), origin_here, message, meant);
            }
            (_, true) => {
                let message = "this is a section, not a key";
                let meant = Some(format!("[{section}]"));
                return self.unknown(section.to_owned(), origin_here, message, meant);
            }
            (_, false) => {
                let meant = self.nearest("", section).map(Setting::path);
                let message = "there is no such key";
                return self.unknown(section.to_owned(), origin_here, message, meant);
            }
        };

        for (name, value) in table {
            let path = format!("{section}.{}", name.get_ref());
            let origin_here = origin(name.span());
            if self.settings().any(|setting| setting.path() == path) {
                let item = Item { origin: origin_here, raw: raw_of(value, origin) };
                self.items.insert(path, item);
            } else {
                let meant = self.nearest(section, name.get_ref()).map(Setting::path);
                self.unknown(path, origin_here, "there is no such key", meant);
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

impl Raw {
    /// Parses one TOML value, for a list from a variable. The variable is the origin of everything
    /// in it.
    pub(crate) fn parse(text: &str, origin: &Origin) -> Result<Self, String> {
        let value =
            DeValue::parse(text.trim()).map_err(|error| error.message().replace('\n', ", "))?;
        Ok(raw_of(value, &|_| origin.clone()))
    }
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
            let field = |(name, value): (Spanned<Cow<'_, str>>, _)| {
                let item = Item { origin: origin(name.span()), raw: raw_of(value, origin) };
                (name.into_inner().into_owned(), item)
            };
            Raw::Table(table.into_iter().map(field).collect())
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
