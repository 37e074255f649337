//! Begins runs on schedule and on request, ends them, and keeps their results.

use super::run::{End, Roll};
use super::status::{Compaction, Outcome, Run, Status, Trigger, Upcoming};
use super::{Error, Options};
use metrics::{counter, gauge};
use parking_lot::Mutex;
use raingauge_ports::clock::Clock;
use raingauge_ports::maintenance::{Compactor, Lease};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Ended runs that are kept.
const RUNS_KEPT: usize = 20;
/// Longest sleep before the clock is read again: it may be set, or the machine suspended.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// A run that could begin only this much later is skipped: its planned hour may be over.
const LATE_MAX_MS: i64 = 5 * 60 * 1_000;

/// The maintenance of one engine. Dropping it ends it; [`close`](Self::close) ends it in order.
pub struct Maintenance {
    keeper: Arc<Keeper>,
    time: JoinHandle<()>,
}

pub(crate) struct Keeper {
    pub compactor: Arc<dyn Compactor>,
    pub lease: Arc<dyn Lease>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    state: Mutex<State>,
    /// Whether a run is in progress, for callers that wait.
    busy: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    last: VecDeque<Run>,
    is_closing: bool,
}

struct Running {
    run: Run,
    end: watch::Sender<Option<End>>,
}

impl Maintenance {
    /// Starts the schedule, on the runtime of the caller.
    pub fn start(
        compactor: Arc<dyn Compactor>,
        lease: Arc<dyn Lease>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Self {
        gauge!("raingauge_compaction_running").set(0.0);
        let state = Mutex::default();
        let busy = watch::Sender::new(false);
        let keeper = Arc::new(Keeper { compactor, lease, clock, options, state, busy });
        let time = tokio::spawn(Arc::clone(&keeper).keep_time());
        Self { keeper, time }
    }

    /// Begins a run now, on behalf of `who`. Must be called on a runtime.
    pub fn compact(&self, who: &str) -> Result<(), Error> {
        self.keeper.begin(Trigger::Request(who.to_owned()))
    }

    /// Asks the current run to end. The node in progress is stopped if the engine can stop it, and
    /// waited for otherwise.
    pub fn stop(&self) -> Result<(), Error> {
        let state = self.keeper.state.lock();
        let running = state.running.as_ref().ok_or(Error::Idle)?;
        end(&running.end, End::Stopped);
        Ok(())
    }

    pub fn status(&self) -> Status {
        let Keeper { clock, options, state, .. } = &*self.keeper;
        let upcoming = options.schedules.upcoming(clock.now_ms()).into_iter();
        let schedules = upcoming
            .map(|due| Upcoming { expression: due.expression, next: due.at_ms.div_euclid(1_000) })
            .collect();
        let state = state.lock();
        Status {
            timezone: options.schedules.zone().to_owned(),
            schedules,
            running: state.running.as_ref().map(|running| running.run.clone()),
            last: state.last.iter().cloned().collect(),
        }
    }

    /// Waits until no run is in progress.
    pub async fn idle(&self) {
        // The sender lives as long as the keeper does.
        let _ = self.keeper.busy.subscribe().wait_for(|busy| !busy).await;
    }

    /// Begins no more runs, stops the current one and waits for its end.
    pub async fn close(&self) {
        self.keeper.state.lock().is_closing = true;
        self.time.abort();
        let _ = self.stop();
        self.idle().await;
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.time.abort();
        let _ = self.stop();
    }
}

/// The first reason to end counts.
pub(crate) fn end(sender: &watch::Sender<Option<End>>, why: End) {
    sender.send_if_modified(|known| known.is_none() && known.replace(why).is_none());
}

impl Keeper {
    /// Begins a run whenever one is due.
    async fn keep_time(self: Arc<Self>) {
        let mut looked_ms = self.clock.now_ms();
        while let Some(due) = self.options.schedules.next(looked_ms) {
            let now_ms = self.clock.now_ms();
            if due.at_ms > now_ms {
                tokio::time::sleep(
                    SLEEP_MAX.min(Duration::from_millis((due.at_ms - now_ms) as u64)),
                )
                .await;
                continue;
            }

            looked_ms = due.at_ms;
            let expression = due.expression;

            if now_ms - due.at_ms > LATE_MAX_MS {
                tracing::warn!(
                    expression,
                    "a compaction was missed: the clock was put forward, or this machine slept"
                );
                counter!("raingauge_compactions_total", "result" => "missed").increment(1);
                looked_ms = now_ms;
            } else if let Err(error) = self.begin(Trigger::Schedule(expression.clone())) {
                tracing::warn!(expression, %error, "a compaction is due and is skipped");
                counter!("raingauge_compactions_total", "result" => "skipped").increment(1);
            }
        }
    }

    fn begin(self: &Arc<Self>, trigger: Trigger) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.is_closing {
            return Err(Error::Closing);
        }

        if state.running.is_some() {
            return Err(Error::Running);
        }
        let end = watch::Sender::new(None);
        let run = Run::new(trigger, self.clock.now_s());
        tracing::info!(trigger = ?run.trigger, "a compaction of all nodes begins");
        state.running = Some(Running { run, end: end.clone() });
        self.busy.send_replace(true);
        gauge!("raingauge_compaction_running").set(1.0);

        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            let roll = tokio::spawn(Roll::new(Arc::clone(&keeper), end).run());

            // A panic of an engine ends its run, not all maintenance.
            let ended =
                roll.await.unwrap_or_else(|error| (Outcome::Failed, Some(error.to_string())));
            keeper.finish(ended);
        });
        Ok(())
    }

    fn finish(&self, (result, detail): (Outcome, Option<String>)) {
        counter!("raingauge_compactions_total", "result" => result.name()).increment(1);
        gauge!("raingauge_compaction_running").set(0.0);

        let mut state = self.state.lock();
        if let Some(Running { mut run, .. }) = state.running.take() {
            let seconds = self.clock.now_s() - run.started_at;
            let result_name = result.name();
            let why = detail.as_deref().unwrap_or_default();

            if result == Outcome::Finished {
                tracing::info!(
                    seconds,
                    nodes = run.nodes.len(),
                    "the compaction of all nodes has ended"
                );
            } else {
                tracing::warn!(
                    seconds,
                    result = result_name,
                    why,
                    "the compaction ended before all nodes were compacted"
                );
            }

            (run.ended_at, run.result, run.detail) =
                (Some(self.clock.now_s()), Some(result), detail);
            state.last.push_front(run);
            state.last.truncate(RUNS_KEPT);
        }

        self.busy.send_replace(false);
    }

    /// Sets the nodes of the run.
    pub(crate) fn set_nodes(&self, nodes: Vec<Compaction>) {
        if let Some(running) = &mut self.state.lock().running {
            running.run.nodes = nodes;
        }
    }

    /// Changes the entry of one node.
    pub(crate) fn note(&self, index: usize, note: impl FnOnce(&mut Compaction)) {
        let mut state = self.state.lock();
        if let Some(node) =
            state.running.as_mut().and_then(|running| running.run.nodes.get_mut(index))
        {
            note(node);
        }
    }
}
