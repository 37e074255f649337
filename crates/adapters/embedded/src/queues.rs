//! Queues on fjall.
//!
//! ```text
//!   send ──▶ place of its visibility ──receive──▶ later place ──delete──▶ gone
//!              synced                  not synced               not synced
//! ```
//!
//! A power cut may undo receives and deletes, which repeats letters; it loses none, since every
//! commit that a letter depends on is synced: sends, burials and what operators decide.

mod keys;
mod shelves;
mod state;

use crate::room::Room;
use crate::store::{self, Fault, Store, in_background};
use fjall::OwnedWriteBatch;
use keys::{Number, Place};
use parking_lot::Mutex;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{
    Burial, Letter, QUEUE_VISIBILITY_S_MAX, QueueError, QueueName, Queues, Receipt, Receive,
    ReceivedLetter, check_len, check_send,
};
use raingauge_ports::{BoxFuture, log};
use state::{InFlight, State, receipt};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Version of the keys.
const FORMAT: u32 = 1;
const ADVICE: &str = "restore a backup, or remove the folder of the queues: an audit of the coverage finds the \
     awards that it held";
/// Bytes of letters after which a call takes no further one.
const CALL_BYTES_MAX: usize = 4 << 20;

/// Options of the queues.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes of letters that fjall may hold before it writes them.
    pub memtable_bytes: u64,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block_cache_bytes: 8 << 20,
            open_files_max: 100,
            memtable_bytes: 8 << 20,
            reserve_bytes: 0,
        }
    }
}

/// The queues of one folder. Only one process has it open at a time.
pub struct LetterQueues {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    room: Room,
    state: Mutex<State>,
    /// Notified when letters are sent or made visible.
    sent: Notify,
    clock: Arc<dyn Clock>,
}

/// What a receive found.
struct Found {
    received: Vec<ReceivedLetter>,
    /// When the next letter becomes visible, in milliseconds since 1970.
    next_ms: Option<u64>,
}

impl From<Fault> for QueueError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(why) => Self::Corrupt(why),
            Fault::Io(why) => Self::Io(why),
            Fault::Locked => Self::Locked,
        }
    }
}

fn failed(error: fjall::Error) -> QueueError {
    Fault::from(error).into()
}

/// The error about a value that this program cannot read.
fn malformed(what: &str) -> QueueError {
    QueueError::Corrupt(format!("{what} is malformed, or of a newer version: {ADVICE}"))
}

impl LetterQueues {
    pub fn open(
        folder: &Path,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, QueueError> {
        let settings = store::Options {
            block_cache_bytes: options.block_cache_bytes,
            open_files_max: options.open_files_max,
            ..store::Options::new("queues", FORMAT, options.memtable_bytes, ADVICE)
        };
        let inner = Inner {
            store: Store::open(folder, &settings)?,
            room: Room::new(folder, options.reserve_bytes),
            state: Mutex::default(),
            sent: Notify::new(),
            clock,
        };
        inner.recover()?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        self.clock.machine_ms().max(0).unsigned_abs()
    }

    /// Counts the letters. Those that a clock which was ahead hid for longer than any visibility
    /// become visible at once.
    fn recover(&self) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let now_ms = self.now_ms();
        let latest_ms = now_ms + QUEUE_VISIBILITY_S_MAX * 1_000;
        let mut batch = self.store.synced_batch();
        let mut hidden = 0;

        for queue in QueueName::ALL {
            for guard in self.store.keyspace.prefix(keys::all_waiting(queue)) {
                let (key, value) = guard.into_inner().map_err(failed)?;
                let mut place = keys::place_of(&key).ok_or_else(|| malformed("a place"))?;
                if place.visible_ms > latest_ms {
                    place.visible_ms = now_ms;
                    batch.remove(&self.store.keyspace, key);
                    batch.insert(&self.store.keyspace, keys::waiting(queue, place), value);
                    hidden += 1;
                }
                state.newest = state.newest.max(place.number);
                state.of(queue).put(place);
            }

            for guard in self.store.keyspace.prefix(keys::all_dead(queue)) {
                let key = guard.key().map_err(failed)?;
                let number = keys::dead_number_of(&key).ok_or_else(|| malformed("a place"))?;
                state.newest = state.newest.max(number);
                state.of(queue).dead += 1;
            }
        }

        if hidden > 0 {
            tracing::warn!(letters = hidden, "the clock went back: hidden letters are visible");
            self.store.commit(batch)?;
        }
        Ok(())
    }

    /// Commits what adds letters, if the disk has room.
    fn add(&self, batch: OwnedWriteBatch) -> Result<(), QueueError> {
        if let Err(log::Error::Full { free_bytes, reserve_bytes }) = self.room.check() {
            return Err(QueueError::Full { free_bytes, reserve_bytes });
        }
        Ok(self.store.commit(batch)?)
    }

    fn letter(&self, number: Number) -> Result<Letter, QueueError> {
        let value = self.store.get(&keys::letter(number))?;
        let letter = value.and_then(|value| keys::letter_of(&value));
        letter.ok_or_else(|| malformed("a letter"))
    }

    fn send(
        &self,
        queue: QueueName,
        letters: &[Letter],
        delay: Duration,
    ) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let now_ms = self.clock.machine_ms();
        let visible_ms = self.now_ms() + delay.as_millis() as u64;
        let mut newest = state.newest;
        let mut places = Vec::with_capacity(letters.len());
        let mut batch = self.store.synced_batch();

        for letter in letters {
            newest = Number::after(newest, now_ms);
            let place = Place { visible_ms, number: newest };
            let key = keys::waiting(queue, place);
            batch.insert(&self.store.keyspace, key, keys::receives_bytes(0));
            let value = keys::letter_bytes(letter);
            batch.insert(&self.store.keyspace, keys::letter(newest), value);
            places.push(place);
        }
        self.add(batch)?;

