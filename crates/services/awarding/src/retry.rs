//! The queue `retry`: events that could not be priced, because a row of a table or the award that
//! they refer to was missing.

use crate::awards::{SOON, settled};
use crate::backoff::RetryOptions;
use crate::deps::Deps;
use crate::error::Error;
use crate::intake::Manner;
use crate::letterbox::{Letterbox, MALFORMED, Outcome};
use crate::letters::UnpricedEvent;
use crate::places::newest;
use crate::shared::Shared;
use raingauge_core::event::Event;
use raingauge_points::{Command, Programmes, Unpriced};
use raingauge_ports::points::{Books, QueueName};
use std::sync::Arc;
use std::time::Duration;

/// Most letters of one turn.
const LETTERS_MAX: usize = 500;
/// Longest wait for the first letter.
const WAIT: Duration = Duration::from_secs(1);
/// Pause after an error of the queue.
const PAUSE: Duration = Duration::from_secs(1);
/// The reason of letters that no rule wants any more.
const RULE_GONE: &str = "rule_gone";

/// The receiver of the queue.
pub struct Retry {
    letterbox: Letterbox,
    books: Arc<dyn Books>,
    shared: Arc<Shared>,
}

impl Retry {
    pub fn new(deps: Deps, retry: RetryOptions, shared: Arc<Shared>) -> Self {
        let letterbox = Letterbox::new(deps.queues, deps.clock, QueueName::Retry, retry);
        Self { letterbox, books: deps.books, shared }
    }

    /// Receives until the process ends.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.step(WAIT).await {
                tracing::warn!(%error, "events without a price are not tried again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Tries the letters that are visible. Answers whether there were any.
    pub async fn step(&self, wait: Duration) -> Result<bool, Error> {
        let received = self.letterbox.receive(LETTERS_MAX, wait).await?;
        if received.is_empty() {
            return Ok(false);
        }

        // By an older version, a rule may seem to be gone, or have another price.
        let Some(snapshot) = newest(&self.books, &self.shared).await? else {
            let waiting = received.into_iter().map(|letter| (letter, Outcome::Soon(SOON)));
            self.letterbox.settle(waiting.collect()).await?;
            return Ok(true);
        };
        let mut outcomes = Vec::new();
        let mut commands = Vec::new();
        let mut letters = Vec::new();
        for received in received {
            match priced(&received.letter.body, snapshot.programmes()) {
                Ok(command) => {
                    commands.push(command);
                    letters.push(received);
                }
                Err(outcome) => outcomes.push((received, outcome)),
            }
        }
        let answers = self.shared.decide(commands, Manner::Each).await;
        outcomes.extend(settled(letters, answers));
        self.letterbox.settle(outcomes).await?;
        Ok(true)
    }
}

/// The award of a letter, under the programme in force now.
fn priced(body: &str, programmes: &Programmes) -> Result<Command, Outcome> {
    let malformed = |why: String| Outcome::Dead { reason: MALFORMED, why };
    let letter: UnpricedEvent =
        serde_json::from_str(body).map_err(|error| malformed(error.to_string()))?;
    let event = Event::from_accepted_json(letter.event.get().as_bytes());
    let event = event.map_err(|refusal| malformed(refusal.detail))?;
    let Some(programme) = programmes.get(&letter.programme) else {
        return Err(Outcome::Again(format!("there is no programme {}", letter.programme)));
    };

    for priced in programme.price_event(&event) {
        match priced {
            Ok(command) if command.key == letter.key => return Ok(command),
            Err(Unpriced::Missing { key, detail, .. }) if key == letter.key => {
                return Err(Outcome::Again(detail));
            }
            Err(Unpriced::Refused { key, refusal, .. }) if key == letter.key => {
                let reason = refusal.code.as_str();
                return Err(Outcome::Dead { reason, why: refusal.detail });
            }
            _ => {}
        }
    }
    let why = "no rule of the programme wants the event any more".to_owned();
    Err(Outcome::Dead { reason: RULE_GONE, why })
}
