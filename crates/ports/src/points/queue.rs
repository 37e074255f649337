//! Queues of letters, with the semantics of SQS on every engine.
//!
//! ```text
//!   send ──delay──▶ visible ──receive──▶ in flight ──delete──▶ gone
//!                      ▲                     │ └─────bury────▶ dead ──discard──▶ gone
//!                      ├── visibility passes ┘                  │
//!                      └───────────────── redrive ──────────────┘
//! ```
//!
//! A letter is received at least once, and roughly in the order in which letters become visible.
//! The receiver deletes it when its effect is durable. A retry that waits changes the visibility
//! and never sends the letter again, so that attempts and age are counted from the first send.

use super::queue_limits::{
    QUEUE_BODY_LEN_MAX, QUEUE_CALL_LEN_MAX, QUEUE_DELAY_S_MAX, QUEUE_ERROR_LEN_MAX,
    QUEUE_ID_LEN_MAX, QUEUE_VISIBILITY_S_MAX, QUEUE_WAIT_S_MAX,
};
use crate::BoxFuture;
use crate::record::identity;
use raingauge_points::Command;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// A limit of queues is exceeded. Nothing was done.
    #[error("{0}")]
    TooLarge(String),
    /// The disk is almost full. The caller may try again when there is more room.
    #[error(
        "the disk of the queues has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room on it"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// The engine did not answer, or refused for now.
    #[error("the queue is out of reach: {0}")]
    Unavailable(String),
    #[error("the queues are damaged: {0}")]
    Corrupt(String),
    #[error("the queues could not be read or written: {0}")]
    Io(String),
    #[error("the queues are in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}

/// The queues that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueName {
    /// Awards that were accepted and are not yet in the ledger.
    Award = 1,
    /// Events that could not be priced yet.
    Retry = 2,
    /// Ranges of wallets that a sweep has to settle.
    Expiry = 3,
    /// Notifications that failed.
    Notify = 4,
}

/// Where a queue keeps a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shelf {
    /// It is to be received, now or later.
    Waiting,
    /// Its receiver gave up. An operator decides.
    Dead,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// What the letter is about, the same each time it is sent. A queue may hold it twice.
    pub id: String,
    pub body: String,
    /// Why it had to be sent at all, where that was an error.
    pub first_error: Option<String>,
}

/// The right to settle one receive of a letter. It is void once the letter was received again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(pub String);

/// A letter in the hands of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedLetter {
    pub letter: Letter,
    pub receipt: Receipt,
    /// How often it was received, this time included. An engine may lose a few.
    pub receives: u32,
    /// When it was sent, or last redriven, in milliseconds since 1970.
    pub sent_ms: i64,
}

/// How letters are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Most letters. A call may return fewer although more are visible.
    pub len_max: usize,
    /// For how long no other call receives them.
    pub visibility: Duration,
    /// How long to wait for the first letter; zero to answer at once.
    pub wait: Duration,
}

/// A letter that its receiver gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burial {
    pub received: ReceivedLetter,
    /// A stable word, such as `malformed` or `too_old`.
    pub reason: String,
    pub last_error: String,
}

/// Sends any number of letters, as [`Queues::send`] does, in as few calls as there can be.
pub async fn send_all(
    queues: &dyn Queues,
    queue: QueueName,
    mut letters: Vec<Letter>,
    delay: Duration,
) -> Result<(), QueueError> {
    while !letters.is_empty() {
        let rest = letters.split_off(letters.len().min(QUEUE_CALL_LEN_MAX));
        queues.send(queue, std::mem::replace(&mut letters, rest), delay).await?;
    }
    Ok(())
}

/// Sends and receives letters.
///
/// Visibility and delays follow the clock of the machine, as those of a server's queue do.
pub trait Queues: Send + Sync {
    /// Sends letters, which are durable when it returns. After an error some of them may have been
    /// sent, and the caller sends all of them again.
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Receives visible letters.
    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>>;

    /// Deletes letters. A void receipt is no error: its letter was or will be received again.
    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Makes letters visible after this time from now on, or at once. Their receipts stay valid
    /// until they are received again; void ones are passed over.
    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Moves letters to the dead ones, where they are durable when it returns. Void receipts are
    /// passed over where the engine notices; otherwise the letter is dead and waits, both.
    fn bury(&self, queue: QueueName, burials: Vec<Burial>)
    -> BoxFuture<'_, Result<(), QueueError>>;
}

impl QueueName {
    pub const ALL: [Self; 4] = [Self::Award, Self::Retry, Self::Expiry, Self::Notify];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Award => "award",
            Self::Retry => "retry",
            Self::Expiry => "expiry",
            Self::Notify => "notify",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| queue.name() == name)
    }

    /// Reads `retry` or `retry.dead`.
    pub fn shelf_from_name(name: &str) -> Option<(Self, Shelf)> {
        match name.strip_suffix(".dead") {
            Some(queue) => Self::from_name(queue).map(|queue| (queue, Shelf::Dead)),
            None => Self::from_name(name).map(|queue| (queue, Shelf::Waiting)),
        }
    }
}

