//! The queue `award`: commands that were accepted, on their way into the ledger.

use crate::backoff::RetryOptions;
use crate::deps::Deps;
use crate::error::Error;
use crate::intake::Manner;
use crate::letterbox::{Letterbox, MALFORMED, Outcome};
use crate::shared::Shared;
use raingauge_core::code::Code;
use raingauge_points::{Answer, Command};
use raingauge_ports::points::{QueueName, ReceivedLetter};
use std::sync::Arc;
use std::time::Duration;

/// Most letters of one turn.
const LETTERS_MAX: usize = 500;
/// Longest wait for the first letter.
const WAIT: Duration = Duration::from_secs(1);
/// Pause after an error of the queue.
const PAUSE: Duration = Duration::from_secs(1);
/// When a letter comes back that the ledger could not take.
pub const SOON: Duration = Duration::from_secs(2);

/// The receiver of the queue.
pub struct Awards {
    letterbox: Letterbox,
    shared: Arc<Shared>,
}

impl Awards {
    pub fn new(deps: Deps, retry: RetryOptions, shared: Arc<Shared>) -> Self {
        let letterbox = Letterbox::new(deps.queues, deps.clock, QueueName::Award, retry);
        Self { letterbox, shared }
    }

    /// Receives until the process ends.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.step(WAIT).await {
                tracing::warn!(%error, "awards that were queued are not made");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Decides the letters that are visible. Answers whether there were any.
    pub async fn step(&self, wait: Duration) -> Result<bool, Error> {
        let received = self.letterbox.receive(LETTERS_MAX, wait).await?;
        if received.is_empty() {
            return Ok(false);
        }

        let mut outcomes = Vec::new();
        let mut commands = Vec::new();
        let mut letters = Vec::new();
        for received in received {
            match serde_json::from_str::<Command>(&received.letter.body) {
                Ok(command) => {
                    let accepted_ms = command.accepted_ms.or(Some(received.sent_ms));
                    commands.push(Command { accepted_ms, ..command });
                    letters.push(received);
                }
                Err(error) => {
                    let outcome = Outcome::Dead { reason: MALFORMED, why: error.to_string() };
                    outcomes.push((received, outcome));
                }
            }
        }
        let answers = self.shared.decide(commands, Manner::Each).await;
        outcomes.extend(settled(letters, answers));
        self.letterbox.settle(outcomes).await?;
        Ok(true)
    }
}

/// What becomes of letters whose commands were answered.
pub fn settled(
    letters: Vec<ReceivedLetter>,
    answers: Vec<Result<Answer, Error>>,
) -> impl Iterator<Item = (ReceivedLetter, Outcome)> {
    letters.into_iter().zip(answers).map(|(letter, answer)| (letter, outcome(answer)))
}

fn outcome(answer: Result<Answer, Error>) -> Outcome {
    match answer {
        Ok(Answer::Done(_) | Answer::Replayed(_) | Answer::Refused { .. }) => Outcome::Done,
        Ok(Answer::Invalid(refusal)) if may_come(refusal.code) => Outcome::Again(refusal.detail),
        Ok(Answer::Invalid(refusal)) => {
            Outcome::Dead { reason: refusal.code.as_str(), why: refusal.detail }
        }
        Err(Error::Busy { retry_after }) => Outcome::Soon(retry_after),
        Err(_) => Outcome::Soon(SOON),
    }
}

/// Whether what is missing may be on its way, or make room.
fn may_come(code: Code) -> bool {
    matches!(
        code,
        Code::FactorMissing | Code::ReferenceUnknown | Code::HoldUnknown | Code::WalletFull
    )
}
