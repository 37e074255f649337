//! Actions that wait for their time, and that an event of their subject may cancel until then.

use crate::campaign::{Campaign, State};
use crate::decision::ActionId;
use crate::states::{StateKey, StateKind, States, owner};

/// The owner of a state of one campaign. What a campaign did in shadow is kept apart.
pub(super) fn campaign_owner(campaign: &Campaign, kind: &str, parts: &[&str]) -> u128 {
    let id = campaign.id.to_string();
    let mode = if campaign.state == State::Shadow { "shadow" } else { "live" };
    let head = [kind, id.as_str(), mode];
    owner(&[&head[..], parts].concat())
}

/// The owner of the actions that wait for their time.
pub(super) fn waiting_owner(campaign: &Campaign, step: &str, action: &str) -> u128 {
    campaign_owner(campaign, "raingauge.waiting.1", &[step, action])
}

/// The state that has the actions of a subject that wait for their time.
pub fn waiting_key(campaign: &Campaign, step: &str, action: &str, subject: &str) -> StateKey {
    waiting_key_of(waiting_owner(campaign, step, action), subject)
}

pub(super) fn waiting_key_of(owner: u128, subject: &str) -> StateKey {
    StateKey { kind: StateKind::Waiting, owner, subject: subject.to_owned() }
}

/// Forgets that an action waits. What remains may be empty, and then says nothing.
pub fn forget_waiting(states: &mut dyn States, key: StateKey, action: ActionId) {
    let Some(bytes) = states.get(&key) else { return };
    let mut waiting = read_waiting(bytes);
    let before = waiting.len();
    waiting.retain(|(_, known)| *known != action);
    if waiting.len() < before {
        states.put(key, write_waiting(&waiting));
    }
}

/// Actions that wait, each with the time at which it is due.
pub(super) fn read_waiting(bytes: &[u8]) -> Vec<(i64, ActionId)> {
    let (entries, _) = bytes.as_chunks::<24>();
    let read = |entry: &[u8; 24]| {
        let due = i64::from_le_bytes(std::array::from_fn(|place| entry[place]));
        (due, ActionId(std::array::from_fn(|place| entry[8 + place])))
    };
    entries.iter().map(read).collect()
}

pub(super) fn write_waiting(waiting: &[(i64, ActionId)]) -> Vec<u8> {
    waiting
        .iter()
        .flat_map(|(due_ms, action)| due_ms.to_le_bytes().into_iter().chain(action.0))
        .collect()
}
