//! Lookups: values of databases and services that rules and templates read.

use super::check_zone;
use super::destination::{Breaker, check_pace, check_texts, check_url};
use crate::engine::{LookupRule, OnError};
use crate::limits::{
    LOOKUP_SQL_LEN_MAX, LOOKUP_TIMEOUT_MS_MAX, LOOKUP_TTL_S_MAX, LOOKUP_WEIGHT_MAX, TIMEOUT_MS_MIN,
};
use crate::rule::{Lhs, is_name};
use crate::schedule::{Concurrency, Pace, Schedule};
use raingauge_core::counter::Problem;
use serde::{Deserialize, Serialize};

/// What stands for the key in the address of a service.
const PLACES: [&str; 2] = ["{subject}", "{key}"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lookup {
    pub class: LookupSource,
    /// Of a service: its address, with `{subject}` or `{key}` in the path or in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of a database: the name of a connection in the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Of a database: a SELECT with one `?`, the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The field that is looked up; `subject` is the subject of the campaign.
    #[serde(default = "subject", skip_serializing_if = "is_subject")]
    pub key: String,
    /// How long answers are kept; 0 asks again each time.
    #[serde(default = "ttl_s")]
    pub ttl_s: u32,
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// Of the hours and days in the schedule of the rate.
    #[serde(default = "utc")]
    pub zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Schedule<Pace>>,
    #[serde(default = "few_at_once")]
    pub concurrency: Concurrency,
    #[serde(default)]
    pub breaker: Breaker,
    /// What loading it costs, in place of what its class costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    #[serde(default)]
    pub on_error: OnError,
    /// Whether the service may have an address of a private network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Where a lookup is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LookupSource {
    Http,
    Db,
}

impl LookupSource {
    /// How left-hand sides of this class begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Db => "db",
        }
    }
}

fn subject() -> String {
    "subject".to_owned()
}

fn is_subject(key: &str) -> bool {
    key == "subject"
}

fn utc() -> String {
    "UTC".to_owned()
}

fn ttl_s() -> u32 {
    60
}

fn timeout_ms() -> u64 {
    1_000
}

fn few_at_once() -> Concurrency {
    Concurrency { min: 1, max: 16 }
}

impl Lookup {
    /// How the engine treats it.
    pub fn rule(&self) -> LookupRule {
        LookupRule { weight: self.weight, key: key_of(&self.key), on_error: self.on_error }
    }

    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut require = |ok: bool, at: &str, detail: &str| {
            if !ok {
                problems.push(Problem::new(at, detail));
            }
        };
        match self.class {
            LookupSource::Http => {
                let url = check_place(self.url.as_deref().unwrap_or_default());
                require(url.is_ok(), "url", url.err().as_deref().unwrap_or_default());
                require(self.connection.is_none(), "connection", "a service has no connection");
                require(self.sql.is_none(), "sql", "a service has no statement");
            }
            LookupSource::Db => {
                let connection = self.connection.as_deref().unwrap_or_default();
                require(
                    is_name(connection),
                    "connection",
                    "must name a connection of the settings",
                );
                let sql = check_sql(self.sql.as_deref().unwrap_or_default());
                require(sql.is_ok(), "sql", sql.err().as_deref().unwrap_or_default());
                require(self.url.is_none(), "url", "a database has no url: it has a connection");
                require(!self.allow_private, "allowPrivate", "is for services: leave it out");
            }
        }

        let ttl = format!("must be at most {LOOKUP_TTL_S_MAX}");
        require(self.ttl_s <= LOOKUP_TTL_S_MAX, "ttlS", &ttl);
        let timeout = format!("must lie between {TIMEOUT_MS_MIN} and {LOOKUP_TIMEOUT_MS_MAX}");
        let timeouts = TIMEOUT_MS_MIN..=LOOKUP_TIMEOUT_MS_MAX;
        require(timeouts.contains(&self.timeout_ms), "timeoutMs", &timeout);

        check_key(&self.key, &mut problems);
        check_weight(self.weight, &mut problems);
        check_zone(Some(&self.zone), &mut problems);
        check_pace(self.concurrency, self.rate.as_ref(), &mut problems);
        self.breaker.check(&mut problems);
        check_texts(&self.owner, &self.description, &mut problems);
        problems
    }

    /// The address to ask for a key, which is encoded so that it stays within its place.
    pub fn url_of(&self, key: &str) -> Option<String> {
        let url = self.url.as_deref()?;
        let encoded = encoded(key);
        Some(PLACES.iter().fold(url.to_owned(), |url, place| url.replace(place, &encoded)))
    }
}

/// The field of a key; `None` for the subject of the campaign.
pub fn key_of(key: &str) -> Option<String> {
    (key != "subject").then(|| key.to_owned())
}

pub fn check_key(key: &str, problems: &mut Vec<Problem>) {
    if !matches!(Lhs::parse(key), Some(Lhs::Field(_))) {
        let detail = "must be `subject` or a field of the event, such as var.driver_id".to_owned();
        problems.push(Problem::new("key", detail));
    }
}

pub fn check_weight(weight: Option<u32>, problems: &mut Vec<Problem>) {
    if weight.is_some_and(|weight| !(1..=LOOKUP_WEIGHT_MAX).contains(&weight)) {
        let detail = format!("must lie between 1 and {LOOKUP_WEIGHT_MAX}");
        problems.push(Problem::new("weight", detail));
    }
}

fn check_place(url: &str) -> Result<(), String> {
    check_url(url)?;
    let rest = PLACES.iter().fold(url.to_owned(), |url, place| url.replace(place, ""));
    if rest.contains(['{', '}']) {
        return Err(
            "may contain {subject} and {key} in its path and query, and no other".to_owned()
        );
    }
    if rest.len() == url.len() {
        return Err("must say where the key stands: {subject} or {key}".to_owned());
    }
    Ok(())
}

fn check_sql(sql: &str) -> Result<(), String> {
    let first = sql.trim_start().get(..7).unwrap_or_default();
    let is_select = first.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"))
        && first.ends_with(char::is_whitespace);
    if !is_select {
        return Err("must be one SELECT, such as SELECT tier FROM members WHERE id = ?".to_owned());
    }
    if sql.len() > LOOKUP_SQL_LEN_MAX {
        return Err(format!("must have at most {LOOKUP_SQL_LEN_MAX} bytes"));
    }

    let (places, is_plain) = scan(sql);
    if !is_plain {
        return Err("must be one statement, without `;` and comments".to_owned());
    }
    if places != 1 {
        return Err(format!("must have exactly one `?`, the key, and has {places}"));
    }
    Ok(())
}

/// The number of placeholders outside of quotes, and whether the statement has neither an end nor a
/// comment in it.
fn scan(sql: &str) -> (usize, bool) {
    let mut places = 0;
    let mut is_plain = true;
    let mut quote = None;
    let mut before = ' ';
    for char in sql.chars() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            // A backslash means different things to different databases.
            (Some(_), '\\') => is_plain = false,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(char),
            (None, '?') => places += 1,
            (None, ';' | '#' | '\\') => is_plain = false,
            (None, '-') if before == '-' => is_plain = false,
            (None, '*') if before == '/' => is_plain = false,
            (None, _) => {}
        }
        before = char;
    }
    (places, is_plain && quote.is_none())
}

/// Percent-encodes everything but the unreserved characters of RFC 3986. A key of dots alone would
/// be a step to another folder.
fn encoded(key: &str) -> String {
    let are_dots = key.bytes().all(|byte| byte == b'.');
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        let is_plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'~')
            || byte == b'.' && !are_dots;
        if is_plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
