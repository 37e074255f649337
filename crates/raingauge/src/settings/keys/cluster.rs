//! The keys of the cluster engines. `config/cluster.toml` has all of them.

use super::{Key, Kind, MIB, TIB, bytes, whole};

const fn text(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::Text { default, is_secret: false }, doc }
}

const fn secret(section: &'static str, name: &'static str, doc: &'static str) -> Key {
    Key { section, name, kind: Kind::Text { default: "", is_secret: true }, doc }
}

const fn one_of(
    section: &'static str,
    name: &'static str,
    words: &'static [&'static str],
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::OneOf { default: words[0], words }, doc }
}

const fn millis(
    section: &'static str,
    name: &'static str,
    default: u64,
    range: (u64, u64),
    doc: &'static str,
) -> Key {
    whole(section, name, default, range, "milliseconds", doc)
}

const CONSISTENCIES: &[&str] = &["local_quorum", "local_one", "one", "quorum", "all"];

pub const KEYS: &[Key] = &[
    text(
        "cluster",
        "roles",
        "reader,writer,portal",
        "What this process does: some of reader, writer and portal, with commas; --role overrides it.",
    ),
    text(
        "cluster",
        "instance",
        "",
        "Name of this process, for the cache policy's overrides and the consumer group; empty for none.",
    ),
    one_of(
        "cluster",
        "engines",
        &["embedded", "cluster"],
        "Whether counts and events live in the data folder, or in CQL and Kafka.",
    ),
    one_of(
        "cluster",
        "catalog",
        &["sqlite", "mysql"],
        "Whether counters live in the data folder, or in MySQL.",
    ),
    millis(
        "cluster",
        "commit_interval_ms",
        500,
        (10, 60_000),
        "How often a writer stores what it has counted, after which readers see it.",
    ),
    whole(
        "cluster",
        "reread_s",
        15,
        (0, 604_800),
        "seconds",
        "How much of the log before its checkpoint a writer that takes a partition over reads again; 0 for none.",
    ),
    one_of(
        "cluster",
        "publish_tiles",
        &["yes", "no"],
        "Whether writers publish tiles, and readers keep them in memory for counters under the strategy live.",
    ),
    text(
        "cql",
        "contact_points",
        "127.0.0.1:9042",
        "Some nodes of ScyllaDB or Cassandra, host:port, with commas.",
    ),
    text("cql", "keyspace", "raingauge", "Keyspace of the tables; `raingauge migrate` makes it."),
    text("cql", "user", "", "User, where the cluster asks for one."),
    secret("cql", "password", "Password of that user."),
    text(
        "cql",
        "ca_file",
        "",
        "Certificate authority of the cluster, PEM; TLS is used when it is given.",
    ),
    text(
        "cql",
        "certificate_file",
        "",
        "Own certificate for TLS, PEM, where the cluster asks for one.",
    ),
    text("cql", "key_file", "", "Key of that certificate, PEM."),
    text("cql", "datacenter", "", "Datacenter whose nodes are asked first; empty for all alike."),
    text(
        "cql",
        "replication",
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
        "Replication of a keyspace that `raingauge migrate` makes.",
    ),
    whole(
        "cql",
        "quarter_window_days",
        3,
        (1, 365),
        "days",
        "Window of time-window compaction for quarter hours.",
    ),
    whole(
        "cql",
        "hour_window_days",
        14,
        (1, 365),
        "days",
        "Window of time-window compaction for hours.",
    ),
    whole(
        "cql",
        "day_window_days",
        30,
        (1, 3_650),
        "days",
        "Window of time-window compaction for days.",
    ),
    one_of("cql", "read_consistency", CONSISTENCIES, "Consistency of counts that are read."),
    one_of(
        "cql",
        "write_consistency",
        &["local_quorum", "quorum", "all"],
        "Consistency of what writers store and read back.",
    ),
    millis(
        "cql",
        "request_timeout_ms",
        2_000,
        (10, 60_000),
        "Longest time that one request may take.",
    ),
    millis(
        "cql",
        "speculative_after_ms",
        50,
        (0, 60_000),
        "A read without an answer after this is asked of another node too; 0 for never.",
    ),
    whole(
        "cql",
        "in_flight_max",
        512,
        (1, 32_768),
        "requests",
        "Most requests of one kind under way at once.",
    ),
    one_of(
        "cql",
        "read_plan",
        &["tiles", "tables"],
        "Whether a count reads packed tiles, or slices of the three count tables.",
    ),
    one_of(
        "cql",
        "foreign_rows",
        &["yes", "no"],
        "Whether other systems write rows into the count tables: then a key without tiles in a range is asked of the store every time, also under live.",
    ),
    one_of(
        "cql",
        "tables",
        &["yes", "no"],
        "Whether writers also write the three count tables, a row for each bucket, for other tools.",
    ),
    one_of(
        "cql",
        "write_tables",
        &["yes", "no"],
        "Former name of `cql.tables`: either of them switches the tables off.",
    ),
    bytes(
        "cql",
        "writer_cache_bytes",
        256 * MIB,
        (MIB, TIB),
        "Memory for the tiles that each partition's writer works on.",
    ),
    text("kafka", "brokers", "127.0.0.1:9092", "Some brokers of Kafka, host:port, with commas."),
    text(
        "kafka",
        "topic",
        "raingauge-events",
        "Topic of the events; `raingauge migrate` makes it.",
    ),
    text(
        "kafka",
        "dead_letter_topic",
        "raingauge-dead-letters",
        "Topic for messages that cannot be counted.",
    ),
    text("kafka", "group", "raingauge", "Consumer group of the writers."),
    whole(
        "kafka",
        "partitions",
        4,
        (1, 1_000),
        "partitions",
        "Partitions of a topic that `raingauge migrate` makes, and that it must have.",
    ),
    whole(
        "kafka",
        "replication",
        1,
        (1, 10),
        "copies",
        "Copies of each partition of a topic that `raingauge migrate` makes.",
    ),
    whole(
        "kafka",
        "epoch",
        0,
        (0, 32_767),
        "epochs",
        "Raised by one whenever the topic is recreated.",
    ),
    secret(
        "kafka",
        "control_key",
        "Secret by which processes sign control entries; without it, anyone who writes to the topic can change counters and buckets. Of several, with commas, the first signs and all verify.",
    ),
    whole(
        "kafka",
        "control_unsigned_until",
        0,
        (0, 253_402_300_800),
        "seconds since 1970",
        "With a control key: entries that the broker appended before this time need no signature.",
    ),
    one_of(
        "kafka",
        "partition_check",
        &["no", "yes"],
        "Whether an event in another partition than that of its identity is refused as `partition_wrong`.",
    ),
    millis(
        "kafka",
        "session_timeout_ms",
        10_000,
        (1_000, 300_000),
        "Silence after which a writer loses its partitions.",
    ),
    millis(
        "kafka",
        "delivery_timeout_ms",
        10_000,
        (100, 300_000),
        "Longest time that the acknowledgement of events may take.",
    ),
    text("kafka", "user", "", "User for SASL, where the brokers ask for one."),
    secret("kafka", "password", "Password of that user."),
    one_of(
        "kafka",
        "sasl_mechanism",
        &["plain", "scram-sha-256", "scram-sha-512"],
        "How user and password are shown; SCRAM needs a build with kafka-tls.",
    ),
    one_of(
        "kafka",
        "tls",
        &["no", "yes"],
        "Whether brokers are reached by TLS, which needs a build with kafka-tls.",
    ),
    text(
        "kafka",
        "ca_file",
        "",
        "Certificate authority of the brokers, PEM; empty for those that the machine trusts.",
    ),
    text(
        "kafka",
        "certificate_file",
        "",
        "Own certificate for TLS, PEM, where the brokers ask for one.",
    ),
    text("kafka", "key_file", "", "Key of that certificate, PEM."),
    secret(
        "mysql",
        "url",
        "Database of the catalog: mysql://user:password@host:port/database, with ?ssl-mode=VERIFY_CA&ssl-ca=FILE for TLS.",
    ),
    one_of(
        "maintenance",
        "compaction_way",
        &["auto", "nodetool", "rest"],
        "How nodes are made to compact: nodetool for Cassandra, the REST interface for Scylla, or what suits the server.",
    ),
    text(
        "maintenance",
        "compaction_command",
        "nodetool -h {host} -p 7199",
        "Command that reaches a node of Cassandra, words with spaces; {host} is the node's address, and what to do is appended.",
    ),
    text(
        "maintenance",
        "compaction_url",
        "http://{host}:10000",
        "REST interface of a node of Scylla; {host} is the node's address.",
    ),
    one_of(
        "maintenance",
        "compaction_tables",
        &["auto", "all"],
        "Tables that are compacted; auto leaves those with time windows to Cassandra, which would mix their windows.",
    ),
    millis(
        "reader",
        "deadline_ms",
        5_000,
        (10, 60_000),
        "Longest time that the counts of one request may take; those that would take longer are answered with an error.",
    ),
    whole(
        "reader",
        "reads_in_flight_max",
        1_024,
        (1, 1_000_000),
        "ranges",
        "Most ranges that are read from storage at once.",
    ),
    whole(
        "reader",
        "reads_waiting_max",
        8_192,
        (0, 10_000_000),
        "ranges",
        "Most ranges that wait to be read; beyond it, counts are refused as `overloaded`.",
    ),
    one_of(
        "cache",
        "result",
        &["none", "memory", "redis"],
        "Where sums are kept for counters under the strategies result and phased.",
    ),
    whole(
        "cache",
        "memory_entries_max",
        1_000_000,
        (1, 1_000_000_000),
        "sums",
        "Most sums that are kept in memory.",
    ),
    secret(
        "cache",
        "redis_urls",
        "Where Redis is: redis://user:password@host:port, with commas; rediss:// for TLS. Of a cluster, some of its nodes.",
    ),
    one_of("cache", "redis_cluster", &["no", "yes"], "Whether that is a Redis Cluster."),
    millis(
        "cache",
        "redis_timeout_ms",
        20,
        (1, 10_000),
        "Longest wait for Redis; counts are then read from storage.",
    ),
    text(
        "cache",
        "redis_ca_file",
        "",
        "Certificate authority of Redis, PEM; empty for those that the machine trusts.",
    ),
    text(
        "cache",
        "redis_certificate_file",
        "",
        "Own certificate for TLS, PEM, where Redis asks for one.",
    ),
    text("cache", "redis_key_file", "", "Key of that certificate, PEM."),
];
