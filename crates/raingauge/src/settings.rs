//! The configuration: one TOML file, overridden by the environment and by options of the command
//! line, checked as a whole. Every problem is reported at once, with the key, where it was set and
//! what to do.
//!
//! ```text
//!   file ─┐
//!   environment ─┼─▶ given ─▶ check ─▶ contradictions ─▶ Settings, or every Problem
//!   options ─────┘      ▲
//!                     keys: the table that the documentation follows too
//! ```

mod anonymous;
mod caching;
mod check;
pub mod clock;
mod cluster;
mod given;
mod keys;
mod maintenance;
mod openid;
mod portal;
mod problem;
#[cfg(test)]
mod tests;
mod tls;
mod tokens;

pub use caching::{Caching, ResultCache};
pub use cluster::Cluster;
pub use maintenance::Maintenance;
pub use openid::OpenId;
pub use portal::Portal;
pub use problem::{Origin, Problem};

use check::Checker;
use given::Given;
use raingauge_app::Role;
use raingauge_http::connections::tls::Files;
use raingauge_people::tokens::Auth;
use raingauge_ports::clock::FastClock;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tables that the embedded store keeps open when the limit of open files is unknown.
const OPEN_FILES_MAX: usize = 256;

/// A configuration that has passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub server: Server,
    pub storage: Storage,
    pub log: Log,
    pub dedupe: Dedupe,
    pub events: Events,
    /// The clock of an experiment.
    pub clock: Option<FastClock>,
    /// How far the clock may be ahead of the log at the start.
    pub clock_ahead_days_max: u64,
    pub maintenance: Maintenance,
    pub portal: Portal,
    pub auth: Auth,
    pub observe: Observe,
    pub cluster: Cluster,
    pub caching: Caching,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    pub grpc_listen: Option<SocketAddr>,
    pub drain_timeout: Duration,
    pub failure_grace: Duration,
    /// Limit of each door.
    pub connections_max: usize,
    pub connections_per_address_max: usize,
    pub head_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub tls: Option<Files>,
    /// Whether doors that other machines reach may do without TLS.
    pub plaintext: bool,
    pub body_bytes_max: usize,
    pub request_timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    pub data_dir: PathBuf,
    pub tile_cache_bytes: u64,
    pub block_cache_bytes: u64,
    pub reserve_bytes: u64,
    pub accepts_older_catalog: bool,
    /// Most tables that the embedded store keeps open. Derived from the limit of open files.
    pub open_files_max: usize,
}

