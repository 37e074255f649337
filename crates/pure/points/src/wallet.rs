//! Wallets: what a member has. A wallet changes by [`Wallet::apply`] alone.

mod codec;
mod lots;

pub use lots::{Lot, PendingLot};

use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::entry::{Changes, Entry, Hold, HoldChange, LastExpiry, Period, Qualifying, Reminder};
use crate::identity::Key;
use crate::limits::{WALLET_HOLDS_MAX, WALLET_LOTS_MAX, WALLET_PENDING_MAX};
use smallvec::SmallVec;
use std::sync::Arc;

/// The state of a wallet. The default is a wallet that was never seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wallet {
    /// Entries of the wallet so far.
    pub sequence: u64,
    /// The sequence in the book of the last of them.
    pub included: u64,
    /// When something is due, in hours since 1970: the key of the due index.
    pub due_hour: Option<u32>,
    pub closed: bool,
    /// `None` stands for the lowest tier.
    pub tier: Option<Arc<str>>,
    /// The last day of the tier.
    pub tier_until: Option<Day>,
    /// Points that count towards a tier, of the last two periods that had any. All of them are of
    /// one length.
    pub qualifying: SmallVec<[Qualifying; 2]>,
    /// The last day of a transaction that extends.
    pub activity: Option<Day>,
    /// The last day of the rolling lot.
    pub rolling_expires: Option<Day>,
    /// Points that can be spent, one lot for each expiry, in the order of [`Expiry`].
    pub lots: SmallVec<[Lot; 4]>,
    /// Points that mature, by day and expiry.
    pub pending: Vec<PendingLot>,
    pub holds: Vec<Hold>,
    pub last_expiry: Option<LastExpiry>,
    pub reminded: Option<Reminder>,
    /// What the member owes, from 0. There are no lots while something is owed.
    pub arrears: Points,
}

impl Wallet {
    /// Points that can be spent.
    pub fn available(&self) -> Points {
        self.lots.iter().map(|lot| lot.points).sum()
    }

    /// Points that can be spent, less arrears.
    pub fn balance(&self) -> Points {
        self.available() - self.arrears
    }

    pub fn pending_points(&self) -> Points {
        self.pending.iter().map(|lot| lot.points).sum()
    }

    pub fn held_points(&self) -> Points {
        self.holds.iter().map(Hold::points).sum()
    }

    /// Everything that is owed to the member, less arrears.
    pub fn value(&self) -> i128 {
        i128::from(self.balance())
            + i128::from(self.pending_points())
            + i128::from(self.held_points())
    }

    pub fn hold(&self, key: Key) -> Option<&Hold> {
        self.holds.iter().find(|hold| hold.key == key)
    }

    /// Points in the lot with this expiry.
    pub fn points_in(&self, expiry: Expiry) -> Points {
        self.lots.iter().find(|lot| lot.expiry == expiry).map_or(0, |lot| lot.points)
    }

    /// The last day of a lot with this expiry; `None` where it has none.
    pub fn date_of(&self, expiry: Expiry) -> Option<Day> {
        expiry.last_day(self.rolling_expires)
    }

    /// When the next points expire, or the next ones would that are earned.
    pub fn expires_on(&self) -> Option<Day> {
        let dated = self.lots.first().and_then(|lot| self.date_of(lot.expiry));
        let has_rolling = self.points_in(Expiry::Rolling) > 0 || self.lots.is_empty();
        let rolling = if has_rolling { self.rolling_expires } else { None };
        dated.into_iter().chain(rolling).min()
    }

    /// Points with the day on which they expire, the earliest first, those without one last.
    pub fn lots_by_date(&self) -> Vec<(Points, Option<Day>)> {
        self.lots_in_order().map(|lot| (lot.points, self.date_of(lot.expiry))).collect()
    }

    /// Makes the wallet what it is after an entry of its own.
    ///
    /// # Panics
    ///
    /// The entry must be the next one of this wallet, and must say what the wallet is then.
    pub fn apply(&mut self, entry: &Entry) {
        self.change(entry);
        assert_eq!(self.balance(), entry.balance_after, "the balance follows from postings (I4)");
        self.included = entry.sequence;
        self.due_hour = entry.due_hour_after;
    }

