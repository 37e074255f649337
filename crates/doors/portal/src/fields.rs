//! The fields of a form that was sent, or of an address.

use crate::times;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::convert::Infallible;

/// Fields that are read; those behind are left out. The largest form of the portal, a filter of 64
/// conditions, has fewer.
const FIELDS_MAX: usize = 2_000;

/// Names and values in their order; a name may stand there several times. The guard puts the fields
/// of a form that was sent into the request (`Extension<Fields>`); those of an address are taken by
/// [`Query`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `name=value&…`, as forms and addresses write it.
    pub fn parse(encoded: &[u8]) -> Self {
        let owned =
            |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        Self(form_urlencoded::parse(encoded).map(owned).take(FIELDS_MAX).collect())
    }

    /// The first value of a name, without blanks around it; empty when there is none.
    pub fn text(&self, name: &str) -> &str {
        self.values(name).next().unwrap_or_default()
    }

    /// The first value of a name, exactly as it was sent: for passwords.
    pub fn exact(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The first value of a name that is not empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values(name).find(|value| !value.is_empty())
    }

    /// Every value of a name, without blanks around it.
    pub fn values<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// The time zone that is asked for by its name; UTC where none is, or where there is no such
    /// zone.
    pub fn zone(&self) -> TimeZone {
        times::zone_of(self.text("zone")).unwrap_or(TimeZone::UTC)
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// The fields behind the question mark of an address.
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
}
