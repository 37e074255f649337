//! Parts of a local time, as conditions compare them.

use crate::rule::TimePart;
use crate::schedule::Day;
use jiff::civil::DateTime;
use raingauge_core::field::Scalar;

impl TimePart {
    /// The value that a condition on this part compares.
    pub fn value(self, local: DateTime) -> Scalar<'static> {
        match self {
            Self::Hour => Scalar::Number(local.hour().to_string().into()),
            Self::MinuteOfDay => {
                let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
                Scalar::Number(minute.to_string().into())
            }
            Self::Weekday => Scalar::Text(Day::of(local.weekday()).name().into()),
            Self::Date => Scalar::Text(local.date().to_string().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Zone;
    use raingauge_core::time::parse_rfc3339_ms;

    #[test]
    fn parts_are_those_of_a_clock_in_the_zone() {
        let time_ms = parse_rfc3339_ms(b"2026-11-22T16:05:00Z").unwrap();
        let parts = |zone: &str| {
            let local = Zone::of_name(zone).unwrap().local(time_ms);
            TimePart::ALL.map(|part| part.value(local).as_text().to_owned())
        };
        assert_eq!(parts("Asia/Singapore"), ["0", "5", "mon", "2026-11-23"]);
        assert_eq!(parts("America/New_York"), ["11", "665", "sun", "2026-11-22"]);
    }
}
