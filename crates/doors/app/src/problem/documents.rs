//! Refusals of documents of products, and of the tables that they describe.

use super::Problem;
use raingauge_core::code::Code;
use raingauge_documents::Error;
use raingauge_ports::campaigns::TableError;
use serde_json::json;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::NotFound { .. } | Error::VersionUnknown { .. } | Error::KindUnknown(_) => {
                Self::new(Code::DocumentUnknown, detail)
            }
            Error::Taken { .. } => Self::new(Code::IdTaken, detail),
            Error::Conflict { current, .. } => {
                Self::new(Code::VersionMismatch, detail).with("currentVersion", json!(current))
            }
            Error::Invalid { kind, problems } => Self::invalid(invalid_code(&kind), &problems),
            Error::Refused(_) => Self::new(Code::ChangeRefused, detail),
            Error::ApprovalNeeded(_) => Self::new(Code::ApprovalNeeded, detail),
            Error::Row { .. } | Error::Upload(_) => Self::new(Code::TableInvalid, detail),
            Error::Table(error) => error.into(),
            Error::Log(error) => error.into(),
            Error::Store(_) | Error::NotInEffect { .. } => Self::unavailable(detail),
        }
    }
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        let code = match error {
            TableError::Replaced(_) => Code::ChangeRefused,
            TableError::TooLarge(_) => Code::BodyTooLarge,
            TableError::Full { .. } => Code::DiskFull,
            _ => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

/// The code of a document that is wrong. The main kinds of products have codes of their own.
pub fn invalid_code(kind: &str) -> Code {
    match kind {
        "campaign" => Code::CampaignInvalid,
        "programme" => Code::ProgrammeInvalid,
        _ => Code::DocumentInvalid,
    }
}
