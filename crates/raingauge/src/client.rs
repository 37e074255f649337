//! The HTTP client of the command line: one address, one token, JSON in and out, problems as sentences.

use anyhow::anyhow;
use serde_json::Value;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Method, Request, Response, StatusCode, header};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time that a whole request may take; the server has a shorter one, and says so when it is over.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Connections that are kept open between requests.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Why a request brought no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answered, or the connection broke: the request may have taken effect.
    #[error(
        "no raingauge answers at {url}: {reason}; start one with `raingauge serve`, name another with --server, or work on a data folder with --data-dir"
    )]
    Unreachable { url: String, reason: String },
    /// The server answered with a problem.
    #[error("{}", sentence(problem))]
    Refused { status: StatusCode, retry_after: Option<Duration>, problem: Value },
}

/// Talks to one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    url: String,
    authorization: Option<String>,
}

impl Client {
    pub fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let url = url.trim_end_matches('/');
        if !url.starts_with("http://") {
            return Err(anyhow!(
                "the server must be given as http://HOST:PORT, not as {url:?}; this version speaks no TLS"
            ));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Servers of counts are near by; a proxy for the web is none for them.
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

    /// Sends any request. Without a body, none is sent.
    pub fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Value, Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let unreachable = |error: ureq::Error| self.unreachable(&error);
        let response = if body.is_empty() {
            self.agent.run(request.body(()).map_err(|error| unreachable(error.into()))?)
        } else {
            self.agent.run(request.body(body).map_err(|error| unreachable(error.into()))?)
        };
        self.read(response.map_err(unreachable)?)
    }

    fn read(&self, mut response: Response<ureq::Body>) -> Result<Value, Error> {
        let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.unreachable(&error))?;
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(json);
        }
        let problem = match json {
            Value::Object(_) => json,
            _ => serde_json::json!({ "detail": format!("{} answered {status}; is it a raingauge?", self.url) }),
        };
        Err(Error::Refused { status, retry_after, problem })
    }

    fn unreachable(&self, error: &ureq::Error) -> Error {
        Error::Unreachable { url: self.url.clone(), reason: error.to_string() }
    }
}

/// What a problem document says, with its code.
fn sentence(problem: &Value) -> String {
    let detail = problem["detail"].as_str().unwrap_or("the server gave no reason");
    match problem["code"].as_str() {
        Some(code) => format!("{detail} ({code})"),
        None => detail.to_owned(),
    }
}

fn with_parameters(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (at, (name, value)) in parameters.iter().enumerate() {
        whole.push(if at == 0 { '?' } else { '&' });
        whole.push_str(name);
        whole.push('=');
        push_encoded(value, &mut whole);
    }
    whole
}

/// Percent-encodes everything that RFC 3986 does not leave unreserved.
fn push_encoded(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
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
        for url in ["127.0.0.1:8080", "https://counts.example", "", "file:///etc"] {
            let error = Client::new(url, None).err().unwrap().to_string();
            assert!(error.contains("http://HOST:PORT"), "{error}");
        }
    }
}
