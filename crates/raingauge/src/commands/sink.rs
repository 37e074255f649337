//! `raingauge sink`: a destination to try campaigns with.

use super::{note, print};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use clap::Args;
use raingauge_campaigns::sign::{Secret, SignedHeaders, Unverified, verify};
use raingauge_ports::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Receive what campaigns send, and print a line for each delivery
///
/// Without a secret it accepts everything, so it is for trying campaigns out: name its address in a
/// destination with allowPrivate. With the secret of the destination it verifies each request as
/// Standard Webhooks asks of a receiver, says whether its signature is valid, and answers 401 where
/// it is not, which is final.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge sink --listen 127.0.0.1:9099")]
pub struct SinkCommand {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9099")]
    listen: SocketAddr,
    /// Secret of the destination, as whsec_ and base64; twice while a new one replaces an old one
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    secret: Vec<Secret>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads a secret. The error does not repeat it.
fn secret(text: &str) -> Result<Secret, String> {
    Secret::parse(text).map_err(|error| error.to_string())
}

/// One delivery, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub path: String,
    /// The id of the action, the same on every attempt.
    pub webhook_id: String,
    pub body: Value,
    /// Whether its signature is valid; `None` where there is no secret to verify it with.
    pub verdict: Option<Result<(), Unverified>>,
}

/// A running receiver. It ends when it is dropped.
pub struct Sink {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

/// What is done with each delivery.
type Show = Arc<dyn Fn(&Received) + Send + Sync>;

/// What a receiver works with.
#[derive(Clone)]
struct Receiver {
    show: Show,
    secrets: Arc<[Secret]>,
}

impl SinkCommand {
    pub fn run(self) -> anyhow::Result<()> {
        let is_json = self.json;
        let show = move |received: &Received| {
            // A reader that wants no more is no reason to refuse deliveries.
            let _ = print(&line(received, is_json));
        };

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut sink = Sink::start(self.listen, Arc::new(show), self.secret).await?;
            note(&format!("listening on http://{}", sink.address));
            Ok((&mut sink.serving).await?)
        })
    }
}

impl Sink {
    /// Begins to listen, on a port of the system's choice if that of the address is 0. Requests are
    /// verified if there are secrets.
    pub async fn start(
        address: SocketAddr,
        show: Show,
        secrets: Vec<Secret>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router =
            Router::new().fallback(take).with_state(Receiver { show, secrets: secrets.into() });
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

async fn take(
    State(receiver): State<Receiver>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed = SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let is_verified = !receiver.secrets.is_empty();
    let verdict =
        is_verified.then(|| verify(&receiver.secrets, signed, &body, SystemClock.now_s()));

    let is_accepted = !matches!(verdict, Some(Err(_)));
    let received = Received {
        path: uri.path().to_owned(),
        webhook_id: signed.id.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        verdict,
    };
    (receiver.show)(&received);
    if is_accepted { StatusCode::NO_CONTENT } else { StatusCode::UNAUTHORIZED }
}

/// A delivery in one line.
pub fn line(received: &Received, is_json: bool) -> String {
    let Received { path, webhook_id, body, verdict } = received;
    if is_json {
        let mut line = json!({ "path": path, "webhookId": webhook_id, "body": body });
        if let Some(verdict) = verdict {
            line["verified"] = json!(verdict.is_ok());
        }
        return line.to_string();
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
    let verdict = match verdict {
        None => String::new(),
        Some(Ok(())) => "  signature valid".to_owned(),
        Some(Err(why)) => format!("  refused: {why}"),
    };
    format!("{time}  {path}  {webhook_id}  {subject}: {what}{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use raingauge_campaigns::sign::signature;

    #[test]
    fn a_delivery_is_one_line() {
        let received = Received {
            path: "/messages".to_owned(),
            webhook_id: "act_1".to_owned(),
            body: json!({
                "timestamp": "2024-09-24T03:00:00Z",
                "data": { "subject": "u-7", "text": "One more" },
            }),
            verdict: None,
        };
        let expected = "2024-09-24T03:00:00Z  /messages  act_1  u-7: One more";
        assert_eq!(line(&received, false), expected);
        assert!(line(&received, true).starts_with(r#"{"body":{"#));

        let valid = Received { verdict: Some(Ok(())), ..received.clone() };
        assert_eq!(line(&valid, false), format!("{expected}  signature valid"));
        let forged = Received { verdict: Some(Err(Unverified::Forged)), ..received };
        assert!(line(&forged, false).starts_with(&format!("{expected}  refused: no signature")));
        assert!(line(&forged, true).ends_with(r#""verified":false,"webhookId":"act_1"}"#));
    }

    #[tokio::test]
    async fn a_forged_delivery_is_refused() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let shown: Arc<Mutex<Vec<bool>>> = Arc::default();
        let own = Arc::clone(&shown);
        let show = move |received: &Received| {
            own.lock().push(matches!(received.verdict, Some(Ok(()))));
        };
        let receiver =
            Receiver { show: Arc::new(show), secrets: Arc::from([secret.clone()].as_slice()) };

        let now_s = SystemClock.now_s();
        for (body, expected) in [("{}", StatusCode::NO_CONTENT), ("{ }", StatusCode::UNAUTHORIZED)]
        {
            let signed = signature(std::slice::from_ref(&secret), "act_1", now_s, b"{}");
            let headers = [
                ("webhook-id", "act_1".to_owned()),
                ("webhook-timestamp", now_s.to_string()),
                ("webhook-signature", signed),
            ];
            let headers = headers.map(|(name, value)| {
                (name.parse().expect("a name"), value.parse().expect("a value"))
            });
            let headers = HeaderMap::from_iter(headers);
            let uri = Uri::from_static("/messages");
            let status = take(State(receiver.clone()), uri, headers, Bytes::from(body)).await;
            assert_eq!(status, expected);
        }
        assert_eq!(*shown.lock(), [true, false]);
    }
}
