//! Encrypted connections, to a server that takes no others.

use crate::server::PrivateServer;
use crate::support::says;
use raingauge_ports::catalog::Catalog;
use raingauge_ports::contract::catalog::{change, counter};
use raingauge_sql::{MySqlCatalog, MySqlOptions, MySqlTls};
use std::path::{Path, PathBuf};
use std::process::Command;

#[tokio::test]
async fn the_server_is_checked_as_far_as_asked() {
    let certificates = tempfile::tempdir().unwrap();
    let file = |name: &str| certificates.path().join(name);
    let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    make_certificates(certificates.path());

    let options = [
        option("ssl-ca", file("ca.pem")),
        option("ssl-cert", file("server.pem")),
        option("ssl-key", file("server.key")),
    ];

    let [ca, certificate, key] = options.each_ref().map(String::as_str);
    let Some(server) = PrivateServer::start(&[ca, certificate, key]).await else {
        return;
    };
    let databases = server.databases();
    let plain = databases.database().await;

    databases.run("", "SET GLOBAL require_secure_transport = 1").await;
    let with = |tls, ca_path: Option<&str>| MySqlOptions {
        tls,
        ca_path: ca_path.map(file),
        ..plain.clone()
    };

    // The certificate is one for localhost, and the address says 127.0.0.1.
    let named = plain.url.replace("127.0.0.1", "localhost");
    let named = |ca: &str| MySqlOptions {
        url: named.clone(),
        ..with(Some(MySqlTls::VerifyIdentity), Some(ca))
    };

    for good in [
        with(None, None),
        with(Some(MySqlTls::Required), None),
        with(Some(MySqlTls::VerifyCa), Some("ca.pem")),
        named("ca.pem"),
        MySqlOptions::new(format!(
            "{}?ssl-mode=verify_ca&ssl-ca={}",
            plain.url,
            file("ca.pem").display()
        )),
    ] {
        let catalog = MySqlCatalog::open(&good).await.unwrap();
        catalog.revision().await.unwrap();
    }

    MySqlCatalog::open(&named("ca.pem"))
        .await
        .unwrap()
        .create(counter("a"), change(""))
        .await
        .unwrap();

    for bad in [
        with(Some(MySqlTls::VerifyCa), Some("other.pem")),
        with(Some(MySqlTls::VerifyCa), None),
        with(Some(MySqlTls::VerifyIdentity), Some("ca.pem")),
        named("other.pem"),
    ] {
        says(MySqlCatalog::open(&bad).await, "look at ssl-mode and ssl-ca");
    }

    let missing = with(Some(MySqlTls::VerifyCa), Some("missing.pem"));
    says(MySqlCatalog::open(&missing).await, "a file that the address names cannot be opened");

    // MySQL and MariaDB refuse it with different numbers.
    says(MySqlCatalog::open(&with(Some(MySqlTls::Disabled), None)).await, "encrypt");
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_refused_when_that_is_asked() {
    let Some(server) = PrivateServer::start(&["--skip-ssl"]).await else {
        return;
    };
    let plain = server.databases().database().await;
    MySqlCatalog::open(&plain).await.unwrap();
    let options = MySqlOptions { tls: Some(MySqlTls::Required), ..plain };
    says(
        MySqlCatalog::open(&options).await,
        "look at ssl-mode and ssl-ca (server does not support TLS)",
    );
}

/// An authority, a server of its own for `localhost`, and another authority, by the command of
/// OpenSSL.
fn make_certificates(folder: &Path) {
    let make = |arguments: &[&str]| {
        let made = Command::new("openssl")
            .args(arguments)
            .current_dir(folder)
            .output()
            .expect("openssl is needed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };

    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    for (name, subject) in [("ca", "/CN=Rain"), ("other", "/CN=Snow")] {
        let key_file = format!("{name}.key");
        let certificate = format!("{name}.pem");
        let own = [
            "req",
            "-x509",
            "-days",
            "2",
            "-subj",
            subject,
            "-keyout",
            &key_file,
            "-out",
            &certificate,
        ];
        make(&[&own[..], &key[..]].concat());
    }

    let request = ["req", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"];
    make(&[&request[..], &key[..]].concat());
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").unwrap();

    make(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        "server.pem",
    ]);
}
