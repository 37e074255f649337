//! `INFO`: the server in sections of names and values, under the names that tools know.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use raingauge_objects::Space;
use raingauge_ports::objects::KeyCount;
use raingauge_resp::{Arguments, Replies};

use super::configuration;
use crate::client::Client;
use crate::desk::Desk;
use crate::server::{REDIS_VERSION, Server};

/// A section: its name, what writes it, and whether `INFO` shows it without being asked.
type Section = (&'static str, fn(&Server, &mut Text), bool);

const SECTIONS: [Section; 12] = [
    ("Server", server, true),
    ("Clients", clients, true),
    ("Memory", memory, true),
    ("Persistence", persistence, true),
    ("Stats", stats, true),
    ("Replication", replication, true),
    ("CPU", processor, true),
    ("Modules", modules, true),
    ("Commandstats", commands, false),
    ("Errorstats", errors, true),
    ("Latencystats", latencies, false),
    ("Cluster", cluster, true),
];

/// The lines of `INFO`.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, name: &str, value: impl Display) {
        self.0.push_str(&format!("{name}:{value}\r\n"));
    }

    fn section(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        self.0.push_str(&format!("# {name}\r\n"));
    }
}

/// Counts the keys, for the section about them.
pub(super) async fn prepare(desk: &Desk) {
    if let Ok(keyspace) = desk.server.objects.keyspace().await {
        *desk.server.keyspace.lock() = keyspace;
    }
}

/// Whether one of some words is among the sections that are asked for.
fn wants(arguments: Arguments<'_>, words: &[&str]) -> bool {
    (1..arguments.len()).any(|index| words.iter().any(|word| arguments.is(index, word)))
}

/// Whether the reply tells how many keys there are.
pub(super) fn shows_keys(arguments: Arguments<'_>) -> bool {
    arguments.len() == 1 || wants(arguments, &["all", "everything", "default", "keyspace"])
}

pub(super) fn run(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) {
    let wants = |word: &str| wants(arguments, &[word]);
    let everything = wants("all") || wants("everything");
    let default = arguments.len() == 1 || wants("default");
    let mut text = Text::default();

    for (name, write, is_default) in SECTIONS {
        if everything || default && is_default || wants(name) {
            text.section(name);
            write(&desk.server, &mut text);
        }
    }

    // The keys come last, as tools expect, and what does nothing behind them.
    if shows_keys(arguments) {
        text.section("Keyspace");
        keyspace(&desk.server, &mut text);
    }
    if everything || default || wants("raingauge") {
        text.section("Raingauge");
        inert(&desk.server, &mut text);
    }

    replies.verbatim(&text.0);
}

fn server(server: &Server, text: &mut Text) {
    let uptime_s = ((server.clock.now_ms() - server.started_ms) / 1000).max(0);

    text.line("redis_version", REDIS_VERSION);
    text.line("redis_git_sha1", "00000000");
    text.line("redis_git_dirty", 0);
    text.line("redis_build_id", "0");
    text.line("redis_mode", if server.is_cluster() { "cluster" } else { "standalone" });
    text.line("raingauge_version", env!("CARGO_PKG_VERSION"));
    text.line("os", std::env::consts::OS);
    text.line("arch_bits", usize::BITS);
    text.line("monotonic_clock", "POSIX clock_gettime");
    text.line("multiplexing_api", "tokio");
    text.line("process_id", std::process::id());
    text.line("run_id", &server.run_id);
    text.line("tcp_port", server.address.port());
    text.line("server_time_usec", server.clock.now_ms() * 1000);
    text.line("uptime_in_seconds", uptime_s);
    text.line("uptime_in_days", uptime_s / 86_400);
    text.line("hz", server.parameters.get("hz"));
    text.line("configured_hz", server.parameters.get("hz"));
    text.line("executable", "raingauge");
    text.line("config_file", "");
}

fn clients(server: &Server, text: &mut Text) {
    let all = server.clients.all();
    let listening = all.iter().filter(|client| client.kind() == "pubsub").count();

    let is_blocked = |client: &&Arc<Client>| client.numbers.blocked.load(Ordering::Relaxed);
    let blocked = all.iter().filter(is_blocked).count();

    text.line("connected_clients", all.len());
    text.line("cluster_connections", 0);
    text.line("maxclients", server.parameters.clients_max());
    text.line("client_recent_max_input_buffer", 0);
    text.line("client_recent_max_output_buffer", 0);
    text.line("blocked_clients", blocked);
    text.line("tracking_clients", 0);
    text.line("pubsub_clients", listening);
    text.line("clients_in_timeout_table", 0);
}

fn memory(server: &Server, text: &mut Text) {
    let stats = server.objects.stats();
    let process = resident_bytes();

    text.line("used_memory", stats.resident_bytes);
    text.line("used_memory_human", human(stats.resident_bytes));
    text.line("used_memory_rss", process);
    text.line("used_memory_rss_human", human(process));
    text.line("used_memory_peak", stats.resident_bytes);
    text.line("used_memory_peak_human", human(stats.resident_bytes));
    text.line("used_memory_dataset", stats.resident_bytes);
    text.line("used_memory_lua", 0);
    text.line("used_memory_scripts", 0);
    text.line("maxmemory", 0);
    text.line("maxmemory_human", "0B");
    text.line("maxmemory_policy", "noeviction");
    text.line("mem_fragmentation_ratio", "1.00");
    text.line("mem_allocator", "mimalloc");
    text.line("active_defrag_running", 0);
    text.line("lazyfree_pending_objects", 0);
}

