//! A guarded rollout gives a cache strategy to more and more counters of a live service and watches
//! each share. When the service suffers, the rollout restores the previous policy.
//!
//! ```text
//!   as it is ──▶ for each share: canary ──▶ share ──▶ finished
//!      │                            │          │
//!   compared with               within the limits? ── no, or stopped ──▶ the previous policy
//! ```
//!
//! This module decides and never acts. The conductor passes in the time and what the readers did,
//! carries out each [`Order`], and may store the rollout between two beats.

mod limits;
mod plan;
mod report;
mod tally;

pub use limits::{Limit, Limits, STORE_REQUESTS_FREE, Verdict};
pub use plan::{Kind, MODULO, Plan, STAGE_S_MAX, Stage};
pub use tally::{FAILURES, Tally, Window};

use crate::cache::Policy;
use serde::{Deserialize, Serialize};

/// The time within which every process has to follow a policy.
const FOLLOWED_MAX_MS: i64 = 60_000;
/// A window with too few batches is extended up to this multiple of its length.
const PATIENCE: f64 = 10.0;
/// The share of a window after which a broken limit ends the rollout at once. Before that, the
/// cache may still be cold.
const SETTLED_SHARE: f64 = 0.2;

/// A rollout and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    pub plan: Plan,
    /// The policy that was in force when it began.
    pub before: Policy,
    /// The version of the policy that it set last, or began from.
    pub version: u32,
    /// The stages that are over; the first is the service as it was.
    pub watched: Vec<WatchedStage>,
    /// How often a window was restarted because the conductor had been away.
    pub interruptions: u32,
    pub phase: Phase,
}

/// A stage that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedStage {
    pub stage: Stage,
    /// When the window began.
    pub from_ms: i64,
    pub window: Window,
    /// None of the service as it was.
    pub verdicts: Vec<Verdict>,
    /// The person who ended the stage before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<String>,
}

/// What it is about. Times are milliseconds of one clock, that of the machine which conducts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// The policy of the next stage is to be set.
    Setting,
    /// It is set, and these processes do not follow it yet.
    Following {
        since_ms: i64,
        lagging: Vec<String>,
    },
    /// A window is open.
    Watching {
        since_ms: i64,
        seen_ms: i64,
        tally: Tally,
    },
    /// The previous policy is to be set again.
    Returning {
        end: End,
        why: String,
    },
    Ended {
        end: End,
        why: String,
    },
}

raingauge_core::names! {
    /// How it ended.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum End {
        /// All steps held.
        Finished = "finished",
        /// A limit was broken; the previous policy is in force again.
        Broken = "rolled back",
        /// There were too few batches to judge by; the previous policy is in force again.
        Inconclusive = "inconclusive",
        /// It could not be watched or followed; the previous policy is in force again.
        Failed = "failed",
        /// A person stopped it; the previous policy is in force again.
        Stopped = "stopped",
        /// Another person or program set another policy, which stays.
        Overruled = "overruled",
    }
}

/// A policy that is to be set now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub policy: Policy,
    pub reason: String,
}

/// Why a rollout cannot be continued or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the rollout has ended already")]
    Ended,
    #[error("the rollout is going back already")]
    Returning,
    #[error("the next step is being set at this moment")]
    BetweenSteps,
    #[error("too little was asked so far to compare anything with it")]
    TooLittle,
}

impl Rollout {
    /// Starts a rollout, with a window over the service as it is.
    pub fn new(plan: Plan, before: Policy, version: u32, now_ms: i64) -> Self {
        let phase = Phase::watching(now_ms);
        Self { plan, before, version, watched: Vec::new(), interruptions: 0, phase }
    }

    /// The current stage. `None` when the rollout has ended.
    pub fn stage(&self) -> Option<Stage> {
        let is_ended = matches!(self.phase, Phase::Ended { .. });
        self.plan.stages().into_iter().nth(self.watched.len()).filter(|_| !is_ended)
    }

    /// The window over the service before any change. `None` while it is open.
    pub fn baseline(&self) -> Option<&Window> {
        self.watched.first().map(|watched| &watched.window)
    }

    /// The open window up to the last beat.
    pub fn window(&self) -> Option<Window> {
        match &self.phase {
            Phase::Watching { since_ms, seen_ms, tally } => {
                Some(tally.window((seen_ms - since_ms) as f64 / 1e3))
            }
            _ => None,
        }
    }

    /// Compares a window with the limits. Empty while there is no baseline.
    pub fn verdicts(&self, window: &Window) -> Vec<Verdict> {
        self.baseline().map_or_else(Vec::new, |before| self.plan.limits.verdicts(before, window))
    }

    /// Whether broken limits of the open window count already. A breaker that opens always does.
    pub fn is_settled(&self, window: &Window) -> bool {
        let is_due = |stage: Stage| window.seconds >= stage.seconds * SETTLED_SHARE;
        self.plan.limits.suffice(window) && self.stage().is_some_and(is_due)
    }