impl Shelf {
    /// The name of a shelf of a queue: `retry` or `retry.dead`.
    pub fn name_of(self, queue: QueueName) -> String {
        match self {
            Self::Waiting => queue.name().to_owned(),
            Self::Dead => format!("{}.dead", queue.name()),
        }
    }
}

impl Letter {
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> Self {
        Self { id: id.into(), body: body.into(), first_error: None }
    }

    /// A command as a letter of the queue `award`.
    pub fn of_command(command: &Command) -> Self {
        // Parts of any length become one of a few bytes.
        let scope = identity(&command.programme, &command.source);
        let key = identity("", &command.key);
        let body = serde_json::to_string(command).expect("commands have plain members");
        Self::new(format!("{scope:032x}:{key:032x}"), body)
    }

    /// Adds the error that made the letter necessary. Only its beginning is stored.
    pub fn because(self, error: impl Into<String>) -> Self {
        Self { first_error: Some(shortened(error.into())), ..self }
    }
}

impl Receive {
    /// The call within its limits: the visibility and the wait are cut to the longest.
    pub fn bounded(self) -> Self {
        Self {
            len_max: self.len_max.min(QUEUE_CALL_LEN_MAX),
            visibility: self.visibility.min(Duration::from_secs(QUEUE_VISIBILITY_S_MAX)),
            wait: self.wait.min(Duration::from_secs(QUEUE_WAIT_S_MAX)),
        }
    }
}

/// Cuts a reason or an error to what is stored of it.
pub fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(QUEUE_ERROR_LEN_MAX));
    text
}

/// Checks what every engine checks before it sends.
pub fn check_send(letters: &[Letter], delay: Duration) -> Result<(), QueueError> {
    check_len(letters.len())?;
    if delay > Duration::from_secs(QUEUE_DELAY_S_MAX) {
        return Err(QueueError::TooLarge(format!(
            "a letter is delayed by at most {QUEUE_DELAY_S_MAX} s: receive it and change its visibility"
        )));
    }

    for Letter { id, body, .. } in letters {
        if id.len() > QUEUE_ID_LEN_MAX {
            return Err(QueueError::TooLarge(format!(
                "the id of a letter has at most {QUEUE_ID_LEN_MAX} bytes"
            )));
        }
        if body.len() > QUEUE_BODY_LEN_MAX {
            return Err(QueueError::TooLarge(format!(
                "the body of a letter has at most {QUEUE_BODY_LEN_MAX} bytes"
            )));
        }
    }
    Ok(())
}

/// Checks the number of letters, receipts or burials of a call.
pub fn check_len(len: usize) -> Result<(), QueueError> {
    if len > QUEUE_CALL_LEN_MAX {
        return Err(QueueError::TooLarge(format!(
            "a call to a queue has at most {QUEUE_CALL_LEN_MAX} letters"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_points::Body;

    #[test]
    fn shelves_have_names() {
        for queue in QueueName::ALL {
            for shelf in [Shelf::Waiting, Shelf::Dead] {
                let name = shelf.name_of(queue);
                assert_eq!(QueueName::shelf_from_name(&name), Some((queue, shelf)));
            }
        }
        for unknown in ["", ".dead", "retry.dead.dead", "Retry"] {
            assert_eq!(QueueName::shelf_from_name(unknown), None);
        }
    }

    #[test]
    fn a_command_has_one_letter() {
        let command = |programme: &str, source: &str, key: &str| Command {
            programme: programme.into(),
            member: "amy".into(),
            key: key.into(),
            source: source.into(),
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: None,
            body: Body::Close,
        };
        let first = Letter::of_command(&command("p", "", "k"));
        assert_eq!(serde_json::from_str::<Command>(&first.body).unwrap(), command("p", "", "k"));
        assert_eq!(Letter::of_command(&command("p", "", "k")), first);
        for other in [command("q", "", "k"), command("p", "events", "k"), command("p", "", "l")] {
            assert_ne!(Letter::of_command(&other).id, first.id);
        }
        let long = command("p", "events", &"k".repeat(10_000));
        assert!(Letter::of_command(&long).id.len() <= QUEUE_ID_LEN_MAX);
    }

    #[test]
    fn errors_are_cut_between_characters() {
        let letter = Letter::new("a", "b").because("ü".repeat(QUEUE_ERROR_LEN_MAX));
        let stored = letter.first_error.unwrap();
        assert_eq!(stored, "ü".repeat(QUEUE_ERROR_LEN_MAX / 2));
    }
}
