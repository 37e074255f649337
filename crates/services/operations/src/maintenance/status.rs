//! The status of maintenance. Times are seconds since 1970.

use raingauge_ports::maintenance::{Node, Progress};
use serde::Serialize;

/// The status at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub timezone: String,
    pub schedules: Vec<Upcoming>,
    pub running: Option<Run>,
    /// The runs that have ended, the newest first.
    pub last: Vec<Run>,
}

/// An expression and the next time at which it is due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upcoming {
    pub expression: String,
    pub next: i64,
}

/// One run over the nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub trigger: Trigger,
    pub started_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Outcome>,
    /// Why it ended this way, if there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// In the order of compaction; empty until the engine has listed them.
    pub nodes: Vec<Compaction>,
}

/// What began a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// A cron expression.
    Schedule(String),
    /// A person or a program, by name.
    Request(String),
}

raingauge_core::names! {
    /// How a run ended.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// Every node was compacted.
        Finished = "finished",
        /// At least one node was not.
        Failed = "failed",
        /// It was stopped on request.
        Stopped = "stopped",
        /// Its window was over.
        WindowOver = "window_over",
        /// The lease was lost to another process, or could not be renewed.
        LeaseLost = "lease_lost",
        /// Another process does maintenance.
        Elsewhere = "elsewhere",
    }
}

/// One node in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub node: String,
    pub rack: String,
    pub state: NodeState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "progress")]
    pub progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Waiting,
    Running,
    Compacted,
    Failed,
    Stopped,
}

impl Run {
    pub(crate) fn new(trigger: Trigger, started_at: i64) -> Self {
        Self { trigger, started_at, ended_at: None, result: None, detail: None, nodes: Vec::new() }
    }
}

impl Compaction {
    pub(crate) fn waiting(node: &Node) -> Self {
        Self {
            node: node.name.clone(),
            rack: node.rack.clone(),
            state: NodeState::Waiting,
            started_at: None,
            seconds: None,
            progress: None,
            error: None,
        }
    }
}

fn progress<S: serde::Serializer>(
    progress: &Option<Progress>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct View<'a> {
        done: u64,
        total: u64,
        unit: &'a str,
    }
    let shown = progress.as_ref().map(|progress| View {
        done: progress.done,
        total: progress.total,
        unit: &progress.unit,
    });
    shown.serialize(serializer)
}
