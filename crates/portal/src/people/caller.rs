//! Where a request comes from.

use super::{Caller, Options};
use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, header};
use std::net::{IpAddr, SocketAddr};

impl Caller {
    /// Who sent a request with this head. A server tells the other end of the connection to its handlers with
    /// `into_make_service_with_connect_info::<SocketAddr>`.
    pub fn of(extensions: &Extensions, headers: &HeaderMap, options: &Options) -> Self {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip().to_canonical());
        let forwarded = options.address_header.as_ref().and_then(|name| last_address(headers, name.as_str()));
        let address = forwarded.or(peer).map(|address| address.to_string()).unwrap_or_default();
        let browser = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        Self { address, browser: browser.unwrap_or_default().to_owned() }
    }
}

/// The last address of a header: the one that the proxy in front of us wrote itself. Those before it are its caller's
/// own words.
fn last_address(headers: &HeaderMap, name: &str) -> Option<IpAddr> {
    let line = headers.get_all(name).into_iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, Request};

    #[test]
    fn only_what_the_own_proxy_wrote_is_believed() {
        let request = Request::get("/").header("x-forwarded-for", "203.0.113.9, 192.0.2.7").header("user-agent", "b/1");
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let of =
            |head: &axum::http::request::Parts, options: &Options| Caller::of(&head.extensions, &head.headers, options);
        assert_eq!(of(&head, &Options::default()).address, "");
        head.extensions.insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9))));
        let caller = of(&head, &Options::default());
        assert_eq!((&*caller.address, &*caller.browser), ("127.0.0.1", "b/1"));
        let address_header = Some(HeaderName::from_static("x-forwarded-for"));
        let behind_a_proxy = Options { address_header, ..Options::default() };
        assert_eq!(of(&head, &behind_a_proxy).address, "192.0.2.7");
        head.headers.insert("x-forwarded-for", "nonsense".parse().unwrap());
        assert_eq!(of(&head, &behind_a_proxy).address, "127.0.0.1");
    }
}
