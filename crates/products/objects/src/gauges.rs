//! The numbers of objects, as Prometheus reads them.

use crate::history::{Sample, grown};
use metrics::{counter, gauge};
use raingauge_objects::Stats;
use raingauge_ports::objects::Status;

/// Publishes what the keyspace and its engine report, and what they counted since the last sample.
/// CONFIG RESETSTAT sets the numbers of the keyspace to 0, and a counter must never go back.
pub fn publish(last: &Sample, stats: &Stats, status: &Status) {
    gauge!("raingauge_objects_resident").set(stats.resident as f64);
    gauge!("raingauge_objects_memory_bytes").set(stats.resident_bytes as f64);
    gauge!("raingauge_objects_keys").set(status.keys as f64);
    gauge!("raingauge_objects_pending_bytes").set(status.pending_bytes as f64);
    gauge!("raingauge_objects_disk_bytes", "part" => "log").set(status.log_bytes as f64);
    gauge!("raingauge_objects_disk_bytes", "part" => "tables").set(status.disk_bytes as f64);
    gauge!("raingauge_objects_dead_ids").set(status.dead_ids as f64);
    gauge!("raingauge_objects_closed").set(f64::from(u8::from(status.closed.is_some())));

    let of = |number: fn(&Stats) -> u64| grown(number(&last.stats), number(stats));
    counter!("raingauge_objects_commands_total").increment(of(|stats| stats.commands));
    counter!("raingauge_objects_groups_total").increment(of(|stats| stats.groups));
    counter!("raingauge_objects_hits_total").increment(of(|stats| stats.hits));
    counter!("raingauge_objects_misses_total").increment(of(|stats| stats.misses));
    counter!("raingauge_objects_loads_total").increment(of(|stats| stats.loads));
    counter!("raingauge_objects_expired_total").increment(of(|stats| stats.expired));
    counter!("raingauge_objects_evicted_total").increment(of(|stats| stats.evicted));
    counter!("raingauge_objects_syncs_total").absolute(status.syncs);
    counter!("raingauge_objects_checkpoints_total").absolute(status.checkpoints);
}
