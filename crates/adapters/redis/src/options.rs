//! Connection options for Redis.

use redis::{ClientTlsConfig, TlsCertificates};
use std::fmt;
use std::time::Duration;

/// Why no connection to Redis can be tried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no address of Redis is given")]
    NoUrl,
    #[error("a single Redis has one address, and {0} are given: is it a cluster?")]
    ManyUrls(usize),
    #[error(
        "an address of Redis must look like redis://host:6379, or rediss://host:6379 with TLS: {0}"
    )]
    Url(String),
    #[error(
        "certificates are given, and the address of Redis is not that of TLS: begin it with rediss://"
    )]
    TlsWithoutTls,
    #[error("the certificates for Redis cannot be used: {0}")]
    Certificates(String),
}

#[derive(Clone)]
pub struct Options {
    /// `redis://[[user]:password@]host:port[/database]`, with `rediss` for TLS. For a cluster, any
    /// of its nodes.
    pub urls: Vec<String>,
    pub cluster: bool,
    pub tls: Option<Tls>,
    /// Longest time of one call, including connecting.
    pub timeout: Duration,
    /// How many times faster than the machine's clock the service's clock runs. Sums expire by the
    /// latter.
    pub clock_factor: u32,
}

impl Options {
    pub const TIMEOUT: Duration = Duration::from_millis(20);

    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        Self { urls, cluster: false, tls: None, timeout: Self::TIMEOUT, clock_factor: 1 }
    }
}

/// Omits the addresses, which may contain a password.
impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { urls, cluster, tls, timeout, clock_factor } = self;
        let mut told = formatter.debug_struct("Options");
        told.field("urls", &urls.len())
            .field("cluster", cluster)
            .field("tls", &tls.is_some())
            .field("timeout", timeout)
            .field("clock_factor", clock_factor);
        told.finish()
    }
}

/// TLS settings in addition to what the machine trusts.
#[derive(Clone, Default)]
pub struct Tls {
    /// The authority that signed the certificate of Redis, as PEM; `None` trusts the authorities of
    /// the machine.
    pub authority: Option<Vec<u8>>,
    /// The client certificate, where Redis requires one.
    pub identity: Option<Identity>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

impl Options {
    /// Returns the certificates in the client's form, if any are given.
    pub(crate) fn certificates(&self) -> Result<Option<TlsCertificates>, Error> {
        if self.urls.is_empty() {
            return Err(Error::NoUrl);
        }
        let with_tls = self.urls.iter().filter(|url| url.starts_with("rediss://")).count();
        let Some(Tls { authority, identity }) = self.tls.clone() else {
            return Ok(None);
        };

        if with_tls < self.urls.len() {
            return Err(Error::TlsWithoutTls);
        }

        if authority
            .as_ref()
            .is_some_and(|pem| !pem.windows(CERTIFICATE.len()).any(|bytes| bytes == CERTIFICATE))
        {
            return Err(Error::Certificates(
                "the authority is not a certificate in PEM".to_owned(),
            ));
        }

        let identity = identity.map(|Identity { certificate, key }| ClientTlsConfig {
            client_cert: certificate,
            client_key: key,
        });
        Ok(Some(TlsCertificates { client_tls: identity, root_cert: authority }))
    }
}

/// The first line of a PEM certificate. Without a certificate the client would trust no server, and
/// report it only when it connects.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Longest time to open a connection. Calls do not wait for it beyond their own timeout.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An error in the options, without the address, which may contain a password.
pub(crate) fn refused(error: &redis::RedisError) -> Error {
    match error.kind() {
        redis::ErrorKind::InvalidClientConfig => Error::Url(error.to_string()),
        _ => Error::Certificates(error.to_string()),
    }
}
