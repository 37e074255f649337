//! Every key of the configuration, in one table. The parsing of values, `config/standalone.toml`
//! and `docs/configuration.md` follow it; tests compare them.

pub mod cluster;
pub mod portal;

/// One key: its values, its default and its purpose.
#[derive(Debug)]
pub struct Key {
    pub section: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    /// One sentence, the same in the documentation and in the advice of a problem.
    pub doc: &'static str,
}

/// The values of a key, with its default.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number of `unit`, with inclusive limits.
    Whole { default: u64, min: u64, max: u64, unit: &'static str },
    /// `HOST:PORT`, where the host is an IP address or `localhost`.
    Address { default: &'static str },
    /// The same, or empty, which is the default.
    OptionalAddress,
    /// A folder; relative paths start from the working folder of the process.
    Folder { default: &'static str },
    /// One of a few words.
    OneOf { default: &'static str, words: &'static [&'static str] },
    /// Any text. A secret is never quoted.
    Text { default: &'static str, is_secret: bool },
    /// Yes or no.
    Switch { default: bool },
    /// API tokens: a list of tables; empty by default.
    Tokens,
}

impl Key {
    /// Returns `section.name`, as problems and the documentation write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Returns the environment variable that overrides this key.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}__{}", self.section, self.name).to_uppercase()
    }
}

/// The prefix of every environment variable of the configuration.
pub const PREFIX: &str = "RAINGAUGE__";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const fn whole(
    section: &'static str,
    name: &'static str,
    default: u64,
    range: (u64, u64),
    unit: &'static str,
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::Whole { default, min: range.0, max: range.1, unit }, doc }
}

const fn bytes(
    section: &'static str,
    name: &'static str,
    default: u64,
    range: (u64, u64),
    doc: &'static str,
) -> Key {
    whole(section, name, default, range, "bytes", doc)
}

const fn text(section: &'static str, name: &'static str, doc: &'static str) -> Key {
    Key { section, name, kind: Kind::Text { default: "", is_secret: false }, doc }
}

pub const KEYS: &[Key] = &[
    Key {
        section: "server",
        name: "listen",
        kind: Kind::Address { default: "127.0.0.1:8080" },
        doc: "Address and port of the HTTP door; port 0 takes a free one, and an address that is not loopback needs a token, or auth.required.",
    },
    Key {
        section: "server",
        name: "grpc_listen",
        kind: Kind::OptionalAddress,
        doc: "Address and port of the gRPC door; empty for none, port 0 takes a free one, and an address that is not loopback needs a token, or auth.required.",
    },
    whole(
        "server",
        "drain_timeout_s",
        10,
        (1, 3_600),
        "seconds",
        "Longest wait for requests in flight when the server stops.",
    ),
    whole(
        "server",
        "failure_grace_s",
        5,
        (0, 3_600),
        "seconds",
        "How long a process whose counting has failed stays, with /readyz red, before it ends with an error.",
    ),
    whole(
        "server",
        "connections_max",
        10_000,
        (1, 1_000_000),
        "connections",
        "Most connections that each door has open at once; further ones are answered health checks, and 503.",
    ),
    whole(
        "server",
        "connections_per_address_max",
        1_000,
        (1, 1_000_000),
        "connections",
        "Most connections that each door has open from one address; a proxy in front of it is one address.",
    ),
    whole(
        "server",
        "head_timeout_s",
        10,
        (1, 3_600),
        "seconds",
        "Longest time from the first byte of a request, or from the beginning of a connection, to the end of its head.",
    ),
    whole(
        "server",
        "idle_timeout_s",
        75,
        (1, 86_400),
        "seconds",
        "How long a connection stays open without a request; longer than a proxy in front keeps its own connections open.",
    ),
    whole(
        "server",
        "write_timeout_s",
        30,
        (1, 3_600),
        "seconds",
        "Longest time in which a client takes fewer than 16 KiB of an answer that waits for it.",
    ),
    text(
        "server",
        "tls_certificate",
        "Certificate of both doors with its chain, PEM; read again when it changes, and empty for no TLS.",
    ),
    text("server", "tls_key", "Private key of the certificate, PEM."),
    text(
        "server",
        "tls_client_ca",
        "Authority of the certificates that clients must have, PEM; empty when they need none.",
    ),
    Key {
        section: "server",
        name: "plaintext",
        kind: Kind::Switch { default: false },
        doc: "Whether addresses that are not loopback may be served without TLS, on a network to which nobody else listens.",
    },
    bytes(
        "server",
        "body_bytes_max",
        32 * MIB,
        (64 * KIB, GIB),
        "Largest request body, measured after gzip is undone.",
    ),
    whole(
        "server",
        "request_timeout_s",
        30,
        (1, 3_600),
        "seconds",
        "Longest time that one request may take.",
    ),
    Key {
        section: "storage",
        name: "data_dir",
        kind: Kind::Folder { default: "raingauge-data" },
        doc: "Folder of the counts, the event log and the counters; made when it is missing.",
    },
    bytes(
        "storage",
        "tile_cache_bytes",
        256 * MIB,
        (MIB, TIB),
        "Memory for decoded tiles of active keys.",
    ),
    bytes(
        "storage",
        "block_cache_bytes",
        64 * MIB,
        (MIB, TIB),
        "Memory for blocks of the storage engine.",
    ),
    bytes(
        "storage",
        "reserve_bytes",
        256 * MIB,
        (0, TIB),
        "Free room of the disk, at most a tenth of it, below which events are refused with 503 disk_full.",
    ),
    Key {
        section: "storage",
        name: "accept_older_catalog",
        kind: Kind::Switch { default: false },
        doc: "Whether a catalog that lacks counters that were counted is taken with a warning, to create them again by their ids.",
    },
    bytes(
        "log",
        "segment_bytes",
        128 * MIB,
        (MIB, 4 * GIB),
        "Size at which the event log starts a new segment file.",
    ),
    whole(
        "log",
        "retention_hours",
        168,
        (1, 87_600),
        "hours",
        "How long the event log keeps events that were applied.",
    ),
    bytes(
        "log",
        "retention_bytes",
        64 * GIB,
        (2 * MIB, 1_024 * TIB),
        "Size at which the event log drops its oldest segments.",
    ),
    bytes(
        "log",
        "consumer_lag_bytes_max",
        64 * GIB,
        (2 * MIB, 1_024 * TIB),
        "The newest bytes of the event log that are kept for a consumer that lags, beyond the retention too; one that is further behind is overtaken.",
    ),
    bytes(
        "log",
        "queue_bytes_max",
        64 * MIB,
        (64 * KIB, 64 * GIB),
        "Most bytes of events that wait to be made durable; beyond it, events are refused with 429.",
    ),
    whole(
        "log",
        "lag_events_max",
        5_000_000,
        (1_000, 10_000_000_000),
        "events",
        "Most durable events that wait to be counted; beyond it, events are refused with 503.",
    ),
    whole(
        "dedupe",
        "window_hours",
        24,
        (1, 8_760),
        "hours",
        "How long the source and id of an event are remembered, so that a repetition is not counted.",
    ),
    whole(
        "dedupe",
        "ids_max",
        64_000_000,
        (1_000, 10_000_000_000),
        "events",
        "Most events that the window remembers; when there are more, the oldest are forgotten early.",
    ),
    whole(
        "events",
        "future_allowance_s",
        300,
        (0, 86_400),
        "seconds",
        "How far ahead of this clock the time of an event may be.",
    ),
    whole(
        "events",
        "keys_per_counter_max",
        10_000_000,
        (0, 1_000_000_000),
        "keys",
        "Most keys that a counter takes; beyond it, events of its keys count on and new keys do not; 0 for no limit.",
    ),
    Key {
        section: "clock",
        name: "experiment",
        kind: Kind::Text { default: "", is_secret: false },
        doc: "Makes time run faster in an experiment: START at MACHINE_TIME times FACTOR, the same in every process; empty for the machine's clock.",
    },
    whole(
        "clock",
        "ahead_days_max",
        30,
        (1, 36_600),
        "days",
        "How far this machine's clock may be ahead of the event log at the start, after raingauge was off; beyond that, no events are taken.",
    ),
    Key {
        section: "maintenance",
        name: "schedule",
        kind: Kind::Text { default: "", is_secret: false },
        doc: "When all nodes are compacted: cron expressions (minute, hour, day, month, weekday) with semicolons; empty for never.",
    },
    Key {
        section: "maintenance",
        name: "timezone",
        kind: Kind::Text { default: "UTC", is_secret: false },
        doc: "Time zone of the schedule, by its IANA name, such as Asia/Singapore.",
    },
    whole(
        "maintenance",
        "max_duration_minutes",
        240,
        (1, 10_080),
        "minutes",
        "How long after its beginning a compaction of all nodes may still be at work.",
    ),
    whole("maintenance", "pause_s", 30, (0, 86_400), "seconds", "Rest between two nodes."),
    Key {
        section: "maintenance",
        name: "on_failure",
        kind: Kind::OneOf { default: "continue", words: &["continue", "stop"] },
        doc: "Whether the other nodes are compacted when one fails.",
    },
    Key {
        section: "auth",
        name: "tokens",
        kind: Kind::Tokens,
        doc: "API tokens, each with a name, the SHA-256 of the token and its scopes; without any, no token is asked for unless auth.required is set.",
    },
    Key {
        section: "auth",
        name: "required",
        kind: Kind::Switch { default: false },
        doc: "Whether a token is asked for while auth.tokens is empty, so that those made in the portal are the only ones.",
    },
    Key {
        section: "observe",
        name: "log_level",
        kind: Kind::OneOf { default: "info", words: &["error", "warn", "info", "debug", "trace"] },
        doc: "How much is logged to standard error; the variable RUST_LOG wins over it.",
    },
    Key {
        section: "observe",
        name: "log_format",
        kind: Kind::OneOf { default: "text", words: &["text", "json"] },
        doc: "Lines for people, or one JSON object a line.",
    },
];

/// Returns every key: those of one machine, of the portal, then those of the cluster engines.
pub fn all() -> impl Iterator<Item = &'static Key> + Clone {
    KEYS.iter().chain(portal::KEYS).chain(cluster::KEYS)
}

/// Returns the key of that section and name.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    all().find(|key| key.section == section && key.name == name)
}

/// Whether that section has any keys.
pub fn has_section(section: &str) -> bool {
    all().any(|key| key.section == section)
}

/// Returns the section or key that the user probably meant by a path that does not exist. The right
/// name in the wrong section is the likeliest mistake, then a wrong letter or unit.
pub fn nearest(section: &str, name: &str) -> Option<String> {
    if let Some(key) = all().find(|key| key.name == name) {
        return Some(key.path());
    }
    let asked = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
    let distance = |key: &Key| {
        if section.is_empty() { edits(&asked, key.name) } else { edits(&asked, &key.path()) }
    };
    let best = all().min_by_key(|key| distance(key))?;
    is_near(distance(best), &asked).then(|| best.path())
}

/// Returns the section that the user probably meant.
pub fn nearest_section(section: &str) -> Option<&'static str> {
    let best = all().map(|key| key.section).min_by_key(|known| edits(section, known))?;
    is_near(edits(section, best), section).then_some(best)
}

/// Returns the one of `words` that the user probably meant.
pub fn nearest_word<'a>(asked: &str, words: &[&'a str]) -> Option<&'a str> {
    let best = words.iter().min_by_key(|word| edits(asked, word))?;
    is_near(edits(asked, best), asked).then_some(*best)
}

/// Most letters of a name that are compared; longer than any name here, so that a page of text
/// costs nothing.
const CHARS_MAX: usize = 64;

/// Up to a third of the letters may be wrong; beyond that a suggestion is a guess.
fn is_near(edits: usize, asked: &str) -> bool {
    edits <= (asked.chars().count().min(CHARS_MAX) / 3).max(1)
}

/// Letters to insert, delete, replace, or swap with their neighbour, to come from one word to the
/// other (the "optimal string alignment" distance).
fn edits(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().take(CHARS_MAX).collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];

    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }

        rows.push(row);
    }

    rows[from.len()][to.len()]
}