        state.newest = newest;
        places.into_iter().for_each(|place| state.of(queue).put(place));
        Ok(())
    }

    fn receive(&self, queue: QueueName, receive: Receive) -> Result<Found, QueueError> {
        let mut state = self.state.lock();
        let own = state.of(queue);
        let now_ms = self.now_ms();
        own.make_room(now_ms);
        let visible_ms = now_ms + receive.visibility.as_millis() as u64;
        let mut found = Found { received: Vec::new(), next_ms: None };
        let mut taken = Vec::new();
        let mut behind = own.from;
        let mut bytes = 0;
        let mut batch = self.store.batch();

        let first = keys::waiting(queue, own.from);
        let last = keys::waiting(queue, Place::LAST);
        for guard in self.store.keyspace.range(first..=last) {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let place = keys::place_of(&key).ok_or_else(|| malformed("a place"))?;
            behind = place;
            let is_enough = found.received.len() >= receive.len_max || bytes > CALL_BYTES_MAX;
            if place.visible_ms > now_ms {
                found.next_ms = Some(place.visible_ms);
                break;
            }
            if is_enough || !own.may_take(place.number) {
                break;
            }

            let receives = keys::receives_of(&value).ok_or_else(|| malformed("a place"))? + 1;
            let letter = self.letter(place.number)?;
            let next = Place { visible_ms, ..place };
            // A batch changes a key once, and a visibility of zero may lead to the same key.
            if next != place {
                batch.remove(&self.store.keyspace, key);
            }
            let value = keys::receives_bytes(receives);
            batch.insert(&self.store.keyspace, keys::waiting(queue, next), value);

            let in_flight = InFlight { visible_ms, receives };
            bytes += letter.body.len();
            taken.push((place.number, in_flight));
            found.received.push(ReceivedLetter {
                letter,
                receipt: receipt(place.number, in_flight),
                receives,
                sent_ms: place.number.sent_ms(),
            });
            behind = Place::behind(place.visible_ms);
        }

        if !taken.is_empty() {
            self.store.commit(batch)?;
        }
        own.from = behind.min(Place::behind(now_ms));
        taken.into_iter().for_each(|(number, in_flight)| own.take(number, in_flight));
        Ok(found)
    }

    fn delete(&self, queue: QueueName, receipts: &[Receipt]) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let own = state.of(queue);
        let mut batch = self.store.batch();
        let mut gone: Vec<(Number, InFlight)> =
            receipts.iter().filter_map(|receipt| own.receipted(receipt)).collect();
        gone.sort_unstable_by_key(|(number, _)| *number);
        gone.dedup();
        if gone.is_empty() {
            return Ok(());
        }

        for (number, InFlight { visible_ms, .. }) in &gone {
            let place = Place { visible_ms: *visible_ms, number: *number };
            batch.remove(&self.store.keyspace, keys::waiting(queue, place));
            batch.remove(&self.store.keyspace, keys::letter(*number));
        }
        self.store.commit(batch)?;
        gone.into_iter().for_each(|(number, _)| own.remove(number));
        Ok(())
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: &[(Receipt, Duration)],
    ) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let own = state.of(queue);
        let now_ms = self.now_ms();

        for (receipt, visibility) in changes {
            let Some((number, before)) = own.receipted(receipt) else { continue };
            let visibility = (*visibility).min(Duration::from_secs(QUEUE_VISIBILITY_S_MAX));
            let visible_ms = now_ms + visibility.as_millis() as u64;
            if visible_ms == before.visible_ms {
                continue;
            }

            let mut batch = self.store.batch();
            let old = Place { visible_ms: before.visible_ms, number };
            batch.remove(&self.store.keyspace, keys::waiting(queue, old));
            let value = keys::receives_bytes(before.receives);
            let new = Place { visible_ms, number };
            batch.insert(&self.store.keyspace, keys::waiting(queue, new), value);
            self.store.commit(batch)?;
            own.take(number, InFlight { visible_ms, ..before });
        }
        Ok(())
    }
}

impl Queues for LetterQueues {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_send(&letters, delay)?;
            if letters.is_empty() {
                return Ok(());
            }
            in_background(&self.inner, move |inner| inner.send(queue, &letters, delay)).await?;
            self.inner.sent.notify_waiters();
            Ok(())
        })
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
                // Registered before the look, so that no send is missed in between.
                let mut sent = pin!(self.inner.sent.notified());
                sent.as_mut().enable();
                let found =
                    in_background(&self.inner, move |inner| inner.receive(queue, receive)).await?;
                let left = deadline.saturating_duration_since(Instant::now());
                if !found.received.is_empty() || left.is_zero() || receive.len_max == 0 {
                    return Ok(found.received);
                }

                let until_next = found.next_ms.map(|next_ms| {
                    Duration::from_millis(next_ms.saturating_sub(self.inner.now_ms()).max(1))
                });
                // Both outcomes lead to another look.
                let _ = tokio::time::timeout(until_next.unwrap_or(left).min(left), sent).await;
            }
        })
    }

    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(receipts.len())?;
            in_background(&self.inner, move |inner| inner.delete(queue, &receipts)).await
        })
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(changes.len())?;
            let work = move |inner: &Inner| inner.change_visibility(queue, &changes);
            in_background(&self.inner, work).await?;
            self.inner.sent.notify_waiters();
            Ok(())
        })
    }

    fn bury(
        &self,
        queue: QueueName,
        burials: Vec<Burial>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(burials.len())?;
            in_background(&self.inner, move |inner| inner.bury(queue, &burials)).await
        })
    }
}

#[cfg(test)]
mod tests;
