//! From a range to the cells that add up to it.
//!
//! ```text
//!      from                                                     to
//!        │q│   h   │                                  │   h   │q│
//!   ─────┴─┴───────┼──────── d ────────┬───── d ──────┼───────┴─┴────
//!         left edge                                    right edge
//! ```
//!
//! Whole days come from the daily counts, whole hours at the edges from the hourly ones,
//! the rest from the quarter hours. A range inside one day has a single edge.

use crate::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use crate::code::{Code, Refusal};
use crate::limits::RANGE_DAYS_MAX;
use crate::time::is_countable_s;

/// Cell numbers of one day: quarter hours first, hours behind them.
pub const HOUR_CELL_FIRST: u8 = 96;
/// Cells of one day: 96 quarter hours and 24 hours.
pub const DAY_CELLS: u8 = 120;

/// Neighbouring cells `[first, end)` of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub first: u8,
    pub end: u8,
}

impl Run {
    pub const fn is_empty(self) -> bool {
        self.first >= self.end
    }
}

/// The part of a range that covers a day only partly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Days since 1970.
    pub day: u32,
    /// Quarter hours before the first whole hour, whole hours, quarter hours after the last one.
    pub runs: [Run; 3],
}

/// What a range count reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The floored range, in seconds.
    pub from_s: i64,
    pub to_s: i64,
    /// Whole days `[day_first, day_end)`, since 1970.
    pub day_first: u32,
    pub day_end: u32,
    pub edges: [Option<Edge>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("fromTime lies after toTime: swap them")]
    Backwards,
    #[error("times must lie between 1970-01-01 and the year 10000")]
    OutOfRange,
    #[error("a range covers at most {RANGE_DAYS_MAX} days: ask for parts and add them")]
    TooLong,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Backwards => Code::RangeBackwards,
            Error::OutOfRange => Code::TimeOutOfRange,
            Error::TooLong => Code::RangeTooLong,
        };
        Self::new(code, error.to_string())
    }
}

impl Plan {
    /// Floors both ends to quarter hours and splits what lies between.
    pub fn new(from_s: i64, to_s: i64) -> Result<Self, Error> {
        if !is_countable_s(from_s) || !is_countable_s(to_s) {
            return Err(Error::OutOfRange);
        }
        if from_s > to_s {
            return Err(Error::Backwards);
        }
        if to_s - from_s > RANGE_DAYS_MAX * DAY_S {
            return Err(Error::TooLong);
        }
        Ok(Self::of_floored(Granularity::Quarter.floor(from_s), Granularity::Quarter.floor(to_s)))
    }

    fn of_floored(from_s: i64, to_s: i64) -> Self {
        let day_first = (from_s + DAY_S - 1) / DAY_S;
        let day_end = to_s / DAY_S;
        if day_first > day_end {
            // Both ends lie inside the same day.
            let edge = Edge::new(from_s, to_s);
            let day = day_end as u32;
            return Self { from_s, to_s, day_first: day, day_end: day, edges: [edge, None] };
        }

        Self {
            from_s,
            to_s,
            day_first: day_first as u32,
            day_end: day_end as u32,
            edges: [Edge::new(from_s, day_first * DAY_S), Edge::new(day_end * DAY_S, to_s)],
        }
    }

    pub fn has_days(&self) -> bool {
        self.day_first < self.day_end
    }

    /// The cells of the plan as half-open ranges of time, for those who think in time.
    pub fn slices(&self) -> impl Iterator<Item = Slice> + '_ {
        let days = self.has_days().then(|| Slice {
            granularity: Granularity::Day,
            from_s: i64::from(self.day_first) * DAY_S,
            to_s: i64::from(self.day_end) * DAY_S,
        });
        self.edges.iter().flatten().flat_map(Edge::slices).chain(days)
    }
}

