//! Configurations as text. `raingauge counters` and the portal's pages write exactly the same text,
//! and `raingauge counters apply` takes either.

use raingauge_core::counter::{Counter, State};
use raingauge_core::time::format_rfc3339;
use raingauge_policy::cache::Policy;
use serde::Serialize;

pub use serde_yaml_ng::Error;

/// All definitions by people: the counters, and the cache policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub counters: Vec<Counter>,
    pub cache_policy: Policy,
}

impl Settings {
    pub fn new(
        counters: impl IntoIterator<Item = Counter>,
        cache_policy: Policy,
        with_archived: bool,
    ) -> Self {
        let is_kept = |counter: &Counter| with_archived || counter.state != State::Archived;
        Self { counters: counters.into_iter().filter(is_kept).collect(), cache_policy }
    }

    pub fn to_yaml(&self) -> Result<String, Error> {
        serde_yaml_ng::to_string(self)
    }
}

/// One counter, below a comment that says which version it is.
pub fn counter_to_yaml(
    counter: &Counter,
    version: u64,
    changed_at_s: i64,
    by: &str,
) -> Result<String, Error> {
    let by = by.replace(char::is_control, " ");
    let changed_at = format_rfc3339(changed_at_s);
    Ok(format!(
        "# version {version}, changed {changed_at} by {by}\n{}",
        serde_yaml_ng::to_string(counter)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counter(state: &str) -> Counter {
        let json = json!({ "id": 34, "name": "no", "template": "rain:{city}", "eventType": "1e3", "state": state,
            "description": "first\n  second: \"#\"\n", "filter": { "operator": "in", "lhs": "data.a", "rhs": ["yes", 1, true] } });
        Counter::from_json(&json).expect("a counter")
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let active = counter("active");
        let all = [active.clone(), counter("archived")];
        let settings = Settings::new(all.clone(), Policy::default(), false);
        assert_eq!(settings.counters.len(), 1);
        assert_eq!(Settings::new(all, Policy::default(), true).counters.len(), 2);
        let yaml: serde_json::Value =
            serde_yaml_ng::from_str(&settings.to_yaml().unwrap()).unwrap();
        assert_eq!(Counter::from_json(&yaml["counters"][0]).unwrap(), active);
        assert_eq!(Policy::from_json(&yaml["cachePolicy"]).unwrap(), settings.cache_policy);
    }

    #[test]
    fn who_changed_a_counter_writes_no_line_of_it() {
        let yaml =
            counter_to_yaml(&counter("active"), 3, 1_727_215_200, "zoe\nowner: zoe").unwrap();
        assert!(
            yaml.starts_with(
                "# version 3, changed 2024-09-24T22:00:00Z by zoe owner: zoe\nid: 34\n"
            ),
            "{yaml}"
        );
        let read: serde_json::Value = serde_yaml_ng::from_str(&yaml).unwrap();
        assert_eq!(Counter::from_json(&read).unwrap(), counter("active"));
    }
}
