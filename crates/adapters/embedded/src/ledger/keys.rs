//! Keys of the ledger, which sort by their fields. Numbers are big-endian, and times have their
//! sign turned around.
//!
//! ```text
//! 0x00 "checkpoint"                                       → epoch u64, position u64, log_ms i64
//! 0x00 "control"                                          → the worker's, as it came
//! 0x01 kind u8 │ owner u128 │ subject                     → a state, in the format of the engine
//! 0x02 action                                             → when it was granted i64
//! 0x03 decided_ms │ action                                → a decision; empty when it is forgotten
//! 0x04 campaign u32 │ decided_ms │ action                 → nothing: decisions by campaign
//! 0x05 len u16 │ subject │ decided_ms │ action            → nothing: decisions by subject
//! 0x06 due_ms │ action                                    → a timer
//! 0x07 action                                             → a delivery without its body
//! 0x08 action                                             → the body of a delivery
//! 0x09 status u8 │ destination │ 0x00 │ at_ms │ action    → the campaign u32: deliveries by status
//! 0x0a campaign u32 │ name │ 0x00 │ period i32            → a budget
//! ```

use raingauge_ports::campaigns::{
    ActionId, BudgetKey, CampaignId, DecisionPlace, DeliveryPlace, StateKey, StateKind, Status,
};

pub const CHECKPOINT: &[u8] = b"\0checkpoint";
pub const CONTROL: &[u8] = b"\0control";
const STATE: u8 = 1;
const ACTION: u8 = 2;
const DECISION: u8 = 3;
const BY_CAMPAIGN: u8 = 4;
const BY_SUBJECT: u8 = 5;
const TIMER: u8 = 6;
const DELIVERY: u8 = 7;
const BODY: u8 = 8;
const BY_STATUS: u8 = 9;
const BUDGET: u8 = 10;

/// Bytes of a time and an id, with which most keys end.
const PLACE_LEN: usize = 24;

/// Puts times before 1970 in front of the others.
const fn time(ms: i64) -> [u8; 8] {
    (ms ^ i64::MIN).to_be_bytes()
}

/// Splits time and id off the end of a key.
fn split_place(key: &[u8]) -> Option<(&[u8], i64, ActionId)> {
    let (head, place) = key.split_at_checked(key.len().checked_sub(PLACE_LEN)?)?;
    let (ms, action) = place.split_first_chunk()?;
    Some((head, i64::from_be_bytes(*ms) ^ i64::MIN, ActionId(action.try_into().ok()?)))
}

pub fn state(key: &StateKey) -> Vec<u8> {
    let StateKey { kind, owner, subject } = key;
    [&[STATE, *kind as u8], &owner.to_be_bytes()[..], subject.as_bytes()].concat()
}

/// The prefix of the states of a kind.
pub fn states_of(kind: StateKind) -> [u8; 2] {
    [STATE, kind as u8]
}

/// The key in front of the states of a kind and an owner.
pub fn states_from(kind: StateKind, owner: u128) -> Vec<u8> {
    [&states_of(kind)[..], &owner.to_be_bytes()].concat()
}

/// The key of a state whose kind is known.
pub fn state_of(kind: StateKind, key: &[u8]) -> Option<StateKey> {
    let (owner, subject) = key.strip_prefix(&states_of(kind))?.split_first_chunk()?;
    let subject = std::str::from_utf8(subject).ok()?.to_owned();
    Some(StateKey { kind, owner: u128::from_be_bytes(*owner), subject })
}

pub fn action(action: ActionId) -> Vec<u8> {
    [&[ACTION], &action.0[..]].concat()
}

/// The key of the first decision at a time.
pub fn decisions_at(ms: i64) -> Vec<u8> {
    [&[DECISION], &time(ms)[..]].concat()
}

/// Where one kind of key leads to decisions: their own keys, or those of an index.
#[derive(Clone, Debug)]
pub struct Decisions(Vec<u8>);

impl Decisions {
    pub fn all() -> Self {
        Self(vec![DECISION])
    }

    pub fn of_campaign(campaign: CampaignId) -> Self {
        Self([&[BY_CAMPAIGN], &campaign.to_be_bytes()[..]].concat())
    }

    /// Subjects are shorter than 64 KiB.
    pub fn of_subject(subject: &str) -> Self {
        let len = (subject.len() as u16).to_be_bytes();
        Self([&[BY_SUBJECT], &len[..], subject.as_bytes()].concat())
    }

    /// What the keys of all these decisions begin with.
    pub fn prefix(&self) -> &[u8] {
        &self.0
    }

    pub fn at(&self, place: DecisionPlace) -> Vec<u8> {
        [&self.0[..], &time(place.decided_ms), &place.action.0].concat()
    }

    /// The key in front of every decision from this time on.
    pub fn since(&self, ms: i64) -> Vec<u8> {
        [&self.0[..], &time(ms)].concat()
    }
}

/// The place in the key of a decision, or of an index of decisions.
pub fn decision_place(key: &[u8]) -> Option<DecisionPlace> {
    split_place(key).map(|(_, decided_ms, action)| DecisionPlace { decided_ms, action })
}

