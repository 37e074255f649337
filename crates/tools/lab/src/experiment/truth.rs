//! The correct value of every count, and how far an answer may lag behind recent events, in the
//! service's time.

use super::asking::SampledCount;
use super::record::TruthCheck;
use crate::plan::{QUARTER_S, floor};

/// The events of each key, by its rank: the quarter hour, and when the event was sent.
pub struct Truth {
    happened: Vec<Vec<(i64, i64)>>,
}

impl Truth {
    /// Takes events as (rank, time in seconds, time of sending in milliseconds), in any order.
    pub fn new(keys: u32, events: impl IntoIterator<Item = (u32, i64, i64)>) -> Self {
        let mut happened = vec![Vec::new(); keys as usize];
        for (rank, time_s, sent_ms) in events {
            happened[rank as usize].push((floor(time_s, QUARTER_S), sent_ms));
        }
        happened.iter_mut().for_each(|events: &mut Vec<(i64, i64)>| events.sort_unstable());
        Self { happened }
    }

    fn within(&self, rank: u32, from_s: i64, to_s: i64) -> &[(i64, i64)] {
        let events = &self.happened[rank as usize];
        let place = |time_s: i64| events.partition_point(|(quarter_s, _)| *quarter_s < time_s);
        &events[place(from_s)..place(to_s).max(place(from_s))]
    }

    pub fn count(&self, rank: u32, from_s: i64, to_s: i64) -> i64 {
        self.within(rank, from_s, to_s).len() as i64
    }

    /// The delay of an answer: the age of the oldest event that it lacks, provided that it lacks
    /// only the newest ones. `None` if it is complete; the delay of an answer that counts too much,
    /// or lacks history, is infinite.
    fn late_ms(&self, kept: &SampledCount) -> Option<i64> {
        let events = self.within(kept.asked.rank, kept.from_s, kept.to_s);
        let missing = events.len() as i64 - kept.count;
        if missing == 0 {
            return None;
        }
        let mut sent: Vec<i64> = events.iter().map(|(_, sent_ms)| *sent_ms).collect();
        sent.sort_unstable_by(|left, right| right.cmp(left));
        let oldest = usize::try_from(missing).ok().and_then(|missing| sent.get(missing - 1));
        Some(oldest.map_or(i64::MAX, |sent_ms| kept.at_ms.saturating_sub(*sent_ms)))
    }

    /// Compares answers with the truth. An answer may lag by at most `allowed_ms` of the service's
    /// time.
    pub fn check(&self, answers: &[SampledCount], allowed_ms: i64) -> TruthCheck {
        let mut checked = TruthCheck { compared: answers.len() as u64, ..TruthCheck::default() };
        for kept in answers {
            let asked_to_s = floor(kept.asked.to_s, QUARTER_S);
            checked.early += u64::from(kept.to_s < asked_to_s);

            match self.late_ms(kept) {
                None => {}
                Some(late_ms) if late_ms > allowed_ms => checked.wrong += 1,
                Some(late_ms) => {
                    checked.late += 1;
                    checked.late_max_ms = checked.late_max_ms.max(late_ms);
                }
            }
        }

        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::questions::RangeQuery;

    #[test]
    fn an_answer_may_lack_the_newest_events_for_a_while_and_no_others() {
        let truth = Truth::new(
            3,
            [(1, 900, i64::MIN), (1, 1_000, 5_000), (1, 1_799, 7_000), (1, 1_800, 8_000)],
        );
        assert_eq!((truth.within(1, 900, 1_800).len(), truth.within(1, 0, 900).len()), (3, 0));

        let kept = |count, at_ms| {
            let asked = RangeQuery { rank: 1, from_s: 900, to_s: 1_850 };
            [SampledCount { asked, from_s: 900, to_s: 1_800, count, at_ms }]
        };
        let check = |count, at_ms| {
            let checked = truth.check(&kept(count, at_ms), 2_000);
            (checked.wrong, checked.late, checked.late_max_ms)
        };
        assert_eq!(check(3, 9_000), (0, 0, 0));
        assert_eq!(check(2, 8_500), (0, 1, 1_500));
        assert_eq!(check(2, 9_500), (1, 0, 0), "it has been known for too long");
        assert_eq!(check(0, 8_500), (1, 0, 0), "history is never late");
        assert_eq!(check(4, 8_500), (1, 0, 0), "nothing is counted twice");

        let early = [SampledCount { to_s: 900, count: 0, ..kept(0, 0)[0] }];
        assert_eq!(truth.check(&early, 0).early, 1);
    }
}
