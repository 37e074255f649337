//! Destinations: where actions are sent, how fast, and how their failures are borne.

use super::check_zone;
use crate::limits::{
    CONCURRENCY_MAX, DESTINATION_TIMEOUT_MS_MAX, SECRET_NAME_LEN_MAX, TIMEOUT_MS_MIN, URL_LEN_MAX,
};
use crate::schedule::{Concurrency, Pace, Schedule};
use raingauge_core::counter::Problem;
use raingauge_core::limits::TEXT_LEN_MAX;
use serde::{Deserialize, Serialize};

/// The destination that needs no document: the event log of this service.
pub const LOG_DESTINATION: &str = "log";
/// The address of the event log, for a destination of another name.
const LOG: &str = "log:";
/// How the address of a programme of points begins; its name follows.
const POINTS: &str = "points:";
/// How the names of secrets in the environment begin: this service, and what they are. A document
/// must not name other variables, or it could sign with any of them.
const SECRET_PREFIXES: [&str; 2] = ["RAINGAUGE", "_SECRET_"];

/// Where actions are sent. The address is fixed: nothing of an event becomes part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Destination {
    /// `https://…`; `log:` for the event log, which takes the events that campaigns emit; or
    /// `points:` and the name of a programme of this service, which takes the points they grant.
    pub url: String,
    /// The variable of the environment that has the secret of signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The file that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<String>,
    /// Of the hours and days in the schedule of the rate.
    #[serde(default = "utc")]
    pub zone: String,
    #[serde(default = "few_at_once")]
    pub concurrency: Concurrency,
    /// As fast as the destination answers, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Schedule<Pace>>,
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub breaker: Breaker,
    /// Whether it may have an address of a private network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// Why nothing is sent to it, in a sentence. Its deliveries wait until this is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// When a service that fails is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Breaker {
    /// Share of failed calls that opens the breaker, in percent.
    pub failed_percent: u64,
    pub sleep_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failed_percent: 50, sleep_ms: 5_000 }
    }
}

impl Breaker {
    const SLEEP_MS_MAX: u64 = 3_600_000;

    pub(super) fn check(self, problems: &mut Vec<Problem>) {
        if !(1..=100).contains(&self.failed_percent) {
            let detail = "must lie between 1 and 100".to_owned();
            problems.push(Problem::new("breaker.failedPercent", detail));
        }
        if !(TIMEOUT_MS_MIN..=Self::SLEEP_MS_MAX).contains(&self.sleep_ms) {
            let detail = format!("must lie between {TIMEOUT_MS_MIN} and {}", Self::SLEEP_MS_MAX);
            problems.push(Problem::new("breaker.sleepMs", detail));
        }
    }
}