    /// Applies postings and changes, without what follows from the state afterwards.
    pub(crate) fn change(&mut self, entry: &Entry) {
        assert!(entry.is_balanced(), "postings sum up to zero (I1)");
        assert_eq!(entry.member_sequence, self.sequence + 1, "no entry is left out (I4)");
        self.sequence = entry.member_sequence;

        let held_before = self.held_points();
        if let Some(rolling) = entry.changes.rolling {
            assert_eq!(rolling.before, self.rolling_expires, "an entry knows what it moves (I7)");
            assert_eq!(rolling.moved, self.points_in(Expiry::Rolling), "… and how much (I7)");
            self.rolling_expires = rolling.after;
        }

        let mut held = 0;
        for posting in &entry.postings {
            match posting.account {
                Account::Available(expiry) => self.move_lot(expiry, posting.amount),
                Account::Pending { matures, expiry } => {
                    self.move_pending(matures, expiry, posting.amount)
                }
                Account::Held => held += posting.amount,
                Account::Arrears => self.arrears -= posting.amount,
                _ => {}
            }
        }

        self.drop_empty_lots();
        self.change_rest(&entry.changes);
        assert_eq!(held_before + held, self.held_points(), "held points are those of holds (I3)");
        self.check();
    }

    fn change_rest(&mut self, changes: &Changes) {
        if let Some(day) = changes.activity {
            self.activity = Some(day);
        }
        if let Some(added) = changes.qualifying {
            self.add_qualifying(added);
        }
        if let Some(change) = &changes.tier {
            self.tier = Some(change.tier.clone());
            self.tier_until = change.until;
        }

        match &changes.hold {
            None => {}
            Some(HoldChange::Opened(hold)) => self.holds.push(hold.clone()),
            Some(HoldChange::Resolved(key)) => {
                let place = self.holds.iter().position(|hold| hold.key == *key);
                self.holds.remove(place.expect("a hold resolves once (I6)"));
            }
        }

        if let Some(last_expiry) = changes.last_expiry {
            self.last_expiry = last_expiry;
        }
        if changes.reminded.is_some() {
            self.reminded = changes.reminded;
        }
        self.closed |= changes.closed;
    }

    /// Points of the period that qualify for a tier.
    pub fn qualifying_in(&self, period: Period) -> Points {
        let of_period = |found: &&Qualifying| found.period.is(period);
        self.qualifying.iter().find(of_period).map_or(0, |found| found.points)
    }

    /// Keeps the two newest periods, in their order. Periods of another length are those of a
    /// former version of the programme, and end with the first points of this one: their numbers
    /// cannot be compared.
    fn add_qualifying(&mut self, added: Qualifying) {
        let of_period = |found: &Qualifying| found.period.is(added.period);
        if let Some(place) = self.qualifying.iter().position(of_period) {
            // A reversal of what a former version counted must not go below nothing.
            let points = self.qualifying[place].points.saturating_add(added.points);
            self.qualifying[place].points = points.max(0);
            return;
        }
        // Nothing is known of the period, so nothing can be taken back of it.
        if added.points <= 0 {
            return;
        }

        self.qualifying.retain(|found| found.period.shares_window(added.period));
        let is_later = |found: &Qualifying| found.period.number > added.period.number;
        let place = self.qualifying.iter().position(is_later).unwrap_or(self.qualifying.len());
        self.qualifying.insert(place, added);
        if self.qualifying.len() > 2 {
            self.qualifying.remove(0);
        }
    }

    /// What must hold of every wallet (I3), in time that grows with its lots alone.
    fn check(&self) {
        assert!(self.lots.iter().all(|lot| lot.points > 0), "lots have points (I3)");
        assert!(self.pending.iter().all(|lot| lot.points > 0), "pending points are positive (I3)");
        assert!(self.arrears >= 0, "arrears are not negative (I3)");
        assert!(self.arrears == 0 || self.lots.is_empty(), "no lots while points are owed (I3)");
        assert!(self.lots.len() <= WALLET_LOTS_MAX, "lots are merged");
        assert!(self.pending.len() <= WALLET_PENDING_MAX, "pending days are bounded");
        assert!(self.holds.len() <= WALLET_HOLDS_MAX, "holds are bounded");
    }
}
