//! The audit log: every change through a page and through `/v1`.
//!
//! A change of people is refused when it cannot be recorded; both lie in the same store. Other
//! changes (of counters, of the cache policy) are made even while that store is unreachable, since
//! counting continues without it; their entries then go to the log of the process.

use crate::Origin;
use lru::LruCache;
use parking_lot::Mutex;
use raingauge_ports::catalog::TOKEN_PREFIX;
use raingauge_ports::clock::Clock;
use raingauge_ports::people::{AuditTrail, Entry, Error, Filter};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Longest text of an entry, in bytes; longer ones are truncated.
const TEXT_LEN_MAX: usize = 512;
/// Longest details of an entry, in bytes. Texts of longer details are truncated, the longest first.
pub const DETAILS_LEN_MAX: usize = 4_096;
/// Elements that are kept of a list in details that are too long.
const DETAILS_LIST_MAX: usize = 20;
/// Entries that one principal may write in a row, and the time after which one more is allowed.
/// Entries beyond that are counted, and the next one carries their number.
const ENTRIES_IN_A_ROW: i64 = 1_000;
const ENTRY_PAUSE_MS: i64 = 10_000;
/// Principals whose rate is kept in memory.
const PRINCIPALS_MAX: NonZeroUsize = NonZeroUsize::new(2_000).expect("it is not zero");

/// What was done. A handler puts it into the extensions of its response; without it, the audit log
/// uses the route and the path of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAction {
    /// Such as `counter.replace`.
    pub verb: Cow<'static, str>,
    /// Such as `counter 34`.
    pub object: String,
    /// Further facts. Never a secret.
    pub details: Json,
}

impl AuditAction {
    pub const fn new(verb: &'static str, object: String, details: Json) -> Self {
        Self { verb: Cow::Borrowed(verb), object, details }
    }

    /// What a request did, from the verb of its route and the number in its path: `counter.pause`
    /// of `/counters/34/pause` concerns `counter 34`.
    pub fn of_path(verb: &'static str, path: &str) -> Self {
        let noun = verb.split('.').next().unwrap_or(verb).replace('_', " ");
        let is_id =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let object = match path.split('/').find(is_id) {
            Some(id) => format!("{noun} {id}"),
            None => noun,
        };
        Self::new(verb, object, json!({}))
    }
}

/// Writes the audit log.
#[derive(Clone)]
pub struct AuditLog {
    trail: Arc<dyn AuditTrail>,
    clock: Arc<dyn Clock>,
    rates: Arc<Mutex<LruCache<String, Rate>>>,
}

/// How often a principal writes entries.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// The time at which the whole budget is available again.
    whole_at_ms: i64,
    /// Entries that were left out since the last one.
    left_out: u64,
}

impl AuditLog {
    pub fn new(trail: Arc<dyn AuditTrail>, clock: Arc<dyn Clock>) -> Self {
        Self { trail, clock, rates: Arc::new(Mutex::new(LruCache::new(PRINCIPALS_MAX))) }
    }

    /// Records what a principal did and the outcome: `done`, or the code of the refusal. A
    /// principal that acts very often leaves fewer entries, which carry the number of those left
    /// out.
    pub async fn note(&self, who: &str, origin: &Origin, mut action: AuditAction, outcome: &str) {
        let Some(left_out) = self.admit(who) else {
            return;
        };
        if left_out > 0 {
            action.details["entriesLeftOut"] = left_out.into();
        }
        self.keep(self.entry(who, origin, action, outcome)).await;
    }

    /// The number of entries that were left out before this one, or `None` when this one is left
    /// out too.
    fn admit(&self, who: &str) -> Option<u64> {
        let mut rates = self.rates.lock();
        let now_ms = self.clock.elapsed_ms();
        let rate = rates.get_or_insert_mut(who.to_owned(), Rate::default);
        let whole_at_ms = rate.whole_at_ms.max(now_ms) + ENTRY_PAUSE_MS;
        if whole_at_ms - now_ms > ENTRIES_IN_A_ROW * ENTRY_PAUSE_MS {
            rate.left_out += 1;
            return None;
        }
        rate.whole_at_ms = whole_at_ms;
        Some(std::mem::take(&mut rate.left_out))
    }

