//! The timeline of an experiment, as read from a file. `scenarios/cache-removal.toml` explains each
//! key.

use super::policy::MODULO;
use crate::traffic::Model;
use anyhow::{Context, Result, bail, ensure};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::path::Path;

const SCENARIO: &str = include_str!("../../scenarios/cache-removal.toml");
const TURNS: &str = include_str!("../../scenarios/turns.toml");
const STRATEGIES: [&str; 4] = ["none", "result", "phased", "live"];
const PLANS: [&str; 2] = ["tables", "tiles"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub title: String,
    /// Speed of the service's clock as a multiple of the machine's.
    pub factor: u32,
    /// In the time zone of the traffic.
    pub from: DateTime,
    pub to: DateTime,
    /// How ranges are read: `tables` or `tiles`.
    pub plan: String,
    /// The cache strategy of counters before the rollout reaches them, and after.
    pub before: String,
    pub after: String,
    /// How often the store flushes its tables to disk, by the service's clock; 0 leaves it to the
    /// store.
    #[serde(default)]
    pub flush_hours: u32,
    #[serde(default)]
    pub steps: Vec<PlannedStep>,
    pub traffic: Model,
}

/// A planned action. Exactly one of the three is given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedStep {
    pub at: DateTime,
    /// A canary: this percentage of the counters uses the new strategy, to see whether it does
    /// harm.
    pub canary: Option<u32>,
    /// From here on this percentage of the counters uses the new strategy.
    pub share: Option<u32>,
    /// Compacts all tables of the store.
    #[serde(default)]
    pub compact: bool,
    /// Repeats the action at this time of every following day.
    #[serde(default)]
    pub daily: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    Canary(u32),
    Share(u32),
    Compact,
}

impl Scenario {
    /// The published experiment.
    pub fn published() -> Result<Self> {
        Self::parse(SCENARIO).context("scenarios/cache-removal.toml")
    }

    /// The scenario of quarter-hour turns, by which strategies are compared.
    pub fn turns() -> Result<Self> {
        Self::parse(TURNS).context("scenarios/turns.toml")
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub fn parse(text: &str) -> Result<Self> {
        let scenario: Self = toml::from_str(text).context("not a valid scenario")?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<()> {
        self.traffic.check()?;
        ensure!((1..=3_600).contains(&self.factor), "factor must lie between 1 and 3600");
        ensure!(self.from < self.to, "to must be after from");
        ensure!(PLANS.contains(&self.plan.as_str()), "plan must be one of {PLANS:?}");
        for strategy in [&self.before, &self.after] {
            ensure!(
                STRATEGIES.contains(&strategy.as_str()),
                "before and after must be of {STRATEGIES:?}"
            );
        }
        self.actions()?;
        Ok(())
    }

    fn zone(&self) -> Result<TimeZone> {
        Ok(TimeZone::get(&self.traffic.timezone)?)
    }

    /// A moment of the scenario, in milliseconds since 1970.
    fn ms(&self, local: DateTime) -> Result<i64> {
        Ok(local.to_zoned(self.zone()?)?.timestamp().as_millisecond())
    }

    pub fn from_ms(&self) -> Result<i64> {
        self.ms(self.from)
    }

    pub fn to_ms(&self) -> Result<i64> {
        self.ms(self.to)
    }

    pub fn length_ms(&self) -> Result<i64> {
        Ok(self.to_ms()? - self.from_ms()?)
    }

    /// Returns all actions in order, each with its time in milliseconds since 1970.
    pub fn actions(&self) -> Result<Vec<(i64, Action)>> {
        let mut actions = Vec::new();
        for planned in &self.steps {
            let action = planned.action()?;
            ensure!(
                self.from <= planned.at && planned.at < self.to,
                "the step at {} is outside of the run",
                planned.at
            );

            let mut at = planned.at;
            while at < self.to {
                actions.push((self.ms(at)?, action));

                if !planned.daily {
                    break;
                }
                at = at.tomorrow()?;
            }
        }

        actions.sort_by_key(|(at_ms, _)| *at_ms);
        Ok(actions)
    }
}

impl PlannedStep {
    fn action(&self) -> Result<Action> {
        let action = match (self.canary, self.share, self.compact) {
            (Some(canary), None, false) => Action::Canary(canary),
            (None, Some(share), false) => Action::Share(share),
            (None, None, true) => Action::Compact,
            _ => bail!("the step at {} must have one of canary, share and compact", self.at),
        };

        if let Action::Canary(share) | Action::Share(share) = action {
            ensure!(
                share <= MODULO,
                "the step at {} must have a share of at most {MODULO}",
                self.at
            );
        }

        Ok(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_timeline_is_in_the_file() {
        let scenario = Scenario::published().unwrap();
        let shares: Vec<u32> = scenario
            .actions()
            .unwrap()
            .iter()
            .filter_map(
                |(_, action)| {
                    if let Action::Share(share) = action { Some(*share) } else { None }
                },
            )
            .collect();

        assert_eq!(shares, [5, 25, 35, 75, 100]);
        let canaries = scenario.steps.iter().filter(|step| step.canary.is_some()).count();
        assert_eq!(canaries, shares.len());

        let compactions = scenario
            .actions()
            .unwrap()
            .iter()
            .filter(|(_, action)| *action == Action::Compact)
            .count();

        assert!(compactions > 10, "one a night, and one by day at last: {compactions}");
        assert!(scenario.actions().unwrap().is_sorted_by_key(|(at_ms, _)| *at_ms));
    }

    #[test]
    fn a_step_says_one_thing_within_the_run() {
        let scenario = Scenario::published().unwrap();
        let with = |step: &str| {
            let mut table = toml::Table::try_from(&scenario).unwrap();
            table.insert(
                "steps".to_owned(),
                toml::Value::Array(vec![toml::Value::Table(step.parse().unwrap())]),
            );
            Scenario::parse(&toml::to_string(&table).unwrap()).unwrap_err().to_string()
        };

        assert!(with("at = \"2024-11-05T10:00:00\"").contains("one of canary"));
        assert!(
            with("at = \"2024-11-05T10:00:00\"\nshare = 5\ncompact = true")
                .contains("one of canary")
        );
        assert!(with("at = \"2024-11-05T10:00:00\"\nshare = 101").contains("at most 100"));
        assert!(with("at = \"2023-11-05T10:00:00\"\nshare = 10").contains("outside of the run"));
    }
}
