//! When points expire: which lot an award belongs to, and from which moment a lot is gone.

use crate::account::Expiry;
use crate::calendar::{DAY_MS, HOUR_MS, Zone};
use crate::day::Day;
use crate::document::{ExpiryDocument, ExpiryKind, ExpiryUntil};

/// How the points of a programme expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiryPolicy {
    rule: ExpiryRule,
    grace_ms: i64,
    reinstate_ms: i64,
    zone: Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpiryRule {
    Activity { months: u16 },
    Fixed { months: u16, until: ExpiryUntil },
    Yearly { month: u8, day: u8, months_min: u16 },
    Never,
}

/// Month and day of a text such as `12-31`, which every year must have.
pub(crate) fn day_of_year(text: &str) -> Option<(u8, u8)> {
    let (month, day) = text.split_once('-')?;
    let number = |part: &str| {
        let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u8>().ok()).flatten()
    };
    let month = number(month)?;
    let day = number(day)?;
    // 2023 has no leap day.
    Day::of_civil(2023, i64::from(month), i64::from(day)).map(|_| (month, day))
}

impl ExpiryPolicy {
    /// Of a document that was checked.
    pub(crate) fn of(document: &ExpiryDocument, zone: Zone) -> Self {
        let months = document.months.unwrap_or(0);
        let rule = match document.kind {
            ExpiryKind::Activity => ExpiryRule::Activity { months },
            ExpiryKind::Fixed => {
                ExpiryRule::Fixed { months, until: document.until.unwrap_or_default() }
            }
            ExpiryKind::Yearly => {
                let date = document.date.as_deref().and_then(day_of_year);
                let (month, day) = date.unwrap_or((12, 31));
                ExpiryRule::Yearly { month, day, months_min: months }
            }
            ExpiryKind::Never => ExpiryRule::Never,
        };

        Self {
            rule,
            grace_ms: i64::from(document.grace_hours) * HOUR_MS,
            reinstate_ms: i64::from(document.reinstate_days) * DAY_MS,
            zone,
        }
    }

    pub(crate) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// How long points can be spent behind their last day, in milliseconds.
    pub(crate) fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// Whether all points of a wallet expire together, by its activity.
    pub fn is_by_activity(&self) -> bool {
        matches!(self.rule, ExpiryRule::Activity { .. })
    }

    /// The last day of points that are kept alive by a transaction of this day: the last day of
    /// the month `months` later. `None` where activity does not matter.
    pub fn extended_to(&self, day: Day) -> Option<Day> {
        match self.rule {
            ExpiryRule::Activity { months } => Some(day.month().plus(i32::from(months)).last_day()),
            _ => None,
        }
    }

    /// The lot of points that were earned on a day.
    pub fn lot_of(&self, day: Day) -> Expiry {
        match self.rule {
            ExpiryRule::Activity { .. } => Expiry::Rolling,
            ExpiryRule::Fixed { months, until: ExpiryUntil::MonthEnd } => {
                Expiry::On(day.month().plus(i32::from(months)).last_day())
            }
            ExpiryRule::Fixed { months, until: ExpiryUntil::Day } => {
                Expiry::On(day.plus_months(months))
            }
            ExpiryRule::Yearly { month, day: of_month, months_min } => {
                let earliest = day.plus_months(months_min);
                let (year, ..) = earliest.civil();
                let date = |year| Day::of_civil(year, i64::from(month), i64::from(of_month));
                let dates = [date(year), date(year + 1)];
                let found = dates.into_iter().flatten().find(|date| *date >= earliest);
                Expiry::On(found.expect("every year has the date"))
            }
            ExpiryRule::Never => Expiry::Never,
        }
    }

    /// The lot of points that were earned on a day and can be spent from a later one on. Where they
    /// would expire before that, they have the date of points that are earned on the later day.
    pub fn lot_from(&self, day: Day, spendable: Day) -> Expiry {
        match self.lot_of(day) {
            Expiry::On(last) if last < spendable => self.lot_of(spendable),
            lot => lot,
        }
    }

    /// The moment from which points are gone whose last day this is.
    pub fn cut_ms(&self, last: Day) -> i64 {
        self.zone.midnight_ms(last.plus(1)).saturating_add(self.grace_ms)
    }

