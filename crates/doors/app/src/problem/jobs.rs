//! Refusals of jobs that read events of the past, and of the ledger of campaigns.

use super::Problem;
use raingauge_core::code::Code;
use raingauge_ports::campaigns;
use raingauge_replay::Error;
use std::time::Duration;

/// Advised wait while too many jobs wait.
const JOBS_RETRY_AFTER: Duration = Duration::from_secs(5);

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::Invalid(problems) => Self::invalid(Code::CampaignInvalid, &problems),
            Error::UnknownCampaign(_) => Self::new(Code::DocumentUnknown, detail),
            Error::UnknownJob(_) => Self::new(Code::JobUnknown, detail),
            Error::TooManyJobs => {
                Self::new(Code::TooManyJobs, detail).retry_after(JOBS_RETRY_AFTER)
            }
            Error::TooLarge(_) => Self::new(Code::BodyTooLarge, detail),
            Error::Event { .. } => Self::new(Code::EventMalformed, detail),
            Error::Busy(full) => full.into(),
            Error::Log(error) => error.into(),
            Error::Ledger(error) => error.into(),
            Error::Documents(_) => Self::unavailable(detail),
            Error::Cancelled | Error::Failed(_) => Self::new(Code::Failed, detail),
        }
    }
}

impl From<campaigns::Error> for Problem {
    fn from(error: campaigns::Error) -> Self {
        let code = match error {
            campaigns::Error::Full { .. } => Code::DiskFull,
            campaigns::Error::Invalid(_) => Code::Failed,
            _ => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}
