//! Dead letters, and what operators see and do.

use super::keys::{self, Number, Place};
use super::{CALL_BYTES_MAX, Inner, LetterQueues, failed, malformed};
use crate::store::in_background;
use hashbrown::HashSet;
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{
    Burial, Death, Depth, Letter, LetterSelection, PeekedLetter, QUEUE_CALL_LEN_MAX, QueueControl,
    QueueError, QueueName, Shelf, shortened,
};

impl Inner {
    pub(super) fn bury(&self, queue: QueueName, burials: &[Burial]) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let own = state.of(queue);
        let died_ms = self.clock.machine_ms();
        let mut buried = HashSet::new();
        let mut batch = self.store.synced_batch();

        for Burial { received, reason, last_error } in burials {
            let Some((number, letter)) = own.receipted(&received.receipt) else { continue };
            if !buried.insert(number) {
                continue;
            }
            let death = Death {
                reason: shortened(reason.clone()),
                last_error: shortened(last_error.clone()),
                attempts: letter.receives,
                died_ms,
            };
            let place = Place { visible_ms: letter.visible_ms, number };
            batch.remove(&self.store.keyspace, keys::waiting(queue, place));
            let value = keys::death_bytes(&death);
            batch.insert(&self.store.keyspace, keys::dead(queue, number), value);
        }
        if buried.is_empty() {
            return Ok(());
        }