impl Edge {
    /// The cells of `[from_s, to_s)`, which lies inside one day; none when it is empty.
    fn new(from_s: i64, to_s: i64) -> Option<Self> {
        if from_s >= to_s {
            return None;
        }
        let day = from_s / DAY_S;
        let (from, to) = (from_s - day * DAY_S, to_s - day * DAY_S);
        let (quarter_from, quarter_to) = (from / QUARTER_S, to / QUARTER_S);
        let (hour_from, hour_to) = ((from + HOUR_S - 1) / HOUR_S, to / HOUR_S);
        let runs = if hour_from > hour_to {
            [run(quarter_from, quarter_to), Run::default(), Run::default()]
        } else {
            let hours = i64::from(HOUR_CELL_FIRST);
            [
                run(quarter_from, hour_from * 4),
                run(hours + hour_from, hours + hour_to),
                run(hour_to * 4, quarter_to),
            ]
        };

        Some(Self { day: day as u32, runs })
    }

    fn slices(&self) -> impl Iterator<Item = Slice> + '_ {
        let start = i64::from(self.day) * DAY_S;
        self.runs.iter().filter(|run| !run.is_empty()).map(move |run| {
            let hours = run.first >= HOUR_CELL_FIRST;
            let (granularity, base) = if hours {
                (Granularity::Hour, HOUR_CELL_FIRST)
            } else {
                (Granularity::Quarter, 0)
            };
            let at = |cell: u8| start + i64::from(cell - base) * granularity.width_s();
            Slice { granularity, from_s: at(run.first), to_s: at(run.end) }
        })
    }
}

/// Neighbouring buckets of one granularity, `[from_s, to_s)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub granularity: Granularity,
    pub from_s: i64,
    pub to_s: i64,
}

fn run(first: i64, end: i64) -> Run {
    Run { first: first as u8, end: end as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_worked_example_reads_its_bold_rows() {
        let plan = Plan::new(1_727_215_430, 1_727_400_000).unwrap();
        assert_eq!((plan.from_s, plan.to_s), (1_727_215_200, 1_727_399_700));

        let at = |text: &str| crate::time::parse_time_s(text).unwrap();
        let slice = |granularity, from: &str, to: &str| Slice {
            granularity,
            from_s: at(from),
            to_s: at(to),
        };

        let slices: Vec<Slice> = plan.slices().collect();
        assert_eq!(
            slices,
            [
                slice(Granularity::Hour, "2024-09-24T22:00:00Z", "2024-09-25T00:00:00Z"),
                slice(Granularity::Hour, "2024-09-27T00:00:00Z", "2024-09-27T01:00:00Z"),
                slice(Granularity::Quarter, "2024-09-27T01:00:00Z", "2024-09-27T01:15:00Z"),
                slice(Granularity::Day, "2024-09-25T00:00:00Z", "2024-09-27T00:00:00Z"),
            ]
        );
    }

    #[test]
    fn impossible_ranges_are_refused() {
        assert_eq!(Plan::new(900, 0), Err(Error::Backwards));
        assert_eq!(Plan::new(-1, 0), Err(Error::OutOfRange));
        assert_eq!(Plan::new(0, i64::MAX), Err(Error::OutOfRange));
        assert_eq!(Plan::new(0, RANGE_DAYS_MAX * DAY_S + 1), Err(Error::TooLong));
        assert_eq!(Plan::new(901, 1_799).unwrap().slices().count(), 0);
    }

    proptest! {
        /// The slices cover the floored range exactly once, with the widest buckets that fit.
        #[test]
        fn slices_tile_the_range(from in 0i64..2_000_000_000, len in 0i64..(400 * DAY_S)) {
            let plan = Plan::new(from, from + len).unwrap();
            let mut slices: Vec<Slice> = plan.slices().collect();
            slices.sort_by_key(|slice| slice.from_s);
            let mut at = Granularity::Quarter.floor(from);
            for slice in &slices {
                prop_assert_eq!(slice.from_s, at);
                prop_assert!(slice.granularity.starts_at(slice.from_s));
                prop_assert!(slice.granularity.starts_at(slice.to_s));
                at = slice.to_s;
            }
            prop_assert_eq!(at, Granularity::Quarter.floor(from + len));
            let quarters: i64 = slices
                .iter()
                .filter(|slice| slice.granularity == Granularity::Quarter)
                .map(|slice| (slice.to_s - slice.from_s) / QUARTER_S)
                .sum();
            prop_assert!(quarters <= 6);
        }
    }
}
