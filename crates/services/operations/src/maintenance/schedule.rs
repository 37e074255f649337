//! When maintenance is due: cron expressions on the clock of a time zone.

use super::Error;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Most expressions of one configuration.
pub const EXPRESSIONS_MAX: usize = 32;
/// Longest expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 200;

/// Several cron expressions in one time zone.
///
/// An expression has the five fields of cron: minute, hour, day of the month, month, day of the
/// week. A time that falls into a gap of the clock is due right after the gap; a time that occurs
/// twice is due the first time. Expressions with `*` in minute or hour follow the wall clock
/// instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedules {
    zone: TimeZone,
    all: Vec<Schedule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Schedule {
    expression: String,
    cron: croner::Cron,
}

/// The next time at which an expression is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub expression: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
}

impl Schedules {
    /// A schedule on which nothing is due.
    pub fn none() -> Self {
        Self { zone: TimeZone::UTC, all: Vec::new() }
    }

    /// Reads expressions separated by `;`. A text without any is a schedule on which nothing is
    /// due.
    pub fn parse(text: &str, zone: &str) -> Result<Self, Error> {
        let zone = TimeZone::get(zone).map_err(|_| Error::Zone(zone.to_owned()))?;
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let all = parts.map(Schedule::parse).collect::<Result<Vec<_>, _>>()?;
        if all.len() > EXPRESSIONS_MAX {
            return Err(Error::TooMany);
        }
        let schedules = Self { zone, all };
        // An expression that is due once is due again: the calendar repeats itself.
        match schedules.next_after(REFERENCE_MS).iter().find(|(_, at_ms)| at_ms.is_none()) {
            Some((expression, _)) => Err(Error::Never((*expression).to_owned())),
            None => Ok(schedules),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The IANA name of the time zone.
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// Every expression with the first time after `after_ms` at which it is due.
    pub fn upcoming(&self, after_ms: i64) -> Vec<Due> {
        let due = |(expression, at_ms): (&str, Option<i64>)| {
            Some(Due { expression: expression.to_owned(), at_ms: at_ms? })
        };
        self.next_after(after_ms).into_iter().filter_map(due).collect()
    }

    /// The first expression that is due after `after_ms`.
    pub fn next(&self, after_ms: i64) -> Option<Due> {
        self.upcoming(after_ms).into_iter().min_by_key(|due| due.at_ms)
    }

    fn next_after(&self, after_ms: i64) -> Vec<(&str, Option<i64>)> {
        let from =
            Timestamp::from_millisecond(after_ms).ok().map(|time| time.to_zoned(self.zone.clone()));
        let next = |schedule: &Schedule| -> Option<i64> {
            let found: Zoned = schedule.cron.find_next_occurrence(from.as_ref()?, false).ok()?;
            Some(found.timestamp().as_millisecond())
        };
        self.all.iter().map(|schedule| (schedule.expression.as_str(), next(schedule))).collect()
    }
}

/// 2026-01-01, from which it is tested whether an expression is ever due.
const REFERENCE_MS: i64 = 1_767_225_600_000;

impl Schedule {
    fn parse(text: &str) -> Result<Self, Error> {
        let expression = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let refused = |reason: String| Error::Expression { expression: expression.clone(), reason };
        if expression.len() > EXPRESSION_BYTES_MAX {
            return Err(refused(format!("it has more than {EXPRESSION_BYTES_MAX} bytes")));
        }
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        match parser.parse(&expression) {
            Ok(cron) => Ok(Self { expression, cron }),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    /// The next `count` due times after `from`, in UTC.
    fn due(expressions: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let schedules = Schedules::parse(expressions, zone).unwrap();
        let mut at_ms = ms(from);
        let next = |_| {
            at_ms = schedules.next(at_ms).unwrap().at_ms;
            Timestamp::from_millisecond(at_ms).unwrap().to_string()
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn several_expressions_are_due_in_turn() {
        let found = due("0 3 * * *; 0 14-16 * * 1-5", "UTC", "2026-11-20T03:00:00Z", 5);
        assert_eq!(
            found,
            [
                "2026-11-20T14:00:00Z",
                "2026-11-20T15:00:00Z",
                "2026-11-20T16:00:00Z",
                "2026-11-21T03:00:00Z", // a Saturday
                "2026-11-22T03:00:00Z",
            ]
        );
    }

    #[test]
    fn the_clock_is_that_of_the_zone() {
        assert_eq!(
            due("0 3 * * *", "Asia/Singapore", "2026-11-20T00:00:00Z", 1),
            ["2026-11-20T19:00:00Z"]
        );
        assert_eq!(
            due("30 3 1 1 *", "Asia/Kathmandu", "2026-11-20T00:00:00Z", 1),
            ["2026-12-31T21:45:00Z"]
        );
    }

    /// In Berlin 2026-03-29 02:00 is followed by 03:00.
    #[test]
    fn a_time_that_the_clock_leaps_over_is_due_behind_the_gap() {
        let found = due("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3);
        assert_eq!(found, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        let hourly = due("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
        assert_eq!(
            hourly,
            ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]
        );
    }

    /// In Berlin, 2026-10-25 has the hour from 02:00 twice.
    #[test]
    fn a_time_that_comes_twice_is_due_once() {
        let found = due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(found, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let hourly = due("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 3);
        assert_eq!(
            hourly,
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"]
        );
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for wrong in [
            "* * * *",
            "61 * * * *",
            "0 3 * * * *",
            "soon",
            "0 25 * * *",
            "0 3 * * *; 0",
            "* * * * * * *",
        ] {
            let refused = Schedules::parse(wrong, "UTC").unwrap_err();
            assert!(matches!(refused, Error::Expression { .. }), "{wrong}: {refused}");
        }

        assert_eq!(
            Schedules::parse("0 0 30 2 *", "UTC"),
            Err(Error::Never("0 0 30 2 *".to_owned()))
        );
        assert_eq!(
            Schedules::parse("", "Middle/Earth"),
            Err(Error::Zone("Middle/Earth".to_owned()))
        );
        assert_eq!(
            Schedules::parse(&"0 3 * * *;".repeat(EXPRESSIONS_MAX + 1), "UTC"),
            Err(Error::TooMany)
        );

        let long = format!("{} * * * *", vec!["1"; 200].join(","));
        assert!(Schedules::parse(&long, "UTC").is_err());
    }

    #[test]
    fn no_expression_is_never_due() {
        let none = Schedules::parse(" ; ", "Europe/Berlin").unwrap();
        assert!(none.is_empty() && none.next(0).is_none());
        assert_eq!(none.zone(), "Europe/Berlin");
        assert_eq!(Schedules::none(), Schedules::parse("", "UTC").unwrap());
    }
}
