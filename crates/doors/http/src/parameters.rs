//! The query parameters of a request.

use axum::http::Uri;
use std::borrow::Cow;

/// Decoded parameters. If a name is repeated, the last value counts.
pub struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    pub fn of(uri: &'a Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_the_last_of_a_name_counts() {
        let uri = Uri::from_static("/v1/counts?key=a%3Ab+c&fromTime=1&&fromTime=2&fresh");
        let parameters = Parameters::of(&uri);
        let found = ["key", "fromTime", "fresh", "toTime"].map(|name| parameters.get(name));
        assert_eq!(found, [Some("a:b c"), Some("2"), Some(""), None]);
        assert!(Parameters::of(&Uri::from_static("/v1/counts")).get("key").is_none());
    }
}
