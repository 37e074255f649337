//! Maps values to heights, with round ticks from 0.

use crate::experiment::report::words::{byte_size, bytes, number, percent};

/// Approximate number of steps between ticks.
const STEPS: f64 = 4.0;

/// An axis of values that begins at 0.
#[derive(Debug, Clone)]
pub struct Scale {
    pub ticks: Vec<f64>,
    pub unit: Unit,
}

/// The unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Number,
    /// Fractions, shown as percentages.
    Share,
    /// Multiples of the mean.
    Times,
    Bytes,
}

impl Scale {
    /// An axis that includes all the given values.
    pub fn new(values: impl Iterator<Item = f64>, unit: Unit) -> Self {
        let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let size = if unit == Unit::Bytes { byte_size(high) } else { 1.0 };
        let ticks = ticks(if high > 0.0 { high / size } else { 1.0 });
        Self { ticks: ticks.into_iter().map(|tick| tick * size).collect(), unit }
    }

    /// An axis from 0 to 100 %.
    pub fn whole() -> Self {
        Self { ticks: vec![0.0, 0.25, 0.5, 0.75, 1.0], unit: Unit::Share }
    }

    pub fn top(&self) -> f64 {
        self.ticks.last().copied().unwrap_or(1.0)
    }

    pub fn words(&self, tick: f64) -> String {
        match self.unit {
            Unit::Number => number(tick),
            Unit::Share => percent(tick),
            Unit::Times => format!("{}×", number(tick)),
            Unit::Bytes => bytes(tick, byte_size(self.top())),
        }
    }
}

/// Round values from 0 to at least `high`, in steps of 1, 2 or 5 times a power of ten.
fn ticks(high: f64) -> Vec<f64> {
    let rough = high / STEPS;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|factor| factor * power >= rough * 0.999)
        .unwrap_or(10.0);
    let step = factor * power;
    let last = (high / step - 1e-9).ceil() as usize;
    (0..=last).map(|place| place as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_above_the_values() {
        assert_eq!(ticks(487.0), [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(1.0), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks(30.0), [0.0, 10.0, 20.0, 30.0]);
        let scale = Scale::new([0.0, f64::NAN, 3.1 * 1024f64.powi(3)].into_iter(), Unit::Bytes);
        assert_eq!(scale.words(scale.top()), "4\u{a0}GiB");
        assert_eq!(Scale::new([].into_iter(), Unit::Number).top(), 1.0);
    }

    #[test]
    fn shares_are_percents() {
        assert_eq!(Scale::whole().words(0.25), "25\u{a0}%");
    }
}
