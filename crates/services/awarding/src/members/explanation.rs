//! Why a member has what it has.

use super::Balance;
use raingauge_points::trace::trace;
use raingauge_points::{Day, Entry, Expiry, Points, Programme, explain};
use std::collections::HashMap;
use std::sync::Arc;

/// What the points of a member come from, and what took the others.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub balance: Balance,
    /// What is left of awards, the oldest first.
    pub left: Vec<LeftPoints>,
    /// Which entry took which award, the oldest first.
    pub spent: Vec<SpentPoints>,
    /// Whether the wallet has more entries than are read. Nothing is traced then.
    pub is_cut: bool,
}

/// What is left of an award.
#[derive(Clone, Debug)]
pub struct LeftPoints {
    pub entry: Arc<Entry>,
    pub points: Points,
    /// The last day on which they can be spent; `None` is never, or as the activity of the member
    /// says.
    pub expires_on: Option<Day>,
    /// Where the award has its points from, in a line.
    pub words: String,
}

/// Points of an award that an entry took.
#[derive(Clone, Debug)]
pub struct SpentPoints {
    /// The entry that took them; its sequence is 0 where it is due and not yet written.
    pub by: Arc<Entry>,
    pub of: Arc<Entry>,
    pub points: Points,
}

impl Explanation {
    /// Traces the entries of a wallet, the oldest first. `rolling` is the day on which the points
    /// expire that live on with the member's activity.
    pub(super) fn of(
        balance: Balance,
        rolling: Option<Day>,
        entries: Vec<Arc<Entry>>,
        is_whole: bool,
        programme: &Programme,
    ) -> Self {
        if !is_whole {
            return Self { balance, left: Vec::new(), spent: Vec::new(), is_cut: true };
        }
        let traced = trace(entries.iter().map(|entry| &**entry));
        let by_sequence: HashMap<u64, &Arc<Entry>> =
            entries.iter().map(|entry| (entry.member_sequence, entry)).collect();
        let entry = |sequence: &u64| by_sequence.get(sequence).map(|entry| Arc::clone(entry));

        let left = traced.left.iter().filter_map(|remainder| {
            let entry = entry(&remainder.credit)?;
            let expires_on = match remainder.expiry {
                Expiry::On(day) => Some(day),
                Expiry::Rolling => rolling,
                Expiry::Never => None,
            };
            let words = explain::of_entry(&entry, programme);
            Some(LeftPoints { entry, points: remainder.points, expires_on, words })
        });
        let left = left.collect();
        let spent = traced.uses.iter().filter_map(|used| {
            let by = entry(&used.debit)?;
            let of = entry(&used.credit)?;
            Some(SpentPoints { by, of, points: used.points })
        });
        let spent = spent.collect();
        Self { balance, left, spent, is_cut: false }
    }
}
