//! Sends events to a server, as NDJSON. Events without a receipt are sent again: the ids make that
//! safe.

use crate::sink::{Receipt, RejectedEvent, Sink};
use anyhow::Context;
use raingauge_console::{Client, Method, client, note};
use raingauge_core::code::Code;
use raingauge_core::event::Event;
use raingauge_core::time::format_rfc3339;
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Connections, each with a batch in flight.
const SENDERS: usize = 3;
/// How long a batch is retried before the import gives up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Delay before the first retry after a lost connection; it doubles from one to the next, up to a
/// second.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

const NDJSON: [(&str, &str); 1] = [("content-type", "application/x-ndjson")];

pub struct Http {
    client: Client,
}

impl Http {
    /// Fails at once, and not after many retries, when no server answers.
    pub fn connect(client: Client) -> anyhow::Result<Self> {
        client.get("/healthz", &[])?;
        Ok(Self { client })
    }

    /// Posts lines until it gets an answer that a retry would not change.
    fn post(&self, path: &str, lines: &[u8]) -> anyhow::Result<Value> {
        let began = Instant::now();
        let mut backoff = BACKOFF;

        loop {
            let error = match self.client.send(Method::POST, path, &NDJSON, lines) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = match &error {
                client::Error::Unreachable { url, reason } => {
                    if backoff == BACKOFF {
                        note(&format!("the connection to {url} is lost ({reason}): trying again"));
                    }
                    backoff
                }
                client::Error::Untrusted { .. } => return Err(error.into()),
                client::Error::Refused { status, retry_after, .. } => match status.as_u16() {
                    429 | 503 => retry_after.unwrap_or(backoff),
                    502 | 504 => backoff,
                    _ => return Err(error.into()),
                },
            };

            if began.elapsed() + wait > PATIENCE {
                return Err(error).context(format!("given up after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(wait);
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }
}

impl Sink for Http {
    type Payload = Vec<u8>;

    fn senders(&self) -> usize {
        SENDERS
    }

    fn begin(&self) -> anyhow::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn push(&self, payload: &mut Vec<u8>, event: Event<'_>) -> anyhow::Result<()> {
        push_line(&event, payload);
        Ok(())
    }

    fn send(&self, payload: Vec<u8>) -> anyhow::Result<Receipt> {
        receipt_of(&self.post("/v1/events", &payload)?)
            .context("the server's receipt cannot be read")
    }

    /// Sends the last event once more, and waits for it: everything that was sent earlier precedes
    /// it in the log.
    fn wait_applied(&self, last: Option<Vec<u8>>) -> anyhow::Result<bool> {
        let Some(line) = last else { return Ok(true) };
        // Everything is durable; if counting takes longer, that is no failure.
        let waited = self.post("/v1/events?wait=applied", &line);
        Ok(waited.is_ok_and(|answer| answer["code"] != Code::NotAppliedYet.as_str()))
    }

    fn last_event(payload: &Vec<u8>) -> Option<Vec<u8>> {
        let line = payload.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
        Some(line.to_vec())
    }
}

fn receipt_of(json: &Value) -> Option<Receipt> {
    let refused = |json: &Value| {
        Some(RejectedEvent {
            index: usize::try_from(json["index"].as_u64()?).ok()?,
            code: json["code"].as_str()?.to_owned(),
            detail: json["detail"].as_str()?.to_owned(),
        })
    };
    Some(Receipt {
        accepted: json["accepted"].as_u64()?,
        duplicates: json["duplicates"].as_u64()?,
        rejected: json["rejected"].as_array()?.iter().map(refused).collect::<Option<_>>()?,
    })
}

/// Appends an event as one line of JSON.
pub(crate) fn push_line(event: &Event<'_>, out: &mut Vec<u8>) {
    for (lead, text) in [
        (&br#"{"specversion":"1.0","id":"#[..], &*event.id),
        (br#","source":"#, &event.source),
        (br#","type":"#, &event.kind),
    ] {
        out.extend_from_slice(lead);
        push_text(text, out);
    }

    if let Some(subject) = &event.subject {
        out.extend_from_slice(br#","subject":"#);
        push_text(subject, out);
    }

    let time = format_rfc3339(event.time_s());
    let of_second_ms = event.time_ms.rem_euclid(1_000);
    out.extend_from_slice(br#","time":""#);
    out.extend_from_slice(time.trim_end_matches('Z').as_bytes());

    if of_second_ms > 0 {
        write!(out, ".{of_second_ms:03}").expect("memory takes all that is written to it");
    }
    out.extend_from_slice(b"Z\"");

    if !event.data.is_empty() {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(event.data.as_bytes());
    }

    out.extend_from_slice(b"}\n");
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("memory takes all that is written to it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back_as_the_same_events() {
        for (id, subject, time_ms, data) in [
            ("a:1", None, 1_727_215_430_000, r#"{"zone":7}"#),
            ("quote\" and \\ and \n", Some("é"), 1_727_215_430_007, r#"{"name":"x\n"}"#),
            ("empty", Some("s"), 999, ""),
        ] {
            let event = Event {
                id: id.into(),
                source: "s".into(),
                kind: "t".into(),
                subject: subject.map(Into::into),
                time_ms,
                data,
                refused_keys: Default::default(),
            };

            let mut lines = Vec::new();
            push_line(&event, &mut lines);
            push_line(&event, &mut lines);
            assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2);

            let last = Http::last_event(&lines).unwrap();
            assert_eq!(Event::from_json(&last).unwrap(), event);
        }
        assert_eq!(Http::last_event(&Vec::new()), None);
    }

    #[test]
    fn receipts_are_read_whole_or_not_at_all() {
        let json = serde_json::json!({"accepted": 1, "duplicates": 2, "rejected": [{"index": 3, "code": "c", "detail": "d"}]});
        let receipt = receipt_of(&json).unwrap();
        assert_eq!((receipt.accepted, receipt.duplicates, receipt.rejected[0].index), (1, 2, 3));
        assert_eq!(receipt_of(&Value::Null), None);
    }
}
