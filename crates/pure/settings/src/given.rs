//! The given values of each setting and their origins: the file first, then the environment, then
//! the options of the command line.

use crate::nearest::{edits, is_near, nearest_word};
use crate::raw::raw_of;
use crate::{Item, Origin, PROGRAM, Problem, Raw, Reader, Setting};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

impl Reader {
    /// Returns the setting that the user probably meant by a path that does not exist. The right
    /// name in the wrong section is the likeliest mistake, then a wrong letter or unit.
    pub(crate) fn nearest(&self, section: &str, name: &str) -> Option<&'static Setting> {
        if let Some(setting) = self.settings().find(|setting| setting.name == name) {
            return Some(setting);
        }
        let asked = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        let distance = |setting: &Setting| match section {
            "" => edits(&asked, setting.name),
            _ => edits(&asked, &setting.path()),
        };

        let best = self.settings().min_by_key(|setting| distance(setting))?;
        is_near(distance(best), &asked).then_some(best)
    }

    /// Returns the section that the user probably meant.
    pub(crate) fn nearest_section(&self, section: &str) -> Option<&'static str> {
        let sections: Vec<_> = self.settings().map(|setting| setting.section).collect();
        nearest_word(section, &sections)
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
