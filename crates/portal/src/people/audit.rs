//! The audit log: every change through a page and through `/v1`.
//!
//! Who changes people must be written down, or the change is refused: both lie in the same store. Other changes (of
//! counters, of the cache policy) are made even while that store is away, since counting goes on without it too; what
//! could not be written down is then in the log of the process, loudly.

use axum::http::StatusCode;
use raingauge_ports::clock::Clock;
use raingauge_ports::people::{Entry, Error, People};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of one text of an entry; more is cut off.
const TEXT_LEN_MAX: usize = 512;
/// Bytes of the details of an entry; larger ones are left out.
pub const DETAILS_LEN_MAX: usize = 4_096;

/// What was done, as the one who did it says; put into the extensions of a response. Without it, the audit log goes by
/// the address of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Such as `counter.replace`.
    pub verb: Cow<'static, str>,
    /// Such as `counter 34`.
    pub object: String,
    /// More of it. Never a secret.
    pub details: Json,
}

impl Deed {
    pub const fn new(verb: &'static str, object: String, details: Json) -> Self {
        Self { verb: Cow::Borrowed(verb), object, details }
    }
}

/// A form that leads back to its page, and did nothing: what it would have answered otherwise. Put into the extensions of
/// a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undone(pub StatusCode);

/// Writes the audit log.
#[derive(Clone)]
pub struct Audit {
    people: Arc<dyn People>,
    clock: Arc<dyn Clock>,
}

/// Who did something, from where.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    pub name: &'a str,
    pub address: &'a str,
}

impl Audit {
    pub fn new(people: Arc<dyn People>, clock: Arc<dyn Clock>) -> Self {
        Self { people, clock }
    }

    /// Writes down what somebody did, and how it went: `done`, or the code of the refusal.
    pub async fn deed(&self, actor: Actor<'_>, deed: Deed, outcome: &str) {
        self.note(self.entry(actor, deed, outcome)).await;
    }

    /// Writes down what somebody did; an error where that cannot be done.
    pub async fn record(&self, actor: Actor<'_>, deed: Deed) -> Result<(), Error> {
        self.people.record(self.entry(actor, deed, "done")).await
    }

    fn entry(&self, actor: Actor<'_>, deed: Deed, outcome: &str) -> Entry {
        let details = deed.details.to_string();
        Entry {
            id: 0,
            at_s: self.clock.now_s(),
            who: actor.name.to_owned(),
            address: actor.address.to_owned(),
            verb: deed.verb.into_owned(),
            object: deed.object,
            details: if details.len() <= DETAILS_LEN_MAX { details } else { "{}".to_owned() },
            outcome: outcome.to_owned(),
        }
    }

    /// Writes an entry; when that fails, into the log of the process.
    pub async fn note(&self, entry: Entry) {
        let Entry { who, object, .. } = entry;
        let entry = Entry { who: cut(who), object: cut(object), ..entry };
        if let Err(error) = self.people.record(entry.clone()).await {
            let Entry { who, address, verb, object, details, outcome, .. } = entry;
            tracing::error!(
                %error, who, address, verb, object, details, outcome,
                "this belongs into the audit log, which could not be written"
            );
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_LEN_MAX {
        text.truncate(text.floor_char_boundary(TEXT_LEN_MAX));
        text.push('…');
    }
    text
}

/// The entries as rows of CSV (RFC 4180), with a row of names first when these are the first ones.
pub fn to_csv(entries: &[Entry], is_first: bool) -> String {
    let mut csv = String::new();
    if is_first {
        csv.push_str("id,time,who,address,verb,object,outcome,details\r\n");
    }
    for entry in entries {
        let time = raingauge_core::time::format_rfc3339(entry.at_s);
        let texts = [&time, &entry.who, &entry.address, &entry.verb, &entry.object, &entry.outcome, &entry.details];
        let cells: Vec<String> = texts.into_iter().map(|text| cell(text)).collect();
        let _ = write!(csv, "{},{}\r\n", entry.id, cells.join(","));
    }
    csv
}

/// A text between quotes. One that a spreadsheet would take for a formula is told apart by an apostrophe before it.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
}

/// The entries as lines of JSON.
pub fn to_ndjson(entries: &[Entry]) -> String {
    let mut lines = String::new();
    for entry in entries {
        let details = serde_json::from_str(&entry.details).unwrap_or_else(|_| Json::String(entry.details.clone()));
        let line = serde_json::json!({
            "id": entry.id, "time": raingauge_core::time::format_rfc3339(entry.at_s), "who": entry.who,
            "address": entry.address, "verb": entry.verb, "object": entry.object, "outcome": entry.outcome,
            "details": details,
        });
        let _ = writeln!(lines, "{line}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(who: &str) -> Entry {
        let [verb, object, outcome] = ["counter.create", "counter \"34\"", "done"].map(str::to_owned);
        let (address, details) = ("192.0.2.7".to_owned(), "{\"reason\":\"a, b\"}".to_owned());
        Entry { id: 7, at_s: 1_727_215_200, who: who.to_owned(), address, verb, object, details, outcome }
    }

    #[test]
    fn csv_is_quoted_and_runs_no_formula() {
        let csv = to_csv(&[entry("=HYPERLINK(1)")], true);
        let expected = "id,time,who,address,verb,object,outcome,details\r\n7,\"2024-09-24T22:00:00Z\",\"'=HYPERLINK(1)\",\
            \"192.0.2.7\",\"counter.create\",\"counter \"\"34\"\"\",\"done\",\"{\"\"reason\"\":\"\"a, b\"\"}\"\r\n";
        assert_eq!(csv, expected);
        assert!(!to_csv(&[entry("zoe")], false).contains("time,who"));
    }

    #[test]
    fn each_line_is_json() {
        let lines = to_ndjson(&[entry("zoe\n"), entry("max")]);
        let read: Vec<Json> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((read.len(), &read[0]["who"], &read[1]["details"]["reason"]), (2, &"zoe\n".into(), &"a, b".into()));
    }
}
