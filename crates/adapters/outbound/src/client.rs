//! The client: two pools of connections, so that no request to a public address goes over a
//! connection that was made for one that may be private.

use crate::Options;
use crate::connect::Connector;
use crate::roots::{self, Error};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Uri, http};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Method, Request, Response, SendError, Sender};
use std::time::Duration;

/// Idle connections that are kept for each address.
const IDLE_MAX: usize = 256;
/// How long they are kept: less than the 5 s after which common servers close them, since a request
/// that meets the closing of its connection has to be repeated.
const IDLE_TIME: Duration = Duration::from_secs(4);
/// Longest head of a response, in bytes.
const HEAD_LEN_MAX: usize = 64 * 1024;
/// The name by which receivers know the sender.
const AGENT: &str = concat!("raingauge/", env!("CARGO_PKG_VERSION"));

type Pool = legacy::Client<Connector, Full<Bytes>>;

/// Sends requests of the whole process.
pub struct Client {
    public: Pool,
    private: Pool,
    allow_private_addresses: bool,
}

impl Client {
    pub fn new(options: &Options) -> Result<Self, Error> {
        let tls = roots::tls(options.extra_authorities.as_deref())?;
        let pool = |allow_private| {
            let resolver = options.resolver.clone();
            pool(Connector { resolver, tls: tls.clone(), allow_private })
        };
        Ok(Self {
            public: pool(false),
            private: pool(true),
            allow_private_addresses: options.allow_private_addresses,
        })
    }

    async fn response(&self, request: &Request) -> Result<Response, SendError> {
        let request_http = http_request(request)?;
        let host = request_http.uri().host().unwrap_or_default().to_owned();
        let allow_private = self.allow_private_addresses || request.allow_private;
        let pool = if allow_private { &self.private } else { &self.public };

        let response = pool.request(request_http).await;
        let (head, body) = response.map_err(|error| failure(&host, &error))?.into_parts();
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        let headers =
            head.headers.iter().filter_map(|(name, value)| Some((name.to_string(), text(value)?)));
        let headers = headers.collect();

        let (body, is_cut) = beginning(body, request.response_len_max)
            .await
            .map_err(|error| SendError::Broken { host, why: reason(&error) })?;
        Ok(Response { status: head.status.as_u16(), headers, body, is_cut })
    }
}

impl Sender for Client {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        Box::pin(async move {
            let response = tokio::time::timeout(request.timeout, self.response(request)).await;
            response.unwrap_or(Err(SendError::Late(request.timeout)))
        })
    }
}

fn pool(connector: Connector) -> Pool {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME)
        .pool_max_idle_per_host(IDLE_MAX)
        .http1_max_buf_size(HEAD_LEN_MAX)
        .build(connector)
}

fn http_request(request: &Request) -> Result<http::Request<Full<Bytes>>, SendError> {
    let method = match request.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
    };
    let mut built = http::Request::new(Full::new(Bytes::from(request.body.clone())));
    *built.method_mut() = method;
    *built.uri_mut() = address(&request.url).ok_or(SendError::Address)?;

    let headers = built.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in &request.headers {
        // The values are made by the services of this program, of texts that have no line ends.
        let mut value = HeaderValue::try_from(value).map_err(|_| SendError::Address)?;
        value.set_sensitive(true);
        headers.insert(*name, value);
    }
    Ok(built)
}

/// Reads an absolute address of http or https without a user in it.
fn address(url: &str) -> Option<Uri> {
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let host = uri.host().filter(|host| !host.is_empty())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    // A port that is not one would be read as none.
    let is_whole = authority.len() == host.len() || uri.port_u16().is_some();
    (is_http && is_whole && !authority.contains('@')).then_some(uri)
}

/// Reads at most `len_max` bytes of a body. The connection of a longer one is closed.
async fn beginning(mut body: Incoming, len_max: usize) -> Result<(Vec<u8>, bool), hyper::Error> {
    let hint = body.size_hint().lower().min(len_max as u64);
    let mut read = Vec::with_capacity(hint as usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = len_max - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((read, true));
        }
    }
    Ok((read, false))
}

/// The error of a connector, or what became of a connection.
fn failure(host: &str, error: &legacy::Error) -> SendError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(known) = found.downcast_ref::<SendError>() {
            return known.clone();
        }
        cause = found.source();
    }

    let host = host.to_owned();
    let why = reason(error);
    if error.is_connect() {
        SendError::Unreachable { host, why }
    } else {
        SendError::Broken { host, why }
    }
}

/// The first cause of an error, which names neither headers nor bodies.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(earlier) = cause.source() {
        cause = earlier;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_no_user() {
        for url in ["http://a/", "https://a.example:8443/x?y", "http://[::1]:80", "HTTP://a"] {
            assert!(address(url).is_some(), "{url}");
        }
        let wrong =
            ["", "/", "a", "a:80", "http://", "http://:80/", "http://a:99999/", "http://a:/"];
        for url in
            wrong.into_iter().chain(["http://u:p@a/", "ws://a/", "http://a/ b", "http://[::1"])
        {
            assert!(address(url).is_none(), "{url}");
        }
    }
}
