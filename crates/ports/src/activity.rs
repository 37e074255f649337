//! Recent activity of counters, counted and not counted, as seen by the writers of this process.
//!
//! It is for people who watch, not for totals: it is in memory, goes by the time at which events
//! arrived, and starts empty with the process. Counts are in the bucket store.

use parking_lot::Mutex;
use raingauge_core::bucket::{Granularity, QUARTER_S};
use raingauge_core::time::is_countable_s;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Quarter hours kept per counter: a day.
pub const QUARTERS: usize = 96;

/// Recent activity of one counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SerializedRecent", into = "SerializedRecent")]
pub struct Recent {
    /// The quarter hour since 1970 of the last element of `counted`.
    pub newest: i64,
    /// Events counted in each quarter hour, by arrival, oldest first.
    pub counted: Vec<u64>,
    /// Events not counted since the process began, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Events that arrived after the buckets of a granularity had expired, since the process began.
    pub late: BTreeMap<String, u64>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            newest: 0,
            counted: vec![0; QUARTERS],
            skipped: BTreeMap::new(),
            late: BTreeMap::new(),
        }
    }
}

/// The serialized form for other processes: the quarter hours from the first one with a counted
/// event.
#[derive(Serialize, Deserialize)]
struct SerializedRecent {
    #[serde(default, skip_serializing_if = "is_zero")]
    newest: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counted: Vec<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    skipped: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    late: BTreeMap<String, u64>,
}

const fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl From<Recent> for SerializedRecent {
    fn from(recent: Recent) -> Self {
        let Recent { newest, counted, skipped, late } = recent;
        let counted = counted.into_iter().skip_while(|events| *events == 0).collect();
        Self { newest, counted, skipped, late }
    }
}

/// The input comes from another process, perhaps of another version.
impl TryFrom<SerializedRecent> for Recent {
    type Error = &'static str;

    fn try_from(told: SerializedRecent) -> Result<Self, Self::Error> {
        let SerializedRecent { newest, counted, skipped, late } = told;
        if counted.len() > QUARTERS || !newest.checked_mul(QUARTER_S).is_some_and(is_countable_s) {
            return Err("is no day of quarter hours");
        }
        let silent = std::iter::repeat_n(0, QUARTERS - counted.len());
        Ok(Self { newest, counted: silent.chain(counted).collect(), skipped, late })
    }
}

impl Recent {
    /// Advances to a quarter hour and drops those that lie too far back.
    fn advance(&mut self, quarter: i64) {
        let steps = usize::try_from(quarter - self.newest).unwrap_or(0).min(QUARTERS);
        self.counted.rotate_left(steps);
        self.counted[QUARTERS - steps..].fill(0);
        self.newest = self.newest.max(quarter);
    }

    fn add(&mut self, quarter: i64, events: u64) {
        self.advance(quarter);
        // Older ones belong to a log that is read again.
        if let Ok(back) = usize::try_from(self.newest - quarter)
            && let Some(place) = (QUARTERS - 1).checked_sub(back)
        {
            self.counted[place] = self.counted[place].saturating_add(events);
        }
    }

    /// Adds the activity that another process saw for the same counter.
    pub fn join(&mut self, other: &Self) {
        self.advance(other.newest);
        for (back, events) in
            other.counted.iter().rev().enumerate().filter(|(_, events)| **events > 0)
        {
            self.add(other.newest - back as i64, *events);
        }
        for (own, told) in [(&mut self.skipped, &other.skipped), (&mut self.late, &other.late)] {
            for (why, events) in told {
                let sum = own.entry(why.clone()).or_default();
                *sum = sum.saturating_add(*events);
            }
        }
    }

    /// The day up to `now_s`, one element per quarter hour, oldest first.
    pub fn day_up_to(&self, now_s: i64) -> Vec<u64> {
        let mut moved = self.clone();
        moved.advance(now_s.div_euclid(QUARTER_S));
        moved.counted
    }
}

/// Recent activity of all counters.
#[derive(Default)]
pub struct Activity {
    by_counter: Mutex<HashMap<u32, Recent>>,
}

impl Activity {
    /// Adds counted events of a counter, by arrival time.
    pub fn counted(&self, counter: u32, arrived_s: i64, events: u64) {
        self.by_counter
            .lock()
            .entry(counter)
            .or_default()
            .add(arrived_s.div_euclid(QUARTER_S), events);
    }

