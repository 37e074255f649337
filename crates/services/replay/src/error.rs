//! Why a replay has no answer.

use raingauge_campaigns::campaign::CampaignId;
use raingauge_core::counter::Problem;
use raingauge_ports::campaigns::{self, documents};
use raingauge_ports::{log, scans};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Everything that is wrong with the request.
    #[error("the request cannot be replayed: {}", listed(.0))]
    Invalid(Vec<Problem>),
    #[error("there is no campaign {0}")]
    UnknownCampaign(CampaignId),
    #[error("there is no job {0}: results are kept for an hour")]
    UnknownJob(String),
    #[error("too many jobs are waiting: try again when one has ended")]
    TooManyJobs,
    /// A limit is exceeded.
    #[error("{0}")]
    TooLarge(String),
    /// An event that the caller sent. Lines are numbered from 1.
    #[error("line {line} of the events: {detail}")]
    Event { line: u64, detail: String },
    #[error("it was cancelled")]
    Cancelled,
    #[error(transparent)]
    Busy(#[from] scans::Full),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Ledger(#[from] campaigns::Error),
    #[error(transparent)]
    Documents(#[from] documents::Error),
    #[error("it ended with an error inside the server: {0}")]
    Failed(String),
}

impl Error {
    /// A request that is wrong in one member.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![Problem::new(field, detail)])
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}
