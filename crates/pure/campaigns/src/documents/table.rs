//! Uploaded tables and segments: which columns they have, and what they are keyed by.

use super::lookup::{check_key, check_weight, key_of};
use crate::engine::{LookupRule, OnError};
use crate::limits::{TABLE_COLUMNS_MAX, TABLE_TEXT_LEN_MAX};
use crate::rule::is_name;
use raingauge_core::counter::Problem;
use raingauge_core::field::parse_decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Table {
    pub kind: TableKind,
    /// The field that is looked up; `subject` is the subject of the campaign.
    #[serde(default = "subject")]
    pub key: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnType>,
    /// What loading a row costs, in place of what tables cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    Table,
    /// A list of keys, without columns.
    Segment,
}

impl TableKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Segment => "segment",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    Text,
    Number,
}

fn subject() -> String {
    "subject".to_owned()
}

impl Table {
    /// How the engine treats it.
    pub fn rule(&self) -> LookupRule {
        LookupRule { weight: self.weight, key: key_of(&self.key), on_error: OnError::Hold }
    }

    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_key(&self.key, &mut problems);
        check_weight(self.weight, &mut problems);
        let detail = match self.kind {
            TableKind::Segment if !self.columns.is_empty() => "a segment has no columns".to_owned(),
            TableKind::Table if self.columns.is_empty() => {
                "a table has at least one column: a list of keys is a segment".to_owned()
            }
            _ if self.columns.len() > TABLE_COLUMNS_MAX => {
                format!("a table has at most {TABLE_COLUMNS_MAX} columns")
            }
            _ => String::new(),
        };
        if !detail.is_empty() {
            problems.push(Problem::new("columns", detail));
        }
        for name in self.columns.keys().filter(|name| !is_name(name) || **name == self.key) {
            let detail = "is no name of a column: letters, digits, `_` and `-`, and not the key";
            problems.push(Problem::new(format!("columns.{name}"), detail));
        }
        problems
    }
}

impl ColumnType {
    /// The value of a cell, given its text; null if it is empty. Otherwise says what is wrong.
    pub fn value_of(self, text: &str) -> Result<Json, String> {
        if text.is_empty() {
            return Ok(Json::Null);
        }
        match self {
            Self::Text if text.len() > TABLE_TEXT_LEN_MAX => {
                Err(format!("has {} bytes, and at most {TABLE_TEXT_LEN_MAX}", text.len()))
            }
            Self::Text => Ok(Json::from(text)),
            Self::Number => {
                let wrong = || "is no number of at most 15 digits".to_owned();
                let number: Number = serde_json::from_str(text).map_err(|_| wrong())?;
                // JSON keeps more digits only roughly, and rules compare exactly.
                let exact = parse_decimal(text).ok_or_else(wrong)?;
                let kept = parse_decimal(&number.to_string());
                if kept == Some(exact) { Ok(Json::Number(number)) } else { Err(wrong()) }
            }
        }
    }

    /// The value of a member of a row in JSON.
    pub fn value_of_json(self, json: &Json) -> Result<Json, String> {
        match (self, json) {
            (_, Json::Null) => Ok(Json::Null),
            (Self::Text, Json::String(text)) => self.value_of(text),
            (Self::Number, Json::Number(number)) => self.value_of(&number.to_string()),
            (Self::Text, _) => Err("must be a text or null".to_owned()),
            (Self::Number, _) => Err("must be a number or null".to_owned()),
        }
    }
}
