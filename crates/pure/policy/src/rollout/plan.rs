//! The plan of a rollout: its strategy, steps, durations and limits.

use super::limits::Limits;
use crate::cache::{Policy, Step, Strategy};
use raingauge_core::counter::Problem;
use raingauge_core::limits::{POLICY_STEPS_MAX, ROLLOUT_SHARES_MAX};
use serde::{Deserialize, Serialize};

/// Shares of counters are counted in hundredths.
pub const MODULO: u32 = 100;
/// Longest time that a stage is watched, in seconds: a week.
pub const STAGE_S_MAX: f64 = 7.0 * 86_400.0;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The strategy that counters get.
    pub to: Strategy,
    /// Hundredths of the counters, by arithmetic on their ids, in the order of the steps.
    pub shares: Vec<u32>,
    /// How long a canary of one more hundredth is watched before each step; 0 disables canaries.
    pub canary_s: f64,
    /// How long each step is watched, and the service before the first one.
    pub hold_s: f64,
    pub limits: Limits,
}

/// What a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The service as it is, which everything is compared with.
    Before,
    /// One hundredth more, for a look.
    Canary,
    Step,
}

/// A stretch of time with one share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub kind: Kind,
    pub share: u32,
    pub seconds: f64,
}

impl Stage {
    /// In a table.
    pub fn words(&self) -> String {
        match self.kind {
            Kind::Before => "before".to_owned(),
            Kind::Canary => format!("{} %, canary", self.share),
            Kind::Step => format!("{} %", self.share),
        }
    }
}

impl Plan {
    pub const SHARES: [u32; 5] = [5, 25, 35, 75, 100];
    pub const CANARY_S: f64 = 300.0;
    pub const HOLD_S: f64 = 1_800.0;

    /// All problems of the plan, by field as JSON spells it.
    pub fn problems(&self) -> Vec<Problem> {
        let Self { shares, canary_s, hold_s, limits, .. } = self;
        let mut problems = Vec::new();
        let mut refuse = |is_wrong: bool, field: &str, detail: String| {
            if is_wrong {
                problems.push(Problem::new(field, detail));
            }
        };

        let is_growing = shares.windows(2).all(|pair| pair[0] < pair[1]);
        refuse(
            shares.is_empty() || !is_growing,
            "shares",
            "must grow from step to step".to_owned(),
        );

        let is_share = |share: &u32| (1..=MODULO).contains(share);
        refuse(!shares.iter().all(is_share), "shares", format!("are hundredths, 1 to {MODULO}"));
        refuse(
            shares.len() > ROLLOUT_SHARES_MAX,
            "shares",
            format!("are at most {ROLLOUT_SHARES_MAX}"),
        );

        let is_time = |seconds: f64, least: f64| seconds >= least && seconds <= STAGE_S_MAX;
        refuse(
            !is_time(*hold_s, f64::MIN_POSITIVE),
            "holdS",
            "is above 0, and a week at most".to_owned(),
        );
        refuse(!is_time(*canary_s, 0.0), "canaryS", "is 0 or more, and a week at most".to_owned());

        for (field, value) in [
            ("p99Times", limits.p99_times),
            ("p99FreeMs", limits.p99_free_ms),
            ("failedShare", limits.failed_share),
            ("storeTimes", limits.store_times),
            ("breakers", limits.breakers),
            ("batchesMin", limits.batches_min),
        ] {
            refuse(
                !(value.is_finite() && value >= 0.0),
                field,
                "is a number that is not negative".to_owned(),
            );
        }

        problems
    }

    /// Why it cannot begin from a policy, in a sentence.
    pub fn refusal(&self, before: &Policy) -> Option<String> {
        if before.choice.strategy == self.to && before.choice.rollout.is_empty() {
            return Some(format!("All counters are answered by `{}` already.", self.to.name()));
        }
        let is_full = before.choice.rollout.len() >= POLICY_STEPS_MAX;
        is_full.then(|| format!("The policy has {POLICY_STEPS_MAX} steps already, and a rollout needs one of its own."))
    }

