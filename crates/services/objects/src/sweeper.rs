//! Removes expired keys that nobody reads.

use crate::keyspace::{Keyspace, Miss};
use crate::limits::SWEEP_LEN;
use crate::loader::Luggage;
use crate::objects::Objects;
use raingauge_ports::objects::Error;
use tokio::sync::watch;

impl Objects {
    /// Removes expired keys until `stopping` turns true or is dropped, or the store is closed.
    pub async fn sweep_until(&self, mut stopping: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(self.options().sweep_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
            }

            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "expired objects could not be removed");
                if matches!(error, Error::Closed(_)) {
                    return;
                }
            }
        }
    }

    /// Removes the keys that have expired, as far as the store knows them. Returns how many.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let keys = self.store().due(self.expired_ms(), SWEEP_LEN).await?;
            let is_last = keys.len() < SWEEP_LEN;
            let before = removed;

            let mut misses = Vec::new();
            removed += self.expire(&mut Luggage::default(), |keyspace| {
                for key in &keys {
                    match keyspace.find(key.database, &key.name) {
                        Some(place) => {
                            keyspace.admit(place, false, &mut 0);
                        }
                        None => misses.push(keyspace.miss(key.database, &key.name)),
                    }
                }
            })?;
            removed += self.expire_missing(misses).await?;
            if is_last || removed == before {
                return Ok(removed);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Loads expired keys, which removes them.
    async fn expire_missing(&self, misses: Vec<Miss>) -> Result<u64, Error> {
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
        let mut keyspace = self.lock.hold()?;
        keyspace.begin(self.now_ms(), self.is_clock_sound());
        let before = keyspace.totals().expired;
        for loaded in luggage.loaded.drain(..) {
            keyspace.insert(loaded);
        }

        visit(&mut keyspace);
        let finished = keyspace.finish(0, |group| self.store().submit(group));
        let expired = keyspace.totals().expired - before;
        let evicted = keyspace.evict(durable);
        drop(keyspace);
        drop(evicted);
        finished.map(|_| expired)
    }
}
