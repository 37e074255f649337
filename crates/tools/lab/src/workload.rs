//! The stored data and the questions, derived from a seed: the same keys, history and ranges for
//! every system under test, with the correct answers, so that a fast wrong answer is noticed.

use crate::plan::{self, DAY_S, Granularity, HOUR_S, QUARTER_S, Slice};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Ranges in one batch: a typical size for services that we know.
pub const BATCH_RANGES: usize = 10;
/// Number of distinct batches to cycle through while measuring.
pub const BATCHES: usize = 4_096;
/// One day more than the longest range, so that every range lies inside the history.
const HISTORY_DAYS: i64 = 91;
const RANGE_DAYS_MAX: i64 = 90;
/// Maximum distance of a range's end from the end of the history.
const RANGE_END_SPREAD_S: i64 = 6 * HOUR_S;

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Settings {
    /// Number of different keys; their popularity falls as 1/rank
    #[arg(long, default_value_t = 10_000)]
    pub keys: u32,
    /// Number of single drops in the 91 days of history behind the ranges
    #[arg(long, default_value_t = 2_000_000)]
    pub history: u64,
    /// Seed of keys, history and ranges
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Draws a rank with a probability proportional to 1/(rank + 1), or to a power of that.
pub struct Popularity {
    cumulative: Vec<f64>,
}

impl Popularity {
    pub fn new(keys: u32) -> Self {
        Self::by_zipf(keys, 1.0)
    }

    pub fn by_zipf(keys: u32, exponent: f64) -> Self {
        let mut total = 0.0;
        let cumulative = (1..=keys.max(1))
            .map(|rank| {
                total += f64::from(rank).powf(-exponent);
                total
            })
            .collect();
        Self { cumulative }
    }

    pub fn pick(&self, random: &mut impl Rng) -> u32 {
        let total = self.cumulative[self.cumulative.len() - 1];
        let point = random.random_range(0.0..total);
        self.cumulative.partition_point(|&edge| edge <= point) as u32
    }
}

pub fn city_name(city: u32) -> String {
    format!("c{city:05}")
}

/// The key of a city under the lab's counter.
pub fn key_of(city: u32) -> String {
    format!("lab:city:{}", city_name(city))
}

/// One pre-aggregated count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub city: u32,
    pub granularity: Granularity,
    pub time_s: i64,
    pub count: i64,
}

/// One question: a range of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeQuery {
    pub city: u32,
    pub from_s: i64,
    pub to_s: i64,
}

#[derive(Debug, Clone)]
pub struct Range {
    pub asked: RangeQuery,
    /// The correct answer, computed from the quarter hours alone.
    pub expected: i64,
    pub slices: Vec<Slice>,
}

impl Range {
    /// The range that is counted, aligned to quarter hours.
    pub fn floored(&self) -> (i64, i64) {
        (plan::floor(self.asked.from_s, QUARTER_S), plan::floor(self.asked.to_s, QUARTER_S))
    }
}

pub struct Workload {
    pub settings: Settings,
    /// The end of the history: a recent quarter-hour boundary.
    pub end_s: i64,
    /// The non-empty quarter hours of each city, oldest first.
    quarters: Vec<Vec<(i64, i64)>>,
    pub batches: Vec<Vec<Range>>,
}

impl Workload {
    /// `now_s` is the present; the history ends a quarter hour before the latest boundary.
    pub fn new(settings: Settings, now_s: i64) -> Self {
        let end_s = plan::floor(now_s, QUARTER_S) - QUARTER_S;
        let mut random = StdRng::seed_from_u64(settings.seed);
        let popularity = Popularity::new(settings.keys);
        let quarters = history(settings, end_s, &popularity, &mut random);
        let mut workload = Self { settings, end_s, quarters, batches: Vec::new() };
        workload.batches = (0..BATCHES)
            .map(|_| (0..BATCH_RANGES).map(|_| workload.range(&popularity, &mut random)).collect())
            .collect();
        workload
    }

    pub fn start_s(&self) -> i64 {
        self.end_s - HISTORY_DAYS * DAY_S
    }

    fn range(&self, popularity: &Popularity, random: &mut impl Rng) -> Range {
        let (city, to_s) = self.pick(popularity, random);
        let from_s = to_s - random.random_range(QUARTER_S..=RANGE_DAYS_MAX * DAY_S);
        self.range_of(RangeQuery { city, from_s, to_s })
    }

    /// Adds the correct answer to a question.
    pub fn range_of(&self, asked: RangeQuery) -> Range {
        let expected = self.count(asked.city, asked.from_s, asked.to_s);
        Range { asked, expected, slices: plan::slices(asked.from_s, asked.to_s) }
    }