/// The event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub segment_bytes: u64,
    pub retention: Duration,
    pub retention_bytes: u64,
    pub consumer_lag_bytes_max: u64,
    pub queue_bytes_max: u64,
    pub lag_events_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedupe {
    pub window: Duration,
    pub ids_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    pub future_allowance: Duration,
    /// Most keys of a counter; 0 for no limit.
    pub keys_per_counter_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observe {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: &'static str,
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// A command line option that sets a key: the key's path, the option's name, the value.
pub type CommandOption = (&'static str, &'static str, String);

impl Settings {
    /// Reads a file, the environment, and options of the command line, which win over both:
    /// `("server.listen", "--listen", "[::1]:0")`.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        options: impl IntoIterator<Item = CommandOption>,
    ) -> Result<Self, Vec<Problem>> {
        let mut given = Given::default();
        if let Some(path) = file {
            given.read_file(path);
        }

        for (name, value) in env {
            given.read_variable(name, value);
        }

        for (path, option, value) in options {
            given.read_option(path, option, value);
        }
        let mut checker = Checker::new(given);
        let settings = Self::read(&mut checker);
        settings.contradictions(&mut checker);
        if checker.problems.is_empty() { Ok(settings) } else { Err(sorted(checker.problems)) }
    }

    fn read(from: &mut Checker) -> Self {
        Self {
            server: Server {
                listen: from.address("server", "listen"),
                grpc_listen: from.optional_address("server", "grpc_listen"),
                drain_timeout: seconds(from.whole("server", "drain_timeout_s")),
                failure_grace: seconds(from.whole("server", "failure_grace_s")),
                connections_max: size(from.whole("server", "connections_max")),
                connections_per_address_max: size(
                    from.whole("server", "connections_per_address_max"),
                ),
                head_timeout: seconds(from.whole("server", "head_timeout_s")),
                idle_timeout: seconds(from.whole("server", "idle_timeout_s")),
                write_timeout: seconds(from.whole("server", "write_timeout_s")),
                tls: tls::read(from),
                plaintext: from.switch("server", "plaintext"),
                body_bytes_max: size(from.whole("server", "body_bytes_max")),
                request_timeout: seconds(from.whole("server", "request_timeout_s")),
            },
            storage: Storage {
                data_dir: from.folder("storage", "data_dir"),
                tile_cache_bytes: from.whole("storage", "tile_cache_bytes"),
                block_cache_bytes: from.whole("storage", "block_cache_bytes"),
                reserve_bytes: from.whole("storage", "reserve_bytes"),
                accepts_older_catalog: from.switch("storage", "accept_older_catalog"),
                open_files_max: OPEN_FILES_MAX,
            },
            log: Log {
                segment_bytes: from.whole("log", "segment_bytes"),
                retention: hours(from.whole("log", "retention_hours")),
                retention_bytes: from.whole("log", "retention_bytes"),
                consumer_lag_bytes_max: from.whole("log", "consumer_lag_bytes_max"),
                queue_bytes_max: from.whole("log", "queue_bytes_max"),
                lag_events_max: from.whole("log", "lag_events_max"),
            },
            dedupe: Dedupe {
                window: hours(from.whole("dedupe", "window_hours")),
                ids_max: from.whole("dedupe", "ids_max"),
            },
            events: Events {
                future_allowance: seconds(from.whole("events", "future_allowance_s")),
                keys_per_counter_max: from.whole("events", "keys_per_counter_max"),
            },
            clock: clock::read(from),
            clock_ahead_days_max: from.whole("clock", "ahead_days_max"),
            maintenance: Maintenance::read(from),
            auth: Auth { tokens: tokens::read(from), required: from.switch("auth", "required") },
            observe: Observe {
                log_level: from.word("observe", "log_level"),
                log_format: match from.word("observe", "log_format") {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                },
            },
            cluster: Cluster::read(from),
            caching: Caching::read(from),
            portal: Portal::read(from),
        }
    }

    /// Checks values that are valid alone and invalid together.
    fn contradictions(&self, checker: &mut Checker) {
        let right =
            |checker: &Checker, keys: &[&str]| !keys.iter().any(|key| checker.is_wrong(key));
        let doors = [
            ("server.listen", Some(self.server.listen)),
            ("server.grpc_listen", self.server.grpc_listen),
        ];
        for (key, address) in doors {
            let Some(address) = address.filter(|address| !is_loopback(address)) else {
                continue;
            };
            if right(checker, &[key, "auth.tokens", "auth.required"]) && !self.auth.is_asked() {
                checker.problem(
                    key,
                    checker.origin(key),
                    format!("{address} can be reached from other machines, and no token is configured"),
                    "Run `raingauge token` and put the hash that it prints into auth.tokens, set auth.required and make tokens in \
                     the portal, or listen on 127.0.0.1",
                );
            }
        }

        let is_open = !self.portal.sign_in
            && self.cluster.has(Role::Portal)
            && !is_loopback(&self.server.listen);
        if is_open && right(checker, &["server.listen", "portal.sign_in"]) {
            let message = format!(
                "{} can be reached from other machines, and nobody would have to sign in",
                self.server.listen
            );
            let advice = "Leave portal.sign_in on, or listen on 127.0.0.1";
            checker.problem("portal.sign_in", checker.origin("portal.sign_in"), message, advice);
        }

        tls::refuse_plaintext(self, checker);
        self.anonymous_contradictions(checker);

        let segment = ("log.segment_bytes", self.log.segment_bytes.saturating_mul(2));
        let body = ("server.body_bytes_max", self.server.body_bytes_max as u64);

        for (key, value, (floor_key, floor), why) in [
            (
                "log.retention_bytes",
                self.log.retention_bytes,
                segment,
                "it could keep no closed segment",
            ),
            (
                "log.consumer_lag_bytes_max",
                self.log.consumer_lag_bytes_max,
                segment,
                "it could keep no closed segment for a consumer",
            ),
            (
                "log.queue_bytes_max",
                self.log.queue_bytes_max,
                body,
                "the largest body could never be queued",
            ),
        ] {
            if right(checker, &[key, floor_key]) && value < floor {
                // Report the key that was set.
                let blamed = if checker.origin(key) == Origin::Default { floor_key } else { key };
                let message = format!("{key} is {value}, too small beside {floor_key}: {why}");
                let advice = format!("Raise {key} to at least {floor}, or lower {floor_key}");
                checker.problem(blamed, checker.origin(blamed), message, advice);
            }
        }
    }
}

/// Message of a build without the feature `cluster` when the settings need an engine of a cluster.
pub const NO_CLUSTER: &str = "this program was built without the engines of a cluster";

/// Refuses a value that needs an engine which this build does not have.
fn needs_cluster(checker: &mut Checker, key: &'static str, is_needed: bool) {
    if is_needed && !cfg!(feature = "cluster") {
        let advice = "Build it with `cargo build --release`, which has them";
        checker.problem(key, checker.origin(key), NO_CLUSTER.to_owned(), advice);
    }
}

impl Settings {
    /// Returns what the operator should know of this configuration, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        tls::warnings(self)
    }
}

/// Whether only this machine can reach the address.
fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Returns the variables of this process, for [`Settings::load`]. Bytes that are not UTF-8 become
/// U+FFFD, which no key accepts: such a variable is refused, not ignored.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// Sorts problems: the file from top to bottom, then variables, options and defaults.
fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| match &problem.origin {
        Origin::File { line, .. } => (0, *line),
        Origin::Variable(_) => (1, 0),
        Origin::Option(_) => (2, 0),
        Origin::Default => (3, 0),
    });
    problems
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

/// The table keeps every such number far below 32 bits.
fn size(number: u64) -> usize {
    usize::try_from(number).expect("the largest value in the table fits")
}
