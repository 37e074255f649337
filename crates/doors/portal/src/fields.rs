//! The fields of a submitted form, or of a query string.

use crate::times::{self, Ends, EnteredTime, FORMS};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::convert::Infallible;

/// Largest number of fields read; the rest is ignored. The largest form of the portal, a filter of
/// 64 conditions, has fewer.
const FIELDS_MAX: usize = 2_000;

/// Names and values in order; a name may occur several times. `Submitted` extracts those of a form,
/// [`Query`] those of the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses `name=value&…`, the encoding of forms and query strings.
    pub fn parse(encoded: &[u8]) -> Self {
        let owned =
            |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        Self(form_urlencoded::parse(encoded).map(owned).take(FIELDS_MAX).collect())
    }

    /// Returns the first value of a name, trimmed; empty when there is none.
    pub fn text(&self, name: &str) -> &str {
        self.values(name).next().unwrap_or_default()
    }

    /// Returns the first value of a name exactly as submitted: for passwords.
    pub fn exact(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the first value of a name unless it is empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values(name).find(|value| !value.is_empty())
    }

    /// Returns all values of a name, trimmed.
    pub fn values<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// Returns the time zone named in the fields; UTC when it is missing or unknown.
    pub fn zone(&self) -> TimeZone {
        self.zone_or_problem(&mut Vec::new())
    }

    /// Returns the time zone named in the fields. An unknown one is UTC, and a problem.
    pub fn zone_or_problem(&self, problems: &mut Vec<String>) -> TimeZone {
        let name = self.text("zone");
        times::zone_of(name).unwrap_or_else(|| {
            problems.push(format!(
                "“{name}” is not a time zone such as UTC or America/New_York; times are in UTC."
            ));
            TimeZone::UTC
        })
    }

    /// Returns the two ends of a range, from the fields `from` and `to`. `None` when one cannot be
    /// read; `problems` then says why.
    pub fn ends(&self, zone: &TimeZone, now_s: i64, problems: &mut Vec<String>) -> Option<Ends> {
        let mut end = |name: &str| {
            let text = self.text(name);
            let found = EnteredTime::parse(text, zone, now_s);
            if found.is_none() {
                problems.push(match text {
                    "" => format!("The range has no “{name}”: enter both of its ends."),
                    text => format!("“{text}” is not a time: write {FORMS}."),
                });
            }

            found
        };

        let (from, to) = (end("from"), end("to"));
        Some((from?, to?))
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// The fields of the query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(pub Fields);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(Fields::parse(head.uri.query().unwrap_or_default().as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_forms_write_them() {
        let fields = Fields::parse(b"key=a%3Ab+c&key=%20d&empty=&password=%20x%20");
        assert_eq!(fields.text("key"), "a:b c");
        assert_eq!(fields.values("key").collect::<Vec<_>>(), ["a:b c", "d"]);
        assert_eq!(
            (fields.text("empty"), fields.given("empty"), fields.given("none")),
            ("", None, None)
        );
        assert_eq!((fields.text("password"), fields.exact("password")), ("x", " x "));
        assert_eq!(
            Fields::parse("a=1&".repeat(FIELDS_MAX + 9).as_bytes()).pairs().len(),
            FIELDS_MAX
        );
    }

    #[test]
    fn ends_that_cannot_be_read_are_reported() {
        let read = |query: &[u8]| {
            let mut problems = Vec::new();
            let ends = Fields::parse(query).ends(&TimeZone::UTC, 86_400, &mut problems);
            (ends.map(|(from, to)| (from.at_s, to.at_s)), problems.len())
        };
        assert_eq!(read(b"from=-1d&to=now"), (Some((0, 86_400)), 0));
        assert_eq!(read(b"from=soon"), (None, 2));
    }
}
