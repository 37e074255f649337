use crate::server::{AMPLE, Server, free_port, is_installed, until, works};
use raingauge_ports::cache::ResultCache;
use raingauge_redis::{self as redis, Error, Identity, Options, Tls};
use std::path::Path;
use std::process::{Command, Stdio};

/// An authority, and a certificate for 127.0.0.1 that it signed, in files. False when openssl is
/// missing.
fn certificates(folder: &Path) -> bool {
    let openssl = |arguments: &[&str]| {
        let run = Command::new("openssl")
            .args(arguments)
            .current_dir(folder)
            .stderr(Stdio::null())
            .status();
        run.is_ok_and(|status| status.success())
    };

    let key = ["req", "-newkey", "rsa:2048", "-nodes"];
    let made = std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").is_ok()
        && openssl(
            &[
                &key[..],
                &[
                    "-x509",
                    "-days",
                    "2",
                    "-subj",
                    "/CN=test authority",
                    "-keyout",
                    "ca.key",
                    "-out",
                    "ca.pem",
                ],
            ]
            .concat(),
        )
        && openssl(
            &[&key[..], &["-subj", "/CN=redis", "-keyout", "key.pem", "-out", "request.pem"]]
                .concat(),
        )
        && openssl(&[
            "x509",
            "-req",
            "-in",
            "request.pem",
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
            "certificate.pem",
        ]);

    if !made {
        println!("skipped: openssl cannot make certificates");
    }
    made
}

#[tokio::test]
async fn tls_is_spoken_with_whom_the_authority_vouches_for() {
    let folder = tempfile::tempdir().expect("a folder");
    if !is_installed() || !certificates(folder.path()) {
        return;
    }

    let file = |name: &str| folder.path().join(name).display().to_string();
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
    let port = free_port();
    let tls_port = port.to_string();
    let certificate = file("certificate.pem");

    let key = file("key.pem");
    let authority = file("ca.pem");
    let _server = Server::start(&[
        "--tls-port",
        &tls_port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
    ]);

    let options = |tls| Options {
        tls,
        timeout: AMPLE,
        ..Options::new([format!("rediss://127.0.0.1:{port}")])
    };

    let identity = Some(Identity { certificate: bytes("certificate.pem"), key: bytes("key.pem") });
    let cache =
        redis::Cache::open(&options(Some(Tls { authority: Some(bytes("ca.pem")), identity })))
            .expect("opened");
    until("a connection", async || works(&cache).await).await;

    // The machine does not trust that authority, and Redis demands a client certificate.
    for tls in [None, Some(Tls { authority: Some(bytes("ca.pem")), identity: None })] {
        let cache = redis::Cache::open(&options(tls)).expect("opened");
        assert!(cache.get(vec!["a".to_owned()]).await.is_err());
    }

    let plain = Options { tls: Some(Tls::default()), ..Options::new(["redis://127.0.0.1:1"]) };
    assert!(matches!(redis::Cache::open(&plain), Err(Error::TlsWithoutTls)));

    let broken = Tls { authority: Some(b"no certificate".to_vec()), identity: None };
    let error = redis::Cache::open(&options(Some(broken))).err().expect("refused").to_string();
    assert!(error.contains("certificates"), "{error}");
}
