//! Queues in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{
    self, Burial, Death, Depth, Letter, LetterSelection, PeekedLetter, QUEUE_CALL_LEN_MAX,
    QUEUE_IN_FLIGHT_MAX, QueueControl, QueueError, QueueName, Receipt, Receive, ReceivedLetter,
    Shelf, check_len, check_send, shortened,
};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often a waiting receive looks at the clock.
const LOOK: Duration = Duration::from_millis(20);

pub struct Queues {
    content: Mutex<Content>,
    sent: Notify,
    clock: Arc<dyn Clock>,
    shows_hidden: bool,
}

#[derive(Default)]
struct Content {
    /// The number of the newest letter, so that each has one of its own.
    newest: u64,
    waiting: BTreeMap<(QueueName, u64), Waiting>,
    dead: BTreeMap<(QueueName, u64), (Waiting, Death)>,
}

#[derive(Clone)]
struct Waiting {
    letter: Letter,
    sent_ms: i64,
    visible_ms: i64,
    receives: u32,
}

impl Content {
    fn put(&mut self, queue: QueueName, letter: Letter, sent_ms: i64, visible_ms: i64) {
        self.newest += 1;
        let waiting = Waiting { letter, sent_ms, visible_ms, receives: 0 };
        self.waiting.insert((queue, self.newest), waiting);
    }

    /// The letters of a queue, as they become visible.
    fn in_order(&self, queue: QueueName) -> Vec<(i64, u64)> {
        let own = self.waiting.range((queue, 0)..=(queue, u64::MAX));
        let mut order: Vec<_> =
            own.map(|((_, number), waiting)| (waiting.visible_ms, *number)).collect();
        order.sort_unstable();
        order
    }

    fn receive(&mut self, queue: QueueName, receive: Receive, now_ms: i64) -> Vec<ReceivedLetter> {
        let order = self.in_order(queue);
        let in_flight = self.depth(queue, now_ms).in_flight as usize;
        let len_max = receive.len_max.min(QUEUE_IN_FLIGHT_MAX.saturating_sub(in_flight));
        let visible = order.into_iter().take_while(|(visible_ms, _)| *visible_ms <= now_ms);

        let mut received = Vec::new();
        for (_, number) in visible.take(len_max) {
            let Some(waiting) = self.waiting.get_mut(&(queue, number)) else { continue };
            waiting.receives += 1;
            waiting.visible_ms = now_ms + receive.visibility.as_millis() as i64;
            received.push(ReceivedLetter {
                letter: waiting.letter.clone(),
                receipt: Receipt(format!("{number}-{}", waiting.receives)),
                receives: waiting.receives,
                sent_ms: waiting.sent_ms,
            });
        }
        received
    }

    /// The key of the letter that a receipt is for; `None` if it is void.
    fn receipted(&self, queue: QueueName, receipt: &Receipt) -> Option<(QueueName, u64)> {
        let (number, receives) = receipt.0.split_once('-')?;
        let key = (queue, number.parse().ok()?);
        let waiting = self.waiting.get(&key)?;
        (waiting.receives.to_string() == receives).then_some(key)
    }

    fn bury(&mut self, queue: QueueName, burial: Burial, died_ms: i64) {
        let Burial { received, reason, last_error } = burial;
        let Some(key) = self.receipted(queue, &received.receipt) else { return };
        if let Some(waiting) = self.waiting.remove(&key) {
            let death = Death {
                reason: shortened(reason),
                last_error: shortened(last_error),
                attempts: waiting.receives,
                died_ms,
            };
            self.dead.insert(key, (waiting, death));
        }
    }

    /// Removes selected dead letters, as many as one call may.
    fn exhume(&mut self, queue: QueueName, selection: &LetterSelection) -> Vec<Letter> {
        let own = self.dead.range((queue, 0)..=(queue, u64::MAX));
        let selected = own.filter(|(_, (waiting, _))| selection.includes(&waiting.letter));
        let keys: Vec<_> = selected.map(|(key, _)| *key).take(QUEUE_CALL_LEN_MAX).collect();
        let removed = keys.iter().filter_map(|key| self.dead.remove(key));
        removed.map(|(waiting, _)| waiting.letter).collect()
    }

    fn depth(&self, queue: QueueName, now_ms: i64) -> Depth {
        let all = (queue, 0)..=(queue, u64::MAX);
        let mut depth =
            Depth { dead: self.dead.range(all.clone()).count() as u64, ..Depth::default() };
        for (_, waiting) in self.waiting.range(all) {
            // A letter that is to come back is in flight; one that was never received is delayed.
            if waiting.visible_ms > now_ms && waiting.receives > 0 {
                depth.in_flight += 1;
            } else {
                depth.waiting += 1;
            }
            let oldest_ms = depth.oldest_ms.unwrap_or(i64::MAX).min(waiting.sent_ms);
            depth.oldest_ms = Some(oldest_ms);
        }
        depth
    }

