//! A request that shows whether a destination can be reached and knows the secret.

use crate::attempt::{self, Report};
use crate::destination::Destination;
use crate::secrets::Secrets;
use raingauge_campaigns::retry::Verdict;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::clock::Clock;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// The kind of a probe, which receivers ignore as they do every kind that they do not know.
const KIND: &str = "raingauge.probe";

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What the receiver got as `webhook-id`.
    pub id: String,
    /// The status of the response, if there is one.
    pub status: Option<u16>,
    /// Whether a delivery would have been accepted.
    pub is_accepted: bool,
    /// The status or the error, for people.
    pub note: String,
    pub took: Duration,
}

pub async fn probe(destination: &Destination, sender: &dyn Sender, clock: &dyn Clock) -> Probe {
    let began = Instant::now();
    let now_ms = clock.now_ms();
    let id = format!("probe_{now_ms}");
    let secrets = match Secrets::of(destination.secret.clone()).current() {
        Ok(secrets) => secrets,
        Err(error) => {
            let note = error.to_string();
            let took = Duration::ZERO;
            return Probe { id, status: None, is_accepted: false, note, took };
        }
    };

    let timestamp = jiff::Timestamp::from_millisecond(now_ms).unwrap_or_default().to_string();
    let body = json!({ "type": KIND, "timestamp": timestamp, "data": {} }).to_string();
    let request =
        attempt::request(destination, &secrets, id.clone(), body.into_bytes(), clock.now_s());
    let result = sender.send(&request).await;
    let Report { verdict, note, .. } = Report::of(&result, clock);

    Probe {
        id,
        status: result.ok().map(|response| response.status),
        is_accepted: verdict == Verdict::Delivered,
        note,
        took: began.elapsed(),
    }
}