    /// Draws a city, popular ones more often, and an end of a range within the last hours of the
    /// history.
    pub fn pick(&self, popularity: &Popularity, random: &mut impl Rng) -> (u32, i64) {
        (popularity.pick(random), self.end_s - random.random_range(0..RANGE_END_SPREAD_S))
    }

    /// Every drop of the history as city and time, ordered by city, then time: the drops that the
    /// buckets add up.
    pub fn drops(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.quarters.iter().enumerate().flat_map(|(city, quarters)| {
            let within = |&(time_s, count): &(i64, i64)| {
                (0..count).map(move |place| time_s + place % QUARTER_S)
            };
            quarters.iter().flat_map(within).map(move |time_s| (city as u32, time_s))
        })
    }

    /// The naive answer: the sum over the quarter hours of the history.
    pub fn count(&self, city: u32, from_s: i64, to_s: i64) -> i64 {
        let (from_s, to_s) = (plan::floor(from_s, QUARTER_S), plan::floor(to_s, QUARTER_S));
        let quarters = &self.quarters[city as usize];
        let first = quarters.partition_point(|&(time_s, _)| time_s < from_s);
        quarters[first..]
            .iter()
            .take_while(|&&(time_s, _)| time_s < to_s)
            .map(|&(_, count)| count)
            .sum()
    }

    /// Every bucket of the history, ordered by city, then granularity, then time.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.quarters.iter().enumerate().flat_map(|(city, quarters)| {
            Granularity::ALL.into_iter().flat_map(move |granularity| {
                quarters
                    .chunk_by(move |left, right| {
                        bucket_of(left.0, granularity) == bucket_of(right.0, granularity)
                    })
                    .map(move |chunk| Bucket {
                        city: city as u32,
                        granularity,
                        time_s: bucket_of(chunk[0].0, granularity),
                        count: chunk.iter().map(|&(_, count)| count).sum(),
                    })
            })
        })
    }
}

fn bucket_of(time_s: i64, granularity: Granularity) -> i64 {
    plan::floor(time_s, granularity.width_s())
}

fn history(
    settings: Settings,
    end_s: i64,
    popularity: &Popularity,
    random: &mut StdRng,
) -> Vec<Vec<(i64, i64)>> {
    let mut times: Vec<Vec<i64>> = vec![Vec::new(); settings.keys.max(1) as usize];
    for _ in 0..settings.history {
        let time_s = end_s - random.random_range(1..=HISTORY_DAYS * DAY_S);
        times[popularity.pick(random) as usize].push(plan::floor(time_s, QUARTER_S));
    }

    times
        .into_iter()
        .map(|mut times| {
            times.sort_unstable();
            times
                .chunk_by(|left, right| left == right)
                .map(|chunk| (chunk[0], chunk.len() as i64))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Workload {
        Workload::new(Settings { keys: 50, history: 20_000, seed: 3 }, 1_795_000_123)
    }

    #[test]
    fn every_granularity_of_the_history_holds_every_drop() {
        let workload = small();
        for granularity in Granularity::ALL {
            let total: i64 = workload
                .buckets()
                .filter(|bucket| bucket.granularity == granularity)
                .map(|bucket| bucket.count)
                .sum();
            assert_eq!(total, 20_000);
        }
    }

    #[test]
    fn the_drops_of_the_history_add_up_to_its_quarter_hours() {
        let workload = small();
        let mut counted = std::collections::HashMap::<(u32, i64), i64>::new();
        for (city, time_s) in workload.drops() {
            *counted.entry((city, plan::floor(time_s, QUARTER_S))).or_default() += 1;
        }
        let quarters =
            workload.buckets().filter(|bucket| bucket.granularity == Granularity::Quarter);
        let stored = quarters.map(|bucket| ((bucket.city, bucket.time_s), bucket.count)).collect();
        assert_eq!(counted, stored);
    }

    #[test]
    fn the_buckets_of_a_range_add_up_to_its_expected_answer() {
        let workload = small();
        let stored: std::collections::HashMap<_, _> = workload
            .buckets()
            .map(|bucket| ((bucket.city, bucket.granularity, bucket.time_s), bucket.count))
            .collect();

        for range in workload.batches.iter().take(200).flatten() {
            let sum: i64 = range
                .slices
                .iter()
                .flat_map(|slice| {
                    slice.buckets().map(|time_s| (range.asked.city, slice.granularity, time_s))
                })
                .filter_map(|cell| stored.get(&cell))
                .sum();
            assert_eq!(sum, range.expected);
        }
    }

    #[test]
    fn the_first_key_is_the_most_popular_and_all_are_in_bounds() {
        let popularity = Popularity::new(100);
        let mut random = StdRng::seed_from_u64(1);
        let mut picked = vec![0; 100];
        for _ in 0..20_000 {
            picked[popularity.pick(&mut random) as usize] += 1;
        }
        assert!(picked[0] > picked[1] && picked[1] > picked[9] && picked[9] > picked[99]);
    }
}
