//! The settings of signing in: sessions, proxies, and the provider of OpenID Connect.

use crate::networks::{Network, is_loopback_name};
use core::time::Duration;
use raingauge_core::access::Role;
use raingauge_settings::{Entry, Reader, Setting, settings};
use std::net::IpAddr;

settings! {
    /// How people sign in, and how they reach the portal.
    pub struct Settings in "portal" checked by Settings::check {
        /// Whether people must sign in; without it everyone who reaches the portal is an
        /// administrator, and it must listen on loopback.
        sign_in: bool = switch(true);
        /// Whether people may sign in by passwords; without them they sign in by OpenID Connect,
        /// and by links of raingauge portal invite.
        passwords: bool = switch(true);
        /// How browsers reach the portal, such as https://raingauge.example; with https, cookies
        /// are kept to TLS.
        public_url: Option<String> = text("");
        /// How long after the last page people must sign in again.
        session_idle as "session_idle_hours": Duration = hours(12, 1..=8_760);
        /// How long after signing in people must sign in again, however busy.
        session_max as "session_max_days": Duration = days(14, 1..=365);
        /// How long the audit log keeps its entries.
        audit_keep as "audit_days": Duration = days(1_095, 1..=36_500);
        /// Header in which a proxy in front writes its caller's address, such as X-Forwarded-For;
        /// none where no proxy does, which also ends the warning beside portal.public_url.
        address_header: Option<String> = text("");
        /// Addresses and networks of the proxies whose word in portal.address_header is believed,
        /// with commas.
        proxies: Vec<Network> = text("127.0.0.0/8, ::1");
    } with {
        /// Whether others reach the portal, and their addresses cannot be distinguished, because
        /// the header of a proxy is not read.
        has_one_address: bool = false;
    }
}

settings! {
    /// The provider at which people may sign in, and the rules for them.
    pub struct OpenId in "openid" checked by OpenId::check {
        /// Issuer of the OpenID provider, exactly as it calls itself, such as
        /// https://login.example/realms/rain; empty for passwords alone.
        issuer: String = text("");
        /// Name under which this portal is registered at the provider.
        client_id: String = text("");
        /// Secret of that client; empty for one that proves itself by PKCE alone.
        client_secret: Option<String> = secret();
        /// Scopes that the provider is asked for, with blanks.
        scopes: String = text("openid email profile");
        /// Words on the button.
        label: String = text("Sign in with OpenID Connect");
        /// Domains of e-mail whose people come in without an invitation, with commas; empty for
        /// those alone whose address an administrator has given.
        domains: Vec<String> = text("");
        /// Role of people who come in without an invitation.
        role_name as "role": &'static str = one_of(&["viewer", "editor", "admin"]);
        /// Claim whose values say the role at each sign-in, such as groups; empty for roles that
        /// are given in the portal.
        groups_claim: String = text("");
        /// Roles of its values, such as rain-admins=admin, rain-team=viewer; the highest applies,
        /// and people without one may not enter.
        group_roles as "groups": Vec<String> = text("");
    } with {
        role: Role = Role::Viewer;
        groups: Vec<(String, Role)> = Vec::new();
    }
}

/// The value for a proxy that writes no header.
const NO_HEADER: &str = "none";

impl Settings {
    /// Brings the address and the header into the form in which they are compared.
    fn check(&mut self, reader: &mut Reader) {
        self.public_url = self.public_url.take().and_then(|text| public_url(&text, reader));
        let header = self.address_header.take().and_then(|text| address_header(&text, reader));

        let is_for_others = self.public_url.as_deref().is_some_and(|url| !is_of_this_machine(url));
        self.has_one_address = is_for_others && header.is_none();
        self.address_header = header.filter(|name| name != NO_HEADER);
    }

    /// Compares the two ways to sign in.
    pub fn contradictions(&self, openid: &OpenId, reader: &mut Reader) {
        let has_provider = !openid.issuer.is_empty();
        if !self.passwords && !has_provider && !reader.is_wrong("openid.issuer") {
            reader.refuse(
                "portal.passwords",
                "passwords are switched off, and there is no provider to sign in at",
                "Configure [openid], or leave passwords on",
            );
        }

        if has_provider && self.public_url.is_none() && !reader.is_wrong("portal.public_url") {
            reader.refuse(
                "portal.public_url",
                "people are sent to a provider, and nothing says where it sends them back to",
                "Give the address at which browsers reach the portal, such as \
                 \"https://raingauge.example\"",
            );
        }
    }
}

/// Whether an address leads to the machine of the caller.
pub fn is_of_this_machine(url: &str) -> bool {
    is_loopback_name(url.split_once("://").map_or(url, |(_, host)| host))
}

