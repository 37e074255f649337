//! Members, drawn evenly or by Zipf's law.

use rand::Rng;
use rand::rngs::StdRng;

/// Draws members by the inverse of the continuous law, which is close to Zipf's for many members
/// and takes no table.
#[derive(Debug, Clone)]
pub struct Members {
    count: u64,
    skew: f64,
}

impl Members {
    pub fn new(count: u64, skew: f64) -> Self {
        Self { count, skew }
    }

    /// The number of a member; with a skew, low numbers are drawn most.
    pub fn draw(&self, random: &mut StdRng) -> u64 {
        if self.skew == 0.0 {
            return random.random_range(0..self.count);
        }
        let share: f64 = random.random();
        let last = self.count as f64 + 1.0;
        // The density at x is that of 1/x^s between 1 and the number of members.
        let rank = if (self.skew - 1.0).abs() < 1e-9 {
            last.powf(share)
        } else {
            let power = 1.0 - self.skew;
            (1.0 + share * (last.powf(power) - 1.0)).powf(1.0 / power)
        };
        (rank as u64 - 1).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn members_are_drawn_evenly_or_by_the_law() {
        let mut random = StdRng::seed_from_u64(1);
        for (skew, low, high) in [(0.0, 5, 20), (1.0, 400, 600), (0.8, 200, 500), (2.0, 850, 1_000)]
        {
            let members = Members::new(10_000, skew);
            let drawn: Vec<u64> = (0..1_000).map(|_| members.draw(&mut random)).collect();
            assert!(drawn.iter().all(|member| *member < 10_000));
            let first = drawn.iter().filter(|member| **member < 100).count();
            assert!((low..=high).contains(&first), "{first} of the first hundred at skew {skew}");
        }
    }
}
