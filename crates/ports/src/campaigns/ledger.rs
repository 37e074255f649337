//! The ledger as the worker of a partition changes it.

use super::limits::{
    LEDGER_BODY_LEN_MAX, LEDGER_COMMIT_RECORDS_MAX, LEDGER_EVIDENCE_LEN_MAX, LEDGER_LABEL_LEN_MAX,
    LEDGER_STATE_LEN_MAX, LEDGER_SUBJECT_LEN_MAX, LEDGER_TIMER_LEN_MAX,
};
use super::{
    ActionId, Budget, BudgetChange, BudgetKey, Cost, Decision, Delivery, Error, StateKey, Timer,
};
use crate::log::Offset;
use raingauge_core::limits::ATTRIBUTE_LEN_MAX;
use std::collections::HashSet;
use std::hash::Hash;

/// Where a worker continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The worker's turn: commits of earlier ones are refused.
    pub epoch: u64,
    /// The log is included up to here.
    pub position: Offset,
    /// The time of the log at the position, in milliseconds since 1970; timers follow it.
    pub log_ms: i64,
    /// What the worker needs to continue, in its own format.
    pub control: Vec<u8>,
}

/// What becomes durable together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The epoch and the position of the checkpoint that it follows.
    pub epoch: u64,
    pub from: Offset,
    /// Where the log is included up to with this commit; `from` if only timers fired.
    pub position: Offset,
    pub log_ms: i64,
    /// `None` leaves it unchanged.
    pub control: Option<Vec<u8>>,
    /// New values, absolute; `None` removes the state. Each key occurs once.
    pub states: Vec<(StateKey, Option<Vec<u8>>)>,
    /// Each budget occurs once.
    pub budgets: Vec<BudgetChange>,
    pub decisions: Vec<Decision>,
    /// Timers that are set; one with the same time and id is replaced.
    pub timers: Vec<Timer>,
    /// Timers that have fired or are cancelled, by time and id.
    pub fired: Vec<(i64, ActionId)>,
    /// Each id occurs once, and is new to the outbox.
    pub deliveries: Vec<Delivery>,
}

/// Called by one thread for each partition, which it may block.
pub trait Ledger: Send + Sync {
    /// Takes the partition over, durably: commits of the previous owner are refused. The log has to
    /// be checked with [`Checkpoint::check_log`].
    fn take_over(&self) -> Result<Checkpoint, Error>;

    /// Returns the values of states, in the order of the keys.
    fn load(&self, keys: &[StateKey]) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// Returns whether actions have been granted, in the order of their ids.
    fn known(&self, actions: &[ActionId]) -> Result<Vec<bool>, Error>;

    /// Returns budgets, in the order of the keys. The sender may return more to them at any time.
    fn budgets(&self, keys: &[BudgetKey]) -> Result<Vec<Budget>, Error>;

    /// Returns at most `len_max` timers that are due at or before `until_ms`, by time and id.
    fn due(&self, until_ms: i64, len_max: usize) -> Result<Vec<Timer>, Error>;

    /// Returns at most `len_max` timers from a place on, by time and id.
    fn timers_from(&self, place: (i64, ActionId), len_max: usize) -> Result<Vec<Timer>, Error>;

    /// Counts the timers, up to `len_max`.
    fn timers_len(&self, len_max: usize) -> Result<usize, Error>;

    /// Makes a commit durable, all of it or nothing. Refuses the commit of a worker that has lost
    /// the partition, one that grants an action again, and one that reserves more than a budget
    /// has.
    fn commit(&self, commit: Commit) -> Result<(), Error>;
}

impl Checkpoint {
    /// Refuses a log that ends before the position.
    pub fn check_log(&self, end: Offset) -> Result<(), Error> {
        let position = self.position;
        if position > end { Err(Error::LogTooShort { position, end }) } else { Ok(()) }
    }

