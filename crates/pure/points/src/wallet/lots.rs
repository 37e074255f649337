//! Lots: points of a wallet with one expiry.

use super::Wallet;
use crate::Points;
use crate::account::Expiry;
use crate::day::Day;
use smallvec::SmallVec;

/// Points with one expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    pub expiry: Expiry,
    pub points: Points,
}

/// Points that can be spent from a day on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingLot {
    pub matures: Day,
    pub expiry: Expiry,
    pub points: Points,
}

impl Wallet {
    /// The lots in the order in which they are spent: the earliest date first, at equal dates a
    /// dated lot before the rolling one, and those that never expire last.
    pub fn lots_in_order(&self) -> impl Iterator<Item = Lot> + '_ {
        let rolling = self.lots.iter().copied().find(|lot| lot.expiry == Expiry::Rolling);
        let is_after = |lot: &Lot| match (lot.expiry, self.rolling_expires) {
            (Expiry::On(day), Some(last)) => day > last,
            (Expiry::Never, _) => true,
            _ => false,
        };

        let others = self.lots.iter().copied().filter(|lot| lot.expiry != Expiry::Rolling);
        let before = others.clone().filter(move |lot| !is_after(lot));
        let after = others.filter(move |lot| is_after(lot));
        before.chain(rolling).chain(after)
    }

    /// The parts of lots that make up these points, in the order in which they are spent, and what
    /// is missing.
    pub fn take(&self, points: Points) -> (SmallVec<[(Expiry, Points); 2]>, Points) {
        let mut missing = points;
        let mut parts = SmallVec::new();
        for lot in self.lots_in_order() {
            if missing == 0 {
                break;
            }
            let part = lot.points.min(missing);
            parts.push((lot.expiry, part));
            missing -= part;
        }
        (parts, missing)
    }

    pub(super) fn move_lot(&mut self, expiry: Expiry, amount: Points) {
        match self.lots.binary_search_by_key(&expiry, |lot| lot.expiry) {
            Ok(place) => self.lots[place].points += amount,
            Err(place) => self.lots.insert(place, Lot { expiry, points: amount }),
        }
    }

    pub(super) fn move_pending(&mut self, matures: Day, expiry: Expiry, amount: Points) {
        let place = self.pending.binary_search_by_key(&(matures, expiry), PendingLot::place);
        match place {
            Ok(place) => self.pending[place].points += amount,
            Err(place) => {
                self.pending.insert(place, PendingLot { matures, expiry, points: amount })
            }
        }
    }

    pub(super) fn drop_empty_lots(&mut self) {
        self.lots.retain(|lot| lot.points != 0);
        self.pending.retain(|lot| lot.points != 0);
    }
}

impl PendingLot {
    fn place(&self) -> (Day, Expiry) {
        (self.matures, self.expiry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_spent_in_the_order_of_their_dates() {
        let day = |number| Expiry::On(Day(number));
        let mut wallet = Wallet { rolling_expires: Some(Day(20)), ..Wallet::default() };
        for expiry in [Expiry::Never, day(30), Expiry::Rolling, day(20), day(10)] {
            wallet.move_lot(expiry, 5);
        }

        let order: Vec<_> = wallet.lots_in_order().map(|lot| lot.expiry).collect();
        assert_eq!(order, [day(10), day(20), Expiry::Rolling, day(30), Expiry::Never]);
        assert_eq!(wallet.take(12).0.to_vec(), [(day(10), 5), (day(20), 5), (Expiry::Rolling, 2)]);
        assert_eq!(wallet.take(26).1, 1);
    }
}
