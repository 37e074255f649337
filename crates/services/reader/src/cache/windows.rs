//! The ranges under which the result cache may have an answer.
//!
//! Under `result` that is the floored range, and nothing else. When a quarter hour ends, every
//! range that ends now gets another name at once, and every count goes to storage: the spike.
//!
//! Under `phased` each key moves on at a moment of its own, its *phase* after the quarter hour has
//! ended. Until then the answer is that of the quarter hour before. How the two times of the range
//! lie decides whether its beginning moves too:
//!
//! ```text
//!   range                           both ends            kind       until its phase, the answer
//!                                                                   covers, a quarter hour earlier
//!   [now - 7 d, now)                in step, uneven      slides     both ends
//!   [midnight, now)                 only `to` uneven     begins     the end
//!                                                        fixed
//!   [floor(now) - 7 d, floor(now))  both even            either     the end; the beginning too
//!   [login, now)                    out of step, uneven  either     while that is cached
//! ```
//!
//! *In step* means that a whole number of quarter hours lies between the ends, *even* that a time
//! is the start of one. Where the times do not show whether a beginning slides, the reader asks the
//! cache under both names that the answer may have, and otherwise reads with the beginning of the
//! request.

use super::PHASE_BOUND_S;
use crate::range::Range;
use raingauge_core::bucket::{Granularity, QUARTER_S};
use smallvec::{SmallVec, smallvec};

/// How far the clock of a client may be ahead of this one for its "now" to count as now.
const CLOCK_SKEW_MAX_S: i64 = 5;

/// `[from_s, to_s)`, quarter hours.
pub type Window = (i64, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The windows that the cache is asked for, the best one first.
    pub lookups: SmallVec<[Window; 2]>,
    /// The window that is read, and kept, when the cache has none.
    pub read: Window,
}

/// The moment after the end of a quarter hour, in seconds, at which a key moves on.
pub fn phase_s(key: &str) -> i64 {
    (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % PHASE_BOUND_S as u64) as i64
}

/// The windows of `result`: the floored range.
pub fn plain(range: &Range<'_>, now_s: i64) -> Option<Windows> {
    closed(one(floored(range)), now_s)
}

/// The windows of `phased`.
pub fn phased(range: &Range<'_>, now_s: i64) -> Option<Windows> {
    let (from_s, to_s) = floored(range);
    let ahead_s = range.to_s - now_s;
    let clock_s = if (1..=CLOCK_SKEW_MAX_S).contains(&ahead_s) { range.to_s } else { now_s };
    let ends_now = to_s == Granularity::Quarter.floor(clock_s);
    if !ends_now {
        return plain(range, now_s);
    }

    let phase_s = phase_s(range.key);
    let is_early = clock_s - to_s < phase_s;
    let end_s = if is_early { to_s - QUARTER_S } else { to_s };
    let begin_s = from_s - QUARTER_S;
    let in_step = (range.to_s - range.from_s) % QUARTER_S == 0;

    let from_is_even = from_s == range.from_s;

    let windows = match (in_step, from_is_even) {
        (true, false) => one((if is_early { begin_s } else { from_s }, end_s)),
        (true, true) if is_early => either((from_s, end_s), (begin_s, end_s)),
        (false, false) if range.from_s - from_s < phase_s => {
            either((from_s, end_s), (begin_s, end_s))
        }
        _ => one((from_s, end_s)),
    };
    closed(windows, now_s).or_else(|| plain(range, now_s))
}

fn floored(range: &Range<'_>) -> Window {
    (Granularity::Quarter.floor(range.from_s), Granularity::Quarter.floor(range.to_s))
}

/// The first one, unless only the second one is cached.
fn either(first: Window, second: Window) -> Windows {
    Windows { lookups: smallvec![first, second], read: first }
}

fn one(window: Window) -> Windows {
    Windows { lookups: smallvec![window], read: window }
}

