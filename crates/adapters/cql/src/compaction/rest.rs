//! Compaction on Scylla by the REST interface of each node. This machine must reach `api_address`
//! of scylla.yaml.

use super::options::HOST;
use super::progress::together;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use raingauge_ports::maintenance::{Error, Progress};
use serde_json::Value;
use std::net::Ipv6Addr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for an answer that needs no work. A compaction is awaited without a limit.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
const PORT_DEFAULT: u16 = 80;

pub struct Rest {
    url: String,
    keyspace: String,
}

impl Rest {
    pub fn new(url: &str, keyspace: String) -> Result<Self, Error> {
        let rest = Self { url: url.trim_end_matches('/').to_owned(), keyspace };
        rest.address("127.0.0.1", "/").map(|_| rest)
    }

    /// Compacts all tables of the keyspace; the node answers when it has finished.
    pub async fn compact(&self, host: &str) -> Result<(), Error> {
        let path = format!("/storage_service/keyspace_compaction/{}", self.keyspace);
        self.ask(Method::POST, host, &path).await.map(drop)
    }

    /// Stops the compactions of this keyspace only.
    pub async fn stop(&self, host: &str) -> Result<(), Error> {
        let path = format!(
            "/compaction_manager/stop_keyspace_compaction/{}?type=COMPACTION",
            self.keyspace
        );
        self.ask_soon(Method::POST, host, &path).await.map(drop)
    }

    pub async fn progress(&self, host: &str) -> Result<Option<Progress>, Error> {
        let running = self.ask_soon(Method::GET, host, "/compaction_manager/compactions").await?;
        let ours = |one: &&Value| one["ks"] == self.keyspace.as_str();
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let progress = |one: &Value| Progress {
            done: number(&one["completed"]),
            total: number(&one["total"]),
            unit: one["unit"].as_str().unwrap_or("keys").to_owned(),
        };
        Ok(together(running.as_array().into_iter().flatten().filter(ours).map(progress)))
    }

    async fn ask_soon(&self, method: Method, host: &str, path: &str) -> Result<Value, Error> {
        let asked = timeout(ANSWER_TIMEOUT, self.ask(method, host, path)).await;
        asked.unwrap_or_else(|_| {
            Err(Error(format!("{host} did not answer within {} s", ANSWER_TIMEOUT.as_secs())))
        })
    }

    /// Sends a request on its own connection, which closes with the future.
    async fn ask(&self, method: Method, host: &str, path: &str) -> Result<Value, Error> {
        let uri = self.address(host, path)?;
        let failed = |reason: String| Error(format!("{uri}: {reason}"));
        let name = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(PORT_DEFAULT);
        let connecting = TcpStream::connect((name.trim_matches(['[', ']']), port));
        let stream = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| failed(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())))?
            .map_err(|error| failed(format!("{error}: check api_address in scylla.yaml")))?;

        let request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(header::HOST, uri.authority().map_or("", |authority| authority.as_str()))
            .body(Empty::<Bytes>::new())
            .map_err(|error| failed(error.to_string()))?;

        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(error.to_string()))?;
        let answer = async {
            let response =
                sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;

            Ok::<_, Error>((status, body.map_err(|error| failed(error.to_string()))?.to_bytes()))
        };

        let mut answer = std::pin::pin!(answer);
        let (status, body) = tokio::select! {
            answered = &mut answer => answered?,
            // The node has closed the connection; what it sent before must still be read.
            _ = connection => answer.await?,
        };
        read(status, &body).map_err(failed)
    }

    fn address(&self, host: &str, path: &str) -> Result<Uri, Error> {
        let host =
            if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
        let uri = format!("{}{path}", self.url.replace(HOST, &host)).parse::<Uri>();
        uri.ok().filter(|uri| uri.scheme_str() == Some("http") && uri.host().is_some()).ok_or_else(|| {
            Error(format!(
                "maintenance.compaction_url must be http://HOST:PORT, where {HOST} is the node, not {}",
                self.url
            ))
        })
    }
}

/// The JSON of an answer; a node's error has a `message`.
fn read(status: StatusCode, body: &[u8]) -> Result<Value, String> {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    match (status.is_success(), json["message"].as_str()) {
        (true, _) => Ok(json),
        (false, Some(message)) => Err(format!("it answered {status}: {message}")),
        (false, None) => Err(format!("it answered {status}")),
    }
}

#[cfg(test)]
mod tests;
