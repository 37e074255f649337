//! The metrics of the products.

use super::{Kind, Metric};
use metrics::Unit;

metrics! {
    /// They follow those of counting in `docs/metrics.md`.
    PRODUCT_METRICS:
    Counter Count "raingauge_campaign_events_total" []
        "Events decided on, of types that a campaign listens to.";
    Counter Count "raingauge_campaign_decisions_total" ["campaign", "outcome"]
        "Decisions of campaigns on actions, by campaign and outcome, such as granted or budget_exhausted.";
    Counter Count "raingauge_campaign_held_total" []
        "Evaluations that were put off because a lookup had no answer.";
    Counter Count "raingauge_campaign_timers_total" ["outcome"]
        "Timers of campaigns that fired: delivered, cancelled, recheck_failed, lookup_failed, resumed, put_off.";
    Gauge Count "raingauge_campaign_timers_pending" []
        "Delayed actions and evaluations of campaigns that wait for their time; up to 100,000 are counted.";
    Counter Count "raingauge_campaign_candidates_total" []
        "Steps of campaigns that the index found for events, of which their rules decide.";
    Histogram Seconds "raingauge_campaign_match_seconds" []
        "Time to count an event in tallies and to find the steps that it may trigger, of one event in 64.";
    Histogram Seconds "raingauge_campaign_batch_seconds" []
        "Time to decide and commit one batch of the log, lookups included.";
    Histogram Seconds "raingauge_campaign_commit_seconds" []
        "Time of one commit to the ledger of campaigns.";
    Counter Count "raingauge_campaign_commit_rows_total" []
        "Records that were committed to the ledger of campaigns.";
    Counter Count "raingauge_campaign_lookups_total" ["class", "outcome"]
        "Look-ups of campaigns by class (segment, table, db, http, counter) and outcome: answered, late, failed.";
    Counter Count "raingauge_campaign_lookups_saved_total" ["class"]
        "Look-ups of campaigns that took no call, since their answer was cached or already on its way.";
    Gauge Count "raingauge_campaign_lookup_limit" ["lookup"]
        "Requests of a lookup that may be under way at a time, which follows how it is answered.";
    Gauge Count "raingauge_campaign_lookup_in_flight" ["lookup"]
        "Requests of a lookup that are under way.";
    Counter Count "raingauge_campaign_lookup_refused_total" ["lookup", "reason"]
        "Calls of a lookup that failed without a request, by reason: waiting (too many calls wait), rate, breaker.";
    Counter Count "raingauge_campaign_deliveries_total" ["destination", "outcome"]
        "Results of deliveries of campaigns: delivered, refused, retried, dead, held; by destination.";
    Histogram Seconds "raingauge_campaign_delivery_seconds" ["destination"]
        "Time of a request to a destination, from the name lookup to the last byte of the response.";
    Counter Count "raingauge_campaign_dead_total" ["destination"]
        "Deliveries whose last attempt failed, by destination.";
    Counter Count "raingauge_campaign_rate_limited_seconds_total" ["destination"]
        "Seconds in which deliveries waited only for the rate of their destination.";
    Gauge Count "raingauge_campaign_outbox_pending" ["destination"]
        "Deliveries that wait for a destination, those that are due later included; up to 100,000 are counted.";
    Gauge Seconds "raingauge_campaign_outbox_oldest_seconds" ["destination"]
        "How long ago the oldest waiting delivery was due, by destination; 0 when none is.";
    Gauge Count "raingauge_campaign_breaker_state" ["destination"]
        "State of the circuit breaker before a destination: 0 closed, 1 half open, 2 open.";
    Gauge Count "raingauge_campaign_destination_stopped" ["destination"]
        "1 while nothing is sent to a destination: it is gone, was disabled, or has no readable secret.";
    Counter Count "raingauge_campaign_history_days_total" []
        "Days whose decisions and deliveries were written into a file of the history of campaigns.";
    Counter Count "raingauge_campaign_history_bytes_total" []
        "Bytes of these files, compressed.";
    Counter Count "raingauge_campaign_history_failures_total" []
        "Attempts to write or to remove files of the history of campaigns that failed; the ledger keeps what is not written.";
    Gauge Seconds "raingauge_campaign_history_until_seconds" []
        "Time up to which the history of campaigns is written and the ledger may forget, in seconds since 1970.";
    Histogram Seconds "raingauge_points_turn_seconds" []
        "Time of one turn of the ledger of points, from what it loads until it is durable.";
    Gauge Bytes "raingauge_points_journal_bytes" []
        "Size of the journal of points on disk, which is kept for ever.";
    Counter Count "raingauge_points_commands_total" []
        "Commands that turns have decided, and wallets that they were to settle.";
    Counter Count "raingauge_points_entries_total" ["programme", "kind"]
        "Entries of the ledger of points, by programme and kind.";
    Counter Count "raingauge_points_points_total" ["programme", "kind"]
        "Points that entries have moved into or out of balances, by programme and kind, in the smallest unit.";
    Counter Count "raingauge_points_replayed_total" []
        "Commands that had been decided before, and got the same answer.";
    Counter Count "raingauge_points_refusals_total" ["code"]
        "Commands that were refused, by code.";
    Gauge Count "raingauge_points_waiting_commands" []
        "Commands that wait for the next turn.";
    Gauge Count "raingauge_points_outstanding" ["programme"]
        "Points that members could claim, less what they owe, by programme, in the smallest unit.";
    Gauge Count "raingauge_points_queue_depth" ["queue"]
        "Letters that wait in a queue of points or are being worked on.";
    Gauge Count "raingauge_points_queue_dead" ["queue"]
        "Dead letters of a queue of points, which wait for an operator.";
    Gauge Seconds "raingauge_points_queue_age_seconds" ["queue"]
        "Age of the oldest letter that waits in a queue of points; 0 when none does.";
    Counter Count "raingauge_points_dead_total" ["queue"]
        "Letters of points that were given up, by queue.";
    Counter Count "raingauge_points_delivered_total" ["consumer"]
        "Entries that were handed on: to the event log (publisher), to the topic of entries (stream), to the webhook (notifier).";
    Gauge Count "raingauge_points_delivery_lag" ["consumer"]
        "Entries that are yet to be handed on: to the event log (publisher), to the topic of entries (stream), to the webhook (notifier).";
    Counter Count "raingauge_points_notify_total" ["outcome"]
        "Notifications of members by outcome: delivered, failed, too_many.";
    Gauge Count "raingauge_points_sweep_ranges" []
        "Ranges of due wallets that wait to be settled.";
    Counter Count "raingauge_points_sweep_wallets_total" []
        "Wallets that sweeps have settled.";
    Counter Count "raingauge_points_audit_differences_total" []
        "Awards that an audit has found missing, or other than the programme of the time makes them.";
    Gauge Count "raingauge_resp_connections" []
        "Connections of Redis clients.";
    Counter Count "raingauge_resp_refused_total" []
        "Connections of Redis clients that were refused, because there were resp.connections_max.";
    Counter Count "raingauge_resp_closed_total" ["reason"]
        "Connections of Redis clients that ended, by reason.";
    Histogram Count "raingauge_resp_pipeline_commands" []
        "Commands that arrived together on a connection of a Redis client, of one arrival in 64.";
    Counter Count "raingauge_objects_commands_total" []
        "Commands of Redis clients that ran over objects.";
    Counter Count "raingauge_objects_hits_total" []
        "Keys that commands read and that were there.";
    Counter Count "raingauge_objects_misses_total" []
        "Keys that commands read and that were not there.";
    Counter Count "raingauge_objects_loads_total" []
        "Keys of objects that were read from the disk.";
    Counter Count "raingauge_objects_expired_total" []
        "Objects that expired.";
    Counter Count "raingauge_objects_evicted_total" []
        "Objects that left memory and stay on the disk.";
    Counter Count "raingauge_objects_groups_total" []
        "Groups of changes of objects, each of which became durable as a whole.";
    Counter Count "raingauge_objects_syncs_total" []
        "Syncs of the log of objects.";
    Counter Count "raingauge_objects_checkpoints_total" []
        "Checkpoints of objects.";
    Histogram Seconds "raingauge_objects_sync_seconds" []
        "Time of one sync of the log of objects.";
    Histogram Seconds "raingauge_objects_checkpoint_seconds" []
        "Time of one checkpoint of objects.";
    Gauge Count "raingauge_objects_keys" []
        "Objects, about.";
    Gauge Count "raingauge_objects_resident" []
        "Keys of objects in memory, and those that are known to be absent.";
    Gauge Bytes "raingauge_objects_memory_bytes" []
        "Memory of objects, about.";
    Gauge Bytes "raingauge_objects_pending_bytes" []
        "Changes of objects in memory that wait for a checkpoint.";
    Gauge Bytes "raingauge_objects_disk_bytes" ["part"]
        "Bytes of objects on disk, in their log and in their tables.";
    Gauge Count "raingauge_objects_dead_ids" []
        "Deleted collections whose room on the disk is not free yet.";
    Gauge Count "raingauge_objects_closed" []
        "1 when a write of objects failed, so that nothing is written until the process starts again; otherwise 0.";
}
