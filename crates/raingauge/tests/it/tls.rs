//! TLS of the doors: which clients are accepted, which protocols are offered, and how certificates
//! are renewed.

use crate::client::Client;
use crate::connections::read_to_end;
use crate::grpc::address_of;
use crate::server::{Home, Server, until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

/// Signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key, both PEM.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("parameters");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// A home whose server has a certificate of an authority, with the authority.
fn home_with_tls() -> (Home, Authority) {
    let mut home = Home::with(&[("server.grpc_listen", "127.0.0.1:0")]);
    let authority = Authority::new();
    write(&home, "ca.pem", &authority.pem);
    renew(&home, &authority, "localhost");
    home.set("server.tls_certificate", &path(&home, "server.pem"));
    home.set("server.tls_key", &path(&home, "server.key"));
    (home, authority)
}

fn path(home: &Home, name: &str) -> String {
    home.path().join(name).display().to_string()
}

fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    // Replaces the file atomically, as programs that renew certificates do.
    let new = home.path().join(format!("{name}.new"));
    std::fs::write(&new, text).expect("a file can be written");
    std::fs::rename(&new, &path).expect("a file can be replaced");
    path
}

/// Gives the server of a home a new certificate.
fn renew(home: &Home, authority: &Authority, name: &str) {
    let (certificate, key) = authority.sign(name);
    write(home, "server.key", &key);
    write(home, "server.pem", &certificate);
}

/// The result of a TLS handshake: the certificate of the server, and the protocol.
fn shake(address: &str, authority: &Authority, protocols: &[&[u8]]) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("PEM"))
        .expect("an authority");

    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();

    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut stream = TcpStream::connect(address).expect("the door is open");

    while connection.is_handshaking() {
        connection.complete_io(&mut stream).expect("TLS");
    }
    let certificate = connection.peer_certificates().expect("a certificate")[0].to_vec();
    (certificate, connection.alpn_protocol().map(<[u8]>::to_vec))
}

fn https(server: &Server, authority: &Authority) -> Client {
    Client::https(&server.address, authority.pem.as_bytes())
}

#[test]
fn both_doors_speak_tls_and_offer_both_versions_of_http() {
    let (home, authority) = home_with_tls();
    let server = home.start();
    let grpc = address_of(&server).expect("the address is in the log");
    let both: [&[u8]; 2] = [b"http/1.1", b"h2"];

    for address in [&server.address, &grpc] {
        assert_eq!(shake(address, &authority, &both).1.as_deref(), Some(&b"h2"[..]));
        assert_eq!(shake(address, &authority, &both[..1]).1.as_deref(), Some(&b"http/1.1"[..]));
        assert_eq!(shake(address, &authority, &[]).1, None);
    }

    let client = https(&server, &authority);
    assert_eq!(client.get("/v1/counters").status, 200);

    let page = client.get("/sign-in");
    assert_eq!((page.status, page.header("strict-transport-security").is_empty()), (200, false));

    // A client that does not know of TLS gets an answer that says so.
    server.get("/healthz").expect_problem(400, "tls_required");
}

#[test]
fn a_handshake_has_the_time_of_a_head() {
    let (mut home, authority) = home_with_tls();
    home.set("server.head_timeout_s", "1");
    let server = home.start();
    let silent = TcpStream::connect(&server.address).expect("the door is open");
    let mut slow = TcpStream::connect(&server.address).expect("the door is open");
    slow.write_all(&[0x16, 3, 1, 2]).expect("the beginning of a handshake");
    assert_eq!(read_to_end(silent), "");
    assert_eq!(read_to_end(slow), "");
    let expired = "raingauge_connections_expired_total{door=\"http\",reason=\"handshake\"}";
    assert_eq!(https(&server, &authority).metric(expired), 2.0);
}

#[test]
fn a_new_certificate_is_used_without_a_restart_and_a_bad_one_is_not() {
    let (home, authority) = home_with_tls();
    let server = home.start();
    let client = https(&server, &authority);
    let first = shake(&server.address, &authority, &[]).0;

    write(&home, "server.pem", "no certificate");
    let reloads =
        |outcome| client.metric(&format!("raingauge_tls_reloads_total{{outcome=\"{outcome}\"}}"));
    until("the bad certificate is found", || (reloads("failed") >= 1.0).then_some(()));
    assert_eq!(shake(&server.address, &authority, &[]).0, first);
    assert!(server.errors().contains("the one before stays in use"), "{}", server.errors());

    assert!(client.metric("raingauge_tls_certificate_end_seconds") > 4e9);
    renew(&home, &authority, "localhost");

    let second = until("the new certificate is used", || {
        let now = shake(&server.address, &authority, &[]).0;
        (now != first).then_some(now)
    });

    // SIGHUP does not end the process: it reads the files again at once.
    let before = reloads("done");
    server.signal("HUP");
    until("the files are read", || (reloads("done") > before).then_some(()));
    assert_eq!(shake(&server.address, &authority, &[]).0, second);
}

#[test]
fn files_that_make_no_server_are_refused() {
    let (home, authority) = home_with_tls();
    write(&home, "server.key", &authority.sign("localhost").1);

    for refused in
        [home.try_start().err().expect("it is refused").errors, home.run(&["check-config"]).errors]
    {
        assert!(
            refused.contains("server.key")
                && refused.contains("must be that of the first certificate"),
            "{refused}"
        );
    }

    std::fs::remove_file(home.path().join("server.key")).expect("the file was there");
    let refused = home.try_start().err().expect("it is refused").errors;
    assert!(
        refused.contains("server.key") && refused.contains("name a readable file in PEM"),
        "{refused}"
    );
}

/// The command line over TLS: its errors about a mismatch say what to do.
#[test]
fn the_command_line_speaks_tls() {
    let (mut home, authority) = home_with_tls();
    let other = Authority::new();
    write(&home, "other.pem", &other.pem);

    let server = home.start();
    let list = |home: &Home, server: &Server, options: &[&str]| {
        let url = format!("https://{}", server.address);
        let ran = home.run(&[&["counters", "list", "--server", &url], options].concat());
        (ran.status.success(), ran.errors)
    };

    let ca = path(&home, "ca.pem");
    let wrong = path(&home, "other.pem");
    assert_eq!(list(&home, &server, &["--ca-file", &ca]), (true, String::new()));

    let (ok, errors) = list(&home, &server, &["--ca-file", &wrong]);
    assert!(!ok && errors.contains("--ca-file or RAINGAUGE_CA_FILE"), "{errors}");

    let plain = home.run(&["counters", "list", "--server", &format!("http://{}", server.address)]);
    assert!(plain.errors.contains("ask it by https://"), "{}", plain.errors);
    drop(server);

    // Mutual TLS.
    home.set("server.tls_client_ca", &ca);
    let server = home.start();
    let (certificate, key) = authority.sign("operator");
    let own_key = write(&home, "own.key", &key);
    let own = write(&home, "own.pem", &certificate);
    let own = own.display().to_string();

    let own_key = own_key.display().to_string();
    let shown = ["--ca-file", &ca, "--certificate-file", &own, "--key-file", &own_key];
    assert_eq!(list(&home, &server, &shown), (true, String::new()));

    let (ok, errors) = list(&home, &server, &["--ca-file", &ca]);
    assert!(!ok && errors.contains("--certificate-file and --key-file"), "{errors}");

    let (certificate, key) = other.sign("operator");
    write(&home, "own.pem", &certificate);
    write(&home, "own.key", &key);

    let (ok, errors) = list(&home, &server, &shown);
    assert!(!ok && errors.contains("that its authority signed"), "{errors}");
}
