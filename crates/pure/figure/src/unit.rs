//! Units of values, and values as text.

use crate::number;
use raingauge_core::number::grouped;

raingauge_core::names! {
    /// The unit of the values.
    pub enum Unit {
        /// Whole numbers of things.
        Count = "count",
        Number = "number",
        /// Multiples of the mean.
        Times = "times",
        PerSecond = "per_second",
        Seconds = "seconds",
        Bytes = "bytes",
        /// Fractions of 1, shown in percent.
        Share = "share",
    }
}

impl Unit {
    /// Formats a value for an axis.
    pub fn short(self, value: f64) -> String {
        match self {
            Self::Count | Self::Number | Self::PerSecond => number::short(value),
            Self::Times => format!("{}×", number::short(value)),
            Self::Seconds => number::duration(value),
            Self::Bytes => number::bytes(value),
            Self::Share => format!("{} %", number::trimmed(&format!("{:.2}", value * 100.0))),
        }
    }

    /// Formats a value for a table.
    pub fn full(self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return "–".to_owned();
        };
        match self {
            Self::Count => grouped(value as i128),
            Self::PerSecond => format!("{}/s", number::short(value)),
            _ => self.short(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Unit::Seconds.short(0.0025), "2.5 ms");
        assert_eq!(Unit::Share.short(0.955), "95.5 %");
        assert_eq!(Unit::Times.short(1.25), "1.25×");
        assert_eq!(Unit::Bytes.short(1.5e9), "1.5 GB");
        assert_eq!(Unit::Count.full(None), "–");
    }
}
