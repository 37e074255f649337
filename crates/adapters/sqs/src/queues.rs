//! Letters in and out.

use crate::calls;
use crate::envelope::{self, Opened};
use crate::names::{Addresses, Options};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{
    Burial, Death, Letter, QUEUE_VISIBILITY_S_MAX, QueueError, QueueName, Queues, Receipt, Receive,
    ReceivedLetter, Shelf, check_len, check_send, shortened,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of letters after which a receive takes no further ones.
const RECEIVE_BYTES_MAX: usize = 4 << 20;

/// The queues of one prefix. Any number of processes use them together.
pub struct RemoteQueues {
    pub(crate) client: Client,
    pub(crate) addresses: Addresses,
}

impl RemoteQueues {
    /// Finds the queues, and makes those that are missing.
    pub async fn open(options: &Options) -> Result<Self, QueueError> {
        let client = options.client()?;
        let addresses = options.addresses(&client).await?;
        Ok(Self { client, addresses })
    }

    pub(crate) fn url(&self, queue: QueueName, shelf: Shelf) -> &str {
        self.addresses.get(queue, shelf)
    }

    async fn receive_up_to(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> Result<Vec<ReceivedLetter>, QueueError> {
        let url = self.url(queue, Shelf::Waiting);
        let mut received: Vec<ReceivedLetter> = Vec::new();
        let mut bytes = 0;
        while received.len() < receive.len_max && bytes < RECEIVE_BYTES_MAX {
            // The first call alone waits.
            let wait = if received.is_empty() { receive.wait } else { Duration::ZERO };
            let left = receive.len_max - received.len();
            let next = match calls::receive(&self.client, url, left, receive.visibility, wait).await
            {
                Ok(next) if next.is_empty() => break,
                Ok(next) => next,
                // What was received before it is hidden, and would come late.
                Err(error) if !received.is_empty() => {
                    tracing::debug!(%error, "a receive ends early");
                    break;
                }
                Err(error) => return Err(error),
            };
            bytes += next.iter().filter_map(Message::body).map(str::len).sum::<usize>();
            received.extend(next.into_iter().map(letter_of));
        }
        Ok(received)
    }
}

/// A message of another program is a letter too: its receiver finds it malformed, and buries it.
pub fn opened(message: &Message) -> Opened {
    let text = message.body().unwrap_or_default();
    envelope::open(text).unwrap_or_else(|| {
        let id = message.message_id().unwrap_or_default();
        Opened { letter: Letter::new(id, text), death: None }
    })
}

/// An attribute that is a number; 0 if the server does not say it.
pub fn number_of(message: &Message, name: &MessageSystemAttributeName) -> i64 {
    let value = message.attributes().and_then(|all| all.get(name));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

pub fn receives_of(message: &Message) -> u32 {
    let receives = number_of(message, &MessageSystemAttributeName::ApproximateReceiveCount);
    u32::try_from(receives).unwrap_or(u32::MAX)
}

pub fn receipt_of(message: &Message) -> Receipt {
    Receipt(message.receipt_handle().unwrap_or_default().to_owned())
}

fn letter_of(message: Message) -> ReceivedLetter {
    ReceivedLetter {
        letter: opened(&message).letter,
        receipt: receipt_of(&message),
        receives: receives_of(&message),
        sent_ms: number_of(&message, &MessageSystemAttributeName::SentTimestamp),
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl Queues for RemoteQueues {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_send(&letters, delay)?;
            let sealed = letters.iter().map(|letter| envelope::seal(letter, None));
            let texts = sealed.collect::<Result<Vec<_>, _>>()?;
            calls::send(&self.client, self.url(queue, Shelf::Waiting), texts, delay).await
        })
    }

    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>> {
        Box::pin(self.receive_up_to(queue, receive.bounded()))
    }

    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(receipts.len())?;
            calls::delete(&self.client, self.url(queue, Shelf::Waiting), receipts).await
        })
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(changes.len())?;
            let within = |(receipt, visibility): (Receipt, Duration)| {
                (receipt, visibility.min(Duration::from_secs(QUEUE_VISIBILITY_S_MAX)))
            };
            let changes = changes.into_iter().map(within).collect();
            let url = self.url(queue, Shelf::Waiting);
            calls::change_visibility(&self.client, url, changes).await
        })
    }

    /// Sent to the dead first, so that no letter is in neither queue.
    fn bury(
        &self,
        queue: QueueName,
        burials: Vec<Burial>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(burials.len())?;
            let died_ms = now_ms();
            let sealed = burials.iter().map(|burial| {
                let death = Death {
                    reason: shortened(burial.reason.clone()),
                    last_error: shortened(burial.last_error.clone()),
                    attempts: burial.received.receives,
                    died_ms,
                };
                envelope::seal_dead(&burial.received.letter, &death, burial.received.sent_ms)
            });
            let texts = sealed.collect::<Result<Vec<_>, _>>()?;
            let dead = self.url(queue, Shelf::Dead);
            calls::send(&self.client, dead, texts, Duration::ZERO).await?;

            let receipts = burials.into_iter().map(|burial| burial.received.receipt).collect();
            calls::delete(&self.client, self.url(queue, Shelf::Waiting), receipts).await
        })
    }
}

#[cfg(test)]
mod tests;
