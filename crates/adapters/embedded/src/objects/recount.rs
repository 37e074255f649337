//! Numbers that an earlier version did not keep.

use super::disk::Records;
use super::keys::{self, EXPIRES, Place};
use super::lookups::find;
use super::state::State;
use raingauge_ports::objects::Error;
use std::ops::ControlFlow;

/// Counts the heads that expire: those that are pending, and the others on the disk. The groups of
/// an earlier version do not tell whether what they replaced expired, so the number for the disk is
/// made such that both together are right; it becomes true with the next checkpoint.
pub fn count_expiring(records: &dyn Records, state: &mut State) -> Result<(), Error> {
    tracing::info!("counting the keys that expire, once");
    for generation in state.current.databases {
        let changes = state.current.generations.entry(generation).or_default();
        let unknown = std::mem::take(&mut changes.unknown);
        changes.resolve(&find(records, generation, &unknown)?);

        let heads = changes.heads.get_mut();
        let pending = heads.values().filter_map(|change| change.head.as_ref());
        let mut expiring = pending.map(|head| head.tally().expiring).sum::<i64>();
        let range = keys::heads(None, None);
        records.scan(Place::Heads(generation), range, &mut |key, record| {
            let expires = record.first().is_some_and(|flags| flags & EXPIRES != 0);
            let is_pending = heads.contains_key(keys::name_of(key));
            expiring += i64::from(expires && !is_pending);
            Ok(ControlFlow::Continue(()))
        })?;
        state.counts.entry(generation).or_default().expiring = expiring - changes.added.expiring;
    }
    Ok(())
}
