//! Figures of an answer: dates, percentiles, and what a sample stands for.

use raingauge_campaigns::calendar::Period;
use raingauge_core::time::format_rfc3339;
use serde::Serialize;

/// 95 of 100 intervals hold the true number, as far as it is distributed normally.
const DEVIATIONS: f64 = 1.96;

/// The date of a local day, such as `2010-12-06`.
pub fn date(day: i32) -> String {
    Period::Day.first_day(day).map_or_else(String::new, |date| date.to_string())
}

/// A time in milliseconds as RFC 3339, to the second.
pub fn instant(at_ms: i64) -> String {
    format_rfc3339(at_ms.div_euclid(1_000))
}

/// The dates on which a budget will be exhausted in 10, 50 and 90 of 100 futures; null where it
/// lasts longer than a year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastDates {
    pub p10: Option<String>,
    pub p50: Option<String>,
    pub p90: Option<String>,
}

/// The interval in which a number lies that one in `sample` subjects were counted for. Subjects
/// are drawn with probability 1/k, so the variance of the scaled sum is k (k − 1) Σ x²
/// (Horvitz–Thompson).
pub fn interval(counts: impl Iterator<Item = u64>, sample: u64) -> (u64, u64) {
    let mut sum: u128 = 0;
    let mut squares = 0.0;
    for count in counts {
        sum += u128::from(count);
        squares += count as f64 * count as f64;
    }
    let k = sample as f64;
    let deviation = (k * (k - 1.0) * squares).sqrt() * DEVIATIONS;
    let scaled = sum as f64 * k;
    let low = (scaled - deviation).max(sum as f64);
    (low.floor() as u64, (scaled + deviation).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_all() {
        assert_eq!(interval([1; 100].into_iter(), 1), (100, 100));
        // 400, and 1.96 × √(4 × 3 × 100) = 67.9 to both sides.
        assert_eq!(interval([1; 100].into_iter(), 4), (332, 468));
        assert_eq!(interval([2; 1].into_iter(), 100), (2, 591));
        assert_eq!(interval([].into_iter(), 100), (0, 0));
    }

    #[test]
    fn days_and_instants_are_written_as_dates() {
        assert_eq!(date(14_949), "2010-12-06");
        assert_eq!(instant(1_291_191_960_999), "2010-12-01T08:26:00Z");
    }
}
