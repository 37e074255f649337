//! The settings of the portal.

use super::check::Checker;
use super::openid::OpenId;
use super::{hours, seconds};
use raingauge_portal::checks;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portal {
    pub sign_in: bool,
    /// Whether a second person has to approve a draft before it takes effect.
    pub approval: bool,
    pub checks: checks::Options,
    /// Scheme, host and port, without a slash at the end.
    pub public_url: Option<String>,
    pub session_idle: Duration,
    pub session_max: Duration,
    pub audit_keep: Duration,
    /// In lower case.
    pub address_header: Option<String>,
    pub openid: OpenId,
}

impl Portal {
    pub fn read(from: &mut Checker) -> Self {
        let days = |days: u64| seconds(days * 86_400);
        let minutes = from.whole("portal", "check_interval_minutes");
        let checks = checks::Options {
            interval: (minutes > 0).then(|| seconds(60 * minutes)),
            keys: from.whole("portal", "check_keys") as usize,
        };
        let public_url = public_url(from);
        Self {
            openid: OpenId::read(from, public_url.as_deref()),
            approval: from.switch("portal", "approval"),
            checks,
            sign_in: from.switch("portal", "sign_in"),
            public_url,
            session_idle: hours(from.whole("portal", "session_idle_hours")),
            session_max: days(from.whole("portal", "session_max_days")),
            audit_keep: days(from.whole("portal", "audit_days")),
            address_header: address_header(from),
        }
    }
}

fn public_url(from: &mut Checker) -> Option<String> {
    let text = from.text("portal", "public_url");
    let url = text.trim_end_matches('/');
    if url.is_empty() {
        return None;
    }
    let place = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_host = |char: char| char.is_ascii_alphanumeric() || ".-:[]".contains(char);
    if place.is_empty() || !place.chars().all(is_host) {
        let message = format!("{text:?} is not the address of a server");
        let advice =
            "Give http:// or https://, a host and, where it is not the usual one, a port, and nothing behind it";
        from.problem("portal.public_url", from.origin("portal.public_url"), message, advice);
        return None;
    }
    Some(url.to_ascii_lowercase())
}

fn address_header(from: &mut Checker) -> Option<String> {
    let text = from.text("portal", "address_header");
    if !text.chars().all(|char| char.is_ascii_alphanumeric() || char == '-') {
        let message = format!("{text:?} is not the name of a header");
        let key = "portal.address_header";
        from.problem(key, from.origin(key), message, "Give one such as X-Forwarded-For, or nothing");
        return None;
    }
    Some(text.to_ascii_lowercase()).filter(|name| !name.is_empty())
}