    /// The moment from which a late transaction brings nothing back.
    pub fn reinstate_end_ms(&self, cut_ms: i64) -> i64 {
        cut_ms.saturating_add(self.reinstate_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::Date;
    use jiff::tz::TimeZone;
    use jiff::{Span, Timestamp, ToSpan};
    use raingauge_core::time::parse_rfc3339_ms;

    fn policy(json: serde_json::Value, zone: &str) -> ExpiryPolicy {
        let document: ExpiryDocument = serde_json::from_value(json).unwrap();
        ExpiryPolicy::of(&document, Zone::of_name(zone).unwrap())
    }

    fn by_activity(months: u16, zone: &str) -> ExpiryPolicy {
        policy(serde_json::json!({"kind": "activity", "months": months}), zone)
    }

    fn ms(text: &str) -> i64 {
        parse_rfc3339_ms(text.as_bytes()).unwrap()
    }

    /// The table of the published description, and its neighbours.
    #[test]
    fn points_live_to_the_end_of_the_month() {
        for (day, six, three) in [
            ("2026-01-10", "2026-07-31", "2026-04-30"),
            ("2026-02-28", "2026-08-31", "2026-05-31"),
            ("2023-08-31", "2024-02-29", "2023-11-30"),
            ("2024-08-31", "2025-02-28", "2024-11-30"),
            ("2025-01-01", "2025-07-31", "2025-04-30"),
        ] {
            let extended =
                |months| by_activity(months, "UTC").extended_to(day.parse().unwrap()).unwrap();
            assert_eq!(extended(6).to_string(), six, "{day}");
            assert_eq!(extended(3).to_string(), three, "{day}");
        }
    }

    #[test]
    fn a_month_begins_at_local_midnight() {
        let policy = by_activity(6, "Asia/Singapore");
        let extended = |at: &str| policy.extended_to(policy.zone().day(ms(at))).unwrap();
        assert_eq!(extended("2024-12-31T16:00:00Z").to_string(), "2025-07-31");
        assert_eq!(extended("2024-12-31T15:59:59Z").to_string(), "2025-06-30");
        // The whole last day and a day of grace.
        let cut_ms = policy.cut_ms("2025-07-31".parse().unwrap());
        assert_eq!(cut_ms, ms("2025-08-02T00:00:00+08:00"));
    }

    /// Every day of four years, by jiff's own calendar, which shares nothing with ours.
    #[test]
    fn the_calendar_of_four_years_agrees_with_jiff() {
        let zones = [
            "UTC",
            "Asia/Singapore",
            "Asia/Jakarta",
            "Asia/Kathmandu",
            "Europe/Berlin",
            "America/New_York",
            "America/St_Johns",
            "Australia/Lord_Howe",
            "Pacific/Apia",
            "America/Havana",
        ];
        for name in zones {
            let zone = TimeZone::get(name).unwrap();
            for months in [3_u16, 6] {
                let policy = by_activity(months, name);
                let mut date = Date::constant(2023, 1, 1);
                while date < Date::constant(2027, 1, 1) {
                    let begin = date.to_zoned(zone.clone()).unwrap();
                    let next = date.tomorrow().unwrap().to_zoned(zone.clone()).unwrap();
                    let last_moment = next.timestamp() - 1.milliseconds();

                    let later = date.first_of_month() + Span::new().months(months);
                    let expected = later.last_of_month();
                    for moment in [begin.timestamp(), last_moment] {
                        let day = policy.zone().day(moment.as_millisecond());
                        let found = policy.extended_to(day).unwrap();
                        assert_eq!(found.to_string(), expected.to_string(), "{name} {moment}");
                    }

                    let after = expected.tomorrow().unwrap().to_zoned(zone.clone()).unwrap();
                    let cut: Timestamp = after.timestamp() + 24.hours();
                    let last: Day = expected.to_string().parse().unwrap();
                    assert_eq!(policy.cut_ms(last), cut.as_millisecond(), "{name} {date}");
                    date = date.tomorrow().unwrap();
                }
            }
        }
    }

    /// A date that lies before the first day on which points can be spent is no date for them.
    #[test]
    fn points_can_be_spent_before_they_expire() {
        let yearly = |months: u16| {
            policy(serde_json::json!({"kind": "yearly", "date": "12-31", "months": months}), "UTC")
        };
        let lot = |day: &str, spendable: &str| {
            yearly(0).lot_from(day.parse().unwrap(), spendable.parse().unwrap()).to_string()
        };
        assert_eq!(lot("2026-12-20", "2026-12-20"), "2026-12-31");
        assert_eq!(lot("2026-12-01", "2026-12-31"), "2026-12-31");
        assert_eq!(lot("2026-12-20", "2027-01-19"), "2027-12-31");

        let fixed = |months: u16| {
            policy(serde_json::json!({"kind": "fixed", "months": months, "until": "day"}), "UTC")
        };
        let first: Day = "2026-01-01".parse().unwrap();
        for policy in [yearly(0), yearly(3), fixed(1), fixed(12)] {
            for day in 0..400 {
                for pending_days in [0, 1, 27, 30, 60, 365] {
                    let day = first.plus(day);
                    let spendable = day.plus(pending_days);
                    let Expiry::On(last) = policy.lot_from(day, spendable) else { panic!() };
                    assert!(last >= spendable, "{day}, {pending_days}: {last}");
                }
            }
        }
    }

    #[test]
    fn awards_have_dates_of_their_own() {
        let lot = |json, day: &str| policy(json, "UTC").lot_of(day.parse().unwrap()).to_string();
        let fixed =
            |until: &str| serde_json::json!({"kind": "fixed", "months": 12, "until": until});
        assert_eq!(lot(fixed("monthEnd"), "2024-02-29"), "2025-02-28");
        assert_eq!(lot(fixed("day"), "2024-02-29"), "2025-02-28");
        assert_eq!(lot(fixed("day"), "2024-03-15"), "2025-03-15");

        let yearly = serde_json::json!({"kind": "yearly", "date": "03-31", "months": 6});
        assert_eq!(lot(yearly.clone(), "2025-09-30"), "2026-03-31");
        assert_eq!(lot(yearly.clone(), "2025-10-01"), "2027-03-31");
        assert_eq!(lot(yearly, "2025-01-01"), "2026-03-31");
        assert_eq!(lot(serde_json::json!({"kind": "never"}), "2025-01-01"), "never");
    }
}