pub fn timer(due_ms: i64, action: ActionId) -> Vec<u8> {
    [&[TIMER], &time(due_ms)[..], &action.0].concat()
}

/// The key in front of every timer from this time on.
pub fn timers_from(ms: i64) -> Vec<u8> {
    [&[TIMER], &time(ms)[..]].concat()
}

/// The key behind every timer.
pub fn timers_end() -> Vec<u8> {
    vec![TIMER + 1]
}

pub fn timer_of(key: &[u8]) -> Option<(i64, ActionId)> {
    split_place(key).map(|(_, due_ms, action)| (due_ms, action))
}

/// The prefix of all deliveries.
pub const fn deliveries() -> [u8; 1] {
    [DELIVERY]
}

pub fn delivery(action: ActionId) -> Vec<u8> {
    [&[DELIVERY], &action.0[..]].concat()
}

pub fn body(action: ActionId) -> Vec<u8> {
    [&[BODY], &action.0[..]].concat()
}

/// The prefix of the deliveries of a status.
pub fn deliveries_of(status: Status) -> [u8; 2] {
    [BY_STATUS, status as u8]
}

/// The prefix of those for one destination. Its name contains no zero.
pub fn deliveries_to(status: Status, destination: &str) -> Vec<u8> {
    [&deliveries_of(status), destination.as_bytes(), &[0]].concat()
}

/// The key in front of those for the next destination.
pub fn deliveries_behind(status: Status, destination: &str) -> Vec<u8> {
    [&deliveries_of(status), destination.as_bytes(), &[1]].concat()
}

/// The key in front of those for one destination from this time on.
pub fn deliveries_from(status: Status, destination: &str, ms: i64) -> Vec<u8> {
    [&deliveries_to(status, destination)[..], &time(ms)].concat()
}

pub fn delivery_at(status: Status, place: &DeliveryPlace) -> Vec<u8> {
    [&deliveries_from(status, &place.destination, place.at_ms)[..], &place.action.0].concat()
}

/// The place in a key of the deliveries of a status.
pub fn delivery_place(key: &[u8]) -> Option<DeliveryPlace> {
    let (head, at_ms, action) = split_place(key)?;
    let destination = head.get(2..)?.strip_suffix(&[0])?;
    Some(DeliveryPlace {
        destination: std::str::from_utf8(destination).ok()?.to_owned(),
        at_ms,
        action,
    })
}

pub fn budget(key: &BudgetKey) -> Vec<u8> {
    let BudgetKey { campaign, name, period } = key;
    let period = (period ^ i32::MIN).to_be_bytes();
    [&budgets_of(*campaign)[..], name.as_bytes(), &[0], &period].concat()
}

/// The prefix of the budgets of a campaign.
pub fn budgets_of(campaign: CampaignId) -> Vec<u8> {
    [&[BUDGET], &campaign.to_be_bytes()[..]].concat()
}

/// The key of a budget of this campaign.
pub fn budget_of(campaign: CampaignId, key: &[u8]) -> Option<BudgetKey> {
    let (name, period) = key.strip_prefix(&budgets_of(campaign)[..])?.split_last_chunk()?;
    let name = std::str::from_utf8(name.strip_suffix(&[0])?).ok()?.to_owned();
    Some(BudgetKey { campaign, name, period: i32::from_be_bytes(*period) ^ i32::MIN })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every later version must be able to read existing folders.
    #[test]
    fn keys_are_laid_out_as_they_were_in_version_1() {
        let id = ActionId([0xaa; 16]);
        let decided = DecisionPlace { decided_ms: 5, action: id };
        let at = DeliveryPlace { destination: "to".to_owned(), at_ms: -1, action: id };
        let budget_key = BudgetKey { campaign: 7, name: "b".to_owned(), period: -1 };
        let state_key = StateKey { kind: StateKind::Usage, owner: 3, subject: "u".to_owned() };
        let ids = "aa".repeat(16);

        for (key, expected) in [
            (state(&state_key), format!("0102{:032x}75", 3)),
            (action(id), format!("02{ids}")),
            (Decisions::all().at(decided), format!("038000000000000005{ids}")),
            (Decisions::of_campaign(7).at(decided), format!("04000000078000000000000005{ids}")),
            (Decisions::of_subject("u").at(decided), format!("050001758000000000000005{ids}")),
            (timer(5, id), format!("068000000000000005{ids}")),
            (delivery(id), format!("07{ids}")),
            (body(id), format!("08{ids}")),
            (delivery_at(Status::Dead, &at), format!("0905746f007fffffffffffffff{ids}")),
            (budget(&budget_key), "0a0000000762007fffffff".to_owned()),
        ] {
            assert_eq!(hex(&key), expected);
        }

        assert_eq!(state_of(StateKind::Usage, &state(&state_key)), Some(state_key));
        assert_eq!(decision_place(&Decisions::of_subject("u").at(decided)), Some(decided));
        assert_eq!(timer_of(&timer(-5, id)), Some((-5, id)));
        assert_eq!(delivery_place(&delivery_at(Status::Dead, &at)), Some(at));
        assert_eq!(budget_of(7, &budget(&budget_key)), Some(budget_key));
    }
}
