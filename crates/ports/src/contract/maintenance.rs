//! The contract of leases, and that of compaction.

use crate::maintenance::{Compactor, Lease};
use std::collections::BTreeSet;

/// A lease stays with its holder until it is released. The lease must be free at first.
pub async fn keeps_a_lease(lease: &dyn Lease) {
    lease.release().await.expect("to release what is not held does no harm");
    assert_eq!(lease.hold().await, Ok(true));
    assert_eq!(lease.hold().await, Ok(true), "it is kept");
    lease.release().await.expect("released");
    assert_eq!(lease.hold().await, Ok(true), "it can be taken again");
    lease.release().await.expect("released");
}

/// Only one of two processes holds a lease. The lease must be free at first.
pub async fn lets_one_process_hold_it(one: &dyn Lease, other: &dyn Lease) {
    assert_eq!(one.hold().await, Ok(true));
    assert_eq!(other.hold().await, Ok(false));
    other.release().await.expect("to release what is not held does no harm");
    assert_eq!(other.hold().await, Ok(false), "it is still held");
    one.release().await.expect("released");
    assert_eq!(other.hold().await, Ok(true));
    assert_eq!(one.hold().await, Ok(false));
    other.release().await.expect("released");
}

/// Each node has a unique name and can be compacted. Stopping a node succeeds exactly where
/// [`Compactor::can_stop`] says so.
pub async fn compacts_each_node(compactor: &dyn Compactor) {
    let nodes = compactor.nodes().await.expect("nodes");
    assert!(!nodes.is_empty());
    assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len(), "{nodes:?}");

    for node in &nodes {
        compactor.compact(node).await.expect("compacted");
        let progress = compactor.progress(node).await.expect("progress");
        assert!(progress.is_none_or(|progress| progress.done <= progress.total));
        assert_eq!(compactor.stop(node).await.is_ok(), compactor.can_stop());
    }
}
