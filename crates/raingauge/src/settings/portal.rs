//! The settings of the portal.

use super::anonymous::is_of_this_machine;
use super::check::Checker;
use super::openid::OpenId;
use super::{hours, seconds};
use raingauge_app::Samples;
use raingauge_operations::self_audit;
use raingauge_people::networks::Network;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portal {
    pub sign_in: bool,
    /// Whether people may sign in with passwords.
    pub passwords: bool,
    /// Whether a second person has to approve a draft before it takes effect.
    pub approval: bool,
    /// What people see of single events.
    pub samples: Samples,
    pub checks: self_audit::Options,
    /// Scheme, host and port, without a slash at the end.
    pub public_url: Option<String>,
    pub session_idle: Duration,
    pub session_max: Duration,
    pub audit_keep: Duration,
    /// In lower case. `None` while no proxy reports its caller.
    pub address_header: Option<String>,
    /// Whether others reach the portal, and their addresses cannot be distinguished.
    pub has_one_address: bool,
    /// The proxies that are trusted with that header.
    pub proxies: Vec<Network>,
    pub openid: OpenId,
}

impl Portal {
    pub fn read(from: &mut Checker) -> Self {
        let days = |days: u64| seconds(days * 86_400);
        let minutes = from.whole("portal", "check_interval_minutes");
        let checks = self_audit::Options {
            interval: (minutes > 0).then(|| seconds(60 * minutes)),
            keys: from.whole("portal", "check_keys") as usize,
        };
        let public_url = public_url(from);
        let header = address_header(from);

        // Behind a proxy whose header is not read, all callers have one address.
        let has_one_address =
            header.is_none() && public_url.as_deref().is_some_and(|url| !is_of_this_machine(url));
        let address_header = header.filter(|name| name != NO_HEADER);
        let openid = OpenId::read(from, public_url.as_deref());

        Self {
            passwords: passwords(from, &openid),
            openid,
            approval: from.switch("portal", "approval"),
            samples: samples(from),
            checks,
            sign_in: from.switch("portal", "sign_in"),
            public_url,
            session_idle: hours(from.whole("portal", "session_idle_hours")),
            session_max: days(from.whole("portal", "session_max_days")),
            audit_keep: days(from.whole("portal", "audit_days")),
            address_header,
            has_one_address,
            proxies: proxies(from),
        }
    }
}

/// Templates name fields of the data without their root; conditions name them with it.
fn samples(from: &mut Checker) -> Samples {
    let text = from.text("portal", "masked_fields");
    let is_own = |name: &str| {
        ["id", "source", "subject", "data"].contains(&name) || name.starts_with("data.")
    };
    let path = |name: &str| {
        if is_own(name) { name.to_owned() } else { format!("data.{name}") }
    };
    let masked = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(path).collect();
    Samples { are_shown: from.switch("portal", "show_samples"), masked }
}

fn passwords(from: &mut Checker, openid: &OpenId) -> bool {
    let key = "portal.passwords";
    let passwords = from.switch("portal", "passwords");
    if !passwords && openid.issuer.is_empty() && !from.is_wrong("openid.issuer") {
        let message =
            "passwords are switched off, and there is no provider to sign in at".to_owned();
        from.problem(key, from.origin(key), message, "Configure [openid], or leave passwords on");
    }
    passwords
}

fn public_url(from: &mut Checker) -> Option<String> {
    let text = from.text("portal", "public_url");
    let url = text.trim_end_matches('/');
    if url.is_empty() {
        return None;
    }

    let place =
        url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_host = |char: char| char.is_ascii_alphanumeric() || ".-:[]".contains(char);
    if place.is_empty() || !place.chars().all(is_host) {
        let message = format!("{text:?} is not the address of a server");
        let advice = "Give http:// or https://, a host and, where it is not the usual one, a port, and nothing behind it";
        from.problem("portal.public_url", from.origin("portal.public_url"), message, advice);
        return None;
    }

    Some(url.to_ascii_lowercase())
}

/// The value for a proxy that writes no header.
const NO_HEADER: &str = "none";

fn address_header(from: &mut Checker) -> Option<String> {
    let key = "portal.address_header";
    let text = from.text("portal", "address_header");
    if !text.chars().all(|char| char.is_ascii_alphanumeric() || char == '-') {
        let message = format!("{text:?} is not the name of a header");
        from.problem(
            key,
            from.origin(key),
            message,
            "Give one such as X-Forwarded-For, none, or nothing",
        );
        return None;
    }

    Some(text.to_ascii_lowercase()).filter(|name| !name.is_empty())
}

fn proxies(from: &mut Checker) -> Vec<Network> {
    let key = "portal.proxies";
    let text = from.text("portal", "proxies");
    let mut networks = Vec::new();

    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.parse() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let message = format!("{part:?} cannot be read: {error}");
                from.problem(
                    key,
                    from.origin(key),
                    message,
                    "Give addresses and networks, such as 10.0.0.0/8, ::1",
                );
            }
        }
    }

    networks
}
