//! The progress of a node.

use raingauge_ports::maintenance::Progress;

/// The total progress of compactions that run at once. Only those in the unit of the first are
/// added.
pub fn together(running: impl IntoIterator<Item = Progress>) -> Option<Progress> {
    running.into_iter().reduce(|sum, one| {
        if one.unit == sum.unit {
            Progress { done: sum.done + one.done, total: sum.total + one.total, unit: sum.unit }
        } else {
            sum
        }
    })
}
