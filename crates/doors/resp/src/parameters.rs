//! The parameters that `CONFIG` knows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use raingauge_app::socket::KEEPALIVE_IDLE;
use raingauge_ports::objects::SyncMode;

use crate::settings::Settings;

/// Words of the limits of a class of clients.
const WORDS_PER_CLASS: usize = 4;

/// A parameter of Redis: its name, its value at the start, and which values it takes.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) kind: Kind,
}

/// Which values a parameter takes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// It cannot be changed while the server runs.
    Fixed,
    /// A whole number between two bounds.
    Number(i64, i64),
    /// Bytes, with a unit such as `mb`, from a number on.
    Memory(u64),
    Switch,
    Words(&'static [&'static str]),
    /// Limits for some classes of clients, each `CLASS HARD SOFT SECONDS`.
    Limits,
    Text,
}

macro_rules! parameters {
    ($($name:literal $default:literal $kind:expr;)*) => {
        /// All parameters, by name. Those that do nothing are kept and returned, since clients and
        /// tools set them.
        pub(crate) const PARAMETERS: &[Parameter] =
            &[$(Parameter { name: $name, default: $default, kind: $kind },)*];
    };
}

const ANY: Kind = Kind::Number(0, i64::MAX);
const PERCENT: Kind = Kind::Number(0, 100);
const MEMORY: Kind = Kind::Memory(0);

parameters! {
    "acllog-max-len" "128" ANY;
    "active-expire-effort" "1" Kind::Number(1, 10);
    "activedefrag" "no" Kind::Switch;
    "activerehashing" "yes" Kind::Switch;
    "aof-use-rdb-preamble" "yes" Kind::Switch;
    "appenddirname" "" Kind::Fixed;
    "appendfilename" "" Kind::Fixed;
    "appendfsync" "always" Kind::Words(SyncMode::NAMES);
    "appendonly" "yes" Kind::Switch;
    "auto-aof-rewrite-min-size" "67108864" MEMORY;
    "auto-aof-rewrite-percentage" "100" ANY;
    "bind" "" Kind::Fixed;
    "client-output-buffer-limit" "normal 0 0 0 slave 0 0 0 pubsub 0 0 0" Kind::Limits;
    "client-query-buffer-limit" "1073741824" MEMORY;
    "cluster-enabled" "no" Kind::Fixed;
    "cluster-node-timeout" "15000" ANY;
    "cluster-require-full-coverage" "yes" Kind::Switch;
    "daemonize" "no" Kind::Fixed;
    "databases" "16" Kind::Fixed;
    "dbfilename" "" Kind::Text;
    "dir" "" Kind::Text;
    "dynamic-hz" "yes" Kind::Switch;
    "enable-debug-command" "no" Kind::Fixed;
    "hash-max-listpack-entries" "512" ANY;
    "hash-max-listpack-value" "64" ANY;
    "hash-max-ziplist-entries" "512" ANY;
    "hash-max-ziplist-value" "64" ANY;
    "hll-sparse-max-bytes" "3000" MEMORY;
    "hz" "10" Kind::Number(1, 500);
    "io-threads" "1" Kind::Fixed;
    "latency-monitor-threshold" "0" ANY;
    "latency-tracking" "yes" Kind::Switch;
    "latency-tracking-info-percentiles" "50 99 99.9" Kind::Text;
    "lazyfree-lazy-eviction" "yes" Kind::Switch;
    "lazyfree-lazy-expire" "yes" Kind::Switch;
    "lazyfree-lazy-server-del" "yes" Kind::Switch;
    "lazyfree-lazy-user-del" "yes" Kind::Switch;
    "lazyfree-lazy-user-flush" "yes" Kind::Switch;
    "lfu-decay-time" "1" ANY;
    "lfu-log-factor" "10" ANY;
    "list-compress-depth" "0" ANY;
    "list-max-listpack-size" "-2" Kind::Number(i64::MIN, i64::MAX);
    "list-max-ziplist-size" "-2" Kind::Number(i64::MIN, i64::MAX);
    "logfile" "" Kind::Fixed;
    "loglevel" "notice" Kind::Words(&["debug", "verbose", "notice", "warning", "nothing"]);
    "lua-time-limit" "5000" ANY;
    "maxclients" "10000" Kind::Number(1, 1_000_000);
    "maxmemory" "0" MEMORY;
    "maxmemory-clients" "0" Kind::Text;
    "maxmemory-policy" "noeviction" Kind::Words(&[
        "noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
        "volatile-lfu", "volatile-random", "volatile-ttl",
    ]);
    "maxmemory-samples" "5" Kind::Number(1, 64);
    "min-replicas-max-lag" "10" ANY;
    "min-replicas-to-write" "0" ANY;
    "no-appendfsync-on-rewrite" "no" Kind::Switch;
    "notify-keyspace-events" "" Kind::Text;
    "oom-score-adj" "no" Kind::Text;
    "port" "0" Kind::Fixed;
    "proto-max-bulk-len" "536870912" Kind::Memory(1 << 20);
    "protected-mode" "yes" Kind::Switch;
    "rdbchecksum" "yes" Kind::Fixed;
    "rdbcompression" "yes" Kind::Switch;
    "repl-backlog-size" "1048576" MEMORY;
    "repl-diskless-sync" "yes" Kind::Switch;
    "repl-timeout" "60" ANY;
    "replica-priority" "100" ANY;
    "replica-read-only" "yes" Kind::Switch;
    "replica-serve-stale-data" "yes" Kind::Switch;
    "requirepass" "" Kind::Fixed;
    "sanitize-dump-payload" "no" Kind::Words(&["no", "yes", "clients"]);
    "save" "" Kind::Text;
    "set-max-intset-entries" "512" ANY;
    "set-max-listpack-entries" "128" ANY;
    "set-max-listpack-value" "64" ANY;
    "slowlog-log-slower-than" "10000" Kind::Number(-1, i64::MAX);
    "slowlog-max-len" "128" ANY;
    "stop-writes-on-bgsave-error" "yes" Kind::Switch;
    "stream-node-max-bytes" "4096" MEMORY;
    "stream-node-max-entries" "100" ANY;
    "tcp-backlog" "511" Kind::Fixed;
    "tcp-keepalive" "0" Kind::Fixed;
    "timeout" "0" ANY;
    "tracking-table-max-keys" "1000000" ANY;
    "unixsocket" "" Kind::Fixed;
    "zset-max-listpack-entries" "128" ANY;
    "zset-max-listpack-value" "64" ANY;
    "zset-max-ziplist-entries" "128" ANY;
    "zset-max-ziplist-value" "64" ANY;
    "cluster-migration-barrier" "1" ANY;
    "busy-reply-threshold" "5000" ANY;
    "jemalloc-bg-thread" "yes" Kind::Switch;
    "maxmemory-eviction-tenacity" "10" PERCENT;
}

