//! Where Redis is, and how it is reached.

use redis::{ClientTlsConfig, TlsCertificates};
use std::fmt;
use std::time::Duration;

/// Why Redis cannot even be tried.
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
    /// `redis://[[user]:password@]host:port[/database]`, with `rediss` for TLS. Of a cluster, any
    /// of its nodes.
    pub urls: Vec<String>,
    pub cluster: bool,
    pub tls: Option<Tls>,
    /// The longest that one call may take, connecting and everything.
    pub timeout: Duration,
    /// How many times as fast as the machine's clock that of the service runs, by which sums
    /// expire.
    pub clock_factor: u32,
}

impl Options {
    pub const TIMEOUT: Duration = Duration::from_millis(20);

    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        Self { urls, cluster: false, tls: None, timeout: Self::TIMEOUT, clock_factor: 1 }
    }
}

/// Addresses may hold a password.
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

/// What TLS needs beside what the machine trusts anyway.
#[derive(Clone, Default)]
pub struct Tls {
    /// The authority that signed the certificate of Redis, as PEM; without one, those that the
    /// machine trusts.
    pub authority: Option<Vec<u8>>,
    /// Who we are, where Redis asks for it.
    pub identity: Option<Identity>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

impl Options {
    /// Certificates as the client takes them, when any are given.
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

/// What begins a certificate in PEM. Without any, the client would trust nobody, and say so only
/// when it connects.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// How long a connection may take to come about. Calls do not wait for it beyond their own time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An error of reading the options, told without the address, which may hold a password.
pub(crate) fn refused(error: &redis::RedisError) -> Error {
    match error.kind() {
        redis::ErrorKind::InvalidClientConfig => Error::Url(error.to_string()),
        _ => Error::Certificates(error.to_string()),
    }
}