    /// The stages in their order; the first is the service as it is.
    pub fn stages(&self) -> Vec<Stage> {
        let mut stages = vec![Stage { kind: Kind::Before, share: 0, seconds: self.hold_s }];
        let mut share_before = 0;
        for share in &self.shares {
            let canary = share_before + 1;
            if self.canary_s > 0.0 && canary < *share {
                stages.push(Stage { kind: Kind::Canary, share: canary, seconds: self.canary_s });
            }
            stages.push(Stage { kind: Kind::Step, share: *share, seconds: self.hold_s });
            share_before = *share;
        }
        stages
    }

    /// The previous policy, with this strategy for the counters of a share. For all counters, only
    /// the overrides of single instances remain of the previous one.
    pub fn policy(&self, before: &Policy, share: u32) -> Policy {
        let mut policy = before.clone();
        if share >= MODULO {
            policy.choice.strategy = self.to;
            policy.choice.rollout.clear();
        } else if share > 0 {
            policy
                .choice
                .rollout
                .insert(0, Step { strategy: self.to, modulo: MODULO, below: share });
        }
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Choice;

    fn plan() -> Plan {
        let shares = Plan::SHARES.to_vec();
        let canary_s = Plan::CANARY_S;
        let hold_s = Plan::HOLD_S;
        Plan { to: Strategy::Live, shares, canary_s, hold_s, limits: Limits::DEFAULT }
    }

    #[test]
    fn each_share_has_a_canary_before_it() {
        let words: Vec<String> = plan().stages().iter().map(Stage::words).collect();
        let expected = "before;1 %, canary;5 %;6 %, canary;25 %;26 %, canary;35 %;36 %, canary;75 %;76 %, canary;100 %";
        assert_eq!(words.join(";"), expected);
        let bare = Plan { canary_s: 0.0, shares: vec![50, 100], ..plan() };
        assert_eq!(bare.stages().len(), 3);
        assert_eq!(
            Plan { shares: vec![1, 2], ..plan() }.stages().len(),
            3,
            "a canary of the whole step is none"
        );
    }

    #[test]
    fn counters_of_a_share_are_excepted_and_the_whole_is_the_strategy() {
        let kept = Step { strategy: Strategy::Phased, modulo: 7, below: 3 };
        let overrides = [("canary-1".to_owned(), Choice::default())].into();
        let before = Policy {
            choice: Choice { strategy: Strategy::Result, rollout: vec![kept] },
            overrides,
        };
        let quarter = plan().policy(&before, 25);

        assert_eq!(
            quarter.choice.to_string(),
            "live where id % 100 < 25; phased where id % 7 < 3; otherwise result"
        );
        let whole = plan().policy(&before, 100);
        assert_eq!(
            (whole.choice.to_string().as_str(), &whole.overrides),
            ("live", &before.overrides)
        );
        assert_eq!(plan().policy(&before, 0), before);
        assert_eq!(plan().refusal(&before), None);
        assert!(plan().refusal(&whole).is_some());

        let full = Policy {
            choice: Choice { rollout: vec![kept; POLICY_STEPS_MAX], ..before.choice },
            ..before
        };
        assert!(plan().refusal(&full).is_some());
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(plan().problems(), []);
        let limits = Limits { p99_times: f64::NAN, breakers: -1.0, ..Limits::DEFAULT };
        let wrong =
            Plan { shares: vec![50, 20, 101], hold_s: 0.0, canary_s: -1.0, limits, ..plan() };
        let fields: Vec<String> =
            wrong.problems().into_iter().map(|problem| problem.field).collect();

        assert_eq!(fields, ["shares", "shares", "holdS", "canaryS", "p99Times", "breakers"]);
        assert_eq!(Plan { shares: Vec::new(), ..plan() }.problems().len(), 1);
        assert_eq!(
            Plan { shares: (1..=ROLLOUT_SHARES_MAX as u32 + 1).collect(), ..plan() }
                .problems()
                .len(),
            1
        );
    }
}