/// Returns scheme, host and port in lower case, without a slash at the end.
fn public_url(text: &str, reader: &mut Reader) -> Option<String> {
    let url = text.trim_end_matches('/');
    let place = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_host = |char: char| char.is_ascii_alphanumeric() || ".-:[]".contains(char);
    if url.is_empty() {
        return None;
    }

    if place.is_some_and(|place| !place.is_empty() && place.chars().all(is_host)) {
        return Some(url.to_ascii_lowercase());
    }
    let advice = "Give http:// or https://, a host and, where it is not the usual one, a port, \
                  and nothing behind it";
    let message = format!("{text:?} is not the address of a server");
    reader.refuse("portal.public_url", message, advice);
    None
}

fn address_header(text: &str, reader: &mut Reader) -> Option<String> {
    if text.chars().all(|char| char.is_ascii_alphanumeric() || char == '-') {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("{text:?} is not the name of a header");
    let advice = "Give one such as X-Forwarded-For, none, or nothing";
    reader.refuse("portal.address_header", message, advice);
    None
}

impl Entry for Network {
    fn read_all(reader: &mut Reader, setting: &'static Setting) -> Vec<Self> {
        let mut networks = Vec::new();
        for part in reader.value::<Vec<String>>(setting) {
            match part.parse() {
                Ok(network) => networks.push(network),
                Err(error) => reader.refuse(
                    &setting.path(),
                    format!("{part:?} cannot be read: {error}"),
                    "Give addresses and networks, such as 10.0.0.0/8, ::1",
                ),
            }
        }
        networks
    }
}

impl OpenId {
    fn check(&mut self, reader: &mut Reader) {
        self.role = Role::from_name(self.role_name).expect("the words are the roles");
        self.check_issuer(reader);
        self.check_domains(reader);
        self.read_groups(reader);
        if self.issuer.is_empty() {
            return;
        }

        if self.client_id.is_empty() {
            reader.refuse(
                "openid.client_id",
                "people are sent to a provider, and nothing says under which name this portal is \
                 registered there",
                "Register a confidential client with the flow `authorization code` there, and \
                 give its id",
            );
        }

        let is_half = self.groups_claim.is_empty() != self.groups.is_empty();
        if is_half && !reader.is_wrong("openid.groups") {
            let message = "openid.groups_claim and openid.groups go together";
            reader.refuse("openid.groups", message, "Give both, or none");
        }

        let lets_in_admins = self.role == Role::Admin && !self.domains.is_empty();
        if lets_in_admins && !reader.is_wrong("openid.domains") {
            reader.refuse(
                "openid.role",
                "everybody with an address of openid.domains would be an administrator without \
                 an invitation",
                "Give viewer or editor, and make administrators on the page of people or by \
                 openid.groups",
            );
        }
    }

    /// Requires an https address. A provider's keys that come over plain http could be forged,
    /// except on this machine.
    fn check_issuer(&self, reader: &mut Reader) {
        let issuer = &self.issuer;
        let is_plain = |char: char| char.is_ascii_graphic() && !"?#@\"<>\\".contains(char);
        let is_of_provider = match issuer.split_once("://") {
            Some(("https", place)) => !place.is_empty() && !place.starts_with('/'),
            Some(("http", place)) => is_here(place),
            _ => issuer.is_empty(),
        };

        if !is_of_provider || !issuer.chars().all(is_plain) {
            let message = format!("{issuer:?} is not the address of a provider");
            let advice = "Give its issuer, https:// with host and path, exactly as it stands in \
                          its .well-known/openid-configuration; plain http is allowed on this \
                          machine alone";
            reader.refuse("openid.issuer", message, advice);
        }
    }

    fn check_domains(&mut self, reader: &mut Reader) {
        for domain in &mut self.domains {
            *domain = domain.to_ascii_lowercase().trim_start_matches('@').to_owned();
        }

        let is_of_domain = |char: char| char.is_ascii_alphanumeric() || ".-".contains(char);
        let is_domain = |text: &str| !text.is_empty() && text.chars().all(is_of_domain);
        if let Some(wrong) = self.domains.iter().find(|domain| !is_domain(domain)) {
            let message = format!("{wrong:?} is not a domain");
            let advice = "Give what follows the @ of addresses, such as rain.example";
            reader.refuse("openid.domains", message, advice);
        }
    }

    fn read_groups(&mut self, reader: &mut Reader) {
        for part in &self.group_roles {
            let pair = part.rsplit_once('=');
            let pair = pair.map(|(group, role)| (group.trim(), Role::from_name(role.trim())));
            match pair {
                Some((group, Some(role))) if !group.is_empty() => {
                    self.groups.push((group.to_owned(), role));
                }
                _ => reader.refuse(
                    "openid.groups",
                    format!("{part:?} gives no role"),
                    "Give a value of the claim, = and a role (viewer, editor or admin), with \
                     commas between them",
                ),
            }
        }
    }
}

/// Whether host, port and path are on this machine.
fn is_here(place: &str) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
