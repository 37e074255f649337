//! TLS of the doors, with certificates from files that can be replaced while the server runs.

use super::expiry;
use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::{Accept, TlsAcceptor};

/// Interval between checks of the files for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The protocols that the doors offer, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of TLS, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate of the server, and those between it and its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Authorities of client certificates; `None` when clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {reason}; name a readable file in PEM", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{}: there is no certificate in it; name a file in PEM", path.display())]
    Empty { path: PathBuf },
    #[error("{} and {}: {reason}; the key must be that of the first certificate", certificate.display(), key.display())]
    Pair { certificate: PathBuf, key: PathBuf, reason: String },
    #[error("{}: {reason}; name the authority that signs the certificates of clients", path.display())]
    ClientCa { path: PathBuf, reason: String },
}

/// The certificate for new connections.
pub struct Certificates {
    files: Files,
    current: ArcSwap<ServerConfig>,
}

impl Certificates {
    pub fn load(files: &Files) -> Result<Arc<Self>, Error> {
        let loaded = load(files)?;
        loaded.note_end();
        Ok(Arc::new(Self { files: files.clone(), current: ArcSwap::new(loaded.config) }))
    }

    /// Begins a connection with the current certificate.
    pub fn accept<S>(&self, stream: S) -> Accept<S>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.current.load_full()).accept(stream)
    }

    /// Loads the files again when they have changed, or at SIGHUP, while it is polled. Open
    /// connections keep their certificate. Files that cannot be used change nothing.
    pub async fn follow(self: Arc<Self>) {
        let mut state = self.state();
        let Ok(mut hangup) = signal(SignalKind::hangup()) else {
            return;
        };

        loop {
            let is_requested = tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => false,
                _ = hangup.recv() => true,
            };
            let now = self.state();
            if now == state && !is_requested {
                continue;
            }
            state = now;
            self.reload();
        }
    }

    fn reload(&self) {
        let outcome = match load(&self.files) {
            Ok(loaded) => {
                loaded.note_end();
                self.current.store(loaded.config);
                tracing::info!(certificate = %self.files.certificate.display(), "a new certificate is in use");
                "done"
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate cannot be used; the one before stays in use");
                "failed"
            }
        };
        metrics::counter!("raingauge_tls_reloads_total", "outcome" => outcome).increment(1);
    }

    /// Returns what changes with the files: modification time, inode and length of each.
    fn state(&self) -> Vec<Option<(i64, i64, u64, u64)>> {
        let files =
            [Some(&self.files.certificate), Some(&self.files.key), self.files.client_ca.as_ref()];
        let state = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), metadata.ino(), metadata.len()))
        };
        files.into_iter().flatten().map(state).collect()
    }
}

/// The contents of the files.
pub struct Loaded {
    config: Arc<ServerConfig>,
    /// When the certificate of the server expires, if that can be read.
    end_s: Option<i64>,
}

impl Loaded {
    fn note_end(&self) {
        if let Some(end_s) = self.end_s {
            metrics::gauge!("raingauge_tls_certificate_end_seconds").set(end_s as f64);
        }
    }
}

/// Reads the files and checks that they belong together.
pub fn load(files: &Files) -> Result<Loaded, Error> {
    let builder = match &files.client_ca {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(path) => {
            let refused = |reason: String| Error::ClientCa { path: path.clone(), reason };
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| refused(error.to_string()))?;
            }

            let verifier = WebPkiClientVerifier::builder(Arc::new(roots));
            ServerConfig::builder().with_client_cert_verifier(
                verifier.build().map_err(|e: VerifierBuilderError| refused(e.to_string()))?,
            )
        }
    };

    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| Error::File { path: files.key.clone(), reason: error.to_string() })?;
    let chain = certificates(&files.certificate)?;
    let end_s = chain.first().and_then(|own| expiry::end_s(own));
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        let certificate = files.certificate.clone();
        let key = files.key.clone();
        Error::Pair { certificate, key, reason: error.to_string() }
    })?;

    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Loaded { config: Arc::new(config), end_s })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read =
        CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    let found =
        read.map_err(|error| Error::File { path: path.to_owned(), reason: error.to_string() })?;
    if found.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    Ok(found)
}
