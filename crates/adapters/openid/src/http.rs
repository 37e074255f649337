//! Requests to a provider: one connection each, with a limit on time and on bytes, and no
//! redirects, so that requests go only to the discovered endpoints. Over TLS, or to this machine.

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest time of one request, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer: keys and claims take a few KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Why there is no answer. Never contains a body or a header.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} is not an address of http or https")]
    Address(String),
    #[error("{0} is reached without TLS, which is allowed to this machine alone")]
    Plain(String),
    #[error("{place} cannot be reached: {error}")]
    Connect { place: String, error: std::io::Error },
    #[error("{0} did not answer within {seconds} s", seconds = REQUEST_TIMEOUT.as_secs())]
    Late(String),
    #[error("{0} answers more than {ANSWER_BYTES_MAX} bytes")]
    Large(String),
    #[error("{place} does not speak HTTP: {error}")]
    Http { place: String, error: String },
}

/// The HTTP client of the process.
pub struct Http {
    tls: TlsConnector,
}

impl Http {
    /// Trusts the authorities of the machine, or those in the files that `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` name.
    pub fn new() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            tracing::warn!(%error, "a certificate authority of this machine cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { tls: Arc::new(config).into() }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, Error> {
        let place = request.uri().authority().map(Authority::to_string).unwrap_or_default();
        let answer = async {
            let (host, port, is_tls) = target(request.uri())?;
            let unreachable = |error| Error::Connect { place: place.clone(), error };
            let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;

            if !is_tls {
                return exchange(stream, &place, request).await;
            }
            let name = ServerName::try_from(host).map_err(|_| Error::Address(place.clone()))?;
            let stream = self.tls.connect(name, stream).await.map_err(unreachable)?;

            exchange(stream, &place, request).await
        };

        tokio::time::timeout(REQUEST_TIMEOUT, answer)
            .await
            .unwrap_or_else(|_| Err(Error::Late(place.clone())))
    }
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.answer(request))
    }
}

/// Returns host and port of an address, and whether it uses TLS.
fn target(uri: &Uri) -> Result<(String, u16, bool), Error> {
    let wrong = || Error::Address(uri.to_string());
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(wrong()),
    };

    let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
    let is_here =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_tls || is_here {
        Ok((host, uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }), is_tls))
    } else {
        Err(Error::Plain(uri.to_string()))
    }
}

/// Sends a request over a connection of its own, and reads the whole answer.
async fn exchange<S>(stream: S, place: &str, request: HttpRequest) -> Result<HttpResponse, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let broken =
        |error: hyper::Error| Error::Http { place: place.to_owned(), error: error.to_string() };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let asking = async {
        let response = sender.send_request(towards(place, request)?).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Error::Large(place.to_owned())
            } else {
                Error::Http { place: place.to_owned(), error: error.to_string() }
            }
        })?;

        Ok(HttpResponse::from_parts(head, body.to_bytes().to_vec()))
    };

    // The connection ends with the answer.
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        ended = connection => {
            ended.map_err(broken)?;
            asking.await
        }
    }
}

/// The request in the form that servers expect: only the path, and the host in its header.
fn towards(place: &str, request: HttpRequest) -> Result<Request<Full<Bytes>>, Error> {
    let (mut head, body) = request.into_parts();
    let host = HeaderValue::try_from(place).map_err(|_| Error::Address(place.to_owned()))?;
    head.headers.insert(header::HOST, host);
    head.uri =
        head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into();
    Ok(Request::from_parts(head, Full::new(body.into())))
}
