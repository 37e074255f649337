//! Tallies: how many events of a subject a campaign has counted, in a window of time.
//!
//! ```text
//!   campaign   ├──────────────── from ≤ t < until ───────────────┤   one sum
//!   calendar   │  Monday  │  Tuesday  │ Wednesday │                 a sum for each newest span
//!   last                     ├──── T − W ≤ t ≤ T ────┤              the newest times, to the ms
//! ```
//!
//! An event is placed by its own time, in whichever order events arrive. The first two windows do
//! not depend on the order; the third ends at the newest time that the subject has had.

mod state;
#[cfg(test)]
mod tests;

pub use state::Tally;

use crate::calendar::{Period, Zone};
use crate::limits::KEPT_TIMES_MAX;
use state::{Calendar, PERIODS_KEPT};

/// Which events a tally counts, by their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// The activity of the campaign, without its end.
    Campaign { from_ms: i64, until_ms: i64 },
    /// The period that the time of an event lies in.
    Calendar { period: Period, zone: Zone },
    /// The time up to the newest event of the subject, both ends included. Values are not added:
    /// each event counts once, and counts are exact below `kept`.
    Last { length_ms: i64, kept: usize },
}

/// A tally without an event and with it. Both are counts of the window that the event is seen in:
/// its own period, or the one that ends at the newest time, which the event itself may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub before: i64,
    pub after: i64,
}

impl Window {
    /// A window over the last `length_ms`, for comparisons with numbers of up to `largest`.
    ///
    /// `None` if this takes more times than are kept.
    pub fn last(length_ms: i64, largest: usize) -> Option<Self> {
        assert!(length_ms > 0, "a length of time is positive");
        let kept = largest.checked_add(1).filter(|kept| *kept <= KEPT_TIMES_MAX)?;
        Some(Self::Last { length_ms, kept })
    }

    /// The tally of a subject without events.
    pub fn empty(&self) -> Tally {
        match self {
            Self::Campaign { .. } => Tally::Campaign(0),
            Self::Calendar { .. } => Tally::Calendar(None),
            Self::Last { .. } => Tally::Last(Vec::new()),
        }
    }

    /// Counts an event at a time, and returns the tally before and after.
    ///
    /// `None` if the event is too old for the tally to know its period: it is older than the period
    /// before the previous one. It is not counted.
    pub fn count(&self, tally: &mut Tally, at_ms: i64, value: i64) -> Option<Change> {
        match (self, tally) {
            (Self::Campaign { from_ms, until_ms }, Tally::Campaign(sum)) => {
                let before = *sum;
                if (*from_ms..*until_ms).contains(&at_ms) {
                    *sum += i128::from(value);
                }
                Some(change(before, *sum))
            }
            (Self::Calendar { period, zone }, Tally::Calendar(calendar)) => {
                let number = period.number(zone, at_ms);
                let calendar = calendar.get_or_insert_with(|| Calendar::new(number));
                calendar.turn_to(number);

                let sum = &mut calendar.sums[calendar.place(number)?];
                let before = *sum;
                *sum += i128::from(value);
                Some(change(before, *sum))
            }
            (Self::Last { length_ms, kept }, Tally::Last(times)) => {
                Some(count_last(times, *length_ms, *kept, at_ms))
            }
            _ => mismatch(),
        }
    }

    /// What the tally comes to for an event at a time that is not counted.
    ///
    /// `None` as in [`count`](Self::count).
    pub fn value(&self, tally: &Tally, at_ms: i64) -> Option<i64> {
        match (self, tally) {
            (Self::Campaign { .. }, Tally::Campaign(sum)) => Some(bounded(*sum)),
            (Self::Calendar { period, zone }, Tally::Calendar(calendar)) => {
                let Some(calendar) = calendar else { return Some(0) };
                let number = period.number(zone, at_ms);
                if number > calendar.newest {
                    return Some(0);
                }
                Some(bounded(calendar.sums[calendar.place(number)?]))
            }
            (Self::Last { length_ms, .. }, Tally::Last(times)) => {
                let newest = times.last().map_or(at_ms, |newest| at_ms.max(*newest));
                let start = newest.saturating_sub(*length_ms);
                let counted = times.len() - times.partition_point(|time| *time < start);
                Some(i64::try_from(counted).expect("few times are kept"))
            }
            _ => mismatch(),
        }
    }
}

/// The two are stored together, under a name that follows from the definition of the window.
fn mismatch() -> ! {
    panic!("a tally belongs to a window of another kind")
}

fn count_last(times: &mut Vec<i64>, length_ms: i64, kept: usize, at_ms: i64) -> Change {
    let newest = times.last().map_or(at_ms, |newest| at_ms.max(*newest));
    let start = newest.saturating_sub(length_ms);

    // The window only moves forward: what has left it never comes back.
    times.drain(..times.partition_point(|time| *time < start));
    let before = times.len();

    if at_ms >= start {
        times.insert(times.partition_point(|time| *time <= at_ms), at_ms);
        times.drain(..times.len().saturating_sub(kept));
    }
    change(before as i128, times.len() as i128)
}

fn change(before: i128, after: i128) -> Change {
    Change { before: bounded(before), after: bounded(after) }
}

/// Sums are kept wide, so that the order of events does not matter where some exceed 64 bits.
fn bounded(sum: i128) -> i64 {
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Calendar {
    fn new(number: i32) -> Self {
        Self { newest: number, sums: [0; PERIODS_KEPT] }
    }

    /// Makes room for a period that is newer than those before.
    fn turn_to(&mut self, number: i32) {
        let steps = i64::from(number) - i64::from(self.newest);
        if steps <= 0 {
            return;
        }

        let steps = usize::try_from(steps).map_or(PERIODS_KEPT, |steps| steps.min(PERIODS_KEPT));
        self.sums.rotate_right(steps);
        self.sums[..steps].fill(0);
        self.newest = number;
    }

    /// Where the sum of a period is, counted back from the newest one.
    fn place(&self, number: i32) -> Option<usize> {
        let back = i64::from(self.newest) - i64::from(number);
        usize::try_from(back).ok().filter(|back| *back < PERIODS_KEPT)
    }
}
