//! What a provider says of itself: its endpoints and its keys. Read when somebody first signs in,
//! so that a provider that is away keeps nobody from starting, and kept for an hour.

use crate::http::{self, Http};
use openidconnect::core::CoreProviderMetadata;
use openidconnect::{DiscoveryError, IssuerUrl};
use raingauge_ports::clock::Clock;
use raingauge_ports::identity::Error;
use std::error::Error as _;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long what was read is kept without another look.
const KEEP_MS: i64 = 3_600_000;
/// Shortest time between two looks, however they went: nobody drives requests to the provider by
/// asking here.
const PAUSE_MS: i64 = 5_000;

/// The provider as it was read last.
pub struct Discovery {
    issuer: IssuerUrl,
    clock: Arc<dyn Clock>,
    /// Held while reading, so that those who come meanwhile wait for the one answer.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    provider: Option<Arc<CoreProviderMetadata>>,
    looked_at_ms: Option<i64>,
    /// Why the last look failed.
    trouble: Option<String>,
}

impl Discovery {
    pub fn new(issuer: IssuerUrl, clock: Arc<dyn Clock>) -> Self {
        Self { issuer, clock, known: Mutex::default() }
    }

    /// The provider, as it was read within the last hour or, where it is away by now, before.
    pub async fn provider(&self, http: &Http) -> Result<Arc<CoreProviderMetadata>, Error> {
        self.read(http, KEEP_MS).await
    }

    /// The provider as it is now: its keys have changed.
    pub async fn renewed(&self, http: &Http) -> Result<Arc<CoreProviderMetadata>, Error> {
        self.read(http, PAUSE_MS).await
    }

    async fn read(&self, http: &Http, keep_ms: i64) -> Result<Arc<CoreProviderMetadata>, Error> {
        let mut known = self.known.lock().await;
        let now_ms = self.clock.now_ms();
        let pause_ms = if known.trouble.is_some() { PAUSE_MS } else { keep_ms };
        let is_due = known.looked_at_ms.is_none_or(|at_ms| now_ms - at_ms >= pause_ms);
        if is_due {
            // Whoever asked may go away meanwhile: what is known changes only when there is an
            // answer.
            let found = CoreProviderMetadata::discover_async(self.issuer.clone(), http).await;
            known.looked_at_ms = Some(self.clock.now_ms());
            known.trouble = found.as_ref().err().map(|error| self.troubled(error));
            known.provider = found.ok().map(Arc::new).or(known.provider.take());
        }

        let trouble = known.trouble.clone().unwrap_or_default();
        known.provider.clone().ok_or(Error::Unavailable(trouble))
    }

    fn troubled(&self, error: &DiscoveryError<http::Error>) -> String {
        let because = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        tracing::warn!(
            issuer = self.issuer.as_str(),
            "the OpenID provider cannot be read: {error}{because}"
        );
        format!("{error}{because}")
    }
}
