//! Builds the portal from the settings.

use crate::services;
use crate::settings::Settings;
use raingauge_app::App;
use raingauge_people::Options;
use raingauge_portal::Portal;
use std::net::SocketAddr;
use std::sync::Arc;

/// Returns the pages, over the services of the process.
pub fn open(settings: &Settings, app: &Arc<App>) -> anyhow::Result<Portal> {
    let openid = services::openid(settings, Arc::clone(&app.clock))?;
    Ok(Portal::new(Arc::clone(app), openid))
}

/// Returns the settings about people.
pub fn options(settings: &Settings) -> Options {
    let portal = &settings.people;
    Options {
        sign_in: portal.sign_in,
        passwords: portal.passwords,
        public_url: portal.public_url.clone(),
        has_tls: settings.server.tls.is_some(),
        session_idle_s: portal.session_idle.as_secs() as i64,
        session_max_s: portal.session_max.as_secs() as i64,
        audit_keep_s: portal.audit_keep.as_secs() as i64,
        address_header: portal.address_header.clone(),
        proxies: portal.proxies.clone(),
        asks_for_tokens: settings.auth.is_asked(),
    }
}

/// Returns the portal's address for browsers: the configured one, or the address on which the
/// server listens.
pub fn base(settings: &Settings, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    settings.people.public_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"))
}