/// What a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'d> {
    Http(&'d str),
    /// The event log of this service.
    Log,
    /// A programme of points of this service.
    Points(&'d str),
}

fn utc() -> String {
    "UTC".to_owned()
}

fn few_at_once() -> Concurrency {
    Concurrency { min: 1, max: 8 }
}

fn timeout_ms() -> u64 {
    15_000
}

impl Destination {
    pub fn target(&self) -> Target<'_> {
        if self.url == LOG {
            return Target::Log;
        }
        self.url.strip_prefix(POINTS).map_or(Target::Http(&self.url), Target::Points)
    }

    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let checked = match self.target() {
            Target::Http(url) => check_url(url),
            Target::Log => Ok(()),
            Target::Points(programme) => check_programme(programme),
        };
        if let Err(detail) = checked {
            problems.push(Problem::new("url", detail));
        }
        self.check_secret(&mut problems);
        check_zone(Some(&self.zone), &mut problems);
        check_pace(self.concurrency, self.rate.as_ref(), &mut problems);

        if !(TIMEOUT_MS_MIN..=DESTINATION_TIMEOUT_MS_MAX).contains(&self.timeout_ms) {
            let detail =
                format!("must lie between {TIMEOUT_MS_MIN} and {DESTINATION_TIMEOUT_MS_MAX}");
            problems.push(Problem::new("timeoutMs", detail));
        }
        self.breaker.check(&mut problems);
        check_texts(&self.owner, &self.description, &mut problems);
        let disabled = self.disabled.as_ref().map(String::len);
        if disabled.is_some_and(|len| !(1..=TEXT_LEN_MAX).contains(&len)) {
            let detail = format!("must say why, in at most {TEXT_LEN_MAX} bytes");
            problems.push(Problem::new("disabled", detail));
        }
        problems
    }

    fn check_secret(&self, problems: &mut Vec<Problem>) {
        if self.secret_env.is_some() && self.secret_file.is_some() {
            let detail = "the secret is in one place: leave out secretEnv or secretFile".to_owned();
            problems.push(Problem::new("secretFile", detail));
        }
        if let Some(name) = &self.secret_env {
            let [service, secret] = SECRET_PREFIXES;
            let rest = name.strip_prefix(service).and_then(|rest| rest.strip_prefix(secret));
            let rest = rest.unwrap_or_default();
            let allowed =
                |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            let is_name =
                !rest.is_empty() && name.len() <= SECRET_NAME_LEN_MAX && rest.bytes().all(allowed);
            if !is_name {
                let detail = format!(
                    "must name a variable such as {service}{secret}REWARDS, never the secret itself"
                );
                problems.push(Problem::new("secretEnv", detail));
            }
        }

        if let Some(path) = &self.secret_file {
            let is_path = path.starts_with('/')
                && path.len() <= SECRET_NAME_LEN_MAX
                && path.split('/').all(|step| step != "..");
            if !is_path {
                let detail = format!(
                    "must be the absolute path of a file, of at most {SECRET_NAME_LEN_MAX} bytes"
                );
                problems.push(Problem::new("secretFile", detail));
            }
        }
    }
}

pub(super) fn check_pace(
    concurrency: Concurrency,
    rate: Option<&Schedule<Pace>>,
    problems: &mut Vec<Problem>,
) {
    let mut details = concurrency.problems();
    if concurrency.max > CONCURRENCY_MAX {
        details.push(format!("concurrency.max must be at most {CONCURRENCY_MAX}"));
    }
    problems.extend(details.into_iter().map(|detail| Problem::new("concurrency", detail)));
    let paces = rate.into_iter().flat_map(Schedule::values);
    let details = paces.flat_map(Pace::problems);
    problems.extend(details.map(|detail| Problem::new("rate", detail)));
}

pub(super) fn check_texts(owner: &str, description: &str, problems: &mut Vec<Problem>) {
    for (at, text) in [("owner", owner), ("description", description)] {
        if text.len() > TEXT_LEN_MAX {
            problems.push(Problem::new(at, format!("must have at most {TEXT_LEN_MAX} bytes")));
        }
    }
}

/// Checks the name of a programme. Whether there is one is seen when points are awarded.
fn check_programme(name: &str) -> Result<(), String> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_name = (1..=URL_LEN_MAX).contains(&name.len()) && name.bytes().all(allowed);
    if is_name {
        return Ok(());
    }
    Err(format!("must be {POINTS} and the name of a programme, such as {POINTS}grab-sg"))
}

/// Checks the address of a service. Credentials in it would be stored with every version.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let Some(authority) = authority.filter(|authority| !authority.is_empty()) else {
        return Err("must begin with https:// or http:// and name a host".to_owned());
    };
    if url.len() > URL_LEN_MAX {
        return Err(format!("must have at most {URL_LEN_MAX} bytes"));
    }
    if url.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
        return Err("must be ASCII without blanks: encode other characters by percent".to_owned());
    }

    if authority.contains('@') {
        let detail = "must not have a user or password: sign requests with secretEnv or secretFile";
        return Err(detail.to_owned());
    }
    if authority.contains(['{', '}', '\\']) {
        return Err("must name a fixed host: nothing of an event may choose it".to_owned());
    }
    if url.contains('#') {
        return Err("must not have a fragment: services do not receive it".to_owned());
    }
    Ok(())
}
