//! Queues as operators see them: how much waits, what died, and what becomes of it.

use super::queue::{Letter, QueueError, QueueName, Shelf};
use crate::BoxFuture;

/// How much a queue holds. A server's figures lag behind by seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Letters that are visible, or will be after their delay.
    pub waiting: u64,
    /// Letters that were received, and neither deleted nor visible again.
    pub in_flight: u64,
    pub dead: u64,
    /// When the oldest letter was sent, waiting or in flight, in milliseconds since 1970; `None`
    /// for an empty queue, and where the engine does not say.
    pub oldest_ms: Option<i64>,
}

/// A letter, seen without being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeekedLetter {
    pub letter: Letter,
    pub receives: u32,
    /// When it was sent, or last redriven, in milliseconds since 1970.
    pub sent_ms: i64,
    /// When it becomes or became visible; `None` for dead letters, and where the engine does not
    /// say.
    pub visible_ms: Option<i64>,
    pub death: Option<Death>,
}

/// Why and when a letter was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// A stable word, such as `malformed` or `too_old`.
    pub reason: String,
    pub last_error: String,
    /// How often it was received.
    pub attempts: u32,
    /// Milliseconds since 1970.
    pub died_ms: i64,
}

/// Which dead letters an operator changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterSelection {
    All,
    /// Those with one of these ids.
    Ids(Vec<String>),
}

impl LetterSelection {
    pub fn includes(&self, letter: &Letter) -> bool {
        match self {
            Self::All => true,
            Self::Ids(ids) => ids.contains(&letter.id),
        }
    }
}

/// Looks into queues, and decides about dead letters.
pub trait QueueControl: Send + Sync {
    /// How much a queue holds.
    fn depth(&self, queue: QueueName) -> BoxFuture<'_, Result<Depth, QueueError>>;

    /// Whether [`QueueControl::peek`] also returns letters that are hidden: delayed, or received
    /// and neither deleted nor visible again. Where it does not, [`Depth`] still counts them.
    fn shows_hidden(&self) -> bool;

    /// Returns the first letters of a shelf, at most [`QUEUE_CALL_LEN_MAX`]. They are not received.
    ///
    /// [`QUEUE_CALL_LEN_MAX`]: super::QUEUE_CALL_LEN_MAX
    fn peek(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<PeekedLetter>, QueueError>>;

    /// Sends dead letters to their queue again; attempts and age count from 0. Returns how many:
    /// those of a large selection are moved [`QUEUE_CALL_LEN_MAX`] at a time, until a call returns
    /// 0.
    ///
    /// [`QUEUE_CALL_LEN_MAX`]: super::QUEUE_CALL_LEN_MAX
    fn redrive(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>>;

    /// Removes dead letters for ever. Returns how many, as [`QueueControl::redrive`] does.
    fn discard(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>>;
}
