//! Why the worker makes no progress.

use raingauge_ports::campaigns::{self, documents};
use raingauge_ports::log::{self, Offset};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Ledger(#[from] campaigns::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Documents(#[from] documents::Error),
    /// A control entry names a version that the store does not have.
    #[error("version {version} of {kind} {id} takes effect, but the database does not have it")]
    DocumentMissing { kind: String, id: String, version: u32 },
    /// A newer version of this program wrote it.
    #[error(
        "the control entry for campaigns at offset {offset} is one that this program does not \
         know: {why}; upgrade raingauge"
    )]
    UnknownControl { offset: Offset, why: String },
    /// The worker's own state was written by a newer version, or is damaged.
    #[error("the state of the campaign worker cannot be read: {0}")]
    Control(String),
    #[error("the thread of the campaign worker could not be started: {0}")]
    Thread(std::io::Error),
}

impl Error {
    /// Whether trying again may help. Otherwise the worker stops.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Ledger(error) => {
                matches!(error, campaigns::Error::Io(_) | campaigns::Error::Full { .. })
            }
            Self::Log(error) => matches!(error, log::Error::Io(_)),
            Self::Documents(_) | Self::DocumentMissing { .. } => true,
            Self::UnknownControl { .. } | Self::Control(_) | Self::Thread(_) => false,
        }
    }
}
