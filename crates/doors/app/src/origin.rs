//! Whether a request comes from this machine, and not from a page of another site.

use axum::http::{HeaderMap, Uri, header};
use raingauge_people::networks::is_loopback_name;

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
/// How a browser says which site a request comes from.
pub const FETCH_SITE: &str = "sec-fetch-site";
/// Stands for a host that no text can name.
const UNREADABLE: &str = "?";

/// The name and the port under which a request came; empty when it does not say so.
pub fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> &'a str {
    match headers.get(header::HOST) {
        Some(host) => host.to_str().unwrap_or(UNREADABLE),
        None => uri.authority().map_or("", |authority| authority.as_str()),
    }
}

/// Why a request may be that of another machine although this one listens on loopback alone. `None`
/// when it is local.
///
/// A proxy on this machine makes anybody's requests look local, except for the headers that it
/// adds. A page from elsewhere whose name was made to lead here (DNS rebinding) still names itself
/// in `Host`.
pub fn remote(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let is_added = |name: &str| name.starts_with(FORWARDED_PREFIX) || FORWARDED.contains(&name);
    if headers.keys().any(|name| is_added(name.as_str())) {
        return Some("it came through a proxy");
    }
    (!is_loopback_name(host(headers, uri))).then_some("its Host is not a name of this machine")
}

/// Why a request must not be taken without a token or a sign-in: it is [`remote`], or a page of
/// another site sent it. `None` for one that may be.
pub fn foreign(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let host = host(headers, uri);
    let is_foreign = is_of_another_site(headers, |origin| is_origin_of(origin, host));
    remote(headers, uri).or(is_foreign.then_some("a page of another site sent it"))
}

/// Whether the browser says that a page of another site sent a request. `is_own` recognizes the
/// origins of this one.
pub fn is_of_another_site(headers: &HeaderMap, is_own: impl Fn(&str) -> bool) -> bool {
    let site = headers.get(FETCH_SITE).map(|site| site.as_bytes());
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
        || origin.is_some_and(|origin| !is_own(origin))
}

/// Whether an origin, as browsers name it, is this host.
pub fn is_origin_of(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, place)| !place.is_empty() && place == host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use axum::http::request::Parts;

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
}
