//! The settings of sign-in by OpenID Connect.

use super::check::Checker;
use raingauge_core::access::Role;
use std::fmt;
use std::net::IpAddr;

/// `Debug` hides its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenId {
    /// Empty while people sign in with passwords alone.
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    pub label: String,
    /// In lower case.
    pub domains: Vec<String>,
    pub role: Role,
    pub groups_claim: String,
    pub groups: Vec<(String, Role)>,
}

impl fmt::Debug for OpenId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "OpenId({} at {})", self.client_id, self.issuer)
    }
}

impl OpenId {
    pub fn read(from: &mut Checker, public_url: Option<&str>) -> Self {
        let openid = Self {
            issuer: issuer(from),
            client_id: from.text("openid", "client_id"),
            client_secret: Some(from.text("openid", "client_secret"))
                .filter(|secret| !secret.is_empty()),
            scopes: from.text("openid", "scopes").split_whitespace().map(str::to_owned).collect(),
            label: from.text("openid", "label"),
            domains: domains(from),
            role: Role::from_name(from.word("openid", "role"))
                .expect("the words of the key are the roles"),
            groups_claim: from.text("openid", "groups_claim"),
            groups: groups(from),
        };

        openid.contradictions(from, public_url);
        openid
    }

    fn contradictions(&self, from: &mut Checker, public_url: Option<&str>) {
        if self.issuer.is_empty() {
            return;
        }
        let is_wrong = from.is_wrong("openid.groups");

        for (is_missing, key, message, advice) in [
            (
                self.client_id.is_empty(),
                "openid.client_id",
                "people are sent to a provider, and nothing says under which name this portal is registered there",
                "Register a confidential client with the flow `authorization code` there, and give its id",
            ),
            (
                public_url.is_none() && !from.is_wrong("portal.public_url"),
                "portal.public_url",
                "people are sent to a provider, and nothing says where it sends them back to",
                "Give the address at which browsers reach the portal, such as \"https://raingauge.example\"",
            ),
            (
                self.groups_claim.is_empty() != self.groups.is_empty() && !is_wrong,
                "openid.groups",
                "openid.groups_claim and openid.groups go together",
                "Give both, or none",
            ),
            (
                self.role == Role::Admin
                    && !self.domains.is_empty()
                    && !from.is_wrong("openid.domains"),
                "openid.role",
                "everybody with an address of openid.domains would be an administrator without an invitation",
                "Give viewer or editor, and make administrators on the page of people or by openid.groups",
            ),
        ] {
            if is_missing {
                from.problem(key, from.origin(key), message.to_owned(), advice);
            }
        }
    }
}

/// Reads an https address. A provider's keys that come over plain http could be forged, except on
/// this machine.
fn issuer(from: &mut Checker) -> String {
    let key = "openid.issuer";
    let issuer = from.text("openid", "issuer");
    let is_plain = |char: char| char.is_ascii_graphic() && !"?#@\"<>\\".contains(char);
    let is_of_provider = match (issuer.strip_prefix("https://"), issuer.strip_prefix("http://")) {
        (Some(place), _) => !place.is_empty() && !place.starts_with('/'),
        (_, Some(place)) => is_here(place),
        _ => false,
    };

    let is_right = issuer.is_empty() || is_of_provider && issuer.chars().all(is_plain);
    if !is_right {
        let message = format!("{issuer:?} is not the address of a provider");
        let advice = "Give its issuer, https:// with host and path, exactly as it stands in its \
                      .well-known/openid-configuration; plain http is allowed on this machine alone";
        from.problem(key, from.origin(key), message, advice);
    }

    issuer
}

/// Whether host, port and path are on this machine.
fn is_here(place: &str) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn domains(from: &mut Checker) -> Vec<String> {
    let key = "openid.domains";
    let text = from.text("openid", "domains").to_ascii_lowercase();
    let domains: Vec<String> =
        parts(&text).map(|domain| domain.trim_start_matches('@').to_owned()).collect();
    let is_domain = |domain: &&String| {
        domain.chars().all(|char| char.is_ascii_alphanumeric() || ".-".contains(char))
    };
    if let Some(wrong) = domains.iter().find(|domain| !is_domain(domain) || domain.is_empty()) {
        let message = format!("{wrong:?} is not a domain");
        from.problem(
            key,
            from.origin(key),
            message,
            "Give what follows the @ of addresses, such as rain.example",
        );
    }

    domains
}

fn groups(from: &mut Checker) -> Vec<(String, Role)> {
    let key = "openid.groups";
    let text = from.text("openid", "groups");
    let mut groups = Vec::new();

    for part in parts(&text) {
        let pair =
            part.rsplit_once('=').map(|(group, role)| (group.trim(), Role::from_name(role.trim())));
        match pair {
            Some((group, Some(role))) if !group.is_empty() => groups.push((group.to_owned(), role)),
            _ => {
                let advice = "Give a value of the claim, = and a role (viewer, editor or admin), with commas between them";
                from.problem(key, from.origin(key), format!("{part:?} gives no role"), advice);
            }
        }
    }

    groups
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}
