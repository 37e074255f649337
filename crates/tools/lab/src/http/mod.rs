//! A minimal, hand-written HTTP/1.1 client with little overhead, for the load generator.

pub mod client;
pub mod load;
pub mod response;

/// Address and credentials of the server.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: std::net::SocketAddr,
    pub token: Option<String>,
}

impl Target {
    /// The head of a request with a body of `length` bytes.
    pub fn head(&self, method: &str, path: &str, content_type: &str, length: usize) -> Vec<u8> {
        let authorization = self
            .token
            .as_ref()
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{authorization}content-type: {content_type}\r\n\
             content-length: {length}\r\n\r\n",
            self.address,
        )
        .into_bytes()
    }

    /// A complete request.
    pub fn request(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = self.head(method, path, content_type, body.len());
        bytes.extend_from_slice(body);
        bytes
    }
}

pub const JSON: &str = "application/json";
pub const NDJSON: &str = "application/x-ndjson";
