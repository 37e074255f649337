//! Requests to the systems of others: deliveries to destinations, and lookups of services.

use crate::BoxFuture;
use std::fmt;
use std::time::Duration;

/// A request, as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// An absolute address of http or https.
    pub url: String,
    /// Names in lower case. `host` and `content-length` are added by the sender.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// Longest time from the name lookup to the last byte of the response.
    pub timeout: Duration,
    /// Most bytes of the response that are read; the rest is cut off.
    pub response_len_max: usize,
    /// Whether the address may be one of a private network, or of this machine.
    pub allow_private: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// A response of any status: redirects are returned like every other one, and not followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case. Values that are not text are left out.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the body was longer than the request allows.
    pub is_cut: bool,
}

/// Why there is no response. Contains neither headers nor a body nor a path, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the address is not one of http or https, or has a user in it")]
    Address,
    /// The name leads to an address that requests must not be sent to.
    #[error(
        "{host} has the address {address}, which is not public; a destination or the setting \
         campaigns.allow_private_addresses may allow it"
    )]
    Private { host: String, address: String },
    /// There was no connection, so the request has not been received.
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    /// The request may have been received.
    #[error("no response within {} ms", .0.as_millis())]
    Late(Duration),
    /// The connection broke, or what came is not HTTP. The request may have been received.
    #[error("the response of {host} broke off: {why}")]
    Broken { host: String, why: String },
}

/// Sends requests, each once: what to repeat is for the caller to decide. A connection that its
/// peer closed before the request was written is replaced.
pub trait Sender: Send + Sync {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>>;
}

impl Request {
    /// A request without headers and body, to a public address.
    pub fn get(url: String, timeout: Duration, response_len_max: usize) -> Self {
        Self {
            method: Method::Get,
            url,
            headers: Vec::new(),
            body: Vec::new(),
            timeout,
            response_len_max,
            allow_private: false,
        }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Without the address, the values of headers and the body, which may contain secrets.
impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        out.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &names)
            .field("body_len", &self.body.len())
            .field("timeout", &self.timeout)
            .field("allow_private", &self.allow_private)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// A response without headers and body.
    pub fn of_status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// The value of the first header of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}
