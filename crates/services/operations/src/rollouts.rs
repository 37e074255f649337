//! Guarded rollouts of a cache strategy: one portal at a time conducts the running one.
//!
//! ```text
//!   form ──▶ begin ──▶ rollouts ◀──┐ every few seconds, by the portal that conducts it
//!                         │        │
//!   measures, instances ──┴──▶ observations ──▶ policy::rollout ──▶ order ──▶ the catalog's policy
//! ```
//!
//! The rollout lies in the catalog's database, as the policy does. So does the right to conduct it,
//! in its own row: the lease of the self-audit lies in the bucket store, and a rollout has to go
//! back just when that store is unreachable. With each beat the conductor replaces the row; a row
//! that stays unchanged has lost its conductor. The portal that takes over restarts the open
//! window. Each order is stored before it is carried out, so that a conductor may fail at any
//! point.

use crate::measures::{Measures, SAMPLE_INTERVAL};
use crate::watch::Watch;
use metrics::{Counter, counter};
use raingauge_counters::Counters;
use raingauge_policy::rollout::{End, Order, Plan, Rejection, Rollout};
use raingauge_ports::catalog::{self, VersionedPolicy};
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::rollouts::{self, Rollouts, Run};
use raingauge_reader::CachePolicies;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A rollout that stays unchanged this long has lost its conductor: six beats.
pub const STILL_MAX: Duration = Duration::from_secs(30);
/// Attempts to apply a request while the conductor changes the rollout concurrently.
const WISHES_MAX: usize = 5;

