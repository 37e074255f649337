//! Positions of the labels on the time axis: whole minutes, hours, days, months or years in the
//! local time of the zone.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use raingauge_core::bucket::{DAY_S, HOUR_S, QUARTER_S};

/// A label at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    pub at_s: i64,
    pub text: String,
}

/// The times that get a label.
#[derive(Clone, Copy)]
enum Rule {
    Minutes(i8),
    Hours(i8),
    Days,
    OddDays,
    Mondays,
    Months(i8),
    Years(i16),
}

/// From fine to coarse.
const RULES: [Rule; 20] = [
    Rule::Minutes(1),
    Rule::Minutes(5),
    Rule::Minutes(15),
    Rule::Hours(1),
    Rule::Hours(3),
    Rule::Hours(6),
    Rule::Hours(12),
    Rule::Days,
    Rule::OddDays,
    Rule::Mondays,
    Rule::Months(1),
    Rule::Months(3),
    Rule::Months(6),
    Rule::Years(1),
    Rule::Years(2),
    Rule::Years(5),
    Rule::Years(10),
    Rule::Years(50),
    Rule::Years(500),
    Rule::Years(5_000),
];

impl Rule {
    /// Approximate time between two labels, in seconds.
    const fn width_s(self) -> i64 {
        match self {
            Self::Minutes(minutes) => minutes as i64 * 60,
            Self::Hours(hours) => hours as i64 * HOUR_S,
            Self::Days => DAY_S,
            Self::OddDays => 2 * DAY_S,
            Self::Mondays => 7 * DAY_S,
            Self::Months(months) => months as i64 * 30 * DAY_S,
            Self::Years(years) => years as i64 * 365 * DAY_S,
        }
    }

    fn has_date(self, date: Date) -> bool {
        match self {
            Self::Minutes(_) | Self::Hours(_) | Self::Days => true,
            // Leaves out the 31st, since the 1st follows it.
            Self::OddDays => date.day() % 2 == 1 && date.day() < 31,
            Self::Mondays => date.weekday() == Weekday::Monday,
            Self::Months(months) => date.day() == 1 && (date.month() - 1) % months == 0,
            Self::Years(years) => date.day() == 1 && date.month() == 1 && date.year() % years == 0,
        }
    }

    fn date_text(self, date: Date) -> String {
        match self {
            Self::Years(_) => date.year().to_string(),
            Self::Months(_) if date.month() == 1 => date.year().to_string(),
            Self::Months(_) => date.strftime("%b").to_string(),
            _ => date.strftime("%-d %b").to_string(),
        }
    }

    fn ticks(self, from_s: i64, to_s: i64, zone: &TimeZone) -> Vec<Tick> {
        match self {
            Self::Minutes(minutes) => {
                clock_ticks(from_s, to_s, zone, 60, |local| local.minute() % minutes == 0)
            }
            Self::Hours(hours) => {
                let is_hour = |local: &Zoned| local.minute() == 0 && local.hour() % hours == 0;
                clock_ticks(from_s, to_s, zone, QUARTER_S, is_hour)
            }
            _ => self.date_ticks(from_s, to_s, zone),
        }
    }

    fn date_ticks(self, from_s: i64, to_s: i64, zone: &TimeZone) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let Some(mut date) = local(from_s, zone).map(|local| local.date()) else {
            return ticks;
        };

        // On a long axis, the search advances by months.
        let by_months = matches!(self, Self::Months(_) | Self::Years(_));
        if by_months {
            date = date.first_of_month();
        }

        loop {
            // The first minute of the date: some zones skip midnight on some days.
            let Ok(start) = date.to_zoned(zone.clone()) else {
                return ticks;
            };
            let at_s = start.timestamp().as_second();
            if at_s >= to_s {
                return ticks;
            }

            if at_s >= from_s && self.has_date(date) {
                ticks.push(Tick { at_s, text: self.date_text(date) });
            }
            let next = if by_months { date.last_of_month().tomorrow() } else { date.tomorrow() };
            let Ok(next) = next else { return ticks };
            date = next;
        }
    }
}

