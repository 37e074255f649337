//! The metrics of the products.

use super::Metric;
use metrics::Unit;

/// They follow those of counting in `docs/metrics.md`.
pub const PRODUCT_METRICS: &[Metric] = &[
    Metric::counter(
        "raingauge_campaign_events_total",
        &[],
        "Events that campaigns have decided on, most of which concern none.",
    ),
    Metric::counter(
        "raingauge_campaign_decisions_total",
        &["campaign", "outcome"],
        "Decisions of campaigns on actions, by campaign and outcome, such as granted or budget_exhausted.",
    ),
    Metric::counter(
        "raingauge_campaign_held_total",
        &[],
        "Evaluations that were put off because a lookup had no answer.",
    ),
    Metric::counter(
        "raingauge_campaign_timers_total",
        &["outcome"],
        "Timers of campaigns that fired: delivered, cancelled, recheck_failed, lookup_failed, resumed, put_off.",
    ),
    Metric::gauge(
        "raingauge_campaign_timers_pending",
        Unit::Count,
        "Delayed actions and evaluations of campaigns that wait for their time; up to 100,000 are counted.",
    ),
    Metric::counter(
        "raingauge_campaign_candidates_total",
        &[],
        "Steps of campaigns that the index found for events, of which their rules decide.",
    ),
    Metric::histogram(
        "raingauge_campaign_match_seconds",
        &[],
        "Time to count an event in tallies and to find the steps that it may trigger, of one event in 64.",
    ),
    Metric::histogram(
        "raingauge_campaign_batch_seconds",
        &[],
        "Time to decide and commit one batch of the log, lookups included.",
    ),
    Metric::histogram(
        "raingauge_campaign_commit_seconds",
        &[],
        "Time of one commit to the ledger of campaigns.",
    ),
    Metric::counter(
        "raingauge_campaign_commit_rows_total",
        &[],
        "Records that were committed to the ledger of campaigns.",
    ),
    Metric::counter(
        "raingauge_campaign_lookups_total",
        &["class", "outcome"],
        "Look-ups of campaigns by class (segment, table, db, http, counter) and outcome: answered, late, failed.",
    ),
    Metric::counter(
        "raingauge_campaign_lookups_saved_total",
        &["class"],
        "Look-ups of campaigns that took no call, since their answer was cached or already on its way.",
    ),
    Metric::counter(
        "raingauge_campaign_deliveries_total",
        &["destination", "outcome"],
        "Results of deliveries of campaigns: delivered, refused, retried, dead, held; by destination.",
    ),
    Metric::histogram(
        "raingauge_campaign_delivery_seconds",
        &["destination"],
        "Time of a request to a destination, from the name lookup to the last byte of the response.",
    ),
    Metric::counter(
        "raingauge_campaign_dead_total",
        &["destination"],
        "Deliveries whose last attempt failed, by destination.",
    ),
    Metric::counter(
        "raingauge_campaign_rate_limited_seconds_total",
        &["destination"],
        "Seconds in which deliveries waited only for the rate of their destination.",
    ),
    Metric::labelled_gauge(
        "raingauge_campaign_outbox_pending",
        &["destination"],
        Unit::Count,
        "Deliveries that wait for a destination, those that are due later included; up to 100,000 are counted.",
    ),
    Metric::labelled_gauge(
        "raingauge_campaign_outbox_oldest_seconds",
        &["destination"],
        Unit::Seconds,
        "How long ago the oldest waiting delivery was due, by destination; 0 when none is.",
    ),
    Metric::labelled_gauge(
        "raingauge_campaign_breaker_state",
        &["destination"],
        Unit::Count,
        "State of the circuit breaker before a destination: 0 closed, 1 half open, 2 open.",
    ),
    Metric::labelled_gauge(
        "raingauge_campaign_destination_stopped",
        &["destination"],
        Unit::Count,
        "1 while nothing is sent to a destination: it is gone, was disabled, or has no readable secret.",
    ),
    Metric::histogram(
        "raingauge_points_turn_seconds",
        &[],
        "Time of one turn of the ledger of points, from what it loads until it is durable.",
    ),
    Metric::gauge(
        "raingauge_points_journal_bytes",
        Unit::Bytes,
        "Size of the journal of points on disk, which is kept for ever.",
    ),
    Metric::counter(
        "raingauge_points_commands_total",
        &[],
        "Commands that turns have decided, and wallets that they were to settle.",
    ),
    Metric::counter(
        "raingauge_points_entries_total",
        &["programme", "kind"],
        "Entries of the ledger of points, by programme and kind.",
    ),
    Metric::counter(
        "raingauge_points_points_total",
        &["programme", "kind"],
        "Points that entries have moved into or out of balances, by programme and kind, in the smallest unit.",
    ),
    Metric::counter(
        "raingauge_points_replayed_total",
        &[],
        "Commands that had been decided before, and got the same answer.",
    ),
    Metric::counter(
        "raingauge_points_refusals_total",
        &["code"],
        "Commands that were refused, by code.",
    ),
    Metric::gauge(
        "raingauge_points_waiting_commands",
        Unit::Count,
        "Commands that wait for the next turn.",
    ),
    Metric::labelled_gauge(
        "raingauge_points_outstanding",
        &["programme"],
        Unit::Count,
        "Points that members could claim, less what they owe, by programme, in the smallest unit.",
    ),
    Metric::labelled_gauge(
        "raingauge_points_queue_depth",
        &["queue"],
        Unit::Count,
        "Letters that wait in a queue of points or are being worked on.",
    ),
    Metric::labelled_gauge(
        "raingauge_points_queue_dead",
        &["queue"],
        Unit::Count,
        "Dead letters of a queue of points, which wait for an operator.",
    ),
    Metric::labelled_gauge(
        "raingauge_points_queue_age_seconds",
        &["queue"],
        Unit::Seconds,
        "Age of the oldest letter that waits in a queue of points; 0 when none does.",
    ),
    Metric::counter(
        "raingauge_points_dead_total",
        &["queue"],
        "Letters of points that were given up, by queue.",
    ),
    Metric::counter(
        "raingauge_points_delivered_total",
        &["consumer"],
        "Entries that the publisher and the notifier have handed on.",
    ),
    Metric::labelled_gauge(
        "raingauge_points_delivery_lag",
        &["consumer"],
        Unit::Count,
        "Entries that the publisher or the notifier has yet to hand on.",
    ),
    Metric::counter(
        "raingauge_points_notify_total",
        &["outcome"],
        "Notifications of members by outcome: delivered, failed, too_many.",
    ),
    Metric::gauge(
        "raingauge_points_sweep_ranges",
        Unit::Count,
        "Ranges of due wallets that wait to be settled.",
    ),
    Metric::counter(
        "raingauge_points_sweep_wallets_total",
        &[],
        "Wallets that sweeps have settled.",
    ),
    Metric::counter(
        "raingauge_points_audit_differences_total",
        &[],
        "Awards that an audit has found missing, or other than the programme of the time makes them.",
    ),
    Metric::gauge("raingauge_resp_connections", Unit::Count, "Connections of Redis clients."),
    Metric::counter(
        "raingauge_resp_refused_total",
        &[],
        "Connections of Redis clients that were refused, because there were resp.connections_max.",
    ),
    Metric::counter(
        "raingauge_resp_closed_total",
        &["reason"],
        "Connections of Redis clients that ended, by reason.",
    ),
    Metric::histogram_of(
        "raingauge_resp_pipeline_commands",
        Unit::Count,
        "Commands that arrived together on a connection of a Redis client, of one arrival in 64.",
    ),
    Metric::counter(
        "raingauge_objects_commands_total",
        &[],
        "Commands of Redis clients that ran over objects.",
    ),
    Metric::counter(
        "raingauge_objects_hits_total",
        &[],
        "Keys that commands read and that were there.",
    ),
    Metric::counter(
        "raingauge_objects_misses_total",
        &[],
        "Keys that commands read and that were not there.",
    ),
    Metric::counter(
        "raingauge_objects_loads_total",
        &[],
        "Keys of objects that were read from the disk.",
    ),
    Metric::counter("raingauge_objects_expired_total", &[], "Objects that expired."),
    Metric::counter(
        "raingauge_objects_evicted_total",
        &[],
        "Objects that left memory and stay on the disk.",
    ),
    Metric::counter(
        "raingauge_objects_groups_total",
        &[],
        "Groups of changes of objects, each of which became durable as a whole.",
    ),
    Metric::counter("raingauge_objects_syncs_total", &[], "Syncs of the log of objects."),
    Metric::counter("raingauge_objects_checkpoints_total", &[], "Checkpoints of objects."),
    Metric::histogram(
        "raingauge_objects_sync_seconds",
        &[],
        "Time of one sync of the log of objects.",
    ),
    Metric::histogram(
        "raingauge_objects_checkpoint_seconds",
        &[],
        "Time of one checkpoint of objects.",
    ),
    Metric::gauge("raingauge_objects_keys", Unit::Count, "Objects, about."),
    Metric::gauge(
        "raingauge_objects_resident",
        Unit::Count,
        "Keys of objects in memory, and those that are known to be absent.",
    ),
    Metric::gauge("raingauge_objects_memory_bytes", Unit::Bytes, "Memory of objects, about."),
    Metric::gauge(
        "raingauge_objects_pending_bytes",
        Unit::Bytes,
        "Changes of objects in memory that wait for a checkpoint.",
    ),
    Metric::labelled_gauge(
        "raingauge_objects_disk_bytes",
        &["part"],
        Unit::Bytes,
        "Bytes of objects on disk, in their log and in their tables.",
    ),
    Metric::gauge(
        "raingauge_objects_dead_ids",
        Unit::Count,
        "Deleted collections whose room on the disk is not free yet.",
    ),
    Metric::gauge(
        "raingauge_objects_closed",
        Unit::Count,
        "1 when a write of objects failed, so that nothing is written until the process starts again; otherwise 0.",
    ),
];
