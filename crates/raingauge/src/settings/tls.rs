//! How the doors are protected on the network: by TLS, or by the operator's statement that the
//! network needs none.

use super::check::Checker;
use super::{Settings, is_loopback};
use raingauge_http::connections::tls::Files;
use std::net::IpAddr;
use std::path::PathBuf;

/// Reads the files of TLS; `None` when the doors do without it.
pub fn read(from: &mut Checker) -> Option<Files> {
    let mut file =
        |name| Some(from.text("server", name)).filter(|text| !text.is_empty()).map(PathBuf::from);
    let certificate = file("tls_certificate");
    let key = file("tls_key");
    let client_ca = file("tls_client_ca");
    let missing = match (&certificate, &key, &client_ca) {
        (Some(_), Some(_), _) | (None, None, None) => None,
        (Some(_), None, _) => Some(("server.tls_certificate", "server.tls_key")),
        (None, Some(_), _) => Some(("server.tls_key", "server.tls_certificate")),
        (None, None, Some(_)) => {
            Some(("server.tls_client_ca", "server.tls_certificate and server.tls_key"))
        }
    };

    if let Some((given, missing)) = missing {
        let message = format!("{given} is given without {missing}");
        from.problem(given, from.origin(given), message, format!("Give {missing} too, or neither"));
    }

    Some(Files { certificate: certificate?, key: key?, client_ca })
}

/// Returns what the operator should know of a valid configuration.
pub fn warnings(settings: &Settings) -> Vec<String> {
    let server = &settings.server;
    let mut warnings = Vec::new();
    let is_open = [Some(server.listen), server.grpc_listen]
        .into_iter()
        .flatten()
        .any(|address| !is_loopback(&address));
    if is_open && server.tls.is_none() {
        let why = if server.plaintext {
            "server.plaintext is set"
        } else {
            "portal.public_url begins with https"
        };
        warnings.push(format!(
            "a door that other machines reach speaks no TLS, because {why}: tokens and passwords cross that network in clear"
        ));
    }

    if settings.cluster.catalog_is_mysql && is_unverified(&settings.cluster.mysql.url) {
        let warning = "mysql.url names another machine and does not check its certificate: who stands between can read the \
                       password. Add ?ssl-mode=verify_identity, and ssl-ca=FILE for an authority of your own";
        warnings.push(warning.to_owned());
    }

    warnings
}

/// Whether an address of MySQL leads to another machine without verifying its identity.
fn is_unverified(url: &str) -> bool {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let has = |name: &str, is: fn(&str) -> bool| {
        query
            .split('&')
            .filter_map(|parameter| parameter.split_once('='))
            .any(|(key, value)| key == name && is(value))
    };

    let authority = place
        .split_once("://")
        .map_or(place, |(_, rest)| rest)
        .split('/')
        .next()
        .unwrap_or_default();

    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    let is_here =
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());

    !is_here
        && !has("socket", |path| !path.is_empty())
        && !has("ssl-mode", |mode| mode.to_ascii_lowercase().starts_with("verify_"))
}

/// Refuses a door without TLS that other machines reach: it carries tokens, passwords and sessions
/// in clear text. It is allowed behind a proxy with TLS, or when the operator states that the
/// network is safe.
pub fn refuse_plaintext(settings: &Settings, checker: &mut Checker) {
    let server = &settings.server;
    let is_behind_tls =
        settings.portal.public_url.as_deref().is_some_and(|url| url.starts_with("https://"));

    if server.tls.is_some()
        || server.plaintext
        || is_behind_tls
        || checker.is_wrong("server.tls_certificate")
    {
        return;
    }

    let doors =
        [("server.listen", Some(server.listen)), ("server.grpc_listen", server.grpc_listen)];
    for (key, address) in doors {
        let Some(address) = address.filter(|address| !is_loopback(address)) else {
            continue;
        };
        if checker.is_wrong(key) || checker.is_wrong("server.plaintext") {
            continue;
        }
        checker.problem(
            key,
            checker.origin(key),
            format!("{address} can be reached from other machines, and tokens and passwords would cross the network in clear"),
            "Give server.tls_certificate and server.tls_key; or set portal.public_url to the https:// address of the proxy \
             in front; or set server.plaintext when nobody else can listen on that network",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_elsewhere_is_checked_or_warned_of() {
        for safe in [
            "mysql://rain:a%40b@127.0.0.1:3306/d",
            "mysql://rain@localhost/d?ssl-mode=disabled",
            "mysql://rain@[::1]:3306/d",
            "mysql://rain@db.example/d?socket=/run/mysqld.sock",
            "mysql://rain@db.example/d?ssl-ca=ca.pem&ssl-mode=VERIFY_CA",
            "mysql://rain@db.example/d?ssl-mode=verify_identity",
        ] {
            assert!(!is_unverified(safe), "{safe}");
        }
        for open in [
            "mysql://rain:secret@db.example:3306/d",
            "mysql://rain@10.0.0.7/d?ssl-mode=required",
            "mysql://[2001:db8::1]/d",
        ] {
            assert!(is_unverified(open), "{open}");
        }
    }
}