    /// Adds events that a counter did not count, for this reason.
    pub fn skipped(&self, counter: u32, reason: &str, events: u64) {
        *self
            .by_counter
            .lock()
            .entry(counter)
            .or_default()
            .skipped
            .entry(reason.to_owned())
            .or_default() += events;
    }

    /// Adds events that arrived after buckets of this granularity had expired.
    pub fn late(&self, counter: u32, granularity: Granularity, events: u64) {
        let name = granularity.name().to_owned();
        *self.by_counter.lock().entry(counter).or_default().late.entry(name).or_default() += events;
    }

    pub fn of(&self, counter: u32) -> Option<Recent> {
        self.by_counter.lock().get(&counter).cloned()
    }

    /// Returns the activity of all counters, to show or announce it.
    pub fn all(&self) -> HashMap<u32, Recent> {
        self.by_counter.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_is_remembered() {
        let activity = Activity::default();
        let now_s = 1_000 * QUARTER_S;
        for (back, events) in [(95, 1), (96, 2), (0, 3), (1, 4)] {
            activity.counted(7, now_s - back * QUARTER_S, events);
        }
        let recent = activity.of(7).unwrap();
        let day = recent.day_up_to(now_s);
        assert_eq!((day[0], day[94], day[95], day.iter().sum::<u64>()), (1, 4, 3, 8));
        assert_eq!(recent.day_up_to(now_s + QUARTER_S)[93..], [4, 3, 0]);
        assert_eq!(recent.day_up_to(now_s + 96 * QUARTER_S).iter().sum::<u64>(), 0);
        assert_eq!(activity.of(8), None);
    }

    #[test]
    fn uncounted_events_are_reported_by_reason() {
        let activity = Activity::default();
        activity.skipped(7, "filtered", 2);
        activity.skipped(7, "filtered", 1);
        activity.late(7, Granularity::Quarter, 5);
        let mut recent = activity.of(7).unwrap();
        recent.join(&activity.of(7).unwrap());
        assert_eq!(recent.skipped, BTreeMap::from([("filtered".to_owned(), 6)]));
        assert_eq!(recent.late, BTreeMap::from([("quarter".to_owned(), 10)]));
    }

    #[test]
    fn the_encoding_is_short_and_comes_back_whole() {
        let activity = Activity::default();
        let now_s = 1_000 * QUARTER_S;
        activity.counted(7, now_s - 2 * QUARTER_S, 5);
        activity.counted(7, now_s, 1);
        activity.skipped(7, "filtered", 2);

        let recent = activity.of(7).unwrap();
        let told = serde_json::to_string(&recent).unwrap();
        assert_eq!(told, r#"{"newest":1000,"counted":[5,0,1],"skipped":{"filtered":2}}"#);
        assert_eq!(serde_json::from_str::<Recent>(&told).unwrap(), recent);
        assert_eq!(serde_json::from_str::<Recent>("{}").unwrap(), Recent::default());

        let long = format!("{{\"counted\":{:?}}}", [1; QUARTERS + 1]);
        for odd in
            [&*long, r#"{"newest":-1}"#, r#"{"newest":9223372036854775807}"#, r#"{"counted":[-1]}"#]
        {
            assert!(serde_json::from_str::<Recent>(odd).is_err(), "{odd}");
        }
    }

    proptest! {
        /// The sums of the last day do not depend on the order in which quarter hours arrive, nor
        /// on the number of processes.
        #[test]
        fn the_order_does_not_matter(
            events in proptest::collection::vec((1_000i64..1_090, 1u64..9, any::<bool>()), 1..40),
        ) {
            let mut whole = Recent::default();
            let mut one = Recent::default();
            let mut other = Recent::default();
            for (quarter, count, is_one) in &events {
                whole.add(*quarter, *count);
                if *is_one { one.add(*quarter, *count) } else { other.add(*quarter, *count) }
            }
            one.join(&other);
            prop_assert_eq!(one.day_up_to(1_090 * QUARTER_S), whole.day_up_to(1_090 * QUARTER_S));
            prop_assert_eq!(
                whole.counted.iter().sum::<u64>(),
                events.iter().map(|(_, count, _)| count).sum::<u64>()
            );
        }
    }
}
