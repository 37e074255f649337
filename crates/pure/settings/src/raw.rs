//! Given values before any check.

use crate::Origin;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

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

impl Raw {
    /// Parses one TOML value, for a list from a variable. The variable is the origin of everything
    /// in it.
    pub(crate) fn parse(text: &str, origin: &Origin) -> Result<Self, String> {
        let value =
            DeValue::parse(text.trim()).map_err(|error| error.message().replace('\n', ", "))?;
        Ok(raw_of(value, &|_| origin.clone()))
    }
}

pub(crate) fn raw_of(value: Spanned<DeValue<'_>>, origin: &dyn Fn(Range<usize>) -> Origin) -> Raw {
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
