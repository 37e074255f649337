//! Records as changes of keys and values.

use super::keys;
use raingauge_ports::campaigns::{Checkpoint, Decision, DeliveryRecord};
use std::collections::BTreeMap;

/// Version of the checkpoint.
pub const CHECKPOINT_VERSION: u8 = 1;

/// Changes that become durable together: new values, and `None` for keys that are removed.
pub type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Writes a checkpoint, without the control.
pub fn put_checkpoint(checkpoint: &Checkpoint, writes: &mut Writes) {
    let Checkpoint { epoch, position, log_ms, control: _ } = checkpoint;
    let bytes = [
        &[CHECKPOINT_VERSION][..],
        &epoch.to_le_bytes(),
        &position.to_le_bytes(),
        &log_ms.to_le_bytes(),
    ];
    writes.insert(keys::CHECKPOINT.to_vec(), Some(bytes.concat()));
}

/// Writes decisions with the keys that lead to them.
pub fn put_decisions(decisions: &[Decision], writes: &mut Writes) {
    for decision in decisions {
        let place = decision.place();
        writes.insert(keys::Decisions::all().at(place), Some(decision.to_bytes()));
        for index in indexes_of(decision) {
            writes.insert(index.at(place), Some(Vec::new()));
        }
        if decision.is_granted {
            let granted = decision.decided_ms.to_le_bytes().to_vec();
            writes.insert(keys::action(decision.action), Some(granted));
        }
    }
}

/// The indexes that lead to a decision.
pub fn indexes_of(decision: &Decision) -> [keys::Decisions; 2] {
    let by_campaign = keys::Decisions::of_campaign(decision.campaign);
    [by_campaign, keys::Decisions::of_subject(&decision.subject)]
}

/// Writes a record and its place.
pub fn put_delivery(record: &DeliveryRecord, writes: &mut Writes) {
    let campaign = record.delivery.campaign.to_le_bytes().to_vec();
    writes.insert(keys::delivery_at(record.status, &record.place()), Some(campaign));
    writes.insert(keys::delivery(record.delivery.action), Some(record.to_bytes()));
}
