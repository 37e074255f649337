//! Tables of factors: the most specific row wins.
//!
//! A row has a value or `*` for each field. Of the rows that match, the one with the most values
//! wins, and of two with as many, the one whose first value comes earlier: `SG.food`, `SG.*`,
//! `*.food`, `*`.

use crate::document::TableDocument;
use crate::number::Number;
use raingauge_core::field::Field;
use std::collections::HashMap;
use std::sync::Arc;

/// What a table is looked up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableField {
    /// The member's tier.
    Tier,
    Event(Field),
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: Arc<str>,
    pub(crate) by: Vec<TableField>,
    /// Rows by the fields that they have values for, the most specific first.
    groups: Vec<RowGroup>,
    default: Option<Number>,
    default_name: Arc<str>,
}

/// Rows with values for the same fields.
#[derive(Clone, Debug)]
struct RowGroup {
    has_value: Vec<bool>,
    /// By the values, each with a zero byte behind it.
    rows: HashMap<Box<str>, (Arc<str>, Number)>,
}

impl Table {
    /// Of a document that was checked.
    pub(crate) fn of(name: &str, document: &TableDocument) -> Self {
        let field = |path: &String| match path.as_str() {
            "tier" => TableField::Tier,
            path => TableField::Event(Field::of_path(path).expect("the path was checked")),
        };
        let by: Vec<TableField> = document.by.iter().map(field).collect();
        let mut groups: Vec<RowGroup> = Vec::new();

        for (row, value) in &document.rows {
            let parts: Vec<&str> = match by.len() {
                1 => vec![row],
                fields if row == "*" => vec!["*"; fields],
                _ => row.split('.').collect(),
            };
            let has_value: Vec<bool> = parts.iter().map(|part| *part != "*").collect();
            let key: String =
                parts.iter().filter(|part| **part != "*").flat_map(|part| [part, "\0"]).collect();

            let found = (row.as_str().into(), *value);
            match groups.iter_mut().find(|group| group.has_value == has_value) {
                Some(group) => {
                    group.rows.insert(key.into(), found);
                }
                None => {
                    let rows = HashMap::from([(key.into(), found)]);
                    groups.push(RowGroup { has_value, rows });
                }
            }
        }

        let values = |group: &RowGroup| group.has_value.iter().filter(|has| **has).count();
        groups.sort_by(|left, right| {
            let more = values(right).cmp(&values(left));
            more.then_with(|| right.has_value.cmp(&left.has_value))
        });
        let default_name = "default".into();
        Self { name: name.into(), by, groups, default: document.default, default_name }
    }

    /// The row for these values, one for each field; `None` where there is none.
    pub(crate) fn find(&self, values: &[Option<&str>]) -> Option<(&Arc<str>, Number)> {
        let mut key = String::with_capacity(32);
        for group in &self.groups {
            key.clear();
            let mut is_complete = true;
            for (value, _) in values.iter().zip(&group.has_value).filter(|(_, has)| **has) {
                match value {
                    Some(value) => {
                        key.push_str(value);
                        key.push('\0');
                    }
                    None => is_complete = false,
                }
            }

            if is_complete && let Some((row, value)) = group.rows.get(key.as_str()) {
                return Some((row, *value));
            }
        }
        self.default.map(|value| (&self.default_name, value))
    }

    /// What was looked up in vain, for messages.
    pub(crate) fn missing(&self, values: &[Option<&str>]) -> String {
        let values: Vec<&str> = values.iter().map(|value| value.unwrap_or("(absent)")).collect();
        format!("table `{}` has no row for {}", self.name, values.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(rows: &[&str], default: Option<i64>) -> Table {
        let rows = rows.iter().zip(1..).map(|(row, value)| (row.to_string(), Number::whole(value)));
        let document = TableDocument {
            by: vec!["data.country".to_owned(), "data.vertical".to_owned()],
            default: default.map(Number::whole),
            rows: rows.collect(),
        };
        Table::of("vertical", &document)
    }

    #[test]
    fn the_most_specific_row_wins() {
        let all = ["SG.food", "SG.*", "*.food", "*"];
        for (number, row) in all.iter().enumerate() {
            let table = table(&all[number..], None);
            let (found, _) = table.find(&[Some("SG"), Some("food")]).unwrap();
            assert_eq!(&**found, *row);
        }
        let table = table(&all[..3], None);
        assert_eq!(&**table.find(&[None, Some("food")]).unwrap().0, "*.food");
        assert!(table.find(&[Some("TH"), Some("ride")]).is_none());
        assert_eq!(
            table.missing(&[Some("TH"), None]),
            "table `vertical` has no row for TH.(absent)"
        );
    }

    #[test]
    fn a_default_stands_behind_all_rows() {
        let table = table(&["SG.food"], Some(9));
        assert_eq!(table.find(&[Some("TH"), Some("food")]).unwrap().1, Number::whole(9));
    }

    /// Rows as they are written, tried one after the other.
    fn naive(rows: &[String], values: [Option<&str>; 2]) -> Option<String> {
        let matches = |row: &str| {
            let parts: Vec<&str> =
                if row == "*" { vec!["*", "*"] } else { row.split('.').collect() };
            let fits =
                |(part, value): (&&str, &Option<&str>)| *part == "*" || Some(*part) == *value;
            parts.iter().zip(&values).all(fits).then(|| {
                let stars = parts.iter().filter(|part| **part == "*").count();
                (stars, parts[0] == "*")
            })
        };
        let found = rows.iter().filter_map(|row| Some((matches(row)?, row.clone())));
        found.min().map(|(_, row)| row)
    }

    proptest! {
        #[test]
        fn lookups_agree_with_a_search(
            rows in prop::collection::btree_set("([ab*]\\.[xy*])", 0..9),
            first in prop::option::of("[abc]"), second in prop::option::of("[xyz]"),
        ) {
            let rows: Vec<String> = rows.into_iter().collect();
            let names: Vec<&str> = rows.iter().map(String::as_str).collect();
            let table = table(&names, None);
            let values = [first.as_deref(), second.as_deref()];
            let found = table.find(&values).map(|(row, _)| row.to_string());
            prop_assert_eq!(found, naive(&rows, values));
        }
    }
}
