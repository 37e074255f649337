//! Types of the contract whose values are one of several words.

use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

/// Declares types by the words that their values may be, with the descriptions that the contract
/// shows. Where the program has an enum of them, the words are its names.
macro_rules! words {
    ($($(#[doc = $line:literal])* $Name:ident = $words:expr;)+) => {$(
        $(#[doc = $line])*
        pub struct $Name;

        impl utoipa::PartialSchema for $Name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::contract::words::schema(&[$($line),*], &$words)
            }
        }

        impl utoipa::ToSchema for $Name {}
    )+};
}

pub(super) use words;

/// Returns the schema of one of these words, described by the lines of a comment.
pub fn schema(lines: &[&str], words: &[&str]) -> RefOr<Schema> {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let text = Some(lines.join("\n")).filter(|text| !text.is_empty());
    let schema = ObjectBuilder::new().schema_type(Type::String).description(text);
    schema.enum_values(Some(words.iter().copied())).build().into()
}
