//! Checks that a form comes from one of the portal's own pages.

use crate::fields::Fields;
use axum::http::header;
use axum::http::request::Parts;
use raingauge_app::origin::{FETCH_SITE, host, is_of_another_site, is_origin_of};
use raingauge_people::secrets::is_masked;
use raingauge_people::{Options, Principal};

/// Whether the portal's own page sent a form: the browser's headers say so, and the form carries
/// the person's secret. A person who has not signed in has no secret yet, so the headers are
/// required.
pub fn is_own(
    head: &Parts,
    fields: &Fields,
    person: Option<&Principal>,
    options: &Options,
) -> bool {
    let headers = &head.headers;
    let host = host(headers, &head.uri);
    if is_of_another_site(headers, |origin| is_ours(origin, host, options)) {
        return false;
    }

    match person {
        Some(person) => {
            person.csrf.as_deref().is_some_and(|token| is_masked(fields.exact("csrf"), token))
        }
        None => {
            let site = headers.get(FETCH_SITE);
            site.is_some_and(|site| site == "same-origin") || headers.contains_key(header::ORIGIN)
        }
    }
}

/// Whether an origin is the address of this portal, or the one it would have without a proxy.
fn is_ours(origin: &str, host: &str, options: &Options) -> bool {
    let is_public = options.public_url.as_deref().is_some_and(|url| url == origin);
    is_public || is_origin_of(origin, host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use raingauge_people::secrets::{csrf_of, masked};

    fn head(headers: &[(&str, &str)]) -> Parts {
        let request = headers
            .iter()
            .fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_form_of_a_signed_in_person_carries_their_secret() {
        let token = csrf_of("a session");
        let person = Principal::anonymous(Some(token.as_str().into()));
        let own = |headers: &[(&str, &str)], form: &str| {
            let options = Options {
                public_url: Some("https://rain.example".to_owned()),
                ..Options::default()
            };
            is_own(&head(headers), &Fields::parse(form.as_bytes()), Some(&person), &options)
        };

        let host = ("host", "rain.example");
        let form = format!("csrf={}", masked(&token));
        assert!(own(&[host], &form));
        assert!(own(
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "https://rain.example")],
            &form
        ));
        assert!(own(&[("host", "behind:1"), ("origin", "https://rain.example")], &form));

        let other = format!("csrf={}", masked(&csrf_of("another")));
        let bare = format!("csrf={token}");
        let first_counts = format!("{other}&{form}");
        for form in ["", "csrf=", &other, &bare, &first_counts] {
            assert!(!own(&[host], form), "{form}");
        }

        for foreign in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "null"),
            ("origin", "https://evil.example"),
            ("origin", ""),
            ("origin", "https://"),
        ] {
            assert!(!own(&[host, foreign], &form), "{foreign:?}");
        }
    }

    #[test]
    fn a_form_of_an_unknown_person_needs_the_word_of_the_browser() {
        let own = |headers: &[(&str, &str)]| {
            is_own(&head(headers), &Fields::default(), None, &Options::default())
        };
        assert!(own(&[("sec-fetch-site", "same-origin")]));
        assert!(own(&[("host", "h:1"), ("origin", "http://h:1")]));
        assert!(
            !own(&[])
                && !own(&[("sec-fetch-site", "none")])
                && !own(&[("host", "h"), ("origin", "http://g")])
        );
        assert!(!own(&[("origin", "http://")]));
    }
}
