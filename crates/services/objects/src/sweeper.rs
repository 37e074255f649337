//! Removes expired keys that nobody reads.

use crate::keyspace::{Keyspace, Miss};
use crate::limits::{SWEEP_DAMAGED_MAX, SWEEP_LEN};
use crate::loader::Luggage;
use crate::objects::Objects;
use raingauge_ports::objects::{Error, Key};
use std::collections::HashSet;
use tokio::sync::watch;

impl Objects {
    /// Removes expired keys until `stopping` turns true or is dropped, or the store is closed.
    pub async fn sweep_until(&self, mut stopping: watch::Receiver<bool>) {
        let mut damaged = HashSet::new();
        let mut was_sound = true;
        let mut ticks = tokio::time::interval(self.options().sweep_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
            }

            let is_sound = self.look_at_clock().is_sound;
            if was_sound && !is_sound {
                tracing::warn!(
                    "objects do not expire, since the clock of this machine is wrong: set it \
                     right, or restart raingauge if it is right"
                );
            }
            was_sound = is_sound;

            if let Err(error) = self.sweep_beside(&mut damaged).await {
                tracing::warn!(%error, "expired objects could not be removed");
                if matches!(error, Error::Closed(_)) {
                    return;
                }
            }
        }
    }

    /// Removes the keys that have expired, as far as the store knows them. Returns how many.
    #[cfg(test)]
    pub(crate) async fn sweep(&self) -> Result<u64, Error> {
        self.sweep_beside(&mut HashSet::new()).await
    }

    /// Removes the keys that have expired, but for those whose heads are `damaged`: nobody knows
    /// what belongs to them. They are reported when they are found, and passed over from then on.
    async fn sweep_beside(&self, damaged: &mut HashSet<Key>) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let len_max = SWEEP_LEN + damaged.len();
            let keys = self.store().due(self.expired_ms(), len_max).await?;
            let is_last = keys.len() < len_max;
            if is_last && !damaged.is_empty() {
                let due: HashSet<&Key> = keys.iter().collect();
                damaged.retain(|key| due.contains(key));
            }
            let before = removed;
            let damaged_before = damaged.len();

            let mut misses = Vec::new();
            removed += self.expire(&mut Luggage::default(), |keyspace| {
                for key in keys.iter().filter(|key| !damaged.contains(*key)) {
                    match keyspace.find(key.database, &key.name) {
                        Some(place) => {
                            keyspace.admit(place, false, &mut 0);
                        }
                        None => misses.push(keyspace.miss(key.database, &key.name)),
                    }
                }
            })?;
            removed += self.expire_missing(misses, damaged).await?;
            if damaged.len() > damaged_before {
                report(damaged);
            }
            let has_moved = removed > before || damaged.len() > damaged_before;
            if is_last || !has_moved {
                return Ok(removed);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Loads expired keys, which removes them. Those that are damaged are noted.
    async fn expire_missing(
        &self,
        misses: Vec<Miss>,
        damaged: &mut HashSet<Key>,
    ) -> Result<u64, Error> {
        if misses.is_empty() {
            return Ok(0);
        }

        let mut luggage = Luggage::default();
        let names: Vec<_> = misses.iter().map(|miss| miss.key.clone()).collect();
        let needed = misses.len();
        let loaded = self.loader.load(misses, needed, self.expired_ms(), &mut luggage).await;
        if let Err(failure) = loaded {
            return Err(Error::Io(failure.to_string()));
        }
        let room = SWEEP_DAMAGED_MAX.saturating_sub(damaged.len());
        damaged.extend(luggage.refused().take(room).cloned());

        self.expire(&mut luggage, |keyspace| {
            for key in &names {
                if let Some(place) = keyspace.find(key.database, &key.name) {
                    keyspace.admit(place, false, &mut 0);
                }
            }
        })
    }

    /// Takes the lock once, and returns how many keys expired in the hold.
    fn expire(
        &self,
        luggage: &mut Luggage,
        visit: impl FnOnce(&mut Keyspace),
    ) -> Result<u64, Error> {
        let durable = self.durable_stamp();
        let clock = self.look_at_clock();
        let mut keyspace = self.lock.hold()?;
        keyspace.begin(clock, false, 0);
        for loaded in luggage.loaded.drain(..) {
            keyspace.insert(loaded);
        }

        visit(&mut keyspace);
        let finished = keyspace.finish(0, |group| self.store().submit(group));
        let expired = keyspace.expired();
        let evicted = self.make_room(&mut keyspace, durable);
        drop(keyspace);
        drop(evicted);
        finished.map(|_| expired)
    }
}

fn report(damaged: &HashSet<Key>) {
    let example = damaged.iter().next().map(|key| String::from_utf8_lossy(&key.name).into_owned());
    tracing::error!(
        keys = damaged.len(),
        example,
        "the heads of expired objects are damaged, so that they stay on the disk until DEL removes \
         them: look at the whole store with raingauge verify"
    );
}