        // It needs no room that the letters did not have: the disk's reserve is for this.
        self.store.commit(batch)?;
        own.dead += buried.len() as u64;
        buried.into_iter().for_each(|number| own.remove(number));
        Ok(())
    }

    fn peek_waiting(
        &self,
        queue: QueueName,
        from: Place,
        len_max: usize,
    ) -> Result<Vec<PeekedLetter>, QueueError> {
        let range = keys::waiting(queue, from)..=keys::waiting(queue, Place::LAST);
        let guards = self.store.keyspace.range(range).take(len_max);
        let peeked = guards.map(|guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let place = keys::place_of(&key).ok_or_else(|| malformed("a place"))?;
            let receives = keys::receives_of(&value).ok_or_else(|| malformed("a place"))?;
            Ok(PeekedLetter {
                letter: self.letter(place.number)?,
                receives,
                sent_ms: place.number.sent_ms(),
                visible_ms: Some(place.visible_ms as i64),
                death: None,
            })
        });
        peeked.collect()
    }

    fn peek_dead(&self, queue: QueueName, len_max: usize) -> Result<Vec<PeekedLetter>, QueueError> {
        let guards = self.store.keyspace.prefix(keys::all_dead(queue)).take(len_max);
        let peeked = guards.map(|guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            let number = keys::dead_number_of(&key).ok_or_else(|| malformed("a place"))?;
            let death = keys::death_of(&value).ok_or_else(|| malformed("a death"))?;
            Ok(PeekedLetter {
                letter: self.letter(number)?,
                receives: death.attempts,
                sent_ms: number.sent_ms(),
                visible_ms: None,
                death: Some(death),
            })
        });
        peeked.collect()
    }

    /// Dead letters of a selection, as many as one call may change. Ids are looked for among all of
    /// them, so letters are sent and received beside it: some may be gone when it returns.
    fn selected(
        &self,
        queue: QueueName,
        selection: &LetterSelection,
    ) -> Result<Vec<(Number, Letter)>, QueueError> {
        let mut found = Vec::new();
        let mut bytes = 0;

        for guard in self.store.keyspace.prefix(keys::all_dead(queue)) {
            if found.len() >= QUEUE_CALL_LEN_MAX || bytes > CALL_BYTES_MAX {
                break;
            }
            let key = guard.key().map_err(failed)?;
            let number = keys::dead_number_of(&key).ok_or_else(|| malformed("a place"))?;
            // Another call may have taken it since.
            let Some(value) = self.store.get(&keys::letter(number))? else { continue };
            let letter = keys::letter_of(&value).ok_or_else(|| malformed("a letter"))?;
            if selection.includes(&letter) {
                bytes += letter.body.len();
                found.push((number, letter));
            }
        }
        Ok(found)
    }

    /// Those of the letters that are dead still. The caller holds the lock.
    fn still_dead(
        &self,
        queue: QueueName,
        found: Vec<(Number, Letter)>,
    ) -> Result<Vec<(Number, Letter)>, QueueError> {
        let mut dead = Vec::with_capacity(found.len());
        for (number, letter) in found {
            if self.store.get(&keys::dead(queue, number))?.is_some() {
                dead.push((number, letter));
            }
        }
        Ok(dead)
    }

    /// A redriven letter has a new number, so that its age counts from now.
    fn redrive(&self, queue: QueueName, selection: &LetterSelection) -> Result<usize, QueueError> {
        let found = self.selected(queue, selection)?;
        let mut state = self.state.lock();
        let selected = self.still_dead(queue, found)?;
        let now_ms = self.clock.machine_ms();
        let mut newest = state.newest;
        let mut places = Vec::with_capacity(selected.len());
        let mut batch = self.store.synced_batch();

        for (number, letter) in &selected {
            newest = Number::after(newest, now_ms);
            let place = Place { visible_ms: self.now_ms(), number: newest };
            batch.remove(&self.store.keyspace, keys::dead(queue, *number));
            batch.remove(&self.store.keyspace, keys::letter(*number));
            let value = keys::letter_bytes(letter);
            batch.insert(&self.store.keyspace, keys::letter(newest), value);
            let key = keys::waiting(queue, place);
            batch.insert(&self.store.keyspace, key, keys::receives_bytes(0));
            places.push(place);
        }
        if selected.is_empty() {
            return Ok(0);
        }
        self.add(batch)?;

        state.newest = newest;
        state.of(queue).dead -= selected.len() as u64;
        places.into_iter().for_each(|place| state.of(queue).put(place));
        Ok(selected.len())
    }

    fn discard(&self, queue: QueueName, selection: &LetterSelection) -> Result<usize, QueueError> {
        let found = self.selected(queue, selection)?;
        let mut state = self.state.lock();
        let selected = self.still_dead(queue, found)?;
        let mut batch = self.store.synced_batch();
        for (number, _) in &selected {
            batch.remove(&self.store.keyspace, keys::dead(queue, *number));
            batch.remove(&self.store.keyspace, keys::letter(*number));
        }
        if selected.is_empty() {
            return Ok(0);
        }

        self.store.commit(batch)?;
        state.of(queue).dead -= selected.len() as u64;
        Ok(selected.len())
    }
}

impl QueueControl for LetterQueues {
    fn depth(&self, queue: QueueName) -> BoxFuture<'_, Result<Depth, QueueError>> {
        let now_ms = self.inner.now_ms();
        let depth = move |inner: &Inner| Ok(inner.state.lock().of(queue).depth(now_ms));
        in_background(&self.inner, depth)
    }

    fn shows_hidden(&self) -> bool {
        true
    }

    fn peek(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<PeekedLetter>, QueueError>> {
        let len_max = len_max.min(QUEUE_CALL_LEN_MAX);
        in_background(&self.inner, move |inner| {
            // The lock keeps letters from being deleted between their places and themselves.
            let mut state = inner.state.lock();
            match shelf {
                Shelf::Waiting => inner.peek_waiting(queue, state.of(queue).from, len_max),
                Shelf::Dead => inner.peek_dead(queue, len_max),
            }
        })
    }

    fn redrive(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        Box::pin(async move {
            let work = move |inner: &Inner| inner.redrive(queue, &selection);
            let moved = in_background(&self.inner, work).await?;
            self.inner.sent.notify_waiters();
            Ok(moved)
        })
    }

    fn discard(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        in_background(&self.inner, move |inner| inner.discard(queue, &selection))
    }
}