fn persistence(server: &Server, text: &mut Text) {
    let stats = server.objects.stats();
    let saved_ms = server.totals.saved_ms.load(Ordering::Relaxed) as i64;
    let state = if server.objects.trouble().is_some() { "err" } else { "ok" };

    text.line("loading", 0);
    text.line("async_loading", 0);
    text.line("rdb_changes_since_last_save", stats.submitted.saturating_sub(stats.synced));
    text.line("rdb_bgsave_in_progress", 0);
    text.line("rdb_last_save_time", saved_ms.max(server.started_ms) / 1000);
    text.line("rdb_last_bgsave_status", state);
    text.line("aof_enabled", 1);
    text.line("aof_rewrite_in_progress", 0);
    text.line("aof_rewrite_scheduled", 0);
    text.line("aof_last_bgrewrite_status", state);
    text.line("aof_last_write_status", state);
    text.line("appendfsync", configuration::value(server, "appendfsync"));
}

fn stats(server: &Server, text: &mut Text) {
    let stats = server.objects.stats();
    let totals = &server.totals;
    let pubsub = server.objects.pubsub();
    let usage = &server.usage;

    text.line("total_connections_received", server.clients.opened());
    text.line("total_commands_processed", usage.total());
    text.line("total_net_input_bytes", totals.received.load(Ordering::Relaxed));
    text.line("total_net_output_bytes", totals.sent.load(Ordering::Relaxed));
    text.line("rejected_connections", totals.refused_connections.load(Ordering::Relaxed));
    text.line("expired_keys", stats.expired);
    text.line("evicted_keys", 0);
    text.line("evicted_clients", 0);
    text.line("keyspace_hits", stats.hits);
    text.line("keyspace_misses", stats.misses);
    text.line("pubsub_channels", pubsub.names_len(Space::Channel));
    text.line("pubsub_patterns", pubsub.names_len(Space::Pattern));
    text.line("pubsubshard_channels", pubsub.names_len(Space::Shard));
    text.line("latest_fork_usec", 0);
    text.line("total_forks", 0);
    text.line("unexpected_error_replies", 0);
    text.line("total_error_replies", usage.failures());
    text.line("dump_payload_sanitizations", 0);
    let overrun = totals.overrun_connections.load(Ordering::Relaxed);
    text.line("client_output_buffer_limit_disconnections", overrun);
}

fn replication(server: &Server, text: &mut Text) {
    text.line("role", "master");
    text.line("connected_slaves", 0);
    text.line("master_failover_state", "no-failover");
    text.line("master_replid", &server.run_id);
    text.line("master_replid2", "0".repeat(40));
    text.line("master_repl_offset", server.objects.stats().submitted);
    text.line("second_repl_offset", -1);
    text.line("repl_backlog_active", 0);
    text.line("repl_backlog_size", 0);
}

/// Seconds of processor time of the process.
fn processor(_server: &Server, text: &mut Text) {
    let times = processor_times();

    text.line("used_cpu_sys", format_args!("{:.6}", times.1));
    text.line("used_cpu_user", format_args!("{:.6}", times.0));
    text.line("used_cpu_sys_children", "0.000000");
    text.line("used_cpu_user_children", "0.000000");
}

fn modules(_server: &Server, _text: &mut Text) {}

fn commands(server: &Server, text: &mut Text) {
    for usage in server.usage.commands() {
        let mean_us = usage.duration_us as f64 / usage.calls.max(1) as f64;

        text.line(
            &format!("cmdstat_{}", usage.spec.name),
            format_args!(
                "calls={},usec={},usec_per_call={mean_us:.2},rejected_calls={},failed_calls={}",
                usage.calls, usage.duration_us, usage.rejected, usage.failed
            ),
        );
    }
}

fn errors(server: &Server, text: &mut Text) {
    for (code, count) in server.usage.codes() {
        text.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latencies(server: &Server, text: &mut Text) {
    for usage in server.usage.commands().iter().filter(|usage| usage.calls > 0) {
        let at = |part| usage.percentile_us(part);

        text.line(
            &format!("latency_percentiles_usec_{}", usage.spec.name),
            format_args!(
                "p50={:.3},p99={:.3},p99.9={:.3}",
                at(0.5) as f64,
                at(0.99) as f64,
                at(0.999) as f64
            ),
        );
    }
}

fn cluster(server: &Server, text: &mut Text) {
    text.line("cluster_enabled", i32::from(server.is_cluster()));
}

fn keyspace(server: &Server, text: &mut Text) {
    for (database, KeyCount { keys, expiring }) in server.keyspace.lock().iter() {
        let counts = format_args!("keys={keys},expires={expiring},avg_ttl=0");
        text.line(&format!("db{database}"), counts);
    }
}

/// Parameters that were set and do nothing.
fn inert(server: &Server, text: &mut Text) {
    for (name, value) in server.parameters.inert() {
        text.line(&format!("inert_parameter_{name}"), value);
    }
}

fn human(bytes: u64) -> String {
    let units = [(1_u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];

    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, letter)) => format!("{:.2}{letter}", bytes as f64 / *unit as f64),
        None => format!("{bytes}B"),
    }
}

/// Bytes of the process in memory, as Linux tells them; 0 elsewhere.
fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();

    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}

/// Seconds of the processor in the program and in the kernel, as Linux tells them; 0 elsewhere.
fn processor_times() -> (f64, f64) {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();

    // The name of the process may have spaces; the fields behind its parenthesis do not.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0.0));
    let user = ticks.next().unwrap_or(0.0);
    let system = ticks.next().unwrap_or(0.0);

    (user / TICKS_A_SECOND, system / TICKS_A_SECOND)
}
