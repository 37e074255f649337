//! Doors that others reach: they need tokens, sign-in, and TLS, which that for Redis clients lacks.
//!
//! A loopback address says little about the callers: a proxy on the same machine forwards the whole
//! network. So every sign that others are expected (an address for browsers, a sign-in provider, a
//! proxy's header, required approval) requires authentication.

use super::Settings;
use raingauge_app::Role;
use raingauge_people::settings::is_of_this_machine;
use raingauge_settings::Reader;
use std::net::SocketAddr;

/// The address of the door for Redis clients.
const RESP: &str = "resp.listen";

/// Refuses a configuration in which strangers would be administrators, or secrets would cross the
/// network in clear text.
pub fn contradictions(settings: &Settings, reader: &mut Reader) {
    refuse_without_tokens(settings, reader);
    refuse_without_sign_in(settings, reader);
    refuse_plaintext(settings, reader);
    refuse_plaintext_resp(settings, reader);
}

/// Returns the doors that other machines reach, by their keys.
fn open_doors(settings: &Settings) -> impl Iterator<Item = (&'static str, SocketAddr)> {
    tls_doors(settings).chain(open_resp(settings).map(|address| (RESP, address)))
}

/// Returns those of them that may speak TLS.
fn tls_doors(settings: &Settings) -> impl Iterator<Item = (&'static str, SocketAddr)> {
    let server = &settings.server;
    let doors =
        [("server.listen", Some(server.listen)), ("server.grpc_listen", server.grpc_listen)];
    doors
        .into_iter()
        .filter_map(|(key, address)| Some((key, address?)))
        .filter(|(_, address)| is_open(address))
}

/// Returns the address of the door for Redis clients, if other machines reach it.
fn open_resp(settings: &Settings) -> Option<SocketAddr> {
    settings.resp.listen.filter(is_open)
}