    /// Records what a principal did, or fails when that is not possible.
    pub async fn record(
        &self,
        who: &str,
        origin: &Origin,
        action: AuditAction,
    ) -> Result<(), Error> {
        self.trail.record(self.entry(who, origin, action, "done")).await
    }

    fn entry(&self, who: &str, origin: &Origin, action: AuditAction, outcome: &str) -> Entry {
        Entry {
            id: 0,
            at_s: self.clock.now_s(),
            who: who.to_owned(),
            address: origin.address.clone(),
            verb: action.verb.into_owned(),
            object: action.object,
            details: fitting(action.details),
            outcome: outcome.to_owned(),
        }
    }

    /// Returns the entries that match the filter, newest first.
    pub async fn entries(&self, filter: Filter) -> Result<Vec<Entry>, Error> {
        self.trail.entries(filter).await
    }

    /// Writes an entry; when that fails, writes it to the log of the process.
    pub async fn keep(&self, entry: Entry) {
        let Entry { who, object, .. } = entry;
        let entry = Entry { who: cut(who), object: cut(object), ..entry };
        if let Err(error) = self.trail.record(entry.clone()).await {
            let Entry { who, address, verb, object, details, outcome, .. } = entry;
            tracing::error!(
                %error, who, address, verb, object, details, outcome,
                "the audit log could not be written; this entry is missing from it"
            );
        }
    }
}

fn cut(text: String) -> String {
    cut_to(text, TEXT_LEN_MAX)
}

fn cut_to(mut text: String, len_max: usize) -> String {
    if text.len() > len_max {
        text.truncate(text.floor_char_boundary(len_max));
        text.push('…');
    }
    text
}

/// Details as JSON that fits an entry, with shorter texts and lists where necessary.
fn fitting(mut details: Json) -> String {
    let mut json = details.to_string();
    for len_max in [1_024, 256, 64] {
        if json.len() <= DETAILS_LEN_MAX {
            break;
        }
        shorten(&mut details, len_max);
        json = details.to_string();
    }
    if json.len() <= DETAILS_LEN_MAX {
        return json;
    }
    json!({ "cut": cut_to(json, DETAILS_LEN_MAX / 4) }).to_string()
}

fn shorten(json: &mut Json, len_max: usize) {
    match json {
        Json::String(text) => *text = cut_to(std::mem::take(text), len_max),
        Json::Array(elements) => {
            elements.truncate(DETAILS_LIST_MAX);
            elements.iter_mut().for_each(|element| shorten(element, len_max));
        }
        Json::Object(members) => members.values_mut().for_each(|member| shorten(member, len_max)),
        _ => {}
    }
}

/// The entries as rows of CSV (RFC 4180), preceded by a header row when `is_first`.
pub fn to_csv(entries: &[Entry], is_first: bool) -> String {
    let mut csv = String::new();
    if is_first {
        csv.push_str("id,time,who,address,verb,object,outcome,details\r\n");
    }

    for entry in entries {
        let time = raingauge_core::time::format_rfc3339(entry.at_s);
        let texts = [
            &time,
            &entry.who,
            &entry.address,
            &entry.verb,
            &entry.object,
            &entry.outcome,
            &entry.details,
        ];

        let cells: Vec<String> = texts.into_iter().map(|text| cell(text)).collect();
        let _ = write!(csv, "{},{}\r\n", entry.id, cells.join(","));
    }

    csv
}

/// A quoted text. One that a spreadsheet would evaluate as a formula gets an apostrophe in front.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
}

