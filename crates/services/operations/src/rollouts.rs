//! Guarded rollouts of a cache strategy: one portal at a time conducts the one that runs.
//!
//! ```text
//!   form ──▶ begin ──▶ rollouts ◀──┐ every few seconds, by the portal that conducts it
//!                         │        │
//!   measures, instances ──┴──▶ what was seen ──▶ policy::rollout ──▶ order ──▶ cache policy of the catalog
//! ```
//!
//! The rollout lies in the catalog's database, as the policy does. The right to conduct it lies
//! there too, in its own row and not in the bucket store as that of the self-audit, because a
//! rollout has to go back just when that store is away: with each beat the conductor replaces the
//! row, and a row that stands still has lost its conductor. Whoever takes it over begins the open
//! window anew. What is to be set is kept before it is set, so that a conductor may die anywhere.

use crate::measures::{Measures, SAMPLE_INTERVAL};
use crate::watch::Watch;
use metrics::{Counter, counter};
use raingauge_counters::Counters;
use raingauge_policy::rollout::{End, Order, Plan, Refused, Rollout};
use raingauge_ports::catalog::{self, Change, VersionedPolicy};
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::rollouts::{self, Rollouts, Run};
use raingauge_reader::CachePolicies;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A rollout that stood still for so long has lost its conductor: six beats.
pub const STILL_MAX: Duration = Duration::from_secs(30);
/// How often somebody's wish is tried while the conductor changes the rollout too.
const WISHES_MAX: usize = 5;

/// Why a rollout was not begun or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Senseless(String),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Rollouts(#[from] rollouts::Error),
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
}

/// Everything that a rollout is conducted with.
pub struct Deps {
    pub rollouts: Arc<dyn Rollouts>,
    pub counters: Arc<Counters>,
    pub policies: Arc<CachePolicies>,
    pub measures: Arc<Measures>,
    pub watch: Arc<Watch>,
    pub clock: Arc<dyn Clock>,
    /// How long a rollout stands still before it is taken over; not at all where there is no other
    /// portal.
    pub still_max: Duration,
}

/// Conducts rollouts, as long as no other portal does.
pub struct Conductor {
    deps: Deps,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The end of the newest moment that was taken into account.
    counted_s: i64,
    /// A revision of a rollout of another conductor, and when it was seen first.
    still: Option<(u64, u32, i64)>,
}

impl Conductor {
    pub fn new(deps: Deps) -> Self {
        // At 0 from the start, so that the first one is seen to add something.
        End::ALL.into_iter().for_each(|end| ended(end).increment(0));
        Self { deps, state: Mutex::default() }
    }

    pub fn rollouts(&self) -> &dyn Rollouts {
        &*self.deps.rollouts
    }

    /// Conducts whatever has to be, for as long as it is polled.
    pub async fn run(&self) {
        // A process that has just started has heard of nobody.
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        every(SAMPLE_INTERVAL, || self.beat()).await;
    }

    /// Goes on once with the rollout that runs, if it is ours.
    pub async fn beat(&self) {
        match self.try_beat().await {
            // Somebody changed it at this moment: the next beat sees how.
            Ok(()) | Err(Error::Rollouts(rollouts::Error::RevisionMismatch { .. })) => {}
            Err(error) => tracing::warn!(%error, "the rollout could not go on; it is tried again"),
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

        let current = self.deps.counters.catalog().cache_policy().await?;
        let (counted_s, grown) = self.deps.measures.tally_after(state.counted_s);
        state.counted_s = counted_s;
        if run.rollout.is_overruled(current.version, &current.policy) {
            run.rollout.overrule(current.version, &current.changed_by)
        } else {
            run.rollout.beat(self.deps.clock.machine_ms(), &grown, self.lagging(&current))
        }

        self.carry_out(run).await.map(drop)
    }

    /// Whether a rollout of another conductor has not changed for so long that it has none any
    /// more.
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
        // What was counted before is not of its windows.
        state.counted_s = self.deps.clock.now_s();
    }

    /// The processes that do not follow the policy yet. One of another version may say in another
    /// way what it follows.
    fn lagging(&self, current: &VersionedPolicy) -> Vec<String> {
        let seen = self.deps.watch.seen();
        let follows = |name: &str, choice| choice == current.policy.choice_of(name);
        let lags = seen.iter().filter(|seen| !seen.is_gone).filter(|seen| {
            seen.said.choice.as_ref().is_some_and(|choice| !follows(&seen.instance.name, choice))
        });
        lags.map(|seen| seen.called()).collect()
    }

    /// Keeps the rollout, and sets the policies that it orders. Each order is kept first: whoever
    /// takes over finds it.
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
            let current = counters.catalog().cache_policy().await?;
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
        let change = Change { by: run.started_by.clone(), reason, at_s: self.deps.clock.now_s() };
        match self.deps.counters.catalog().set_cache_policy(policy, Some(expected), change).await {
            Ok(set) => {
                // The others follow the catalog; this process need not wait for itself.
                self.deps.policies.set(&set.policy);
                run.rollout.ordered(set.version, self.deps.clock.machine_ms());
                Ok(())
            }
            // Somebody was faster by a moment, and is seen in the next turn.
            Err(catalog::Error::PolicyMismatch { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a rollout from the policy that is in force.
    pub async fn begin(&self, plan: Plan, by: &str, reason: String) -> Result<Run, Error> {
        let mut state = self.state.lock().await;
        let current = self.deps.counters.catalog().cache_policy().await?;
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

    /// Ends a rollout, and sets the policy of before.
    pub async fn stop(&self, id: u64, by: &str) -> Result<Run, Error> {
        self.wish(id, |rollout| rollout.stop(by)).await
    }

    /// Goes on with the next stage before the time of this one is over.
    pub async fn go_on(&self, id: u64, by: &str) -> Result<Run, Error> {
        self.wish(id, |rollout| rollout.go_on(by)).await
    }

    /// Whoever is asked conducts it from then on, so that the wish holds at once, also while the
    /// conductor is gone.
    async fn wish(
        &self,
        id: u64,
        wish: impl Fn(&mut Rollout) -> Result<(), Refused>,
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