fn is_open(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Returns the address for browsers, if it leads to another machine than theirs.
fn url_for_others(settings: &Settings) -> Option<&str> {
    settings.people.public_url.as_deref().filter(|url| !is_of_this_machine(url))
}

fn refuse_without_tokens(settings: &Settings, reader: &mut Reader) {
    if settings.auth.is_asked() || !reader.are_right(&["auth.tokens", "auth.required"]) {
        return;
    }

    for (key, address) in open_doors(settings) {
        if reader.is_wrong(key) {
            continue;
        }
        let message =
            format!("{address} can be reached from other machines, and no token is configured");
        let advice = "Run `raingauge token` and put the hash that it prints into auth.tokens, set \
                      auth.required and make tokens in the portal, or listen on 127.0.0.1";
        reader.refuse(key, message, advice);
    }

    for (key, is_set, why) in [
        (
            "portal.public_url",
            url_for_others(settings).is_some(),
            "browsers of other machines are to come",
        ),
        ("openid.issuer", !settings.openid.issuer.is_empty(), "people are to sign in"),
        (
            "portal.address_header",
            settings.people.address_header.is_some(),
            "requests are to come through a proxy",
        ),
        ("portal.approval", settings.drafts.needs_approval, "a change needs a second person"),
    ] {
        if is_set && !reader.is_wrong(key) {
            let message =
                format!("{why}, and nobody is asked for a token: /v1 would be open to them all");
            let advice = "Set auth.required = true and make tokens in the portal, or run \
                          `raingauge token` and put the hash that it prints into auth.tokens";
            reader.refuse(key, message, advice);
        }
    }
}

fn refuse_without_sign_in(settings: &Settings, reader: &mut Reader) {
    let key = "portal.sign_in";
    if settings.people.sign_in || !settings.cluster.has(Role::Portal) || reader.is_wrong(key) {
        return;
    }

    let listens = open_doors(settings).find(|(key, _)| *key == "server.listen");
    if let Some((_, address)) = listens.filter(|(key, _)| !reader.is_wrong(key)) {
        let message = format!(
            "{address} can be reached from other machines, and nobody would have to sign in"
        );
        reader.refuse(key, message, "Leave portal.sign_in on, or listen on 127.0.0.1");
    }

    if url_for_others(settings).is_some() && reader.are_right(&[key, "portal.public_url"]) {
        reader.refuse(
            key,
            "nobody would have to sign in, and portal.public_url says that others are to come",
            "Leave portal.sign_in on, or leave portal.public_url empty",
        );
    }
}

/// Refuses a door without TLS that other machines reach: it carries tokens, passwords and sessions
/// in clear text. It is allowed behind a proxy with TLS, or when the operator states that the
/// network is safe.
fn refuse_plaintext(settings: &Settings, reader: &mut Reader) {
    let server = &settings.server;
    let public_url = settings.people.public_url.as_deref();
    let is_behind_tls = public_url.is_some_and(|url| url.starts_with("https://"));
    let is_safe = server.tls.is_some() || server.plaintext || is_behind_tls;
    if is_safe || !reader.are_right(&["server.tls_certificate", "server.plaintext"]) {
        return;
    }

    for (key, address) in tls_doors(settings) {
        if reader.is_wrong(key) {
            continue;
        }
        let message = format!(
            "{address} can be reached from other machines, and tokens and passwords would cross \
             the network in clear"
        );
        let advice = "Give server.tls_certificate and server.tls_key; or set portal.public_url to \
                      the https:// address of the proxy in front; or set server.plaintext when \
                      nobody else can listen on that network";
        reader.refuse(key, message, advice);
    }
}

/// The door for Redis clients speaks no TLS: beyond loopback it needs a network that is safe.
fn refuse_plaintext_resp(settings: &Settings, reader: &mut Reader) {
    let Some(address) = open_resp(settings).filter(|_| !settings.server.plaintext) else { return };
    if !reader.are_right(&[RESP, "server.plaintext"]) {
        return;
    }

    let message = format!(
        "{address} can be reached from other machines, and tokens and values would cross the \
         network in clear: this door speaks no TLS"
    );
    let advice = "Listen on 127.0.0.1 behind a proxy with TLS, such as stunnel; or set \
                  server.plaintext when nobody else can listen on that network";
    reader.refuse(RESP, message, advice);
}

/// Returns what the operator should know of a valid configuration.
pub fn warnings(settings: &Settings) -> Vec<String> {
    let server = &settings.server;
    let mut warnings = Vec::new();
    if tls_doors(settings).next().is_some() && server.tls.is_none() {
        let why = if server.plaintext {
            "server.plaintext is set"
        } else {
            "portal.public_url begins with https"
        };
        warnings.push(format!(
            "a door that other machines reach speaks no TLS, because {why}: tokens and passwords cross that network in clear"
        ));
    }

    if let Some(address) = open_resp(settings) {
        warnings.push(format!(
            "the door for Redis clients on {address} speaks no TLS, because server.plaintext is set: tokens and values cross \
             that network in clear"
        ));
    }
    if settings.resp.listen.is_some() && settings.cluster.is_cluster() {
        let warning = "the objects of Redis clients are kept in the data folder of this process alone, and not in the cluster: \
                       other processes have objects of their own";
        warnings.push(warning.to_owned());
    }

    #[cfg(feature = "cluster")]
    if settings.cluster.catalog_is_mysql() && is_unverified(&settings.mysql.url) {
        let warning = "mysql.url names another machine and does not check its certificate: who stands between can read the \
                       password. Add ?ssl-mode=verify_identity, and ssl-ca=FILE for an authority of your own";
        warnings.push(warning.to_owned());
    }

    warnings
}

/// Whether an address of MySQL leads to another machine without verifying its identity.
#[cfg(any(test, feature = "cluster"))]
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
    let is_here = name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());

    !is_here
        && !has("socket", |path| !path.is_empty())
        && !has("ssl-mode", |mode| mode.to_ascii_lowercase().starts_with("verify_"))
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
