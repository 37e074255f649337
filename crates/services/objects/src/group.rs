//! Where the group of a hold begins, and what is left of the hold if the store refuses it.

use crate::failures;
use crate::stats::Lookups;
use raingauge_ports::objects::Error;
use raingauge_resp::Mark;

/// The moment before a command, to which the hold may go back.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub mark: Mark,
    pub command: usize,
    /// The database that was selected.
    pub database: u8,
    /// Whether a transaction was open.
    pub in_multi: bool,
    /// How many messages waited for the end of the hold.
    pub messages: usize,
    /// How many commands were noted.
    pub noted: usize,
    /// Whether the connection watched keys.
    pub is_watching: bool,
    /// Hits and misses that were counted.
    pub lookups: Lookups,
}

/// The group of a hold.
#[derive(Default)]
pub(crate) struct Group {
    /// Where it begins: a command changed something, or met a key that had expired.
    pub begun: Option<Moment>,
    /// Where a command changed something first.
    pub written: Option<Moment>,
    /// Where the transaction began that changed something first, if that was in this hold.
    pub multi: Option<Moment>,
    /// The newest object that a command saw since the group began.
    pub seen: u64,
}

impl Group {
    /// From where on a store that refuses the group takes replies back. What has expired is gone,
    /// whether or not the store can note it now: the replies that say so stay.
    pub(crate) fn refused_from(&self, error: &Error) -> Option<Moment> {
        if failures::is_passing(error) { self.written } else { self.begun }
    }

    /// From where on commands may run again that were taken back to a moment: a transaction from
    /// its beginning, if that was in this hold, and if no watch has ended with it.
    pub(crate) fn again_from(&self, from: Moment) -> Moment {
        self.multi.filter(|multi| from.in_multi && !multi.is_watching).unwrap_or(from)
    }

    /// How many messages are published even if the store refuses the group for now.
    pub(crate) fn answered(&self) -> usize {
        self.written.map_or(usize::MAX, |moment| moment.messages)
    }
}
