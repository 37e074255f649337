//! The metrics, as tables.

/// Declares a table of metrics: of each the kind, the unit, the name, the labels and what it says.
/// A histogram of anything but seconds needs buckets of its own in `observe.rs`.
macro_rules! metrics {
    ($(#[$meta:meta])* $TABLE:ident:
        $($kind:ident $unit:ident $name:literal [$($label:literal),*] $doc:literal;)+) => {
        $(#[$meta])*
        pub const $TABLE: &[Metric] = &[$(Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            unit: Unit::$unit,
            doc: $doc,
        },)+];
    };
}

mod products;

pub use products::PRODUCT_METRICS;

use metrics::Unit;

metrics! {
    /// The metrics of counting, in the order of `docs/metrics.md`.
    METRICS:
    Counter Count "raingauge_events_accepted_total" []
        "Events that were made durable in the log.";
    Counter Count "raingauge_events_duplicate_total" []
        "Events that repeat a source and id of the dedupe window, and were not counted again.";
    Counter Count "raingauge_events_rejected_total" ["code"]
        "Events that were refused when they came in, by code.";
    Counter Count "raingauge_buckets_set_total" []
        "Buckets that were set by requests, whatever was counted.";
    Counter Count "raingauge_events_applied_total" []
        "Events of the log that were counted, or found to concern no counter.";
    Counter Count "raingauge_late_refused_total" ["counter", "granularity"]
        "Contributions to a bucket that was past its retention, by counter and granularity.";
    Counter Count "raingauge_events_skipped_total" ["counter", "reason"]
        "Events of a counter's type that gave it nothing, such as a missing field, a value that is not a number or a key too many.";
    Gauge Count "raingauge_counter_keys" ["counter"]
        "Keys of a counter, about, once it has a tenth of what it may have.";
    Gauge Count "raingauge_counter_keys_max" []
        "Keys that a counter may have.";
    Gauge Count "raingauge_log_lag_events" ["partition"]
        "Durable events that wait to be counted, by partition, from the process that counts it; measured outside the worker in a cluster.";
    Gauge Count "raingauge_log_lost_entries" ["partition"]
        "Entries that the log dropped before they were counted, and that the partition stands still for until `raingauge skip-lost`.";
    Gauge Seconds "raingauge_log_lag_seconds" ["partition"]
        "Age of the oldest durable event that waits to be counted, by partition; 0 when none does.";
    Gauge Count "raingauge_consumer_position" ["consumer", "partition"]
        "Offset up to which a consumer has made durable what it makes of the log; embedded log only.";
    Gauge Count "raingauge_consumer_lag_events" ["consumer", "partition"]
        "Entries of the log behind the position of a consumer; embedded log only.";
    Gauge Seconds "raingauge_consumer_lag_seconds" ["consumer", "partition"]
        "Age of the oldest entry of the log behind the position of a consumer; 0 when there is none; embedded log only.";
    Gauge Count "raingauge_consumer_overtaken_entries" ["consumer", "partition"]
        "Entries that the log dropped before a consumer had read them, since it was further behind than log.consumer_lag_bytes_max; embedded log only.";
    Gauge Count "raingauge_log_end_offset" ["partition"]
        "Offset that the next event of the log will have; by partition, without the epoch, on Kafka.";
    Gauge Count "raingauge_log_committed_offset" ["partition"]
        "Offset up to which the store includes the log, from the process that counts the partition, without the epoch; Kafka only.";
    Gauge Count "raingauge_log_unstable_messages" ["partition"]
        "Messages of Kafka behind the last stable offset, which nobody can read until a transaction ends.";
    Gauge Bytes "raingauge_log_bytes" []
        "Size of the event log on disk.";
    Gauge Seconds "raingauge_clock_ahead_seconds" []
        "How far the clock is ahead of the time of the event log, or behind it when negative; 0 while it is believed.";
    Histogram Seconds "raingauge_apply_seconds" []
        "Time to count one batch of the log.";
    Histogram Seconds "raingauge_checkpoint_seconds" []
        "Time to make counts, offset and dedupe window durable together.";
    Counter Count "raingauge_tile_cache_hits_total" []
        "Tiles that were found decoded in memory.";
    Counter Count "raingauge_tile_cache_misses_total" []
        "Tiles that had to be read from the storage engine.";
    Gauge Bytes "raingauge_tile_cache_bytes" []
        "Memory that decoded tiles take.";
    Counter Count "raingauge_range_counts_total" []
        "Range counts that were asked for, each item of a batch by itself.";
    Counter Count "raingauge_rows_read_total" []
        "Tiles that range counts needed, from memory or from disk; divided by the range counts, the rows that one of them reads.";
    Counter Count "raingauge_errors_total" ["code"]
        "Errors that were answered or logged, by code.";
    Counter Count "raingauge_http_requests_total" ["route", "status"]
        "HTTP requests, by the pattern of their route and the status of the answer.";
    Histogram Seconds "raingauge_http_request_seconds" ["route"]
        "Time from the head of a request to the head of its answer, by the pattern of its route.";
    Counter Count "raingauge_grpc_requests_total" ["method", "status"]
        "Calls by gRPC, by their method and the status of the answer.";
    Histogram Seconds "raingauge_grpc_request_seconds" ["method"]
        "Time from the head of a call to the head of its answer, by its method.";
    Gauge Count "raingauge_connections" ["door"]
        "Connections that a door has open.";
    Counter Count "raingauge_connections_refused_total" ["door", "reason"]
        "Connections without a place of their own, by door and reason: full, address, reserve, accept, handshake.";
    Counter Count "raingauge_connections_expired_total" ["door", "reason"]
        "Connections that reached a time limit and were closed, by door and limit: handshake, head, idle, write.";
    Gauge Seconds "raingauge_tls_certificate_end_seconds" []
        "When the certificate of the doors expires, in seconds since 1970.";
    Counter Count "raingauge_tls_reloads_total" ["outcome"]
        "Changes of the certificate's files while the server ran, by outcome: done, failed.";
    Gauge Count "raingauge_dedupe_ids" ["partition"]
        "Events that the dedupe window remembers; by partition on Kafka.";
    Gauge Seconds "raingauge_dedupe_window_seconds" []
        "How far back the dedupe window reaches; less than configured when it is full.";
    Gauge Count "raingauge_breaker_state" ["engine"]
        "State of the circuit breaker before an engine: 0 closed, 1 half open, 2 open.";
    Counter Count "raingauge_breaker_transitions_total" ["engine", "to"]
        "Changes of the state of a circuit breaker, by engine and the state it moved to.";
    Counter Count "raingauge_reads_shed_total" []
        "Range counts that were refused because too many were waiting for the bucket store.";
    Counter Count "raingauge_reads_coalesced_total" []
        "Range counts that waited for the same read of another request.";
    Counter Count "raingauge_cache_hits_total" ["strategy"]
        "Range counts that a cache answered, by strategy.";
    Counter Count "raingauge_cache_misses_total" ["strategy"]
        "Range counts that a cache had no answer to.";
    Counter Count "raingauge_cache_errors_total" ["strategy"]
        "Range counts whose result cache failed or was too slow, and that were read from the bucket store.";
    Counter Count "raingauge_cache_skipped_total" ["strategy"]
        "Range counts that passed the result cache over while its circuit breaker was open.";
    Counter Count "raingauge_cache_puts_dropped_total" []
        "Counts that were not put into the result cache because too many were on their way.";
    Gauge Count "raingauge_cache_policy_version" []
        "Version of the cache policy that this process follows; 0 while nobody has set one.";
    Counter Count "raingauge_redis_malformed_values_total" []
        "Values in the result cache that are no whole number, and were passed over.";
    Counter Count "raingauge_redis_unanswered_keys_total" []
        "Keys that a node of the Redis Cluster did not answer, or not in time.";
    Counter Count "raingauge_live_changes_total" []
        "Changes of tiles in memory that the live stream brought.";
    Counter Count "raingauge_live_drops_total" ["reason"]
        "Times that all tiles in memory were dropped because the live stream had a gap or was silent, or the lease lapsed.";
    Counter Count "raingauge_live_tiles_ahead_total" []
        "Tiles that were read before they were needed, for the next day.";
    Gauge Count "raingauge_live_leases" []
        "Readers that this process knows to hold a lease to answer from memory.";
    Gauge Bytes "raingauge_live_bytes" []
        "Memory of the tiles that the live stream keeps current.";
    Counter Count "raingauge_cql_range_counts_total" []
        "Range counts that were read over CQL.";
    Counter Count "raingauge_cql_read_requests_total" []
        "CQL requests that range counts made; divided by the range counts over CQL, the requests of one.";
    Counter Count "raingauge_cql_read_rows_total" []
        "Rows that those requests returned; divided by the range counts over CQL, the rows of one.";
    Counter Count "raingauge_cql_write_requests_total" []
        "Batches of changed cells that writers stored.";
    Counter Count "raingauge_cql_write_rows_total" []
        "Rows in those batches: tiles, and rows of the count tables.";
    Histogram Seconds "raingauge_cql_flush_seconds" []
        "Time to store all cells of a partition that had changed.";
    Counter Count "raingauge_cql_retries_total" []
        "Requests of writers that failed and were made again; they go on until they succeed.";
    Gauge Bytes "raingauge_cql_writer_cache_bytes" []
        "Memory of the tiles that a partition's writer works on; of the partition that committed last.";
    Gauge Count "raingauge_partitions_counted" []
        "Partitions of the log that this process counts.";
    Gauge Count "raingauge_log_partitions" []
        "Partitions that the consumer group gave this process; 0 when it is out of the group.";
    Counter Count "raingauge_log_cursors_total" []
        "Positions of the log at which reading started, each of which needs the dedupe window before it.";
    Histogram Seconds "raingauge_dedupe_rebuild_seconds" []
        "Time from beginning to read at a place of the log until the dedupe window before it is complete.";
    Counter Count "raingauge_dedupe_chunks_dropped_total" []
        "Parts of dedupe windows that could not be stored: who takes the partition over reads them from the log.";
    Gauge Count "raingauge_kafka_connected" []
        "1 while Kafka is in reach of this process, otherwise 0.";
    Counter Count "raingauge_dedupe_forgotten_total" ["partition"]
        "Events that the dedupe window forgot early because there were more than dedupe.ids_max, by partition.";
    Counter Count "raingauge_dead_letters_total" ["code"]
        "Messages that could not be counted and went to the dead-letter topic, by code.";
    Counter Count "raingauge_dead_letters_lost_total" ["code"]
        "Messages that could not be counted and could not be put into the dead-letter topic either, by code.";
    Gauge Count "raingauge_compaction_running" []
        "1 while this process compacts the nodes, otherwise 0.";
    Counter Count "raingauge_compactions_total" ["result"]
        "Compactions of all nodes that ended, or were due and did not begin (skipped, missed), by result.";
    Counter Count "raingauge_checks_total" ["outcome"]
        "Keys whose stored counts were compared with the log, by outcome: equal, differs, uncovered, failed.";
    Gauge Count "raingauge_check_mismatches" []
        "Keys whose newest check found a stored count that is not what the log comes to.";
    Counter Count "raingauge_rollouts_total" ["outcome"]
        "Rollouts that this portal saw to their end, by outcome.";
    Gauge Bytes "raingauge_disk_bytes" []
        "Size of the disk that has the data folder.";
    Gauge Bytes "raingauge_disk_free_bytes" []
        "Room that is left on the disk that has the data folder.";
    Gauge Seconds "raingauge_compaction_seconds" ["node"]
        "Time that the last compaction of a node took, by node.";
}

pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub unit: Unit,
    pub doc: &'static str,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}
