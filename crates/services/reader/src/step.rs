//! The steps of a series: where its points begin, by the clocks of a time zone.
//!
//! Hours, days, weeks and months begin where those clocks say so: a day may have 23 or 25 hours,
//! and in some places begins at half past an hour of UTC.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::SERIES_POINTS_MAX;
use raingauge_core::plan;
use serde::Serialize;

/// Points that the first allocation has room for.
const POINTS_EXPECTED: usize = 64;

raingauge_core::names! {
    /// The span of time of one point.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Step {
        Quarter = "quarter",
        Hour = "hour",
        Day = "day",
        /// From Monday.
        Week = "week",
        Month = "month",
    }
}

impl Step {
    /// The coarsest buckets that make up a point.
    pub const fn granularity(self) -> Granularity {
        match self {
            Self::Quarter => Granularity::Quarter,
            Self::Hour => Granularity::Hour,
            Self::Day | Self::Week | Self::Month => Granularity::Day,
        }
    }

    /// The next date on which a day, a week or a month begins.
    fn next_date(self, date: Date) -> Option<Date> {
        let next = match self {
            Self::Week => date.nth_weekday(1, Weekday::Monday),
            Self::Month => date.last_of_month().tomorrow(),
            _ => date.tomorrow(),
        };
        next.ok()
    }
}

impl From<Granularity> for Step {
    fn from(granularity: Granularity) -> Self {
        match granularity {
            Granularity::Quarter => Self::Quarter,
            Granularity::Hour => Self::Hour,
            Granularity::Day => Self::Day,
        }
    }
}

/// The midnight that began the day of `now_s` in a zone, or an earlier day; `None` when the zone
/// does not exist.
pub fn midnight_s(days_ago: i64, now_s: i64, zone: &str) -> Option<i64> {
    let zone = TimeZone::get(zone).ok()?;
    let today = Timestamp::from_second(now_s).ok()?.to_zoned(zone.clone()).date();
    let date = today.checked_sub(Span::new().try_days(days_ago).ok()?).ok()?;
    Some(start_of(date, &zone)?.as_second())
}

/// Where the points of a series begin, and where the last one ends.
pub fn cuts(from_s: i64, to_s: i64, step: Step, zone: &str) -> Result<Vec<i64>, Refusal> {
    let zone = zone_of(zone)?;
    let mut cuts = Vec::with_capacity(POINTS_EXPECTED);
    cuts.push(from_s);

    let mut at = from_s;
    while at < to_s {
        at = next_cut(at, step, &zone)?.min(to_s);

        if !Granularity::Quarter.starts_at(at) {
            let detail = "in this zone and time, days or hours do not begin with a UTC quarter \
                          hour: ask for quarter hours";
            return Err(Refusal::new(Code::TimezoneUnaligned, detail));
        }

        cuts.push(at);

        if cuts.len() > SERIES_POINTS_MAX + 1 {
            let detail = format!(
                "a series has at most {SERIES_POINTS_MAX} points: ask for a shorter range or a \
                 coarser granularity"
            );
            return Err(Refusal::new(Code::SeriesTooLong, detail));
        }
    }

    Ok(cuts)
}

fn zone_of(name: &str) -> Result<TimeZone, Refusal> {
    TimeZone::get(name).map_err(|_| {
        let detail = format!("`{name}` is not an IANA time zone such as UTC or America/New_York");
        Refusal::new(Code::TimezoneUnknown, detail)
    })
}

/// The first second after `at` where a point of the zone begins.
fn next_cut(at: i64, step: Step, zone: &TimeZone) -> Result<i64, Refusal> {
    let granularity = step.granularity();
    let is_bucket = step <= Step::Day && *zone == TimeZone::UTC;
    if step == Step::Quarter || is_bucket {
        return Ok(granularity.floor(at) + granularity.width_s());
    }

    let local = Timestamp::from_second(at).map_err(|_| out_of_range())?.to_zoned(zone.clone());
    let next = if step == Step::Hour { next_hour(&local) } else { next_start(&local, step) };
    next.map(Timestamp::as_second).ok_or_else(out_of_range)
}

fn out_of_range() -> Refusal {
    plan::Error::OutOfRange.into()
}

/// The first instant of the next day, week or month.
fn next_start(local: &Zoned, step: Step) -> Option<Timestamp> {
    let mut date = local.date();
    loop {
        date = step.next_date(date)?;
        let start = start_of(date, local.time_zone())?;

        // A zone that jumps over a whole date, as Samoa did, begins the one after it at the same
        // instant. Where clocks are set back over midnight, the next date has begun already.
        if start > local.timestamp() {
            return Some(start);
        }
    }
}

/// The first instant of a date; where midnight is skipped, the first one after it.
fn start_of(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    let midnight = zone.to_ambiguous_zoned(date.to_datetime(Time::midnight()));
    Some(midnight.compatible().ok()?.timestamp())
}

/// The next instant at which the zone's clocks show a whole hour, or jump.
fn next_hour(local: &Zoned) -> Option<Timestamp> {
    let whole =
        local.timestamp().as_second() - i64::from(local.minute()) * 60 - i64::from(local.second());
    let next = Timestamp::from_second(whole + 3_600).ok()?;
    let jump = local
        .time_zone()
        .following(local.timestamp())
        .next()
        .map(|transition| transition.timestamp());
    let next = jump.filter(|jump| *jump < next).unwrap_or(next);
    (next > local.timestamp()).then_some(next)
}
