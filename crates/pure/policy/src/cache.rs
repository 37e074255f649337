//! The cache policy: which counters are answered through which cache.
//!
//! The choice is arithmetic on the id of the counter, so that every instance treats a counter the
//! same way: with `id % 100 < 95`, a counter is on one side for all requests.

use raingauge_core::counter::Problem;
use raingauge_core::limits::{INSTANCE_LEN_MAX, POLICY_OVERRIDES_MAX, POLICY_STEPS_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;

raingauge_core::names! {
    /// How the counts of a counter are cached.
    #[derive(Default, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Strategy {
        /// Every count is read from the bucket store.
        None = "none",
        /// The sum of a key over a floored range is kept for some minutes.
        Result = "result",
        /// As `result`, but each key moves on to the next quarter hour at a moment of its own.
        Phased = "phased",
        /// Tiles of active keys are kept in memory and follow the writer's stream of changes.
        #[default]
        Live = "live",
    }
}

/// One step of a rollout: the counters with `id % modulo < below` are answered by `strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub strategy: Strategy,
    pub modulo: u32,
    pub below: u32,
}

/// A strategy, and the exceptions from it: the first step that includes a counter decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub strategy: Strategy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollout: Vec<Step>,
}

impl Choice {
    pub fn strategy_of(&self, counter: u32) -> Strategy {
        let step = self.rollout.iter().find(|step| counter % step.modulo < step.below);
        step.map_or(self.strategy, |step| step.strategy)
    }

    fn check(&self, at: &str, problems: &mut Vec<Problem>) {
        if self.rollout.len() > POLICY_STEPS_MAX {
            let detail = format!(
                "has {} steps, and {POLICY_STEPS_MAX} are the most there may be",
                self.rollout.len()
            );
            problems.push(Problem::new(format!("{at}rollout"), detail));
        }
        for (index, step) in self.rollout.iter().enumerate() {
            if step.modulo == 0 || step.below > step.modulo {
                let detail = "needs a modulo of at least 1 and a below of at most the modulo: a counter is chosen when \
                              its id % modulo < below";
                problems.push(Problem::new(format!("{at}rollout[{index}]"), detail));
            }
        }
    }
}

/// `live where id % 100 < 25; otherwise result`
impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { strategy, modulo, below } in &self.rollout {
            write!(out, "{} where id % {modulo} < {below}; ", strategy.name())?;
        }
        write!(
            out,
            "{}{}",
            if self.rollout.is_empty() { "" } else { "otherwise " },
            self.strategy.name()
        )
    }
}

/// The cache policy of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(flatten)]
    pub choice: Choice,
    /// Exceptions for single instances, by name: a canary tries a change before the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, Choice>,
}

impl Policy {
    /// Reads a policy from outside, or returns all its problems.
    pub fn from_json(json: &Json) -> Result<Self, Vec<Problem>> {
        let policy: Self = serde_json::from_value(json.clone())
            .map_err(|error| vec![Problem::new("policy", format!("cannot be read: {error}"))])?;
        let mut problems = Vec::new();
        policy.choice.check("", &mut problems);

        if policy.overrides.len() > POLICY_OVERRIDES_MAX {
            let detail = format!("names more than {POLICY_OVERRIDES_MAX} instances");
            problems.push(Problem::new("overrides", detail));
        }

        for (instance, choice) in &policy.overrides {
            if instance.is_empty() || instance.len() > INSTANCE_LEN_MAX {
                let detail = format!("the name of an instance has 1 to {INSTANCE_LEN_MAX} bytes");
                problems.push(Problem::new("overrides", detail));
            }
            choice.check(&format!("overrides.{instance}."), &mut problems);
        }

        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// The choice of an instance.
    pub fn choice_of(&self, instance: &str) -> &Choice {
        self.overrides.get(instance).unwrap_or(&self.choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rollout_is_arithmetic_on_the_id() {
        let policy = Policy::from_json(&json!({
            "strategy": "result",
            "rollout": [{"strategy": "none", "modulo": 100, "below": 25}, {"strategy": "live", "modulo": 2, "below": 1}],
            "overrides": {"canary-1": {"strategy": "none"}}
        }))
        .unwrap();

        let of = |id| policy.choice_of("reader-7").strategy_of(id);
        assert_eq!(
            [of(24), of(124), of(26), of(27)],
            [Strategy::None, Strategy::None, Strategy::Live, Strategy::Result]
        );
        assert_eq!(policy.choice_of("canary-1").strategy_of(27), Strategy::None);
        assert_eq!(Policy::from_json(&json!(policy)).unwrap(), policy);
    }

    #[test]
    fn every_problem_is_reported() {
        let wrong = json!({
            "strategy": "none",
            "rollout": [{"strategy": "live", "modulo": 0, "below": 0}],
            "overrides": {"": {"strategy": "live", "rollout": [{"strategy": "live", "modulo": 2, "below": 3}]}}
        });
        let fields: Vec<String> = Policy::from_json(&wrong)
            .unwrap_err()
            .into_iter()
            .map(|problem| problem.field)
            .collect();
        assert_eq!(fields, ["rollout[0]", "overrides", "overrides..rollout[0]"]);
        assert!(Policy::from_json(&json!({"strategy": "sometimes"})).is_err());
    }
}
