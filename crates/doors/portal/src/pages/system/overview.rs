//! A snapshot of everything that the system page shows.

use crate::Portal;
use crate::fields::Fields;
use jiff::tz::TimeZone;
use raingauge_operations::maintenance::Status;
use raingauge_operations::measures::{Span, Values};
use raingauge_operations::watch::KnownInstance;
use raingauge_ports::catalog::VersionedPolicy;

/// Length of one point of a chart.
pub const POINT_S: i64 = 30;
/// Time span of the charts.
pub const CHART_S: i64 = 3_600;
/// Number of cache policy versions that are read.
pub const POLICIES_MAX: usize = 50;

pub struct Overview {
    pub now_s: i64,
    pub zone: TimeZone,
    /// The last minute.
    pub present: Span,
    /// The last hour.
    pub spans: Vec<Span>,
    /// Totals over all running processes, each since its start.
    pub totals: Values,
    pub seen: Vec<KnownInstance>,
    /// Partitions of the log.
    pub partitions: usize,
    /// Every version of the cache policy, newest first; empty while none has been set.
    pub policies: Vec<VersionedPolicy>,
    /// Number of keys whose stored counts differ from a recount of the log.
    pub mismatches: usize,
    pub compaction: Option<Status>,
    /// Why part of the snapshot is missing or stale.
    pub failure: Option<String>,
}

impl Overview {
    pub async fn look(portal: &Portal, fields: &Fields) -> Self {
        let (policies, differing) = tokio::join!(
            portal.counters.cache_policies(POLICIES_MAX),
            portal.operations.self_audit.checks().differing(100)
        );
        let failure = policies.as_ref().err().or(differing.as_ref().err()).map(ToString::to_string);
        Self {
            now_s: portal.clock.now_s(),
            zone: fields.zone(),
            present: portal.operations.measures.present(),
            spans: portal.operations.measures.spans(POINT_S),
            totals: portal.operations.measures.totals(),
            seen: portal.operations.watch.instances(),
            partitions: portal.counted.recent.partitions(),
            policies: policies.unwrap_or_default(),
            mismatches: differing.map_or(0, |differing| differing.len()),
            compaction: portal
                .operations
                .maintenance
                .as_ref()
                .map(|maintenance| maintenance.status()),
            failure: failure.or_else(|| portal.operations.watch.failure()),
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> VersionedPolicy {
        self.policies.first().cloned().unwrap_or_default()
    }

    /// The running processes.
    pub fn present_instances(&self) -> impl Iterator<Item = &KnownInstance> {
        self.seen.iter().filter(|seen| !seen.is_gone)
    }

    /// The spans of `seconds` seconds, starting `seconds_ago` seconds before now.
    pub fn since(&self, seconds_ago: i64, seconds: i64) -> impl Iterator<Item = &Span> {
        let from_s = self.now_s - seconds_ago;
        self.spans.iter().filter(move |span| span.to_s > from_s && span.to_s <= from_s + seconds)
    }
}
