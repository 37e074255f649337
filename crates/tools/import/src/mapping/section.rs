//! Reads one table of the mapping, and notes every problem.

use crate::limits::COLUMNS_JOINED_MAX;
use raingauge_core::limits::ATTRIBUTE_LEN_MAX;
use toml::{Table, Value};

/// One table of the mapping. Known keys are removed as they are read; each remaining key is a
/// problem.
pub(super) struct Section<'a> {
    pub table: Table,
    pub path: &'a str,
    pub problems: &'a mut Vec<String>,
}

impl Section<'_> {
    pub fn problem<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.problems.push(format!("{}{name}: {what}", self.path));
        None
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        if !self.table.contains_key(name) {
            return self.problem(name, "is missing");
        }
        self.optional_text(name)
    }

    pub fn optional_text(&mut self, name: &str) -> Option<String> {
        match self.table.remove(name)? {
            Value::String(text) if !text.is_empty() => Some(text),
            _ => self.problem(name, "must be text in quotes, and not empty"),
        }
    }

    pub fn attribute(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if text.len() > ATTRIBUTE_LEN_MAX {
            return self.problem(name, &format!("is longer than {ATTRIBUTE_LEN_MAX} bytes"));
        }
        Some(text)
    }

    /// Reads an optional list of at least `least` columns.
    pub fn columns(&mut self, name: &str, least: usize) -> Option<Vec<String>> {
        let value = self.table.remove(name)?;
        let columns: Option<Vec<String>> = value.as_array().and_then(|list| {
            list.iter()
                .map(|item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
                .collect()
        });

        match columns {
            Some(columns) if (least..=COLUMNS_JOINED_MAX).contains(&columns.len()) => Some(columns),
            _ => self.problem(
                name,
                &format!("must be a list of {least} to {COLUMNS_JOINED_MAX} columns, such as [\"a\", \"b\"]"),
            ),
        }
    }

    pub fn table(&mut self, name: &str) -> Option<Table> {
        if !self.table.contains_key(name) {
            return self.problem(name, &format!("is missing: add the table [{name}]"));
        }
        self.optional_table(name)
    }

    pub fn optional_table(&mut self, name: &str) -> Option<Table> {
        match self.table.remove(name)? {
            Value::Table(table) => Some(table),
            _ => self.problem(name, "must be a table"),
        }
    }

    pub fn finish(self) {
        for name in self.table.keys() {
            self.problems.push(format!("{}{name}: is not a known key", self.path));
        }
    }
}