/// Why a rollout was not begun or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Senseless(String),
    #[error(transparent)]
    Refused(#[from] Rejection),
    #[error(transparent)]
    Rollouts(#[from] rollouts::Error),
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
}

/// The dependencies of a conductor.
pub struct Deps {
    pub rollouts: Arc<dyn Rollouts>,
    pub counters: Arc<Counters>,
    pub policies: Arc<CachePolicies>,
    pub measures: Arc<Measures>,
    pub watch: Arc<Watch>,
    pub clock: Arc<dyn Clock>,
    /// How long a rollout stays unchanged before another portal takes it over; the maximum where
    /// there is no other portal.
    pub still_max: Duration,
}

/// Conducts rollouts, as long as no other portal does.
pub struct Conductor {
    deps: Deps,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The end of the newest moment that was evaluated.
    counted_s: i64,
    /// A rollout and revision of another conductor, and when it was first seen.
    still: Option<(u64, u32, i64)>,
}

impl Conductor {
    pub fn new(deps: Deps) -> Self {
        // The series exist from the start, so that the first increment is visible.
        End::ALL.into_iter().for_each(|end| ended(end).increment(0));
        Self { deps, state: Mutex::default() }
    }

    pub fn rollouts(&self) -> &dyn Rollouts {
        &*self.deps.rollouts
    }

    /// Conducts the running rollout, for as long as it is polled.
    pub async fn run(&self) {
        // A process that has just started knows no other instance yet.
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        every(SAMPLE_INTERVAL, || self.beat()).await;
    }

    /// Advances the running rollout once, if this process conducts it.
    pub async fn beat(&self) {
        match self.try_beat().await {
            // Another process changed it concurrently: the next beat reads the change.
            Ok(()) | Err(Error::Rollouts(rollouts::Error::RevisionMismatch { .. })) => {}
            Err(error) => {
                tracing::warn!(%error, "the rollout could not be advanced; it is tried again")
            }
        }
    }

    async fn try_beat(&self) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        let Some(mut run) = self.deps.rollouts.running().await? else {
            return Ok(());
        };
        if run.conductor != self.deps.watch.id() {
            if !self.stands_still(&mut state, &run) {
                return Ok(());
            }
            tracing::warn!(
                rollout = run.id,
                "the rollout has lost its conductor, and is taken over"
            );
            self.take_over(&mut state, &mut run);
            run.rollout.resume(self.deps.clock.machine_ms());
        }

        let current = self.deps.counters.cache_policy().await?;
        let (counted_s, grown) = self.deps.measures.tally_after(state.counted_s);
        state.counted_s = counted_s;

        if run.rollout.is_overruled(current.version, &current.policy) {
            run.rollout.overrule(current.version, &current.changed_by)
        } else {
            run.rollout.beat(self.deps.clock.machine_ms(), &grown, self.lagging(&current))
        }

        self.carry_out(run).await.map(drop)
    }

    /// Whether a rollout of another conductor has stayed unchanged for too long.
    fn stands_still(&self, state: &mut State, run: &Run) -> bool {
        let now_ms = self.deps.clock.machine_ms();
        let since_ms = match state.still {
            Some((id, revision, since_ms)) if (id, revision) == (run.id, run.revision) => since_ms,
            _ => now_ms,
        };
        state.still = Some((run.id, run.revision, since_ms));
        now_ms - since_ms >= self.deps.still_max.as_millis() as i64
    }

    fn take_over(&self, state: &mut State, run: &mut Run) {
        run.conductor = self.deps.watch.id().to_owned();
        // Earlier counts do not belong to its windows.
        state.counted_s = self.deps.clock.now_s();
    }

    /// The processes that do not follow the policy yet. A process of another version may announce
    /// its policy in a way that cannot be read.
    fn lagging(&self, current: &VersionedPolicy) -> Vec<String> {
        let seen = self.deps.watch.instances();
        let follows = |name: &str, choice| choice == current.policy.choice_of(name);
        let lags = seen.iter().filter(|seen| !seen.is_gone).filter(|seen| {
            seen.announcement
                .choice
                .as_ref()
                .is_some_and(|choice| !follows(&seen.instance.name, choice))
        });
        lags.map(|seen| seen.title()).collect()
    }

    /// Stores the rollout and sets the policies that it orders. Each order is stored first, so that
    /// the next conductor finds it.
    async fn carry_out(&self, mut run: Run) -> Result<Run, Error> {
        let Deps { rollouts, counters, clock, .. } = &self.deps;
        loop {
            let end = run.rollout.end();
            run.ended_at = end.map(|_| clock.now_s());
            run = rollouts.replace(run).await?;

            if let Some(end) = end {
                ended(end).increment(1);
            }
            let Some(order) = run.rollout.order() else {
                return Ok(run);
            };
            let current = counters.cache_policy().await?;
            if run.rollout.is_overruled(current.version, &current.policy) {
                run.rollout.overrule(current.version, &current.changed_by);
            } else {
                self.set(&mut run, order, current.version).await?;
            }
        }
    }

    async fn set(&self, run: &mut Run, order: Order, expected: u32) -> Result<(), Error> {
        let Order { policy, reason } = order;
        tracing::info!(rollout = run.id, reason, "the cache policy is set");

        let reason = format!("Rollout {}: {reason}", run.id);
        match self
            .deps
            .counters
            .set_cache_policy(policy, Some(expected), &run.started_by, &reason)
            .await
        {
            Ok(set) => {
                // The other processes follow the catalog; this one need not wait for itself.
                self.deps.policies.set(&set.policy);
                run.rollout.ordered(set.version, self.deps.clock.machine_ms());
                Ok(())
            }
            // A concurrent change came first; the next turn sees it.
            Err(catalog::Error::PolicyMismatch { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn get(&self, id: u64) -> Result<Run, Error> {
        Ok(self.deps.rollouts.get(id).await?)
    }

    /// The newest rollouts, newest first. One that runs is the first.
    pub async fn newest(&self, len_max: usize) -> Result<Vec<Run>, Error> {
        Ok(self.deps.rollouts.list(len_max).await?)
    }

    /// Begins a rollout from the policy that is in force.
    pub async fn begin(&self, plan: Plan, by: &str, reason: String) -> Result<Run, Error> {
        let mut state = self.state.lock().await;
        let current = self.deps.counters.cache_policy().await?;
        if let Some(refusal) = plan.refusal(&current.policy) {
            return Err(Error::Senseless(refusal));
        }

        let rollout =
            Rollout::new(plan, current.policy, current.version, self.deps.clock.machine_ms());
        let mut run = Run {
            id: 0,
            revision: 0,
            started_at: self.deps.clock.now_s(),
            started_by: by.to_owned(),
            reason,
            ended_at: None,
            conductor: String::new(),
            rollout,
        };

        self.take_over(&mut state, &mut run);
        Ok(self.deps.rollouts.begin(run).await?)
    }

    /// Ends a rollout and restores the previous policy.
    pub async fn stop(&self, id: u64, by: &str) -> Result<Run, Error> {
        self.wish(id, |rollout| rollout.stop(by)).await
    }

    /// Enters the next stage before the current one is over.
    pub async fn go_on(&self, id: u64, by: &str) -> Result<Run, Error> {
        self.wish(id, |rollout| rollout.go_on(by)).await
    }

    /// Applies a request. This process conducts the rollout from then on, so that the request takes
    /// effect at once, even when the previous conductor is gone.
    async fn wish(
        &self,
        id: u64,
        wish: impl Fn(&mut Rollout) -> Result<(), Rejection>,
    ) -> Result<Run, Error> {
        let mut state = self.state.lock().await;
        let mut tries = 0;

        loop {
            tries += 1;
            let mut run = self.deps.rollouts.get(id).await?;
            wish(&mut run.rollout)?;
            self.take_over(&mut state, &mut run);

            match self.carry_out(run).await {
                Err(Error::Rollouts(rollouts::Error::RevisionMismatch { .. }))
                    if tries < WISHES_MAX => {}
                done => return done,
            }
        }
    }
}

/// Rollouts that came to this end.
fn ended(end: End) -> Counter {
    counter!("raingauge_rollouts_total", "outcome" => end.name())
}
