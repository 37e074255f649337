//! One run: the lease, then every node in turn, until all are compacted or there is a reason to
//! end.

use super::OnFailure;
use super::keeper::{Keeper, end};
use super::status::{Compaction, NodeState, Outcome};
use metrics::gauge;
use raingauge_ports::maintenance::{Error, LEASE_TTL, Node};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How often the progress of a node is read.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Longest wait for a node to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the lease is renewed: three attempts may fail before it is lost.
const RENEW_INTERVAL: Duration = Duration::from_secs(LEASE_TTL.as_secs() / 4);

/// Why a run ends before its last node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Stopped,
    WindowOver,
    LeaseLost,
}

impl End {
    fn outcome(self) -> Outcome {
        match self {
            Self::Stopped => Outcome::Stopped,
            Self::WindowOver => Outcome::WindowOver,
            Self::LeaseLost => Outcome::LeaseLost,
        }
    }
}

type Ended = (Outcome, Option<String>);

pub struct Roll {
    keeper: Arc<Keeper>,
    end: watch::Sender<Option<End>>,
}

impl Roll {
    pub fn new(keeper: Arc<Keeper>, end: watch::Sender<Option<End>>) -> Self {
        Self { keeper, end }
    }

    pub async fn run(self) -> Ended {
        let lease = &self.keeper.lease;
        match lease.hold().await {
            Ok(true) => {}
            Ok(false) => {
                return (Outcome::Elsewhere, Some("another process does maintenance".to_owned()));
            }
            Err(error) => {
                return (Outcome::Failed, Some(format!("the lease of maintenance: {error}")));
            }
        }

        let ended = tokio::select! {
            ended = self.all_nodes() => ended,
            never = self.guard() => match never {},
        };
        if let Err(error) = lease.release().await {
            tracing::warn!(%error, "the lease of maintenance could not be released; it expires by itself");
        }
        ended
    }

    /// Ends the run when its window is over or its lease is lost.
    async fn guard(&self) -> Infallible {
        let why = tokio::select! {
            () = sleep(self.keeper.options.max_duration) => End::WindowOver,
            () = self.lease_lost() => End::LeaseLost,
        };
        end(&self.end, why);
        std::future::pending().await
    }

    /// Renews the lease until that is no longer possible.
    async fn lease_lost(&self) {
        let mut held = Instant::now();
        // The last attempt must end before the lease does, or another process might begin
        // concurrently.
        while held.elapsed() + RENEW_INTERVAL < LEASE_TTL {
            sleep(RENEW_INTERVAL).await;
            let asked = Instant::now();

            match self.keeper.lease.hold().await {
                Ok(true) => held = asked,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "the lease of maintenance could not be renewed")
                }
            }
        }
    }

    async fn all_nodes(&self) -> Ended {
        let mut nodes = match self.keeper.compactor.nodes().await {
            Ok(nodes) => nodes,
            Err(error) => {
                return (Outcome::Failed, Some(format!("the nodes cannot be listed: {error}")));
            }
        };

        nodes.sort();
        self.keeper.set_nodes(nodes.iter().map(Compaction::waiting).collect());

        let mut failed = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            if index > 0 {
                self.pause().await;
            }

            if self.why().is_some() {
                break;
            }

            if let Err(error) = self.one_node(index, node).await {
                failed.push(format!("{}: {error}", node.name));
                if self.keeper.options.on_failure == OnFailure::Stop {
                    break;
                }
            }
        }

        let detail = (!failed.is_empty()).then(|| failed.join("; "));
        match self.why() {
            Some(why) => (why.outcome(), detail),
            None if detail.is_some() => (Outcome::Failed, detail),
            None => (Outcome::Finished, None),
        }
    }

    async fn pause(&self) {
        tokio::select! {
            () = sleep(self.keeper.options.pause) => {}
            () = self.ending() => {}
        }
    }

    /// Compacts one node to its end, or to the end of the run.
    async fn one_node(&self, index: usize, node: &Node) -> Result<(), Error> {
        let Keeper { compactor, clock, .. } = &*self.keeper;
        let began = Instant::now();
        let started_at = clock.now_s();
        tracing::info!(node = node.name, rack = node.rack, "the compaction of a node begins");
        self.keeper.note(index, |noted| {
            (noted.state, noted.started_at) = (NodeState::Running, Some(started_at))
        });

        let result = {
            let mut compaction = compactor.compact(node);
            tokio::select! {
                result = &mut compaction => Some(result),
                () = self.ending() => {
                    if compactor.can_stop() { None } else { Some(compaction.await) }
                }
                never = self.follow(index, node) => match never {},
            }
        };

        let (state, error) = match result {
            Some(Ok(())) => (NodeState::Compacted, None),
            Some(Err(error)) => (NodeState::Failed, Some(error)),
            None => (NodeState::Stopped, self.stop(node).await.err()),
        };

        let seconds = began.elapsed().as_secs_f64();
        gauge!("raingauge_compaction_seconds", "node" => node.name.clone()).set(seconds);

        match &error {
            None => {
                tracing::info!(
                    node = node.name,
                    rack = node.rack,
                    seconds,
                    ?state,
                    "the compaction of a node ended"
                )
            }
            Some(error) => {
                tracing::warn!(node = node.name, rack = node.rack, seconds, %error, "the compaction of a node failed");
            }
        }

        self.keeper.note(index, |noted| {
            (noted.state, noted.seconds, noted.error) =
                (state, Some(seconds), error.as_ref().map(|error| error.to_string()));
        });
        error.map_or(Ok(()), Err)
    }

    async fn stop(&self, node: &Node) -> Result<(), Error> {
        let stopped = timeout(STOP_TIMEOUT, self.keeper.compactor.stop(node)).await;
        let late = || Error(format!("it did not stop within {} s", STOP_TIMEOUT.as_secs()));
        let failed = |error| Error(format!("it may still be compacting: {error}"));
        stopped.map_err(|_| late()).flatten().map_err(failed)
    }

    /// Reads the progress of a node periodically.
    async fn follow(&self, index: usize, node: &Node) -> Infallible {
        loop {
            sleep(PROGRESS_INTERVAL).await;
            match self.keeper.compactor.progress(node).await {
                Ok(progress) => self.keeper.note(index, |noted| noted.progress = progress),
                Err(error) => {
                    tracing::debug!(node = node.name, %error, "the progress of a node could not be read")
                }
            }
        }
    }

    fn why(&self) -> Option<End> {
        *self.end.borrow()
    }

    /// Waits for a reason to end.
    async fn ending(&self) {
        // This value owns the sender, so it cannot be gone.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }
}
