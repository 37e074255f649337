//! Tiers: reached by the points of a period, kept for a while after it.

use crate::Points;
use crate::day::{Day, Month};
use crate::document::TierWindow;
use crate::entry::{Period, TierChange};
use crate::wallet::Wallet;
use std::sync::Arc;

/// The tiers of a programme, from the lowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    pub(crate) window: TierWindow,
    pub(crate) keep_months: u16,
    pub(crate) levels: Vec<Level>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: Arc<str>,
    pub(crate) from: Points,
}

/// The months of a period; `None` for a lifetime.
pub(crate) const fn months_of_window(window: TierWindow) -> Option<u16> {
    match window {
        TierWindow::Month => Some(1),
        TierWindow::Quarter => Some(3),
        TierWindow::HalfYear => Some(6),
        TierWindow::Year => Some(12),
        TierWindow::Lifetime => None,
    }
}

impl Tiers {
    pub(crate) fn lowest(&self) -> &Arc<str> {
        &self.levels[0].name
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.levels.iter().any(|level| &*level.name == name)
    }

    /// The place of a tier; that of a name of a former version is the lowest.
    fn rank(&self, name: &str) -> usize {
        self.levels.iter().position(|level| &*level.name == name).unwrap_or(0)
    }

    /// The place of the highest tier that these points reach.
    fn reached(&self, points: Points) -> usize {
        self.levels.iter().rposition(|level| level.from <= points).unwrap_or(0)
    }

    /// The period that a day lies in.
    pub(crate) fn period(&self, day: Day) -> Period {
        let months = months_of_window(self.window);
        let number = months.map_or(0, |months| day.month().0.div_euclid(i32::from(months)));
        Period { number, months: Some(months.unwrap_or(0)) }
    }

    /// The last day on which a tier is kept that was reached in a period; `None` for ever.
    fn kept_until(&self, period: Period) -> Option<Day> {
        let months = i32::from(months_of_window(self.window)?);
        let last = Month(period.number * months + months - 1);
        Some(last.plus(i32::from(self.keep_months)).last_day())
    }

    /// The tier that follows from `points` in a period, where that is higher than the
    /// wallet's, or keeps it for longer.
    pub(crate) fn up(
        &self,
        wallet: &Wallet,
        period: Period,
        points: Points,
        today: Day,
    ) -> Option<TierChange> {
        let now = wallet.tier.as_deref().map_or(0, |tier| self.rank(tier));
        let reached = self.reached(points);
        if reached == 0 || reached < now {
            return None;
        }

        // Points of long ago reach nothing any more.
        let until = self.kept_until(period);
        if until.is_some_and(|until| until < today) {
            return None;
        }
        let is_longer = match (wallet.tier_until, until) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(old), Some(new)) => new > old,
        };
        if reached == now && !is_longer {
            return None;
        }
        Some(TierChange { tier: self.levels[reached].name.clone(), until })
    }

    /// The tier after the last day of the wallet's tier: the highest one of the periods that the
    /// wallet remembers that is still kept. A period of another length, or one that has not begun
    /// by then, was counted by a former version, and says nothing.
    pub(crate) fn down(&self, wallet: &Wallet, ended: Day) -> TierChange {
        let current = self.period(ended.plus(1));
        let known = wallet.qualifying.iter().filter(|found| {
            found.period.shares_window(current) && found.period.number <= current.number
        });
        let kept = known.filter_map(|found| {
            let until = self.kept_until(found.period);
            let is_kept = until.is_none_or(|until| until > ended);
            is_kept.then(|| (self.reached(found.points), until))
        });
        // Of equal tiers, the one that is kept longest.
        let best = kept.filter(|(rank, _)| *rank > 0).max();
        match best {
            Some((rank, until)) => TierChange { tier: self.levels[rank].name.clone(), until },
            None => TierChange { tier: self.lowest().clone(), until: None },
        }
    }
}