/// Labels with the time of day, and with the date at midnight.
fn clock_ticks(
    from_s: i64,
    to_s: i64,
    zone: &TimeZone,
    step_s: i64,
    is_meant: impl Fn(&Zoned) -> bool,
) -> Vec<Tick> {
    let first_s = from_s + (step_s - from_s.rem_euclid(step_s)) % step_s;
    let moments = (first_s..to_s)
        .step_by(step_s as usize)
        .filter_map(|at_s| Some((at_s, local(at_s, zone)?)));
    let meant = moments.filter(|(_, local)| is_meant(local));

    meant
        .map(|(at_s, local)| {
            let is_midnight = local.hour() == 0 && local.minute() == 0;
            Tick {
                at_s,
                text: local.strftime(if is_midnight { "%-d %b" } else { "%H:%M" }).to_string(),
            }
        })
        .collect()
}

fn local(at_s: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_second(at_s).ok()?.to_zoned(zone.clone()))
}

/// Returns the labels of an axis, with the finest rule that gives at most `len_max` of them.
pub fn ticks(from_s: i64, to_s: i64, zone: &TimeZone, len_max: usize) -> Vec<Tick> {
    let length_s = (to_s - from_s).max(0);
    for rule in RULES {
        if length_s / rule.width_s() > len_max as i64 + 1 {
            continue;
        }
        let ticks = rule.ticks(from_s, to_s, zone);
        if ticks.len() <= len_max {
            return ticks;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> i64 {
        raingauge_core::time::parse_time_s(text).unwrap()
    }

    fn texts(from: &str, to: &str, zone: &str, len_max: usize) -> Vec<String> {
        let zone = TimeZone::get(zone).unwrap();
        ticks(at(from), at(to), &zone, len_max).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn labels_are_as_fine_as_there_is_room_for() {
        let day = ("2024-09-24T00:00:00Z", "2024-09-25T00:00:00Z");
        assert_eq!(
            texts(day.0, day.1, "UTC", 12),
            ["24 Sep", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]
        );
        assert_eq!(texts(day.0, day.1, "UTC", 4), ["24 Sep", "06:00", "12:00", "18:00"]);

        let year = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
        assert_eq!(texts(year.0, year.1, "UTC", 4), ["2024", "Apr", "Jul", "Oct"]);
        assert_eq!(texts(year.0, "2034-01-01T00:00:00Z", "UTC", 4), ["2025", "2030"]);

        assert_eq!(
            texts("2024-09-24T10:02:00Z", "2024-09-24T10:17:00Z", "UTC", 4),
            ["10:05", "10:10", "10:15"]
        );
    }

    #[test]
    fn days_begin_where_the_clocks_of_the_zone_say_so() {
        let from = ("2024-03-30T00:00:00Z", "2024-04-02T00:00:00Z");
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let found = ticks(at(from.0), at(from.1), &zone, 4);
        let expected =
            ["2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z", "2024-04-01T22:00:00Z"].map(at);
        assert_eq!(found.iter().map(|tick| tick.at_s).collect::<Vec<_>>(), expected);
        assert_eq!(found[0].text, "31 Mar");
    }

    proptest! {
        /// On any axis, the labels are ordered, within the axis, and not too many.
        #[test]
        fn any_axis_has_labels(
            from_s in 0i64..253_000_000_000,
            length_s in 0i64..3_200_000_000,
            len_max in 1usize..16,
            place in 0usize..5,
        ) {
            let zone = TimeZone::get(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia"][place]).unwrap();
            let to_s = (from_s + length_s).min(253_000_000_000);
            let ticks = ticks(from_s, to_s, &zone, len_max);
            prop_assert!(ticks.len() <= len_max);
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
            prop_assert!(ticks.iter().all(|tick| (from_s..to_s).contains(&tick.at_s)));
        }
    }
}
