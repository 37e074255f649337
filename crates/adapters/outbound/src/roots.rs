//! The authorities that certificates are checked against.

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the authorities in {path} cannot be used: {why}")]
    Authorities { path: PathBuf, why: String },
}

/// Trusts the authorities of the machine, or those in the files that `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` name, and those in `extra`.
pub fn tls(extra: Option<&Path>) -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!(%error, "a certificate authority of this machine cannot be read");
    }
    roots.add_parsable_certificates(found.certs);

    if let Some(path) = extra {
        let wrong = |why: String| Error::Authorities { path: path.to_owned(), why };
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let certificates: Vec<CertificateDer<'_>> =
            read.map_err(|error| wrong(error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
    }

    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config).into())
}
