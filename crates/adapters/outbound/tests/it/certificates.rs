//! Certificates of receivers.

use crate::server::Server;
use raingauge_outbound::{Client, Error, Options};
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::contract::campaigns::sender::Reply;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Writes the certificate of an authority, and returns a server whose certificate it signed.
async fn server(path: &Path) -> Server {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    std::fs::write(path, pem).expect("written");
    let issuer = Issuer::new(params, key);

    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate").pem();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("PEM");

    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let acceptor = Arc::new(config.expect("a configuration")).into();
    Server::start_tls(vec![Reply::Answer(Response::of_status(204))], acceptor).await
}

fn request(host: &str, server: &Server) -> Request {
    let url = format!("https://{host}:{}/", server.address.port());
    Request { allow_private: true, ..Request::get(url, Duration::from_secs(5), 100) }
}

#[tokio::test]
async fn only_certificates_of_known_authorities_are_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    let server = server(&path).await;

    let stranger = Client::new(&Options::default()).expect("a client");
    let error = stranger.send(&request("localhost", &server)).await;
    assert!(matches!(error, Err(SendError::Unreachable { .. })), "{error:?}");

    let options = Options { extra_authorities: Some(path), ..Options::default() };
    let client = Client::new(&options).expect("a client");
    let error = client.send(&request("127.0.0.1", &server)).await;
    assert!(matches!(error, Err(SendError::Unreachable { .. })), "another name: {error:?}");
    let response = client.send(&request("localhost", &server)).await;
    assert_eq!(response.expect("a response").status, 204);
}

#[test]
fn a_file_without_certificates_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    let open = || {
        let extra_authorities = Some(path.clone());
        Client::new(&Options { extra_authorities, ..Options::default() })
    };
    assert!(matches!(open(), Err(Error::Authorities { .. })), "there is no file");
    std::fs::write(&path, "no certificate").expect("written");
    assert!(matches!(open(), Err(Error::Authorities { .. })));
}
