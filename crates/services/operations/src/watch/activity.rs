//! The recent activity of counters, as writers announce it, and its sum.

use raingauge_ports::activity::Recent;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};

/// Longest activity in one announcement, as JSON: a hundred counters that are always busy, or
/// thousands that hardly are.
pub const ACTIVITY_BYTES_MAX: usize = 64 * 1024;

/// The activity of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RecentActivity {
    counters: BTreeMap<u32, Recent>,
    /// Some counters were left out, those that counted least.
    is_cut: bool,
}

impl RecentActivity {
    /// As JSON of at most [`ACTIVITY_BYTES_MAX`]; the counters that counted most come first.
    pub fn to_json(&self, now_s: i64) -> Json {
        let events = |recent: &Recent| recent.day_up_to(now_s).iter().sum::<u64>();
        let mut busiest: Vec<(u64, &u32, &Recent)> =
            self.counters.iter().map(|(id, recent)| (events(recent), id, recent)).collect();
        busiest.sort_unstable_by_key(|(events, id, _)| (std::cmp::Reverse(*events), **id));

        let mut told = Self { is_cut: self.is_cut, ..Self::default() };
        let mut left = ACTIVITY_BYTES_MAX - json_len(&Self { is_cut: true, ..Self::default() });
        for (_, id, recent) in busiest {
            // A quote on each side of the id, a colon, a comma.
            let len = json_len(id) + json_len(recent) + 4;
            if len > left {
                told.is_cut = true;
                continue;
            }

            left -= len;
            told.counters.insert(*id, recent.clone());
        }

        serde_json::to_value(told).unwrap_or_default()
    }

    /// The activity that another process announced; empty when it cannot be read.
    pub fn from_json(json: &Json) -> Self {
        serde_json::from_value(json.clone()).unwrap_or_default()
    }

    pub fn join(&mut self, other: &Self) {
        for (counter, recent) in &other.counters {
            self.counters.entry(*counter).or_default().join(recent);
        }
        self.is_cut |= other.is_cut;
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// The activity of a counter; `None` when it is unknown, and empty when the counter did
    /// nothing.
    pub fn of(&self, counter: u32) -> Option<Recent> {
        let is_known = !self.is_empty() && !self.is_cut;
        self.counters.get(&counter).cloned().or_else(|| is_known.then(Recent::default))
    }
}

impl From<HashMap<u32, Recent>> for RecentActivity {
    fn from(counters: HashMap<u32, Recent>) -> Self {
        Self { counters: counters.into_iter().collect(), is_cut: false }
    }
}

fn json_len<T: Serialize>(value: &T) -> usize {
    serde_json::to_string(value).map_or(ACTIVITY_BYTES_MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::bucket::QUARTER_S;
    use raingauge_ports::activity::{Activity, QUARTERS};

    const NOW_S: i64 = 2_000_000 * QUARTER_S;

    /// Counters that counted in every quarter hour of the day, the later ones more.
    fn busy(counters: u32) -> RecentActivity {
        let activity = Activity::default();
        for (counter, quarter) in
            (1..=counters).flat_map(|counter| (0..QUARTERS as i64).map(move |back| (counter, back)))
        {
            activity.counted(counter, NOW_S - quarter * QUARTER_S, 1_000 + u64::from(counter));
        }
        activity.skipped(1, "filtered", 7);
        activity.all().into()
    }

    #[test]
    fn reports_come_back_and_add_up() {
        let one = busy(2);
        let mut sum = RecentActivity::from_json(&one.to_json(NOW_S));
        assert_eq!(sum, one);
        sum.join(&one);

        let recent = sum.of(1).expect("it is known");
        assert_eq!((recent.counted[0], recent.skipped["filtered"]), (2_002, 14));
        assert_eq!(sum.of(9), Some(Recent::default()));
        assert_eq!(RecentActivity::default().of(9), None);

        for odd in ["null", "3", r#"{"counters":{"x":{}}}"#, r#"{"counters":{"1":{"newest":-1}}}"#]
        {
            assert!(
                RecentActivity::from_json(&serde_json::from_str(odd).unwrap()).is_empty(),
                "{odd}"
            );
        }
    }

    /// The busiest counters fit, and the others are unknown rather than idle.
    #[test]
    fn an_announcement_of_activity_is_bounded() {
        let told = busy(1_000).to_json(NOW_S);
        let len = told.to_string().len();
        assert!((ACTIVITY_BYTES_MAX * 9 / 10..=ACTIVITY_BYTES_MAX).contains(&len), "{len}");
        let told = RecentActivity::from_json(&told);
        assert!(told.of(1_000).is_some() && told.counters.len() > 100, "{}", told.counters.len());
        assert_eq!((told.of(1), told.of(4_000)), (None, None));
    }
}
