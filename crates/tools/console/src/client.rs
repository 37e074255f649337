//! The HTTP client of the command line: one address, one token, JSON in and out, problems as
//! sentences.

use anyhow::{Context, anyhow};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use rustls::crypto::aws_lc_rs;
use rustls::{AlertDescription, CertificateError};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub use ureq::http::Method;
use ureq::http::request::Builder;
use ureq::http::{Request, Response, StatusCode, header};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, SendBody};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for a whole request; the server has a shorter limit, and reports when it is
/// exceeded.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Connections that are kept open between requests.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Why a request got no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server answered, or the connection broke: the request may have taken effect.
    #[error(
        "no raingauge answers at {url}: {reason}; start one with `raingauge serve`, name another with --server, or work on a data folder with --data-dir"
    )]
    Unreachable { url: String, reason: String },
    /// The TLS handshake failed.
    #[error("{url} and this command do not agree on TLS: {reason}; {advice}")]
    Untrusted { url: String, reason: String, advice: &'static str },
    /// The server answered with a problem.
    #[error("{}", sentence(problem))]
    Refused { status: StatusCode, retry_after: Option<Duration>, problem: Value },
}

/// Whom the client trusts, and how it shows who it is, when the address begins with https.
#[derive(Clone, Debug, Default, Args)]
pub struct Trust {
    /// Authority that signed the certificate of the server, PEM; without one, those that the system
    /// trusts
    #[arg(long, env = "RAINGAUGE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Certificate of this client, PEM, for a server that asks for one
    #[arg(long, env = "RAINGAUGE_CERTIFICATE_FILE", value_name = "FILE", requires = "key_file")]
    pub certificate_file: Option<PathBuf>,
    /// Private key of that certificate, PEM
    #[arg(long, env = "RAINGAUGE_KEY_FILE", value_name = "FILE", requires = "certificate_file")]
    pub key_file: Option<PathBuf>,
}

impl Trust {
    fn config(&self) -> anyhow::Result<TlsConfig> {
        let roots = match &self.ca_file {
            Some(path) => certificates(path)?,
            None => system_roots()?,
        };
        let own = match (&self.certificate_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                Some(ClientCert::new_with_certs(&certificates(certificate)?, private_key(key)?))
            }
            _ => None,
        };

        let config =
            TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).client_cert(own);
        Ok(config
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
            .build())
    }
}

/// Returns the authorities that the system trusts. Those that cannot be read are left out.
fn system_roots() -> anyhow::Result<Vec<Certificate<'static>>> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(anyhow!(
            "this system trusts no authority: name the one of the server with --ca-file"
        ));
    }
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

fn certificates(path: &Path) -> anyhow::Result<Vec<Certificate<'static>>> {
    let pem = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let items = parse_pem(&pem).collect::<Result<Vec<_>, _>>();
    let items = items.with_context(|| format!("{} is not PEM", path.display()))?;
    let found: Vec<_> = items
        .into_iter()
        .filter_map(|item| {
            if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None }
        })
        .collect();

    if found.is_empty() {
        return Err(anyhow!("there is no certificate in {}", path.display()));
    }
    Ok(found)
}

fn private_key(path: &Path) -> anyhow::Result<PrivateKey<'static>> {
    let pem = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    PrivateKey::from_pem(&pem)
        .with_context(|| format!("there is no private key in {}", path.display()))
}

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    url: String,
    authorization: Option<String>,
}