    fn peek(&self, queue: QueueName, shelf: Shelf) -> Vec<PeekedLetter> {
        let peeked = |waiting: &Waiting, visible_ms, death| PeekedLetter {
            letter: waiting.letter.clone(),
            receives: waiting.receives,
            sent_ms: waiting.sent_ms,
            visible_ms,
            death,
        };
        match shelf {
            Shelf::Waiting => {
                let order = self.in_order(queue).into_iter();
                let own = order.filter_map(|(_, number)| self.waiting.get(&(queue, number)));
                own.map(|waiting| peeked(waiting, Some(waiting.visible_ms), None)).collect()
            }
            Shelf::Dead => {
                let own = self.dead.range((queue, 0)..=(queue, u64::MAX));
                own.map(|(_, (waiting, death))| peeked(waiting, None, Some(death.clone())))
                    .collect()
            }
        }
    }
}

impl Queues {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { content: Mutex::default(), sent: Notify::new(), clock, shows_hidden: true }
    }

    /// As an engine whose operators see what can be received, and nothing that is hidden.
    pub fn hiding(clock: Arc<dyn Clock>) -> Self {
        Self { shows_hidden: false, ..Self::new(clock) }
    }

    fn now_ms(&self) -> i64 {
        self.clock.machine_ms()
    }
}

impl points::Queues for Queues {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        let sent = check_send(&letters, delay).map(|()| {
            let now_ms = self.now_ms();
            let visible_ms = now_ms + delay.as_millis() as i64;
            let mut content = self.content.lock();
            for letter in letters {
                content.put(queue, letter, now_ms, visible_ms);
            }
            drop(content);
            self.sent.notify_waiters();
        });
        Box::pin(ready(sent))
    }

    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>> {
        let receive = receive.bounded();
        Box::pin(async move {
            let deadline = Instant::now() + receive.wait;
            loop {
                let received = self.content.lock().receive(queue, receive, self.now_ms());
                if !received.is_empty() || receive.len_max == 0 || Instant::now() >= deadline {
                    return Ok(received);
                }
                // A letter may be sent, or become visible.
                let _ = tokio::time::timeout(LOOK, self.sent.notified()).await;
            }
        })
    }

    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        let deleted = check_len(receipts.len()).map(|()| {
            let mut content = self.content.lock();
            for receipt in receipts {
                if let Some(key) = content.receipted(queue, &receipt) {
                    content.waiting.remove(&key);
                }
            }
        });
        Box::pin(ready(deleted))
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        let changed = check_len(changes.len()).map(|()| {
            let now_ms = self.now_ms();
            let mut content = self.content.lock();
            for (receipt, visibility) in changes {
                let key = content.receipted(queue, &receipt);
                if let Some(waiting) = key.and_then(|key| content.waiting.get_mut(&key)) {
                    waiting.visible_ms = now_ms + visibility.as_millis() as i64;
                }
            }
            drop(content);
            self.sent.notify_waiters();
        });
        Box::pin(ready(changed))
    }

    fn bury(
        &self,
        queue: QueueName,
        burials: Vec<Burial>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        let buried = check_len(burials.len()).map(|()| {
            let now_ms = self.now_ms();
            let mut content = self.content.lock();
            burials.into_iter().for_each(|burial| content.bury(queue, burial, now_ms));
        });
        Box::pin(ready(buried))
    }
}

impl QueueControl for Queues {
    fn depth(&self, queue: QueueName) -> BoxFuture<'_, Result<Depth, QueueError>> {
        Box::pin(ready(Ok(self.content.lock().depth(queue, self.now_ms()))))
    }

    fn shows_hidden(&self) -> bool {
        self.shows_hidden
    }

    fn peek(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<PeekedLetter>, QueueError>> {
        let now_ms = self.now_ms();
        let mut found = self.content.lock().peek(queue, shelf);
        if !self.shows_hidden {
            found.retain(|one| one.visible_ms.is_none_or(|visible_ms| visible_ms <= now_ms));
        }
        found.truncate(len_max.min(QUEUE_CALL_LEN_MAX));
        Box::pin(ready(Ok(found)))
    }

    fn redrive(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        let now_ms = self.now_ms();
        let mut content = self.content.lock();
        let letters = content.exhume(queue, &selection);
        let moved = letters.len();
        for letter in letters {
            content.put(queue, letter, now_ms, now_ms);
        }
        drop(content);
        self.sent.notify_waiters();
        Box::pin(ready(Ok(moved)))
    }

    fn discard(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        let removed = self.content.lock().exhume(queue, &selection);
        Box::pin(ready(Ok(removed.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::clock::ManualClock;

    #[tokio::test]
    async fn the_contract_is_kept() {
        let clock = Arc::new(ManualClock::at_s(1_727_136_000));
        let pass = async |time: Duration| {
            clock.set_s(clock.now_s() + time.as_secs() as i64);
        };
        raingauge_ports::contract::queues::suite(async || Queues::new(clock.clone()), pass).await;
        let hiding = async || Queues::hiding(clock.clone());
        raingauge_ports::contract::queues::suite(hiding, pass).await;
    }
}
