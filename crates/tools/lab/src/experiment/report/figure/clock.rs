//! Positions of labels on a time axis: at whole quarter hours, hours or days of local time.

use crate::experiment::report::bins::{DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS};
use crate::experiment::report::zone::Zone;

/// A label at a point in time, or a mark without text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    pub at_ms: i64,
    pub text: String,
    /// A day starts here.
    pub is_day: bool,
}

/// Ascending; each divides a day.
const STEPS_MS: [i64; 8] = [
    5 * MINUTE_MS,
    QUARTER_MS,
    2 * QUARTER_MS,
    HOUR_MS,
    2 * HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
];

/// Labels of the local time, as fine as possible with at most `len_max` on the axis; on a long
/// axis, only days.
pub fn ticks(from_ms: i64, to_ms: i64, zone: &Zone, len_max: usize) -> Vec<Tick> {
    let length_ms = (to_ms - from_ms).max(0);
    match STEPS_MS.into_iter().find(|step_ms| length_ms / step_ms <= len_max as i64) {
        Some(step_ms) => clock_ticks(from_ms, to_ms, zone, step_ms),
        None => days(from_ms, to_ms, zone),
    }
}

fn clock_ticks(from_ms: i64, to_ms: i64, zone: &Zone, step_ms: i64) -> Vec<Tick> {
    // Time zone offsets are multiples of a quarter hour, and so is every larger step.
    let grain_ms = step_ms.min(QUARTER_MS);
    let first_ms = from_ms + (grain_ms - from_ms.rem_euclid(grain_ms)) % grain_ms;
    let moments = (first_ms..=to_ms).step_by(grain_ms as usize);
    let meant = moments.filter(|at_ms| (at_ms + zone.offset_ms(*at_ms)).rem_euclid(step_ms) == 0);
    meant
        .map(|at_ms| {
            let is_day = (at_ms + zone.offset_ms(at_ms)).rem_euclid(DAY_MS) == 0;
            let text = zone.words(at_ms, if is_day { "%-d %b" } else { "%H:%M" });
            Tick { at_ms, text, is_day }
        })
        .collect()
}

/// The start of every day on the axis.
pub fn days(from_ms: i64, to_ms: i64, zone: &Zone) -> Vec<Tick> {
    let mut ticks = Vec::new();
    let Some(mut date) = zone.local(from_ms).map(|local| local.date()) else {
        return ticks;
    };
    while let Some(at_ms) = zone.midnight_ms(date).filter(|at_ms| *at_ms < to_ms) {
        if at_ms >= from_ms {
            ticks.push(Tick { at_ms, text: date.strftime("%a %-d %b").to_string(), is_day: true });
        }
        let Ok(next) = date.tomorrow() else { break };
        date = next;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: i64 = 1_730_780_100_000; // 5 November 2024, 12:15 in Singapore.

    fn texts(length_ms: i64, len_max: usize) -> Vec<String> {
        let ticks = ticks(NOON_MS, NOON_MS + length_ms, &Zone::new("Asia/Singapore"), len_max);
        ticks.into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn labels_are_as_fine_as_there_is_room_for() {
        assert_eq!(texts(HOUR_MS, 5), ["12:15", "12:30", "12:45", "13:00", "13:15"]);
        assert_eq!(texts(2 * HOUR_MS, 3), ["13:00", "14:00"]);
        assert_eq!(texts(DAY_MS, 4), ["18:00", "6 Nov", "06:00", "12:00"]);
        assert_eq!(texts(3 * DAY_MS, 3), ["Wed 6 Nov", "Thu 7 Nov", "Fri 8 Nov"]);
    }

    #[test]
    fn days_begin_where_the_clocks_of_the_zone_say_so() {
        let from_ms = 1_711_753_200_000; // 30 March 2024, 0:00 in Berlin; clocks change in the next night.
        let ticks = days(from_ms, from_ms + 3 * DAY_MS, &Zone::new("Europe/Berlin"));
        let lengths: Vec<i64> =
            ticks.windows(2).map(|pair| (pair[1].at_ms - pair[0].at_ms) / HOUR_MS).collect();
        assert_eq!(lengths, [24, 23, 24]);
    }
}