/// Parameters that change what the process does.
pub(crate) const ACTING: [&str; 7] = [
    "appendfsync",
    "maxclients",
    "notify-keyspace-events",
    "proto-max-bulk-len",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "timeout",
];

/// The other name of a parameter that has two.
fn alias_of(name: &str) -> Option<&'static str> {
    let alias = match name.split_once("-listpack-") {
        Some((kind, bound)) => format!("{kind}-ziplist-{bound}"),
        None => name.replace("-ziplist-", "-listpack-"),
    };
    PARAMETERS.iter().map(|known| known.name).find(|known| *known == alias && alias != name)
}

/// The present values.
pub(crate) struct Parameters {
    values: Mutex<BTreeMap<&'static str, String>>,
    idle_s: AtomicU64,
    bulk_bytes_max: AtomicUsize,
    clients_max: AtomicUsize,
}

impl Parameters {
    pub(crate) fn new(settings: &Settings, port: u16, is_cluster: bool) -> Parameters {
        let idle_s = settings.idle_timeout.map_or(0, |timeout| timeout.as_secs());
        let mut values: BTreeMap<_, _> =
            PARAMETERS.iter().map(|known| (known.name, known.default.to_owned())).collect();

        values.insert("port", port.to_string());
        values.insert("tcp-keepalive", KEEPALIVE_IDLE.as_secs().to_string());
        values.insert("timeout", idle_s.to_string());
        values.insert("maxclients", settings.connections_max.to_string());
        if is_cluster {
            values.insert("cluster-enabled", "yes".into());
        }

        Parameters {
            values: Mutex::new(values),
            idle_s: AtomicU64::new(idle_s),
            bulk_bytes_max: AtomicUsize::new(512 << 20),
            clients_max: AtomicUsize::new(settings.connections_max),
        }
    }