/// Drops windows whose quarter hours have not ended: only late events may change what is kept.
fn closed(mut windows: Windows, now_s: i64) -> Option<Windows> {
    let open_s = Granularity::Quarter.floor(now_s);
    let is_sound = |(from_s, to_s): Window| 0 <= from_s && from_s <= to_s && to_s <= open_s;
    windows.lookups.retain(|window| is_sound(*window));
    is_sound(windows.read).then_some(windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::bucket::{DAY_S, HOUR_S};

    /// A key whose phase lies in the middle of the bound.
    fn key() -> (String, i64) {
        let keys = (0..).map(|number| format!("c:{number}"));
        keys.map(|key| (phase_s(&key), key))
            .find(|(phase_s, _)| *phase_s == 150)
            .map(|(phase_s, key)| (key, phase_s))
            .unwrap()
    }

    const OPEN_S: i64 = 20_000 * DAY_S + 10 * HOUR_S;

    fn lookups(from_s: i64, to_s: i64, now_s: i64) -> Vec<Window> {
        let (key, _) = key();
        let range = Range { key: &key, from_s, to_s, fresh: false };
        phased(&range, now_s).map(|windows| windows.lookups.to_vec()).unwrap_or_default()
    }

    #[test]
    fn a_sliding_range_moves_on_at_its_phase() {
        let (_, phase_s) = key();
        for (width_s, since_s) in [(7 * DAY_S, 1), (DAY_S, phase_s - 1), (2 * HOUR_S, 20)] {
            let now_s = OPEN_S + since_s;
            let early = (OPEN_S - width_s - QUARTER_S, OPEN_S - QUARTER_S);
            assert_eq!(lookups(now_s - width_s, now_s, now_s), [early]);
        }
        let now_s = OPEN_S + phase_s;
        assert_eq!(lookups(now_s - DAY_S, now_s, now_s), [(OPEN_S - DAY_S, OPEN_S)]);
    }

    #[test]
    fn a_fixed_beginning_stays() {
        let (midnight_s, now_s) = (20_000 * DAY_S, OPEN_S + 10);
        assert_eq!(lookups(midnight_s, now_s, now_s), [(midnight_s, OPEN_S - QUARTER_S)]);

        let login_s = midnight_s + 800;
        assert_eq!(
            lookups(login_s, now_s, now_s),
            [(midnight_s, OPEN_S - QUARTER_S)],
            "past the phase of its quarter"
        );

        let login_s = midnight_s + 100;
        let end_s = OPEN_S - QUARTER_S;
        assert_eq!(
            lookups(login_s, now_s, now_s),
            [(midnight_s, end_s), (midnight_s - QUARTER_S, end_s)]
        );

        assert_eq!(
            lookups(login_s, now_s + 600, now_s + 600),
            [(midnight_s, OPEN_S), (midnight_s - QUARTER_S, OPEN_S)]
        );
    }

    #[test]
    fn what_the_client_floored_itself_may_lie_under_two_names() {
        let (from_s, now_s) = (OPEN_S - DAY_S, OPEN_S + 10);
        let end_s = OPEN_S - QUARTER_S;
        assert_eq!(lookups(from_s, OPEN_S, now_s), [(from_s, end_s), (from_s - QUARTER_S, end_s)]);
        assert_eq!(lookups(from_s, OPEN_S, OPEN_S + 200), [(from_s, OPEN_S)]);
    }

    #[test]
    fn what_does_not_end_now_is_what_it_is() {
        let now_s = OPEN_S + 10;
        assert_eq!(
            lookups(OPEN_S - DAY_S, OPEN_S - 1, now_s),
            [(OPEN_S - DAY_S, OPEN_S - QUARTER_S)]
        );
        assert_eq!(
            lookups(OPEN_S - DAY_S, now_s + QUARTER_S, now_s),
            [],
            "the quarter hour is still open"
        );

        assert_eq!(
            lookups(OPEN_S, OPEN_S + 5, now_s),
            [(OPEN_S, OPEN_S)],
            "there is nothing before its beginning"
        );
    }

    #[test]
    fn a_client_whose_clock_is_ahead_does_not_miss() {
        let (now_s, to_s) = (OPEN_S - 2, OPEN_S + 1);
        let early = (OPEN_S - DAY_S - QUARTER_S, OPEN_S - QUARTER_S);
        assert_eq!(lookups(to_s - DAY_S, to_s, now_s), [early]);
        assert_eq!(
            lookups(to_s + 60 - DAY_S, to_s + 60, now_s),
            [],
            "that is no difference between clocks"
        );
    }
}
