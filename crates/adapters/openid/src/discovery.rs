//! Discovery: the endpoints and keys of a provider. Read at the first sign-in, so that a provider
//! that is down never prevents a start, and kept for an hour.

use crate::http::{self, Http};
use openidconnect::core::CoreProviderMetadata;
use openidconnect::{DiscoveryError, IssuerUrl};
use raingauge_ports::clock::Clock;
use raingauge_ports::identity::Error;
use std::error::Error as _;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long the metadata is used without being read again.
const KEEP_MS: i64 = 3_600_000;
/// Shortest time between two reads, successful or not, so that callers cannot drive requests to the
/// provider.
const PAUSE_MS: i64 = 5_000;

/// The provider's metadata as last read.
pub struct Discovery {
    issuer: IssuerUrl,
    clock: Arc<dyn Clock>,
    /// Held while reading, so that concurrent callers wait for the same answer.
    known: Mutex<State>,
}

#[derive(Default)]
struct State {
    provider: Option<Arc<CoreProviderMetadata>>,
    looked_at_ms: Option<i64>,
    /// Why the last read failed.
    trouble: Option<String>,
}

impl Discovery {
    pub fn new(issuer: IssuerUrl, clock: Arc<dyn Clock>) -> Self {
        Self { issuer, clock, known: Mutex::default() }
    }

    /// Returns the metadata read within the last hour or, if the provider is down, the last known
    /// one.
    pub async fn provider(&self, http: &Http) -> Result<Arc<CoreProviderMetadata>, Error> {
        self.read(http, KEEP_MS).await
    }

    /// Reads the metadata again, because the provider's keys have changed.
    pub async fn renewed(&self, http: &Http) -> Result<Arc<CoreProviderMetadata>, Error> {
        self.read(http, PAUSE_MS).await
    }

    async fn read(&self, http: &Http, keep_ms: i64) -> Result<Arc<CoreProviderMetadata>, Error> {
        let mut known = self.known.lock().await;
        let now_ms = self.clock.now_ms();
        let pause_ms = if known.trouble.is_some() { PAUSE_MS } else { keep_ms };
        let is_due = known.looked_at_ms.is_none_or(|at_ms| now_ms - at_ms >= pause_ms);
        if is_due {
            // The caller may go away during the request, so the state changes only when there is an
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