    pub(crate) fn get(&self, name: &str) -> String {
        self.values.lock().get(name).cloned().unwrap_or_default()
    }

    /// Keeps a value that was checked, and lets those act that act on connections.
    pub(crate) fn set(&self, name: &'static str, value: String) {
        let number = value.parse::<u64>().unwrap_or(0);
        let size = usize::try_from(number).unwrap_or(usize::MAX);

        match name {
            "timeout" => self.idle_s.store(number, Ordering::Relaxed),
            "proto-max-bulk-len" => self.bulk_bytes_max.store(size, Ordering::Relaxed),
            "maxclients" => self.clients_max.store(size, Ordering::Relaxed),
            _ => {}
        }

        let mut values = self.values.lock();
        if let Some(alias) = alias_of(name) {
            values.insert(alias, value.clone());
        }
        let known = Parameter::find(name.as_bytes());
        let is_limits = known.is_some_and(|known| matches!(known.kind, Kind::Limits));
        let value = match values.get(name).filter(|_| is_limits) {
            Some(before) => with_limits(before, &value),
            None => value,
        };
        values.insert(name, value);
    }

    /// How long a connection stays open without a command; none for ever.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        let idle_s = self.idle_s.load(Ordering::Relaxed);

        (idle_s > 0).then(|| Duration::from_secs(idle_s))
    }

    pub(crate) fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// Parameters that differ from their start and do nothing.
    pub(crate) fn inert(&self) -> Vec<(&'static str, String)> {
        let values = self.values.lock();

        PARAMETERS
            .iter()
            .filter(|known| !ACTING.contains(&known.name) && !matches!(known.kind, Kind::Fixed))
            .filter_map(|known| Some((known.name, values.get(known.name)?.clone(), known.default)))
            .filter(|(_, value, default)| value != default)
            .map(|(name, value, _)| (name, value))
            .collect()
    }
}

impl Parameter {
    pub(crate) fn find(name: &[u8]) -> Option<&'static Parameter> {
        PARAMETERS.iter().find(|known| name.eq_ignore_ascii_case(known.name.as_bytes()))
    }

    /// A value in its stored form, or why it is refused.
    pub(crate) fn check(&self, value: &[u8]) -> Result<String, String> {
        let text = std::str::from_utf8(value).map_err(|_| "argument must be text".to_owned())?;

        match self.kind {
            Kind::Fixed => Err("can't set immutable config".into()),
            Kind::Text => Ok(text.to_owned()),
            Kind::Limits => limits(text).map_err(str::to_owned),

            Kind::Number(min, max) => {
                let number: i64 =
                    text.parse().map_err(|_| "argument couldn't be parsed into an integer")?;
                if !(min..=max).contains(&number) {
                    return Err(format!("argument must be between {min} and {max} inclusive"));
                }
                Ok(number.to_string())
            }

            Kind::Memory(min) => {
                let bytes = memory(text).ok_or("argument must be a memory value")?;
                if bytes < min {
                    let max = i64::MAX;
                    return Err(format!("argument must be between {min} and {max} inclusive"));
                }
                Ok(bytes.to_string())
            }

            Kind::Switch => {
                let word = text.to_ascii_lowercase();
                if word != "yes" && word != "no" {
                    return Err("argument must be 'yes' or 'no'".into());
                }
                Ok(word)
            }

            Kind::Words(words) => {
                let word = text.to_ascii_lowercase();
                if !words.contains(&&*word) {
                    let words = words.join(", ");
                    return Err(format!("argument(s) must be one of the following: {words}"));
                }
                Ok(word)
            }
        }
    }
}

/// Bytes from a number with a unit: `k`, `m`, `g` are powers of 1000, `kb`, `mb`, `gb` of 1024.
fn memory(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };

    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Limits of classes of clients in their stored form.
