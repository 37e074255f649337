//! The filters and tests of templates: these, and no others.

use crate::limits::MESSAGE_LEN_MAX;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value, escape_formatter, tests};
use rust_decimal::Decimal;

pub(super) const FILTERS: [&str; 7] =
    ["decimal", "default", "join", "lower", "trim", "truncate", "upper"];
pub(super) const TESTS: [&str; 2] = ["defined", "none"];

pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_filter("decimal", decimal);
    environment.add_filter("default", default);
    environment.add_filter("join", join);
    environment.add_filter("lower", |text: &str| text.to_lowercase());
    environment.add_filter("trim", |text: &str| text.trim().to_owned());
    environment.add_filter("truncate", truncate);
    environment.add_filter("upper", |text: &str| text.to_uppercase());
    environment.add_test("defined", tests::is_defined);
    environment.add_test("none", |value: &Value| value.is_none());
}

/// Writes a value. Null is as good as none: nobody is congratulated as `none`.
pub(super) fn format(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_none() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    escape_formatter(out, state, value)
}

/// A whole number of small units as a decimal: `1234 | decimal(2)` is 12.34.
fn decimal(number: i64, places: u32) -> Result<String, Error> {
    let decimal = Decimal::try_from_i128_with_scale(number.into(), places);
    let failed = |_| Error::new(ErrorKind::InvalidOperation, "decimal takes 0 to 28 places");
    decimal.map(|decimal| decimal.to_string()).map_err(failed)
}

/// Another value where there is none.
fn default(value: &Value, other: Value) -> Value {
    if value.is_undefined() || value.is_none() { other } else { value.clone() }
}

/// The items of a list, with a text between them.
fn join(list: &Value, between: &str) -> Result<String, Error> {
    let mut text = String::new();
    for item in list.try_iter()? {
        if !text.is_empty() {
            text.push_str(between);
        }
        text.push_str(&item.to_string());
        if text.len() > MESSAGE_LEN_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, "the joined text is too long"));
        }
    }
    Ok(text)
}

/// The first characters of a text, with `…` for the last one if the text is longer.
fn truncate(text: &str, len_max: usize) -> String {
    if text.chars().count() <= len_max {
        return text.to_owned();
    }
    let kept = len_max.saturating_sub(1);
    text.chars().take(kept).chain(['…']).collect()
}
