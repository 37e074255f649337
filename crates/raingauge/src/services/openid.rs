//! The configured OpenID provider, at which people may sign in.

use crate::settings::Settings;
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
    let given = settings.openid.clone();
    let public_url = settings.people.public_url.as_deref();
    let Some(base) = public_url.filter(|_| !given.issuer.is_empty()) else {
        return Ok(None);
    };

    let options = Options {
        issuer: given.issuer,
        client_id: given.client_id,
        client_secret: given.client_secret,
        scopes: given.scopes.split_whitespace().map(str::to_owned).collect(),
        groups_claim: given.groups_claim,
        redirect_url: format!("{base}{OPENID_BACK}"),
    };
    let provider =
        Provider::new(options, clock).map_err(|problem| anyhow!("openid.issuer: {problem}"))?;
    let rules = Rules {
        label: given.label,
        domains: given.domains,
        role: given.role,
        groups: given.groups,
    };

    Ok(Some(openid::OpenId { provider: Arc::new(provider), rules }))
}