fn limits(text: &str) -> Result<String, &'static str> {
    let words: Vec<&str> = text.split(' ').filter(|_| !text.is_empty()).collect();
    if !words.len().is_multiple_of(WORDS_PER_CLASS) {
        return Err("Wrong number of arguments in buffer limit configuration.");
    }

    let class_of = |words: &[&str]| -> Result<String, &'static str> {
        let class = match words[0].to_ascii_lowercase().as_str() {
            "normal" => "normal",
            "slave" | "replica" => "slave",
            "pubsub" => "pubsub",
            _ => return Err("Invalid client class specified in buffer limit configuration."),
        };
        let wrong = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        let hard = memory(words[1]).ok_or(wrong)?;
        let soft = memory(words[2]).ok_or(wrong)?;
        let seconds: u32 = words[3].parse().map_err(|_| wrong)?;
        Ok(format!("{class} {hard} {soft} {seconds}"))
    };
    let classes: Result<Vec<String>, &str> =
        words.chunks_exact(WORDS_PER_CLASS).map(class_of).collect();
    Ok(classes?.join(" "))
}

/// The limits of all classes after some were set.
fn with_limits(before: &str, set: &str) -> String {
    let mut all: Vec<&str> = before.split(' ').collect();
    let set: Vec<&str> = set.split(' ').collect();
    for given in set.chunks_exact(WORDS_PER_CLASS) {
        let class = all.chunks_exact_mut(WORDS_PER_CLASS).find(|class| class[0] == given[0]);
        if let Some(class) = class {
            class.copy_from_slice(given);
        }
    }
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<String, String> {
        Parameter::find(name.as_bytes()).expect("a parameter").check(value.as_bytes())
    }

    #[test]
    fn values_are_checked_by_their_kind() {
        assert_eq!(check("TIMEOUT", "30"), Ok("30".into()));
        assert_eq!(check("maxmemory", "100mb"), Ok("104857600".into()));
        assert_eq!(check("maxmemory", "1G"), Ok("1000000000".into()));
        assert_eq!(check("activedefrag", "YES"), Ok("yes".into()));
        assert_eq!(check("appendfsync", "EverySec"), Ok("everysec".into()));

        assert!(check("timeout", "x").is_err());
        assert!(check("timeout", "-1").is_err());
        assert!(check("maxmemory", "1x").is_err());
        assert!(check("proto-max-bulk-len", "1023kb").is_err());
        assert_eq!(check("proto-max-bulk-len", "1mb"), Ok("1048576".into()));
        assert!(check("activedefrag", "maybe").is_err());
        assert!(check("appendfsync", "sometimes").is_err());
        assert!(check("port", "1").is_err());
    }

    #[test]
    fn limits_are_set_class_by_class() {
        let name = "client-output-buffer-limit";
        assert_eq!(check(name, "Replica 1mb 512k 60"), Ok("slave 1048576 512000 60".into()));
        let refused = |value: &str| check(name, value).expect_err("it is refused");
        assert_eq!(check(name, ""), Ok(String::new()), "none are set");
        assert!(refused("normal 0 0").starts_with("Wrong number"));
        assert!(refused("master 0 0 0").starts_with("Invalid client class"));
        for value in ["normal x 0 0", "normal 0 -1 0", "normal 0 0 -1", "normal 0 0 1s"] {
            assert!(refused(value).starts_with("Error in hard, soft or soft_seconds"), "{value}");
        }

        let parameters = Parameters::new(&Settings::default(), 1, false);
        parameters.set(name, check(name, "pubsub 32mb 8mb 60 normal 1 2 3").expect("limits"));
        parameters.set(name, check(name, "normal 0 0 0").expect("limits"));
        assert_eq!(parameters.get(name), "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60");
    }

    #[test]
    fn each_parameter_stands_once_and_its_default_is_right() {
        for (index, known) in PARAMETERS.iter().enumerate() {
            assert!(PARAMETERS[index + 1..].iter().all(|other| other.name != known.name));
            if !matches!(known.kind, Kind::Fixed) {
                assert_eq!(known.check(known.default.as_bytes()).as_deref(), Ok(known.default));
            }
        }
        for name in ACTING {
            assert!(Parameter::find(name.as_bytes()).is_some(), "{name}");
        }
    }
}
