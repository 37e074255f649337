//! Executes the steps of a scenario at their times: changes of the cache policy, and compactions.

use super::policy::{self, MODULO};
use super::record::{Step, StepKind};
use super::scenario::Action;
use crate::fast::Fast;
use crate::http::Target;
use crate::http::client::Client;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(250);

pub struct Steps {
    portal: Target,
    client: Client,
    clock: Fast,
    strategies: [String; 2],
    taken: Vec<Step>,
    compacting: bool,
}

impl Steps {
    pub fn new(strategies: [&str; 2], clock: Fast, portal: &Target) -> Result<Self> {
        let strategies = strategies.map(str::to_owned);
        let client = Client::connect(portal)?;
        Ok(Self {
            portal: portal.clone(),
            client,
            clock,
            strategies,
            taken: Vec::new(),
            compacting: false,
        })
    }

    /// Sets the policy so that `share` percent of the counters use the new strategy. Returns its
    /// version.
    pub fn set_share(&self, share: u32) -> Result<f64> {
        let [before, after] = &self.strategies;
        let policy = json!({
            "strategy": before,
            "rollout": [{ "strategy": after, "modulo": MODULO, "below": share }],
        });
        policy::set(&self.portal, &policy)
    }

    /// Executes each action at its time. Actions that remain when it is stopped are skipped.
    pub fn run(mut self, actions: &[(i64, Action)], stop: &AtomicBool) -> Result<Vec<Step>> {
        for (at_ms, action) in actions {
            while self.clock.now_ms() < *at_ms {
                if stop.load(Ordering::Acquire) {
                    return self.end();
                }
                self.look_after_compaction()?;

                let left = self.clock.instant(*at_ms).saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(POLL));
            }
            self.take(*action)?;
        }

        while self.compacting && !stop.load(Ordering::Acquire) {
            self.look_after_compaction()?;
            std::thread::sleep(POLL);
        }

        self.end()
    }

    fn end(mut self) -> Result<Vec<Step>> {
        if self.compacting {
            self.client.call("DELETE", "/v1/maintenance/compaction", b"")?;
        }
        Ok(self.taken)
    }

    fn take(&mut self, action: Action) -> Result<()> {
        let of_hundred = |share: u32| f64::from(share) / f64::from(MODULO);
        match action {
            Action::Canary(share) => {
                self.set_share(share)?;
                self.note(
                    StepKind::Canary { share: of_hundred(share) },
                    format!("canary, {share} %"),
                );
            }
            Action::Share(share) => {
                self.set_share(share)?;
                self.note(StepKind::Share { share: of_hundred(share) }, format!("{share} %"));
            }
            Action::Compact if self.compacting => {}
            Action::Compact => {
                let begun = self.client.call("POST", "/v1/maintenance/compaction", b"")?;
                ensure!(begun.status == 202, "compaction was refused: {}", begun.text());
                self.compacting = true;
                self.note(StepKind::CompactionBegan, "compaction".to_owned());
            }
        }

        Ok(())
    }

    fn look_after_compaction(&mut self) -> Result<()> {
        if !self.compacting {
            return Ok(());
        }
        let state = self.client.json("GET", "/v1/maintenance", b"")?;
        if state["running"] == Value::Null {
            self.compacting = false;
            let result = state["last"][0]["result"].as_str().unwrap_or("unknown").to_owned();
            self.note(StepKind::CompactionEnded, format!("compaction {result}"));
        }
        Ok(())
    }

    fn note(&mut self, kind: StepKind, label: String) {
        eprintln!("lab: {}", label);
        self.taken.push(Step { at_ms: self.clock.now_ms(), kind, label });
    }
}
