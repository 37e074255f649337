//! Refuses configurations that would leave the server open to everyone.
//!
//! A loopback address says little about the callers: a proxy on the same machine forwards the whole
//! network. So every sign that others are expected (an address for browsers, a sign-in provider, a
//! proxy's header, required approval) requires authentication.

use super::Settings;
use super::check::Checker;
use raingauge_app::Role;
use raingauge_people::networks::is_loopback_name;

impl Settings {
    /// Refuses a configuration in which strangers would be administrators.
    pub(super) fn anonymous_contradictions(&self, checker: &mut Checker) {
        let portal = &self.portal;
        let public_url = portal.public_url.as_deref().filter(|url| !is_of_this_machine(url));
        if !self.auth.is_asked() {
            for (key, is_set, why) in [
                (
                    "portal.public_url",
                    public_url.is_some(),
                    "browsers of other machines are to come",
                ),
                ("openid.issuer", !portal.openid.issuer.is_empty(), "people are to sign in"),
                (
                    "portal.address_header",
                    portal.address_header.is_some(),
                    "requests are to come through a proxy",
                ),
                ("portal.approval", portal.approval, "a change needs a second person"),
            ] {
                let message = format!(
                    "{why}, and nobody is asked for a token: /v1 would be open to them all"
                );
                let advice = "Set auth.required = true and make tokens in the portal, or run `raingauge token` and put the \
                              hash that it prints into auth.tokens";
                refuse(
                    checker,
                    key,
                    is_set && is_right(checker, &["auth.tokens", "auth.required"]),
                    message,
                    advice,
                );
            }
        }

        let is_open = !portal.sign_in && self.cluster.has(Role::Portal) && public_url.is_some();
        let message =
            "nobody would have to sign in, and portal.public_url says that others are to come"
                .to_owned();
        let advice = "Leave portal.sign_in on, or leave portal.public_url empty";

        refuse(
            checker,
            "portal.sign_in",
            is_open && is_right(checker, &["portal.public_url"]),
            message,
            advice,
        );
    }
}

fn refuse(
    checker: &mut Checker,
    key: &'static str,
    is_refused: bool,
    message: String,
    advice: &str,
) {
    if is_refused && is_right(checker, &[key]) {
        checker.problem(key, checker.origin(key), message, advice);
    }
}

fn is_right(checker: &Checker, keys: &[&str]) -> bool {
    !keys.iter().any(|key| checker.is_wrong(key))
}

/// Whether an address leads to the machine of the caller.
pub(super) fn is_of_this_machine(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    is_loopback_name(host)
}
