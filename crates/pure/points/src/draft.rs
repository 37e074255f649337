//! Entries in the making: postings that keep a wallet's rules.

use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::entry::{Entry, Kind, LastExpiry, RollingChange};
use crate::identity::WalletId;
use crate::limits::WALLET_LOTS_MAX;
use crate::programme::Programme;
use crate::wallet::{Lot, PendingLot, Wallet};
use smallvec::SmallVec;
use std::sync::Arc;

/// An entry of a wallet, with the lots as they are after what was posted so far.
pub(crate) struct Draft<'a> {
    pub(crate) entry: Entry,
    wallet: &'a Wallet,
    programme: &'a Programme,
    lots: SmallVec<[Lot; 4]>,
    arrears: Points,
    rolling_after: Option<Day>,
    touches_rolling: bool,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        id: &WalletId,
        wallet: &'a Wallet,
        programme: &'a Programme,
        kind: Kind,
        occurred_ms: i64,
    ) -> Self {
        Self {
            entry: Entry::draft(id, kind, occurred_ms),
            wallet,
            programme,
            lots: wallet.lots.clone(),
            arrears: wallet.arrears,
            rolling_after: wallet.rolling_expires,
            touches_rolling: false,
        }
    }

    /// What of these points is not owed.
    pub(crate) fn pay_arrears(&mut self, points: Points) -> Points {
        let paid = points.min(self.arrears);
        self.entry.post(Account::Arrears, paid);
        self.arrears -= paid;
        points - paid
    }

    /// Gives points, which pay arrears first.
    pub(crate) fn credit(&mut self, expiry: Expiry, points: Points) {
        let points = self.pay_arrears(points);
        if points > 0 {
            self.entry.post(Account::Available(expiry), points);
            self.move_lot(expiry, points);
        }
    }

    /// Gives points of no certain date: the rolling lot begins again where its date is over.
    pub(crate) fn credit_from(&mut self, expiry: Expiry, points: Points, day: Day, now_ms: i64) {
        if expiry != Expiry::Rolling {
            return self.credit(expiry, points);
        }

        let policy = &self.programme.expiry;
        let is_over = self.rolling_after.is_none_or(|last| policy.cut_ms(last) <= now_ms);
        match policy.extended_to(day).filter(|_| is_over) {
            Some(last) => {
                self.set_rolling(last);
                self.credit(Expiry::Rolling, points);
            }
            // The programme went over to lots while these points were away.
            None if is_over => self.credit(policy.lot_of(day), points),
            None => self.credit(Expiry::Rolling, points),
        }
    }

    /// Takes points out of a lot that has them.
    pub(crate) fn debit(&mut self, expiry: Expiry, points: Points) {
        self.entry.post(Account::Available(expiry), -points);
        self.move_lot(expiry, -points);
    }

    /// Takes up to `points`, the earliest to expire first, and returns how many are missing.
    pub(crate) fn take(&mut self, points: Points) -> Points {
        let wallet = Wallet {
            lots: self.lots.clone(),
            rolling_expires: self.rolling_after,
            ..Wallet::default()
        };
        let (parts, missing) = wallet.take(points);
        for (expiry, part) in parts {
            self.debit(expiry, part);
        }
        missing
    }

    /// Takes up to `points` out of one lot, and returns how many are missing.
    pub(crate) fn take_from(&mut self, expiry: Expiry, points: Points) -> Points {
        let there = self.lots.iter().find(|lot| lot.expiry == expiry).map_or(0, |lot| lot.points);
        let part = there.min(points);
        if part > 0 {
            self.debit(expiry, part);
        }
        points - part
    }

    /// Takes up to `points` out of pending lots, in their order, and returns how many are missing.
    pub(crate) fn take_pending(&mut self, lots: &[&PendingLot], points: Points) -> Points {
        let mut missing = points;
        for lot in lots {
            let taken = lot.points.min(missing);
            let account = Account::Pending { matures: lot.matures, expiry: lot.expiry };
            self.entry.post(account, -taken);
            missing -= taken;
        }
        missing
    }

    /// Takes up to `points` of those that expired last, which nothing brings back then, and returns
    /// how many are missing.
    pub(crate) fn take_expired(&mut self, points: Points) -> Points {
        let Some(last) = self.wallet.last_expiry else { return points };
        let taken = last.points.min(points);
        if taken > 0 {
            self.expire(last.day, -taken);
            let points = last.points - taken;
            self.entry.changes.last_expiry = Some(Some(LastExpiry { points, ..last }));
        }
        points - taken
    }

    /// Posts points that expire after a day.
    pub(crate) fn expire(&mut self, last: Day, points: Points) {
        self.entry.post_more(Account::Expired(Some(last.month())), points);
    }

    /// Posts points that are spent, and were due on a day.
    pub(crate) fn burn(&mut self, reason: &Arc<str>, due: Option<Day>, points: Points) {
        self.entry.post_more(Account::Burned(reason.clone(), due.map(Day::month)), points);
    }

    /// Moves the date of the rolling lot.
    pub(crate) fn set_rolling(&mut self, last: Day) {
        self.touches_rolling |= self.rolling_after != Some(last);
        self.rolling_after = Some(last);
    }

    fn move_lot(&mut self, expiry: Expiry, amount: Points) {
        self.touches_rolling |= expiry == Expiry::Rolling;
        match self.lots.binary_search_by_key(&expiry, |lot| lot.expiry) {
            Ok(place) => self.lots[place].points += amount,
            Err(place) => self.lots.insert(place, Lot { expiry, points: amount }),
        }
        self.lots.retain(|lot| lot.points != 0);
    }

    /// The entry, with lots merged where there are too many.
    pub(crate) fn finish(mut self) -> Entry {
        while self.lots.len() > WALLET_LOTS_MAX {
            self.merge();
        }
        if self.touches_rolling {
            self.entry.changes.rolling = Some(RollingChange {
                before: self.wallet.rolling_expires,
                after: self.rolling_after,
                moved: self.wallet.points_in(Expiry::Rolling),
            });
        }
        self.entry
    }

    /// Moves the lot that is nearest to the next one to that later date.
    fn merge(&mut self) {
        let gap = |pair: &[Lot]| match (pair[0].expiry, pair[1].expiry) {
            (Expiry::On(earlier), Expiry::On(later)) => Some(later.0 - earlier.0),
            _ => None,
        };
        let pairs = self.lots.windows(2).enumerate();
        let nearest = pairs.filter_map(|(place, pair)| Some((gap(pair)?, place))).min();
        let (_, place) = nearest.expect("only two of the lots have no date of their own");

        let moved = self.lots[place];
        let later = self.lots[place + 1].expiry;
        self.entry.post(Account::Available(moved.expiry), -moved.points);
        self.entry.post(Account::Available(later), moved.points);
        self.lots[place + 1].points += moved.points;
        self.lots.remove(place);
    }
}
