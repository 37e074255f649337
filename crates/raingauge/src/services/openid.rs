//! The configured OpenID provider, at which people may sign in.

use crate::settings::{OpenId, Settings};
use anyhow::anyhow;
use raingauge_openid::{Options, Provider};
use raingauge_people::openid::{self, Rules};
use raingauge_portal::OPENID_BACK;
use raingauge_ports::clock::Clock;
use std::sync::Arc;

/// Sends the provider no request yet: a provider that is away does not prevent the start.
pub fn openid(
    settings: &Settings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<openid::OpenId>> {
    let OpenId {
        issuer,
        client_id,
        client_secret,
        scopes,
        label,
        domains,
        role,
        groups_claim,
        groups,
    } = settings.portal.openid.clone();

    let Some(base) = settings.portal.public_url.as_deref().filter(|_| !issuer.is_empty()) else {
        return Ok(None);
    };
    let redirect_url = format!("{base}{OPENID_BACK}");
    let options = Options { issuer, client_id, client_secret, scopes, groups_claim, redirect_url };
    let provider =
        Provider::new(options, clock).map_err(|problem| anyhow!("openid.issuer: {problem}"))?;
    let rules = Rules { label, domains, role, groups };

    Ok(Some(openid::OpenId { provider: Arc::new(provider), rules }))
}
