//! The axis of values: round ticks, linear or logarithmic.

/// Approximate number of steps between the ticks of values.
const STEPS: f64 = 4.0;
/// Largest number of decades labelled on a logarithmic axis.
const DECADES_MAX: i32 = 6;

raingauge_core::names! {
    pub enum Scale {
        Linear = "linear",
        Logarithmic = "log",
    }
}

/// The axis of values.
#[derive(Clone, Debug)]
pub struct Axis {
    bottom: f64,
    top: f64,
    scale: Scale,
    pub ticks: Vec<f64>,
}

impl Axis {
    /// Returns an axis that covers 0 and all of these values, with steps of at least `step_min`
    /// between its ticks. A logarithmic axis needs values above 0, and is linear without them.
    pub fn new(values: impl Iterator<Item = f64> + Clone, scale: Scale, step_min: f64) -> Self {
        let known = values.filter(|value| value.is_finite());
        let high = known.clone().fold(0.0, f64::max);
        let low = known.clone().fold(0.0, f64::min);
        let least = known.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if scale == Scale::Logarithmic && low >= 0.0 && least.is_finite() {
            return Self::logarithmic(least, high);
        }
        Self::linear(ticks(low, if high > low { high } else { low + 1.0 }, step_min))
    }

    /// An axis from 0 to 100 %.
    pub fn whole() -> Self {
        Self::linear(vec![0.0, 0.25, 0.5, 0.75, 1.0])
    }

    fn linear(ticks: Vec<f64>) -> Self {
        let bottom = ticks[0];
        let top = ticks[ticks.len() - 1];
        Self { bottom, top, scale: Scale::Linear, ticks }
    }

    /// From half of the least value's decade, so that the value is visible, to the decade above the
    /// largest one.
    fn logarithmic(least: f64, high: f64) -> Self {
        let first = least.log10().floor() as i32;
        let last = (high.log10().ceil() as i32).max(first + 1);
        let step = ((last - first) / DECADES_MAX + 1).max(1);
        let ticks =
            (first..=last).step_by(step as usize).map(|decade| 10f64.powi(decade)).collect();
        Self {
            bottom: 10f64.powf(f64::from(first) - 0.3),
            top: 10f64.powi(last),
            scale: Scale::Logarithmic,
            ticks,
        }
    }

    /// The position of a value, from 0 at the bottom to 1 at the top.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.bottom) / (self.top - self.bottom),
            Scale::Logarithmic if value <= self.bottom => 0.0,
            Scale::Logarithmic => (value / self.bottom).log10() / (self.top / self.bottom).log10(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The position where bars begin.
    pub fn base(&self) -> f64 {
        self.share(0.0)
    }
}

/// Returns round values from at most `low` to at least `high`, with a step of 1, 2 or 5 times a
/// power of ten.
fn ticks(low: f64, high: f64, step_min: f64) -> Vec<f64> {
    let rough = ((high - low) / STEPS).max(step_min).max(f64::MIN_POSITIVE * 1e16);
    let power = 10f64.powf(rough.log10().floor());
    let factor =
        [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999).unwrap_or(10.0);
    let step = factor * power;
    // Whole multiples, so that rounding errors do not accumulate.
    let first = (low / step).floor();
    let last = (high / step - 1e-9).ceil();
    (0..=((last - first) as usize).min(16)).map(|place| (first + place as f64) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_and_reach_around_the_values() {
        assert_eq!(ticks(0.0, 487.0, 1.0), [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(0.0, 3.0, 1.0), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 1.0, 1.0), [0.0, 1.0]);
        assert_eq!(ticks(-12.0, 30.0, 1.0), [-20.0, 0.0, 20.0, 40.0]);
        assert_eq!(ticks(0.0, 0.9, 0.0), [0.0, 0.5, 1.0]);
    }

    #[test]
    fn a_logarithmic_axis_shows_the_least_value_and_is_linear_below_0() {
        let values = Axis::new([0.0, 1.0, 900.0].into_iter(), Scale::Logarithmic, 1.0);
        assert_eq!(values.ticks, [1.0, 10.0, 100.0, 1_000.0]);
        assert!(
            values.share(1.0) > 0.05 && values.share(0.0) == 0.0 && values.share(1_000.0) > 0.999
        );
        let below = Axis::new([-1.0, 900.0].into_iter(), Scale::Logarithmic, 1.0);
        assert!(below.base() > 0.0 && below.scale == Scale::Linear);
    }

    proptest! {
        #[test]
        fn any_values_have_ticks(
            low in -1e18f64..0.0,
            high in 0.0f64..1e18,
            whole in any::<bool>(),
        ) {
            let ticks = ticks(low, high.max(low + 1e-6), if whole { 1.0 } else { 0.0 });
            prop_assert!(ticks.len() >= 2 && ticks.len() <= 9, "{ticks:?}");
            prop_assert!(ticks[0] <= low && ticks[ticks.len() - 1] >= high * (1.0 - 1e-6), "{ticks:?}");
        }

        #[test]
        fn every_value_has_a_place(
            values in proptest::collection::vec(-1e15f64..1e15, 0..9),
            log in any::<bool>(),
        ) {
            let scale = if log { Scale::Logarithmic } else { Scale::Linear };
            let axis = Axis::new(values.iter().copied(), scale, 1.0);
            for value in values {
                prop_assert!((0.0..=1.0).contains(&axis.share(value)));
            }
        }
    }
}
