//! `raingauge cache-policy`

use super::counters::remove_version;
use super::{note, print, print_json};
use crate::commands::arguments::Place;
use anyhow::Context;
use clap::{Args, Subcommand};
use raingauge_console::Method;
use raingauge_policy::cache::{Choice, Policy, Step, Strategy};
use serde_json::Value;
use std::path::PathBuf;

const PATH: &str = "/v1/cache-policy";

/// Look at the cache policy, and change it while everything runs
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = "Example: raingauge cache-policy get")]
pub struct CachePolicy {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the policy
    #[command(after_help = "Example: raingauge cache-policy get --json")]
    Get {
        #[command(flatten)]
        place: Place,
    },
    /// Change the policy; every instance follows within two seconds
    ///
    /// With --instance, only what that instance does instead is changed: --strategy none --instance
    /// canary-1 tries it there, and --clear --instance canary-1 ends the exception.
    #[command(
        after_help = "Example: raingauge cache-policy set --strategy result --rollout none:100:25 --reason 'a quarter without Redis'"
    )]
    Set {
        /// none, result, phased or live
        #[arg(long, value_parser = strategy, required_unless_present_any = ["file", "clear"])]
        strategy: Option<Strategy>,
        /// Counters with `id % MODULO < BELOW` have this strategy instead; may be given several
        /// times, the first that fits counts
        #[arg(long, value_name = "STRATEGY:MODULO:BELOW", value_parser = step, requires = "strategy")]
        rollout: Vec<Step>,
        /// Change what this instance does instead of the others
        #[arg(long, value_name = "NAME", conflicts_with = "file")]
        instance: Option<String>,
        /// Let the instance do what the others do
        #[arg(long, requires = "instance", conflicts_with_all = ["strategy", "file"])]
        clear: bool,
        /// Take the whole policy from a file, JSON
        #[arg(long, value_name = "FILE", conflicts_with = "strategy")]
        file: Option<PathBuf>,
        /// Why, for the history
        #[arg(long, default_value = "", hide_default_value = true)]
        #[arg(value_parser = super::counters::reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
}

fn strategy(text: &str) -> Result<Strategy, String> {
    Strategy::from_name(text).ok_or_else(|| "a strategy is none, result, phased or live".to_owned())
}

fn step(text: &str) -> Result<Step, String> {
    let shape = || "a step is STRATEGY:MODULO:BELOW, such as none:100:25".to_owned();
    let [name, modulo, below] = text.split(':').collect::<Vec<_>>()[..] else {
        return Err(shape());
    };
    let number = |text: &str| text.parse().map_err(|_| shape());
    Ok(Step { strategy: strategy(name)?, modulo: number(modulo)?, below: number(below)? })
}

impl CachePolicy {
    pub fn run(self) -> anyhow::Result<()> {
        let json = self.json;
        match self.command {
            Command::Get { place } => {
                place.with(|session| show(&session.client.get(PATH, &[])?, json))
            }
            Command::Set { strategy, rollout, instance, clear: _, file, reason, place } => place
                .with(|session| {
                    let found = session.client.get(PATH, &[])?;
                    let body = match (&file, strategy) {
                        (Some(file), _) => std::fs::read(file)
                            .with_context(|| format!("{} cannot be read", file.display()))?,
                        (None, strategy) => {
                            let choice = strategy
                                .map(|strategy| Choice { strategy, rollout: rollout.clone() });
                            serde_json::to_vec(&changed(&found, choice, instance.clone())?)?
                        }
                    };

                    // A concurrent change is not overwritten.
                    let version = format!("\"{}\"", found["version"]);
                    let headers = [("x-reason", reason.as_str()), ("if-match", &version)];
                    let answer = session.client.send(Method::PUT, PATH, &headers, &body)?;
                    note("every instance follows within two seconds");

                    show(&answer, json)
                }),
        }
    }
}

/// Returns the policy with another choice for all instances, or for one; without a choice, that
/// instance has no exception.
fn changed(
    found: &Value,
    choice: Option<Choice>,
    instance: Option<String>,
) -> anyhow::Result<Policy> {
    let mut policy = policy_of(found)?;
    match (choice, instance) {
        (Some(choice), Some(instance)) => drop(policy.overrides.insert(instance, choice)),
        (Some(choice), None) => policy.choice = choice,
        (None, Some(instance)) => drop(policy.overrides.remove(&instance)),
        (None, None) => {}
    }
    Ok(policy)
}

fn show(found: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(print_json(found)?);
    }
    let Policy { choice, overrides } = policy_of(found)?;
    let version = &found["version"];
    print(&format!(
        "version {version}, set by {}",
        found["changedBy"].as_str().unwrap_or_default()
    ))?;
    print(&format!("all instances: {choice}"))?;

    for (instance, choice) in overrides {
        print(&format!("{instance}: {choice}"))?;
    }
    Ok(())
}

/// Returns the policy in the server's answer, without the members about its version.
pub(super) fn policy_of(found: &Value) -> anyhow::Result<Policy> {
    let mut policy = found.clone();
    remove_version(&mut policy);
    serde_json::from_value(policy).context("the server answers a policy that is not known here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_read_or_refused() {
        assert_eq!(
            step("none:100:25").unwrap(),
            Step { strategy: Strategy::None, modulo: 100, below: 25 }
        );
        for wrong in ["none", "none:100", "none:a:1", "never:2:1", "none:2:1:0", "none:-1:0"] {
            assert!(step(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_instance_is_changed_without_the_others() {
        let found = json!({"strategy": "result", "version": 3, "changedBy": "a", "reason": "", "changedAt": 1});
        let choice = Choice { strategy: Strategy::None, rollout: Vec::new() };
        let canary = changed(&found, Some(choice.clone()), Some("canary-1".to_owned())).unwrap();
        assert_eq!(
            (canary.choice.strategy, &canary.overrides["canary-1"]),
            (Strategy::Result, &choice)
        );
        let cleared = changed(&json!(canary), None, Some("canary-1".to_owned())).unwrap();
        assert!(cleared.overrides.is_empty());
        assert_eq!(changed(&json!(canary), Some(choice), None).unwrap().overrides.len(), 1);
    }
}
