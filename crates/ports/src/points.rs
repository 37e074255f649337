//! Points: the books that remember them, and the queues of what is to be done.
//!
//! ```text
//!   teller ──▶ Books ── one turn ──▶ entries, wallets, keys, references, totals, budgets, position
//!                                       │
//!   publisher ◀── Books::read ──────────┤        doors ──▶ BookReader
//!   notifier      └──▶ EntryStream      │
//! ```
//!
//! The entries of a book are its journal: numbered without a gap, never changed, and chained by
//! hashes. All else is a function of them, [`raingauge_points::Snapshot::apply`], by which every
//! engine recovers. A turn is decided alone in its books, over what they hold.

mod awards;
mod books;
mod chain;
mod entry_stream;
mod queue;
mod queue_control;
mod queue_limits;
mod reader;
mod turns;
mod verified;

pub use awards::{Award, Awarded, NotAwarded, Points, Worth};
pub use books::{Books, DueWallet, Head};
pub use chain::Chain;
pub use entry_stream::EntryStream;
pub use queue::{
    Burial, Letter, QueueError, QueueName, Queues, Receipt, Receive, ReceivedLetter, Shelf,
    check_len, check_send, send_all, shortened,
};
pub use queue_control::{Death, Depth, LetterSelection, PeekedLetter, QueueControl};
pub use queue_limits::{
    QUEUE_BODY_LEN_MAX, QUEUE_CALL_LEN_MAX, QUEUE_DELAY_S_MAX, QUEUE_ERROR_LEN_MAX,
    QUEUE_ID_LEN_MAX, QUEUE_IN_FLIGHT_MAX, QUEUE_VISIBILITY_S_MAX, QUEUE_WAIT_S_MAX,
};
pub use reader::{BookReader, FoundEntry};
pub use turns::EncodedTurn;
pub use verified::{BookDifference, Verified, VerifiedBooks};

use crate::log::Offset;

/// Why books could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The turn contradicts itself or the books, which is a defect. Nothing was written.
    #[error("the turn is invalid: {0}")]
    Invalid(String),
    /// The disk is almost full. Nothing was written, and the caller may try again when there is
    /// more room.
    #[error(
        "the disk of the books has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room on it"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// The write failed, and nothing of it is in the books. The caller may try again.
    #[error("the books could not be written, and nothing was taken: {0}; try again")]
    NotTaken(String),
    /// The database cannot be reached. Whether the turn was written is unknown; the caller repeats
    /// it, and keys keep it from happening twice.
    #[error("the books cannot be reached: {0}")]
    Unavailable(String),
    /// A write failed, and whether it is in the books is unknown until they are opened again. They
    /// accept nothing until then.
    #[error("the books take no more entries: {0}")]
    Closed(String),
    /// The event log ends before the position, so it is not the one that the books were made from.
    #[error(
        "the books of points include the event log up to offset {position}, but the log ends at {end}: \
         restore both from the same backup"
    )]
    LogTooShort { position: Offset, end: Offset },
    #[error("the books of points are damaged: {0}")]
    Corrupt(String),
    #[error("the books of points could not be read or written: {0}")]
    Io(String),
    /// Another process has the data folder open.
    #[error("the data folder is in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}