    pub fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Ended { end, .. } => Some(end),
            _ => None,
        }
    }

    /// The policy that is to be set, if one is.
    pub fn order(&self) -> Option<Order> {
        match &self.phase {
            Phase::Setting => {
                let share = self.stage()?.share;
                let reason = format!("{} for {share} % of the counters", self.plan.to.name());
                Some(Order { policy: self.plan.policy(&self.before, share), reason })
            }
            Phase::Returning { why, .. } => {
                Some(Order { policy: self.before.clone(), reason: format!("rolled back: {why}") })
            }
            _ => None,
        }
    }

    /// Notes that the conductor has carried out the order.
    pub fn ordered(&mut self, version: u32, now_ms: i64) {
        self.version = version;
        self.phase = match std::mem::replace(&mut self.phase, Phase::Setting) {
            Phase::Setting => Phase::Following { since_ms: now_ms, lagging: Vec::new() },
            Phase::Returning { end, why } => Phase::Ended { end, why },
            other => other,
        };
    }

    /// Whether the policy in force was set by another than this rollout: it is neither the last
    /// version that the rollout set, nor the ordered one that a conductor set and could not note
    /// any more.
    pub fn is_overruled(&self, version: u32, policy: &Policy) -> bool {
        let is_of = |share: u32| self.plan.policy(&self.before, share) == *policy;
        let is_of_stage = || self.stage().is_some_and(|stage| is_of(stage.share));
        let was_ordered = match self.phase {
            Phase::Setting => is_of_stage(),
            Phase::Returning { .. } => is_of(0) || is_of_stage(),
            _ => false,
        };
        version != self.version && !(version == self.version + 1 && was_ordered)
    }

    /// Ends the rollout because another policy was set, which stays.
    pub fn overrule(&mut self, version: u32, by: &str) {
        let why = format!("{by} set version {version} of the policy");
        self.phase = Phase::Ended { end: End::Overruled, why };
    }

    /// Advances the rollout by what the readers did since the last beat, and by the processes that
    /// do not follow the policy yet.
    pub fn beat(&mut self, now_ms: i64, grown: &Tally, lagging: Vec<String>) {
        match &mut self.phase {
            Phase::Following { .. } if lagging.is_empty() => self.phase = Phase::watching(now_ms),
            Phase::Following { since_ms, .. } if now_ms - *since_ms > FOLLOWED_MAX_MS => {
                let who = lagging.join(", ");
                self.go_back(
                    End::Failed,
                    format!("version {} of the policy is not followed by {who}", self.version),
                );
            }
            Phase::Following { lagging: known, .. } => *known = lagging,
            Phase::Watching { seen_ms, tally, .. } => {
                tally.add(grown);
                *seen_ms = now_ms;
                self.judge();
            }
            Phase::Setting | Phase::Returning { .. } | Phase::Ended { .. } => {}
        }
    }

    fn judge(&mut self) {
        let (Some(stage), Some(window)) = (self.stage(), self.window()) else {
            return;
        };

        let is_enough = self.plan.limits.suffice(&window);
        let is_settled = self.is_settled(&window);
        let counts = |verdict: &Verdict| {
            !verdict.holds() && (is_settled || verdict.limit == Limit::Breakers)
        };
        let broken: Vec<String> = self
            .verdicts(&window)
            .iter()
            .filter(|one| counts(one))
            .map(Verdict::sentence)
            .collect();

        if !broken.is_empty() {
            self.end_stage(None);
            self.go_back(End::Broken, broken.join("; "));
        } else if window.seconds >= stage.seconds && is_enough {
            self.end_stage(None);
        } else if window.seconds >= stage.seconds * PATIENCE {
            let least = self.plan.limits.batches_min;
            let seconds = window.seconds;
            let why = format!(
                "fewer than {least} batches arrived within {seconds:.0} s: too few to judge the service by"
            );
            self.go_back(End::Inconclusive, why);
        }
    }

    /// Closes the window and moves on to the next stage.
    fn end_stage(&mut self, cut_by: Option<String>) {
        let Phase::Watching { since_ms: from_ms, .. } = self.phase else {
            return;
        };

        if let (Some(stage), Some(window)) = (self.stage(), self.window()) {
            let verdicts = self.verdicts(&window);
            self.watched.push(WatchedStage { stage, from_ms, window, verdicts, cut_by });
        }
        self.phase = match self.stage() {
            Some(_) => Phase::Setting,
            None => Phase::Ended { end: End::Finished, why: String::new() },
        };
    }

    /// Ends the current stage before its time, and goes on with the next one.
    pub fn go_on(&mut self, by: &str) -> Result<(), Rejection> {
        let window = match &self.phase {
            Phase::Watching { .. } => self.window().unwrap_or_default(),
            Phase::Setting | Phase::Following { .. } => return Err(Rejection::BetweenSteps),
            Phase::Returning { .. } => return Err(Rejection::Returning),
            Phase::Ended { .. } => return Err(Rejection::Ended),
        };
        if self.baseline().is_none() && !self.plan.limits.suffice(&window) {
            return Err(Rejection::TooLittle);
        }
        self.end_stage(Some(by.to_owned()));
        Ok(())
    }

    /// Stops the rollout and restores the previous policy.
    pub fn stop(&mut self, by: &str) -> Result<(), Rejection> {
        match &self.phase {
            Phase::Returning { .. } => return Err(Rejection::Returning),
            Phase::Ended { .. } => return Err(Rejection::Ended),
            _ => {}
        }
        self.go_back(End::Stopped, format!("{by} stopped it"));
        Ok(())
    }

    fn go_back(&mut self, end: End, why: String) {
        // While the service is watched as it is, nothing was set.
        let is_changed = !self.watched.is_empty();
        self.phase =
            if is_changed { Phase::Returning { end, why } } else { Phase::Ended { end, why } };
    }

    /// Continues a rollout whose conductor was away. That time was not watched, so the open window
    /// starts again.
    pub fn resume(&mut self, now_ms: i64) {
        match &mut self.phase {
            Phase::Watching { .. } => self.phase = Phase::watching(now_ms),
            Phase::Following { since_ms, .. } => *since_ms = now_ms,
            _ => {}
        }
        self.interruptions += 1;
    }
}

impl Phase {
    fn watching(now_ms: i64) -> Self {
        Self::Watching { since_ms: now_ms, seen_ms: now_ms, tally: Tally::default() }
    }
}

#[cfg(test)]
mod tests;