/// The entries as lines of JSON.
pub fn to_ndjson(entries: &[Entry]) -> String {
    let mut lines = String::new();
    for entry in entries {
        let details = serde_json::from_str(&entry.details)
            .unwrap_or_else(|_| Json::String(entry.details.clone()));
        let mut line = json!({
            "id": entry.id, "time": raingauge_core::time::format_rfc3339(entry.at_s),
            "who": entry.who.strip_prefix(TOKEN_PREFIX).unwrap_or(&entry.who),
            "address": entry.address, "verb": entry.verb, "object": entry.object, "outcome": entry.outcome,
            "details": details,
        });

        if entry.who.starts_with(TOKEN_PREFIX) {
            line["whoKind"] = "token".into();
        }
        let _ = writeln!(lines, "{line}");
    }

    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_was_changed() {
        for (verb, path, object) in [
            ("counter.pause", "/counters/34/pause", "counter 34"),
            ("counter.backfill", "/v1/counters/34/backfill", "counter 34"),
            ("counter.create", "/v1/counters", "counter"),
            ("cache_policy.replace", "/system/cache/back", "cache policy"),
            ("rollout.stop", "/system/cache/rollouts/7/stop", "rollout 7"),
        ] {
            assert_eq!(
                AuditAction::of_path(verb, path),
                AuditAction::new(verb, object.to_owned(), json!({}))
            );
        }
    }

    fn entry(who: &str) -> Entry {
        let [verb, object, outcome] =
            ["counter.create", "counter \"34\"", "done"].map(str::to_owned);
        let address = "192.0.2.7".to_owned();
        let details = "{\"reason\":\"a, b\"}".to_owned();

        Entry {
            id: 7,
            at_s: 1_727_215_200,
            who: who.to_owned(),
            address,
            verb,
            object,
            details,
            outcome,
        }
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
    fn large_details_are_cut_and_never_emptied() {
        for reason in ["☔".repeat(2_000), "\"".repeat(9_000)] {
            let details = json!({ "reason": reason, "answer": { "accepted": 3 }, "version": 7 });
            let json = fitting(details);
            assert!(json.len() <= DETAILS_LEN_MAX, "{}", json.len());

            let read: Json = serde_json::from_str(&json).unwrap();
            assert_eq!((&read["answer"]["accepted"], &read["version"]), (&3.into(), &7.into()));
            assert!(read["reason"].as_str().unwrap().len() > 50);
        }

        let many: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
        assert!(fitting(json!({ "keys": many })).starts_with("{\"keys\":[\"0\",\"1\""));

        let wide: Json =
            (0..2_000).map(|number| (format!("member {number}"), Json::Null)).collect();
        assert!(fitting(wide).starts_with("{\"cut\":\"{"));
    }

    #[tokio::test]
    async fn a_flood_of_entries_is_counted() {
        use raingauge_memory as memory;
        use raingauge_ports::clock::ManualClock;

        let people = Arc::new(memory::People::default());
        let clock = Arc::new(ManualClock::at_s(7));
        let audit = AuditLog::new(Arc::clone(&people) as _, Arc::clone(&clock) as _);
        let note = async |name: &'static str| {
            let action = AuditAction::new("buckets.set", "buckets".to_owned(), json!({}));
            audit.note(name, &Origin::default(), action, "done").await;
        };

        for _ in 0..ENTRIES_IN_A_ROW + 5 {
            note("shop").await;
        }
        note("other").await;
        clock.set_s(7 + ENTRY_PAUSE_MS / 1_000);
        note("shop").await;

        let newest = people.entries(Filter { limit: 3, ..Filter::default() }).await.unwrap();
        let found: Vec<(&str, &str)> =
            newest.iter().map(|entry| (&*entry.who, &*entry.details)).collect();
        assert_eq!(found, [("shop", "{\"entriesLeftOut\":5}"), ("other", "{}"), ("shop", "{}")]);
        assert_eq!(newest[0].id, ENTRIES_IN_A_ROW + 2);
    }

    #[test]
    fn each_line_is_json() {
        let lines = to_ndjson(&[entry("zoe\n"), entry("max")]);
        let read: Vec<Json> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let token = to_ndjson(&[entry("token:zoe")]);
        assert!(
            token.contains(r#""who":"zoe","whoKind":"token""#) && !lines.contains("whoKind"),
            "{token}"
        );
        assert_eq!(
            (read.len(), &read[0]["who"], &read[1]["details"]["reason"]),
            (2, &"zoe\n".into(), &"a, b".into())
        );
    }
}