    /// Whether a commit follows this checkpoint.
    pub fn precedes(&self, commit: &Commit) -> Result<(), Error> {
        let Self { epoch, position, .. } = *self;
        if commit.epoch == epoch && commit.from == position {
            Ok(())
        } else {
            Err(Error::Lost { epoch, position })
        }
    }

    /// The checkpoint that a commit leaves behind.
    pub fn after(&self, commit: &Commit) -> Self {
        Self {
            epoch: commit.epoch,
            position: commit.position,
            log_ms: commit.log_ms,
            control: commit.control.clone().unwrap_or_else(|| self.control.clone()),
        }
    }
}

impl Commit {
    /// Refuses a commit that contradicts itself, or exceeds a limit.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
        let records = [
            self.states.len(),
            self.budgets.len(),
            self.decisions.len(),
            self.timers.len(),
            self.fired.len(),
            self.deliveries.len(),
        ];
        if records.into_iter().sum::<usize>() > LEDGER_COMMIT_RECORDS_MAX {
            return invalid("it has too many records");
        }
        if self.position < self.from {
            return invalid("the position goes back");
        }

        let granted = self.decisions.iter().filter(|decision| decision.is_granted);
        let is_unique = is_unique(self.states.iter().map(|(key, _)| key))
            && is_unique(self.budgets.iter().map(|change| &change.key))
            && is_unique(granted.map(|decision| decision.action))
            && is_unique(self.deliveries.iter().map(|delivery| delivery.action));
        if !is_unique {
            return invalid("a state, a budget or an action occurs twice");
        }

        if self.has_a_zero() {
            return invalid("the name of a destination or a budget contains a zero byte");
        }
        if self.exceeds_a_length() { invalid("a text is too long") } else { Ok(()) }
    }

    /// Names that are parts of keys end with a zero byte there.
    fn has_a_zero(&self) -> bool {
        let destinations = self.deliveries.iter().map(|delivery| &delivery.destination);
        let budgets = self.budgets.iter().map(|change| &change.key.name);
        destinations.chain(budgets).any(|name| name.contains('\0'))
    }

    fn exceeds_a_length(&self) -> bool {
        let Self { states, budgets, decisions, timers, deliveries, .. } = self;
        let is_long_subject = |subject: &str| subject.len() > LEDGER_SUBJECT_LEN_MAX;
        let is_long_label = |label: &str| label.len() > LEDGER_LABEL_LEN_MAX;
        let is_long_cost = |cost: &Cost| is_long_label(&cost.budget.name);

        states.iter().any(|(key, value)| {
            is_long_subject(&key.subject)
                || value.as_ref().is_some_and(|value| value.len() > LEDGER_STATE_LEN_MAX)
        }) || budgets.iter().any(|change| is_long_label(&change.key.name))
            || decisions.iter().any(|decision| {
                let labels = [&decision.step, &decision.name, &decision.outcome];
                is_long_subject(&decision.subject)
                    || labels.into_iter().chain(&decision.variant).any(|label| is_long_label(label))
                    || decision.source.len().max(decision.event.len()) > ATTRIBUTE_LEN_MAX
                    || decision.evidence.len() > LEDGER_EVIDENCE_LEN_MAX
            })
            || decisions.iter().filter_map(|decision| decision.cost.as_ref()).any(is_long_cost)
            || deliveries.iter().filter_map(|delivery| delivery.cost.as_ref()).any(is_long_cost)
            || timers.iter().any(|timer| {
                is_long_subject(&timer.subject) || timer.body.len() > LEDGER_TIMER_LEN_MAX
            })
            || deliveries.iter().any(|delivery| {
                is_long_subject(&delivery.subject)
                    || is_long_label(&delivery.destination)
                    || delivery.body.len() > LEDGER_BODY_LEN_MAX
            })
    }
}

fn is_unique<T: Eq + Hash>(mut keys: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    keys.all(|key| seen.insert(key))
}