impl Client {
    pub fn new(url: &str, token: Option<&str>, trust: &Trust) -> anyhow::Result<Self> {
        let url = url.trim_end_matches('/');
        let has_tls = url.starts_with("https://");
        if !has_tls && !url.starts_with("http://") {
            return Err(anyhow!(
                "the server must be given as http://HOST:PORT or https://HOST:PORT, not as {url:?}"
            ));
        }

        let tls = if has_tls { trust.config()? } else { TlsConfig::default() };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            // Count servers are nearby; a web proxy is not meant for them.
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT));

        let authorization = token.map(|token| format!("Bearer {token}"));
        Ok(Self { agent: config.build().into(), url: url.to_owned(), authorization })
    }

    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, Error> {
        let path = with_parameters(path, parameters);
        self.send(Method::GET, &path, &[], &[])
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let json = [(header::CONTENT_TYPE.as_str(), "application/json")];
        self.send(Method::POST, path, &json, body.to_string().as_bytes())
    }

    /// Sends a request, with or without a body.
    pub fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Value, Error> {
        let request = self.request(method, path, headers);
        let unreachable = |error: ureq::Error| self.unreachable(&error);
        let response = if body.is_empty() {
            self.agent.run(request.body(()).map_err(|error| unreachable(error.into()))?)
        } else {
            self.agent.run(request.body(body).map_err(|error| unreachable(error.into()))?)
        };

        self.read(response.map_err(unreachable)?)
    }

    /// Sends a body that is read while it is sent, and may take as long as it keeps moving.
    pub fn upload(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &mut dyn Read,
    ) -> Result<Value, Error> {
        let unreachable = |error: ureq::Error| self.unreachable(&error);
        let request = self.request(method, path, headers);
        let request = request.body(SendBody::from_reader(body));
        let request = request.map_err(|error| unreachable(error.into()))?;
        let request = self.agent.configure_request(request).timeout_global(None).build();
        self.read(self.agent.run(request).map_err(unreachable)?)
    }

    fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Builder {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let own = self.authorization.as_deref();
        own.map(|value| (header::AUTHORIZATION.as_str(), value))
            .into_iter()
            .chain(headers.iter().copied())
            .fold(request, |request, (name, value)| request.header(name, value))
    }

    fn read(&self, mut response: Response<ureq::Body>) -> Result<Value, Error> {
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after =
            retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.unreachable(&error))?;
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);

        if status.is_success() {
            return Ok(json);
        }
        let problem = match json {
            Value::Object(_) => json,
            _ => {
                serde_json::json!({ "detail": format!("{} answered {status}; is it a raingauge?", self.url) })
            }
        };
        Err(Error::Refused { status, retry_after, problem })
    }

    fn unreachable(&self, error: &ureq::Error) -> Error {
        let url = self.url.clone();
        match tls_error(error) {
            Some(tls) => Error::Untrusted { url, reason: tls.to_string(), advice: advice(tls) },
            None => Error::Unreachable { url, reason: error.to_string() },
        }
    }
}

/// Returns the TLS error that an error of the client is, or wraps.
fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn advice(error: &rustls::Error) -> &'static str {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    match error {
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "ask the server by a name that its certificate has"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "give the server a new certificate, or look at the clock of this machine",
        rustls::Error::InvalidCertificate(_) => {
            "name the authority that signed the certificate of the server with --ca-file or RAINGAUGE_CA_FILE"
        }
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::CertificateUnknown,
        ) => {
            "the server wants a certificate of this client that its authority signed: --certificate-file and --key-file"
        }
        rustls::Error::InvalidMessage(_) => {
            "does the server speak TLS at all? Without it, it is asked by http://"
        }
        _ => "look at the log of the server",
    }
}

/// Returns the sentence of a problem document, with its code.
fn sentence(problem: &Value) -> String {
    let detail = problem["detail"].as_str().unwrap_or("the server gave no reason");
    match problem["code"].as_str() {
        Some(code) => format!("{detail} ({code})"),
        None => detail.to_owned(),
    }
}

/// Percent-encodes a value for a path, a query or a form, except what RFC 3986 leaves unreserved.
pub fn encoded(value: &str) -> PercentEncode<'_> {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(value, RESERVED)
}

fn with_parameters(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (at, (name, value)) in parameters.iter().enumerate() {
        whole.push(if at == 0 { '?' } else { '&' });
        whole.push_str(name);
        whole.push('=');
        whole.extend(encoded(value));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded() {
        let path = with_parameters("/v1/counts", &[("key", "a:b c%3A&é"), ("fromTime", "0")]);
        assert_eq!(path, "/v1/counts?key=a%3Ab%20c%253A%26%C3%A9&fromTime=0");
        assert_eq!(with_parameters("/healthz", &[]), "/healthz");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for url in ["127.0.0.1:8080", "ftp://counts.example", "", "file:///etc"] {
            let error = Client::new(url, None, &Trust::default()).err().unwrap().to_string();
            assert!(error.contains("http://HOST:PORT"), "{error}");
        }
    }
}
