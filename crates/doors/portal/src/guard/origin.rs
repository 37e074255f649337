//! Whether a request comes from one of our own pages, or at least from this machine.

use crate::fields::Fields;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use raingauge_people::Options;
use raingauge_people::Person;
use raingauge_people::networks::is_loopback_name;
use raingauge_people::secrets::is_equal;

/// Headers that proxies add, besides those that begin with [`FORWARDED_PREFIX`].
const FORWARDED: [&str; 7] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "true-client-ip",
];
const FORWARDED_PREFIX: &str = "x-forwarded-";
/// Stands for a host that no text can name.
const UNREADABLE: &str = "?";

/// The name and the port under which a request came; empty when it does not say so.
pub fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> &'a str {
    match headers.get(header::HOST) {
        Some(host) => host.to_str().unwrap_or(UNREADABLE),
        None => uri.authority().map_or("", |authority| authority.as_str()),
    }
}

/// Why a request may be that of another machine although this one listens on loopback alone. `None` when it is local.
///
/// A proxy on this machine makes anybody's requests look local, except for the headers that it adds. A page from
/// elsewhere whose name was made to lead here (DNS rebinding) still names itself in `Host`.
pub fn remote(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let is_added = |name: &str| name.starts_with(FORWARDED_PREFIX) || FORWARDED.contains(&name);
    if headers.keys().any(|name| is_added(name.as_str())) {
        return Some("it came through a proxy");
    }
    (!is_loopback_name(host(headers, uri))).then_some("its Host is not a name of this machine")
}

/// Why a request must not be taken without a token or a sign-in: it is [`remote`], or a page of another site sent it.
/// `None` for one that may be.
pub fn foreign(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_cross_site = site.is_some_and(|site| site != b"same-origin" && site != b"none");
    let host = host(headers, uri);
    let is_elsewhere = |origin: &str| !is_origin_of(origin, host);
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let is_foreign = is_cross_site || origin.is_some_and(is_elsewhere);
    remote(headers, uri).or(is_foreign.then_some("a page of another site sent it"))
}

/// Whether a form was sent by a page of ours: the browser says so, and the form carries the person's secret. Somebody who
/// is not signed in has no secret yet, so that the browser's word is needed.
pub fn is_own(head: &Parts, fields: &Fields, person: Option<&Person>, options: &Options) -> bool {
    let site = head.headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let origin = head.headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let is_foreign = site.is_some_and(|site| site != b"same-origin" && site != b"none");
    let host = host(&head.headers, &head.uri);
    let is_elsewhere = origin.is_some_and(|origin| !is_ours(origin, host, options));
    let is_known = match person {
        Some(person) => is_equal(person.csrf.as_bytes(), fields.exact("csrf").as_bytes()),
        None => site == Some(b"same-origin") || origin.is_some(),
    };
    !is_foreign && !is_elsewhere && is_known
}

/// Whether an origin is the place under which this portal is reached, or would be but for a proxy.
fn is_ours(origin: &str, host: &str, options: &Options) -> bool {
    let is_public = options.public_url.as_deref().is_some_and(|url| url == origin);
    is_public || is_origin_of(origin, host)
}

fn is_origin_of(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, place)| !place.is_empty() && place == host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use raingauge_core::access::Role;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let request = headers
            .iter()
            .fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn without_a_token_only_requests_of_this_machine_are_local() {
        let reason = |headers: &[(&str, &str)]| {
            let head = head(headers);
            (
                remote(&head.headers, &head.uri).is_some(),
                foreign(&head.headers, &head.uri).is_some(),
            )
        };
        let host = ("host", "localhost:8080");
        let own = ("origin", "http://localhost:8080");
        for local in
            [&[][..], &[host], &[host, own], &[host, own, ("sec-fetch-site", "same-origin")]]
        {
            assert_eq!(reason(local), (false, false), "{local:?}");
        }
        assert_eq!(reason(&[host, ("sec-fetch-site", "none")]), (false, false));
        for name in ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Anything", "X-Real-IP"] {
            assert_eq!(reason(&[host, (name, "192.0.2.7")]), (true, true), "{name}");
        }
        for name in ["rain.example", "192.0.2.7:8080", "localhost.rain.example"] {
            assert_eq!(reason(&[("host", name)]), (true, true), "{name}");
        }
        for page in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:9"),
        ] {
            assert_eq!(reason(&[host, page]), (false, true), "{page:?}");
        }
        for site in ["cross-site", "same-site", "anything"] {
            assert_eq!(reason(&[host, ("sec-fetch-site", site)]), (false, true), "{site}");
        }
        let mut unreadable = head(&[]);
        unreadable
            .headers
            .insert(header::HOST, axum::http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(remote(&unreadable.headers, &unreadable.uri).is_some());
        let named =
            Request::get("http://rain.example/v1/counters").body(()).unwrap().into_parts().0;
        assert!(remote(&named.headers, &named.uri).is_some(), "HTTP/2 has the host in the address");
    }

    #[test]
    fn a_form_of_somebody_signed_in_carries_their_secret() {
        let person =
            Person { name: "zoe".into(), role: Role::Viewer, csrf: "abc".into(), signed_in: None };
        let own = |headers: &[(&str, &str)], form: &str| {
            let options = Options {
                public_url: Some("https://rain.example".to_owned()),
                ..Options::default()
            };
            is_own(&head(headers), &Fields::parse(form.as_bytes()), Some(&person), &options)
        };
        let host = ("host", "rain.example");
        assert!(own(&[host], "csrf=abc"));
        assert!(own(
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "https://rain.example")],
            "csrf=abc"
        ));
        assert!(own(&[("host", "behind:1"), ("origin", "https://rain.example")], "csrf=abc"));
        for form in ["", "csrf=", "csrf=abd", "csrf=abcd", "csrf=abd&csrf=abc"] {
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
            assert!(!own(&[host, foreign], "csrf=abc"), "{foreign:?}");
        }
    }

    #[test]
    fn a_form_of_somebody_unknown_needs_the_word_of_the_browser() {
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
