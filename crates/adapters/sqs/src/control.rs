//! What operators see and do. SQS shows a message only to those who receive it.

use crate::calls;
use crate::envelope;
use crate::queues::{RemoteQueues, number_of, opened, receipt_of, receives_of};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{
    Death, Depth, LetterSelection, PeekedLetter, QUEUE_CALL_LEN_MAX, QueueControl, QueueError,
    QueueName, Receipt, Shelf,
};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// For how long letters are hidden from others while an operator looks at them. They are hidden
/// no longer when the process ends before it shows them again.
const LOOK: Duration = Duration::from_secs(120);
/// How long a look takes at most. What is then done with its letters is done while they are hidden,
/// so that no other look does it too.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// The wait of a look: a receive that waits asks all servers of a queue, one that does not asks
/// some of them, and may find nothing in a queue that has letters.
const LOOK_WAIT: Duration = Duration::from_secs(1);
/// Most dead letters that one call examines.
const EXAMINED_MAX: usize = 10_000;
/// The reason of letters that SQS itself moved to the dead.
const RECEIVED_TOO_OFTEN: &str = "received_too_often";

/// Messages that are hidden for a moment.
struct Look {
    selected: Vec<Message>,
    others: Vec<Receipt>,
}

impl RemoteQueues {
    /// Receives messages until enough are selected, or all were seen.
    async fn look(
        &self,
        url: &str,
        len_max: usize,
        selection: &LetterSelection,
    ) -> Result<Look, QueueError> {
        let mut look = Look { selected: Vec::new(), others: Vec::new() };
        let mut seen: HashSet<String> = HashSet::new();
        let until = Instant::now() + LOOK_MAX;
        while look.selected.len() < len_max && seen.len() < EXAMINED_MAX && Instant::now() < until {
            let left = len_max - look.selected.len();
            let next = calls::receive(&self.client, url, left, LOOK, LOOK_WAIT).await?;
            if next.is_empty() {
                break;
            }
            for message in next {
                // A message may be received twice in spite of all.
                if !seen.insert(message.message_id().unwrap_or_default().to_owned()) {
                    continue;
                }
                if selection.includes(&opened(&message).letter) {
                    look.selected.push(message);
                } else {
                    look.others.push(receipt_of(&message));
                }
            }
        }
        Ok(look)
    }

    async fn show(&self, url: &str, receipts: Vec<Receipt>) -> Result<(), QueueError> {
        let changes = receipts.into_iter().map(|receipt| (receipt, Duration::ZERO)).collect();
        calls::change_visibility(&self.client, url, changes).await
    }

    async fn attributes(&self, url: &str) -> Result<(u64, u64), QueueError> {
        let asked = client_attributes()
            .into_iter()
            .fold(self.client.get_queue_attributes().queue_url(url), |asked, name| {
                asked.attribute_names(name)
            });
        let found = asked.send().await.map_err(calls::unavailable)?;
        let number = |name: &QueueAttributeName| -> u64 {
            let value = found.attributes().and_then(|all| all.get(name));
            value.and_then(|value| value.parse().ok()).unwrap_or_default()
        };
        let [visible, delayed, in_flight] = client_attributes().map(|name| number(&name));
        Ok((visible + delayed, in_flight))
    }

    /// Removes selected dead letters, once they are sent again if they are redriven.
    async fn remove_dead(
        &self,
        queue: QueueName,
        selection: LetterSelection,
        is_redriven: bool,
    ) -> Result<usize, QueueError> {
        let dead = self.url(queue, Shelf::Dead);
        let look = self.look(dead, QUEUE_CALL_LEN_MAX, &selection).await?;
        if is_redriven {
            let letters = look.selected.iter().map(|message| opened(message).letter);
            let sealed = letters.map(|letter| envelope::seal(&letter, None));
            let texts = sealed.collect::<Result<Vec<_>, _>>()?;
            let waiting = self.url(queue, Shelf::Waiting);
            calls::send(&self.client, waiting, texts, Duration::ZERO).await?;
        }

        let removed = look.selected.len();
        let receipts = look.selected.iter().map(receipt_of).collect();
        calls::delete(&self.client, dead, receipts).await?;
        self.show(dead, look.others).await?;
        Ok(removed)
    }
}

/// Visible, delayed, in flight.
fn client_attributes() -> [QueueAttributeName; 3] {
    [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ]
}

fn peeked(message: &Message, shelf: Shelf) -> PeekedLetter {
    let opened = opened(message);
    let sent_ms = number_of(message, &MessageSystemAttributeName::SentTimestamp);
    let receives = receives_of(message);
    let (death, sent_ms) = match (shelf, opened.death) {
        (Shelf::Waiting, _) => (None, sent_ms),
        (Shelf::Dead, Some((death, sent_ms))) => (Some(death), sent_ms),
        // SQS keeps the time of the first send when it moves a message itself, and says no more.
        (Shelf::Dead, None) => {
            let death = Death {
                reason: RECEIVED_TOO_OFTEN.to_owned(),
                last_error: "its receiver ended each time".to_owned(),
                attempts: receives,
                died_ms: sent_ms,
            };
            (Some(death), sent_ms)
        }
    };
    let receives = death.as_ref().map_or(receives, |death| death.attempts);
    PeekedLetter { letter: opened.letter, receives, sent_ms, visible_ms: None, death }
}

impl QueueControl for RemoteQueues {
    fn depth(&self, queue: QueueName) -> BoxFuture<'_, Result<Depth, QueueError>> {
        Box::pin(async move {
            let (waiting, in_flight) = self.attributes(self.url(queue, Shelf::Waiting)).await?;
            let (dead, looked_at) = self.attributes(self.url(queue, Shelf::Dead)).await?;
            Ok(Depth { waiting, in_flight, dead: dead + looked_at, oldest_ms: None })
        })
    }

    fn shows_hidden(&self) -> bool {
        false
    }

    fn peek(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<PeekedLetter>, QueueError>> {
        Box::pin(async move {
            let url = self.url(queue, shelf);
            let len_max = len_max.min(QUEUE_CALL_LEN_MAX);
            let look = self.look(url, len_max, &LetterSelection::All).await?;
            let found = look.selected.iter().map(|message| peeked(message, shelf)).collect();
            self.show(url, look.selected.iter().map(receipt_of).collect()).await?;
            Ok(found)
        })
    }

    fn redrive(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        Box::pin(self.remove_dead(queue, selection, true))
    }

    fn discard(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        Box::pin(self.remove_dead(queue, selection, false))
    }
}
