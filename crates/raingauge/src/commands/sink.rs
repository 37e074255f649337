//! `raingauge sink`: a destination to try campaigns with.

use super::{note, print};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use clap::Args;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Receive what campaigns send, and print a line for each delivery
///
/// It accepts everything, so it is for trying campaigns out: name its address in a destination with
/// allowPrivate.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge sink --listen 127.0.0.1:9099")]
pub struct SinkCommand {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9099")]
    listen: SocketAddr,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One delivery, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub path: String,
    /// The id of the action, the same on every attempt.
    pub webhook_id: String,
    pub body: Value,
}

/// A running receiver. It ends when it is dropped.
pub struct Sink {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

/// What is done with each delivery.
type Show = Arc<dyn Fn(&Received) + Send + Sync>;

impl SinkCommand {
    pub fn run(self) -> anyhow::Result<()> {
        let is_json = self.json;
        let show = move |received: &Received| {
            // A reader that wants no more is no reason to refuse deliveries.
            let _ = print(&line(received, is_json));
        };

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut sink = Sink::start(self.listen, Arc::new(show)).await?;
            note(&format!("listening on http://{}", sink.address));
            Ok((&mut sink.serving).await?)
        })
    }
}

impl Sink {
    /// Begins to listen, on a port of the system's choice if that of the address is 0.
    pub async fn start(address: SocketAddr, show: Show) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(take).with_state(show);
        let serving = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the receiver of deliveries has ended");
            }
        });
        Ok(Self { address, serving })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(show): State<Show>, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let received = Received {
        path: uri.path().to_owned(),
        webhook_id: id.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    show(&received);
    StatusCode::NO_CONTENT
}

/// A delivery in one line.
pub fn line(received: &Received, is_json: bool) -> String {
    let Received { path, webhook_id, body } = received;
    if is_json {
        return json!({ "path": path, "webhookId": webhook_id, "body": body }).to_string();
    }
    let data = &body["data"];
    let member = |name: &str| match &data[name] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    };
    let subject = member("subject").unwrap_or_default();
    let what = ["text", "reward", "points"].into_iter().find_map(member).unwrap_or_default();
    let time = body["timestamp"].as_str().unwrap_or_default();
    format!("{time}  {path}  {webhook_id}  {subject}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_one_line() {
        let received = Received {
            path: "/messages".to_owned(),
            webhook_id: "act_1".to_owned(),
            body: json!({
                "timestamp": "2024-09-24T03:00:00Z",
                "data": { "subject": "u-7", "text": "One more" },
            }),
        };
        assert_eq!(line(&received, false), "2024-09-24T03:00:00Z  /messages  act_1  u-7: One more");
        assert!(line(&received, true).starts_with(r#"{"body":{"#));
    }
}
