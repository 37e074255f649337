//! Due times of batches: a Poisson process whose rate follows the shape of the traffic, by thinning
//! one of the maximum rate (Lewis and Shedler, 1979); or evenly spaced, at the same rate.

use super::Model;
use super::shape::Shape;
use crate::fast::Fast;
use crate::measure::Arrivals;
use anyhow::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Instant;

/// Keeps arrivals independent of the seeds of the other parts.
const SEED: u64 = 0xa441_7a15;

pub struct Clients {
    shape: Shape,
    clock: Fast,
    random: StdRng,
    /// Maximum batches per second, by the service's clock.
    rate_max: f64,
    even: bool,
    /// Due time of the next batch, in milliseconds of the service's clock.
    next_ms: f64,
    end_ms: f64,
}

impl Clients {
    /// Arrivals in `[from_ms, to_ms)`, by the service's clock.
    pub fn new(model: &Model, clock: Fast, from_ms: i64, to_ms: i64) -> Result<Self> {
        let shape = Shape::new(model)?;
        let rate_max = shape.max() * model.batches_per_s / clock.factor();
        let random = StdRng::seed_from_u64(model.seed ^ SEED);
        let even = model.even;
        let mut clients = Self {
            shape,
            clock,
            random,
            rate_max,
            even,
            next_ms: from_ms as f64,
            end_ms: to_ms as f64,
        };

        clients.draw();
        Ok(clients)
    }

    /// Draws the due time of the next batch.
    fn draw(&mut self) {
        if self.even {
            let rate = self.rate_max * self.shape.at(self.next_ms as i64) / self.shape.max();
            self.next_ms += 1_000.0 / rate;
            return;
        }
        while self.next_ms < self.end_ms {
            let uniform: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
            self.next_ms += -uniform.ln() / self.rate_max * 1_000.0;

            let kept = self.shape.at(self.next_ms as i64) / self.shape.max();
            if self.random.random_bool(kept.min(1.0)) {
                return;
            }
        }
    }

    /// The due times of all batches in order, by the service's clock.
    pub fn moments_ms(mut self) -> impl Iterator<Item = i64> {
        std::iter::from_fn(move || {
            let due_ms = self.next_ms;
            self.draw();
            (due_ms < self.end_ms).then_some(due_ms as i64)
        })
    }
}

impl Arrivals for Clients {
    fn next_due(&self) -> Option<Instant> {
        (self.next_ms < self.end_ms).then(|| self.clock.instant(self.next_ms as i64))
    }

    fn advance(&mut self) {
        self.draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::tests::model;

    #[test]
    fn a_seed_decides_every_moment_and_the_hour_has_its_burst() {
        let start_ms = 1_730_768_400_000;
        let clock = Fast::starting(start_ms, 60);
        let moments = || {
            Clients::new(&model(), clock, start_ms, start_ms + 6 * 3_600_000).unwrap().moments_ms()
        };
        let all: Vec<i64> = moments().collect();

        assert!(all.is_sorted() && all == moments().collect::<Vec<_>>());

        // Six hours take 360 s of the machine's time, at about 100 batches per second.
        assert!((25_000..45_000).contains(&all.len()), "{}", all.len());
        let within = |from: i64, to: i64| {
            all.iter().filter(|due_ms| (from..to).contains(&(*due_ms % 3_600_000 / 60_000))).count()
                as f64
        };
        let even = Clients::new(
            &Model { even: true, ..model() },
            clock,
            start_ms,
            start_ms + 6 * 3_600_000,
        )
        .unwrap();

        let difference = even.moments_ms().count() as f64 / all.len() as f64 - 1.0;
        assert!(difference.abs() < 0.02, "{difference}");

        let burst = within(0, 1);
        let quiet = within(30, 60) / 30.0;
        assert!((2.2..3.2).contains(&(burst / quiet)), "{burst} and {quiet}");
    }
}
