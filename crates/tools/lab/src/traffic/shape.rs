//! The relative rate of the traffic over time.

use super::Model;
use crate::plan::HOUR_S;
use anyhow::Result;
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub struct Shape {
    timezone: TimeZone,
    /// Relative rates; over a week, those of hours and of weekdays each have a mean of 1.
    hours: Vec<f64>,
    weekdays: Vec<f64>,
    burst: f64,
    burst_ms: f64,
    /// Normalizes the mean of the whole rate to 1, including bursts.
    scale: f64,
}

impl Shape {
    pub fn new(model: &Model) -> Result<Self> {
        let burst_ms = model.burst_minutes * 60_000.0;
        // A burst falls linearly, so its mean over an hour is half of its height times its fraction
        // of the hour.
        let burst_mean = model.burst / 2.0 * (model.burst_minutes / 60.0).min(1.0);
        Ok(Self {
            timezone: TimeZone::get(&model.timezone)?,
            hours: normal(&model.hours),
            weekdays: normal(&model.weekdays),
            burst: model.burst,
            burst_ms,
            scale: 1.0 / (1.0 + burst_mean),
        })
    }

    /// The rate at a time in milliseconds since 1970, as a multiple of the weekly mean.
    pub fn at(&self, ms: i64) -> f64 {
        let Ok(moment) = Timestamp::from_millisecond(ms) else {
            return 0.0;
        };
        let local = moment.to_zoned(self.timezone.clone());
        let hour = f64::from(local.hour()) + f64::from(local.minute()) / 60.0;
        let weekday = local.weekday().to_monday_zero_offset() as usize;
        let into_hour_ms = ms.rem_euclid(HOUR_S * 1_000) as f64;
        let burst = self.burst * (1.0 - into_hour_ms / self.burst_ms).max(0.0);
        self.scale * self.weekdays[weekday] * self.of_day(hour) * (1.0 + burst)
    }

    /// The maximum rate.
    pub fn max(&self) -> f64 {
        let most = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
        self.scale * most(&self.weekdays) * most(&self.hours) * (1.0 + self.burst)
    }

    /// Interpolates linearly between the middles of two hours.
    fn of_day(&self, hour: f64) -> f64 {
        let from_middle = hour - 0.5;
        let before = from_middle.floor();
        let share = |hour: f64| self.hours[hour.rem_euclid(24.0) as usize];
        let part = from_middle - before;
        share(before) * (1.0 - part) + share(before + 1.0) * part
    }
}

/// Scales the values to a mean of 1.
fn normal(shares: &[f64]) -> Vec<f64> {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    shares.iter().map(|share| share / mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::tests::model;

    fn ms(local: &str) -> i64 {
        let zone = TimeZone::get("Asia/Singapore").unwrap();
        let local: jiff::civil::DateTime = local.parse().unwrap();
        local.to_zoned(zone).unwrap().timestamp().as_millisecond()
    }

    #[test]
    fn evenings_and_fridays_have_more_and_a_week_has_its_mean() {
        let shape = Shape::new(&model()).unwrap();
        let morning = shape.at(ms("2024-11-05T08:30"));
        let evening = shape.at(ms("2024-11-05T18:30"));
        assert!((evening / morning - 2.0).abs() < 1e-9);
        assert!((shape.at(ms("2024-11-08T08:30")) / morning - 1.5).abs() < 1e-9);
        let monday = ms("2024-11-04T00:00");
        let seconds = 7 * 86_400 / 10;
        let mean =
            (0..seconds).map(|step| shape.at(monday + step * 10_000)).sum::<f64>() / seconds as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_burst_comes_with_the_hour_and_fades_away() {
        let shape = Shape::new(&model()).unwrap();
        let quiet = shape.at(ms("2024-11-05T08:30"));
        assert!((shape.at(ms("2024-11-05T09:00")) / quiet - 3.0).abs() < 1e-9);
        assert!((shape.at(ms("2024-11-05T09:01:30")) / quiet - 2.0).abs() < 0.01);
        assert!((shape.at(ms("2024-11-05T09:03")) / quiet - 1.0).abs() < 1e-9);
        assert!(
            (0..24 * 7)
                .all(|hour| shape.at(ms("2024-11-04T00:00") + hour * 3_600_000) <= shape.max())
        );
    }
}
