//! The questions for every system: ranges of a day, a week, a month and a quarter of a year,
//! batches of ten, and a series. Each question comes with its correct answer.

use crate::plan::{self, DAY_S};
use crate::workload::{Popularity, Range, RangeQuery, Workload};
use anyhow::{Result, bail, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

/// Number of distinct questions of each kind, which are asked repeatedly.
const QUESTIONS: usize = 1_024;
/// Length of a series, in whole days.
const SERIES_DAYS: i64 = 30;

raingauge_core::names! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        Day = "1 day",
        Week = "7 days",
        Month = "30 days",
        Quarter = "90 days",
        Batch = "batch of ten",
        Series = "series of 30 days",
    }
}

impl Kind {
    fn days(self) -> i64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
            Self::Quarter | Self::Batch => 90,
            Self::Series => SERIES_DAYS,
        }
    }
}

/// One count per day of `[from_s, to_s)`, both at midnight UTC.
#[derive(Debug, Clone, Copy)]
pub struct Days {
    pub city: u32,
    pub from_s: i64,
    pub to_s: i64,
}

impl Days {
    pub fn starts(&self) -> impl Iterator<Item = i64> + use<> {
        (self.from_s..self.to_s).step_by(DAY_S as usize)
    }

    /// Fills in the days without events: returns the counts of all days in order.
    pub fn filled(&self, found: impl IntoIterator<Item = (i64, i64)>) -> Result<Vec<i64>> {
        let mut counts = vec![0; ((self.to_s - self.from_s) / DAY_S) as usize];
        for (time_s, count) in found {
            let place = usize::try_from((time_s - self.from_s).div_euclid(DAY_S)).ok();
            let place =
                place.filter(|&place| place < counts.len() && time_s.rem_euclid(DAY_S) == 0);
            ensure!(place.is_some(), "an unexpected day: {time_s}");
            counts[place.unwrap_or_default()] += count;
        }
        Ok(counts)
    }
}

#[derive(Debug, Clone)]
pub enum Question {
    Counts(Vec<Range>),
    Series(Days, Vec<i64>),
}

impl Question {
    /// The correct answer: a count per range, or per day.
    pub fn expected(&self) -> Vec<i64> {
        match self {
            Self::Counts(ranges) => ranges.iter().map(|range| range.expected).collect(),
            Self::Series(_, expected) => expected.clone(),
        }
    }

    /// Converts rows of numbers into an answer: one row with all counts, or rows of a day and its
    /// count.
    pub fn answer_of_rows(&self, mut rows: Vec<Vec<i64>>) -> Result<Vec<i64>> {
        match self {
            Self::Counts(ranges) => {
                let fits = rows.len() == 1 && rows[0].len() == ranges.len();
                ensure!(fits, "{} ranges, but the answer is {rows:?}", ranges.len());
                Ok(rows.swap_remove(0))
            }
            Self::Series(days, _) => {
                let pair = |row: &Vec<i64>| match row[..] {
                    [day_s, count] => Ok((day_s, count)),
                    _ => bail!("not a day and a count: {row:?}"),
                };
                days.filled(rows.iter().map(pair).collect::<Result<Vec<_>>>()?)
            }
        }
    }

    /// The number of units in an answer: ranges, or one series.
    pub fn units(&self) -> u64 {
        match self {
            Self::Counts(ranges) => ranges.len() as u64,
            Self::Series(..) => 1,
        }
    }
}

/// The questions of a kind, identical for every system.
pub fn questions(workload: &Workload, kind: Kind) -> Vec<Question> {
    if kind == Kind::Batch {
        return workload
            .batches
            .iter()
            .take(QUESTIONS)
            .map(|batch| Question::Counts(batch.clone()))
            .collect();
    }

    let mut random = StdRng::seed_from_u64(workload.settings.seed ^ kind.days() as u64);
    let popularity = Popularity::new(workload.settings.keys);
    (0..QUESTIONS)
        .map(|_| {
            let (city, to_s) = workload.pick(&popularity, &mut random);
            match kind {
                Kind::Series => series(workload, city, plan::floor(to_s, DAY_S)),
                _ => {
                    let from_s = to_s - kind.days() * DAY_S;
                    Question::Counts(vec![workload.range_of(RangeQuery { city, from_s, to_s })])
                }
            }
        })
        .collect()
}

fn series(workload: &Workload, city: u32, to_s: i64) -> Question {
    let days = Days { city, from_s: to_s - SERIES_DAYS * DAY_S, to_s };
    let expected =
        days.starts().map(|time_s| workload.count(city, time_s, time_s + DAY_S)).collect();
    Question::Series(days, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Settings;

    #[test]
    fn every_kind_has_its_length_and_lies_within_the_history() {
        let workload = Workload::new(Settings { keys: 30, history: 5_000, seed: 4 }, 1_795_000_123);
        for kind in Kind::ALL {
            let questions = questions(&workload, kind);
            assert_eq!(questions.len(), QUESTIONS);
            assert!(
                questions.iter().any(|question| question.expected().iter().sum::<i64>() > 0),
                "{kind:?}"
            );

            for question in &questions {
                match question {
                    Question::Counts(ranges) => {
                        assert_eq!(ranges.len() == 10, kind == Kind::Batch);
                        assert!(
                            ranges.iter().all(|range| range.asked.from_s >= workload.start_s())
                        );

                        let length_s = ranges[0].asked.to_s - ranges[0].asked.from_s;
                        assert!(kind == Kind::Batch || length_s == kind.days() * DAY_S);
                    }
                    Question::Series(days, expected) => {
                        assert_eq!(expected.len(), 30);
                        assert_eq!(days.to_s % DAY_S, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_another_shape_are_no_answer() {
        let workload = Workload::new(Settings { keys: 5, history: 100, seed: 4 }, 1_795_000_123);
        let one = &questions(&workload, Kind::Day)[0];
        assert_eq!(one.answer_of_rows(vec![vec![3]]).unwrap(), [3]);
        assert!(one.answer_of_rows(vec![]).is_err());
        assert!(one.answer_of_rows(vec![vec![3, 4]]).is_err());
        let Question::Series(days, _) = questions(&workload, Kind::Series)[0].clone() else {
            panic!("no series")
        };
        let series = Question::Series(days, Vec::new());
        assert_eq!(series.answer_of_rows(vec![vec![days.from_s, 6]]).unwrap()[..2], [6, 0]);
        assert!(series.answer_of_rows(vec![vec![6]]).is_err());
    }

    #[test]
    fn days_without_a_count_are_zero_and_others_are_refused() {
        let days = Days { city: 1, from_s: 10 * DAY_S, to_s: 13 * DAY_S };
        assert_eq!(days.filled([(11 * DAY_S, 5), (12 * DAY_S, 7)]).unwrap(), [0, 5, 7]);
        assert!(days.filled([(13 * DAY_S, 5)]).is_err());
        assert!(days.filled([(9 * DAY_S, 5)]).is_err());
        assert!(days.filled([(11 * DAY_S + 900, 5)]).is_err());
    }
}
