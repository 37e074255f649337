//! Why a worker ends.

use raingauge_consumers::Overtaken;
use raingauge_ports::buckets;
use raingauge_ports::log::{self, Offset};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Buckets(#[from] buckets::Error),
    #[error("{0}")]
    State(String),
    #[error(
        "the bucket store includes the log up to offset {position}, but the log ends at {end}: \
         restore both from the same backup"
    )]
    LogTooShort { position: Offset, end: Offset },
    #[error(
        "{0}. `raingauge skip-lost --partition {partition}` goes on behind it",
        partition = .0.partition
    )]
    Lost(Overtaken),
    #[error("the worker's thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}
