//! Where a request comes from.

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, header};
use raingauge_people::{Options, Origin};
use std::net::{IpAddr, SocketAddr};

/// The origin of a request with this head. A server tells the other end of the connection to its
/// handlers with `into_make_service_with_connect_info::<SocketAddr>`.
pub fn origin_of(extensions: &Extensions, headers: &HeaderMap, options: &Options) -> Origin {
    let peer = extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| peer.ip().to_canonical());
    let address = peer.map(|peer| forwarded(peer, headers, options).unwrap_or(peer));
    let browser = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    Origin {
        address: address.map(|address| address.to_string()).unwrap_or_default(),
        browser: browser.unwrap_or_default().to_owned(),
    }
}

/// The client that the proxies in front name, where the connection comes from one of them: the last
/// address that is not a proxy itself. Those before it are the client's own words.
fn forwarded(peer: IpAddr, headers: &HeaderMap, options: &Options) -> Option<IpAddr> {
    let is_proxy =
        |address: IpAddr| options.proxies.iter().any(|network| network.contains(address));
    let name = options.address_header.as_ref().filter(|_| is_proxy(peer))?;
    let lines: Vec<&str> =
        headers.get_all(name).iter().filter_map(|line| line.to_str().ok()).collect();
    let mut nearest = None;

    for text in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let Ok(address) = text.trim().parse::<IpAddr>() else {
            break;
        };
        nearest = Some(address);

        if !is_proxy(address) {
            break;
        }
    }

    nearest
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn behind(proxies: &[&str]) -> Options {
        let address_header = Some("x-forwarded-for".to_owned());
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        Options { address_header, proxies, ..Options::default() }
    }

    fn address_of(peer: [u8; 4], lines: &[&str], options: &Options) -> String {
        let request = lines
            .iter()
            .fold(Request::get("/"), |request, line| request.header("x-forwarded-for", *line));
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        head.extensions.insert(ConnectInfo(SocketAddr::from((peer, 9))));
        origin_of(&head.extensions, &head.headers, options).address
    }

    #[test]
    fn only_the_own_proxies_are_believed() {
        let chain = ["203.0.113.9, 192.0.2.7"];
        let loopback = [127, 0, 0, 1];
        assert_eq!(address_of(loopback, &chain, &Options::default()), "127.0.0.1");
        assert_eq!(address_of(loopback, &chain, &behind(&["127.0.0.0/8"])), "192.0.2.7");

        // A client that reaches the port itself writes whatever it likes.
        assert_eq!(
            address_of([198, 51, 100, 1], &chain, &behind(&["127.0.0.0/8"])),
            "198.51.100.1"
        );
        assert_eq!(address_of(loopback, &chain, &behind(&[])), "127.0.0.1");

        // A proxy of ours before the nearest one names its own client.
        let two = behind(&["127.0.0.0/8", "192.0.2.7"]);
        assert_eq!(address_of(loopback, &chain, &two), "203.0.113.9");
        assert_eq!(address_of(loopback, &["203.0.113.9", "192.0.2.7"], &two), "203.0.113.9");
        assert_eq!(address_of(loopback, &["nonsense"], &two), "127.0.0.1");
        assert_eq!(address_of(loopback, &["nonsense, 192.0.2.7"], &two), "192.0.2.7");
        assert_eq!(address_of(loopback, &[], &two), "127.0.0.1");
    }

    #[test]
    fn a_request_without_a_connection_has_no_address() {
        let (head, ()) =
            Request::get("/").header("user-agent", "b/1").body(()).unwrap().into_parts();
        let origin = origin_of(&head.extensions, &head.headers, &behind(&["0.0.0.0/0"]));
        assert_eq!((&*origin.address, &*origin.browser), ("", "b/1"));
    }
}
