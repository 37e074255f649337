//! Changes of counters: from the catalog into the log, where they take effect in order with the
//! events.

mod buckets;
mod error;

use crate::propagation::{Announcer, TakesEffect};
pub use buckets::{Outcome, RequestKey};
pub use error::Error;
use parking_lot::Mutex;
use raingauge_core::bucket::HOUR_S;
use raingauge_core::counter::{Counter, Problem, State};
use raingauge_core::limits::{REASON_LEN_MAX, VERSIONS_MAX, VERSIONS_PER_HOUR_MAX};
use raingauge_core::ruleset::conflicts;
use raingauge_core::template::Template;
use raingauge_policy::cache::Policy;
use raingauge_ports::catalog::{self, Catalog, Change, Versioned, VersionedPolicy};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, EventSink, Offset, Partition};
use raingauge_ports::published::{Published, Standing};
use raingauge_writer::KeyLimit;
use raingauge_writer::conductor::{Conductor, DECIDER};
use raingauge_writer::control::Control;
use raingauge_writer::history::covered_from_s;
use raingauge_writer::state::{Part, standing_of};
use raingauge_writer::states::{PublishedStates, States};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use buckets::Turns;

/// The counters' configurations and the operations on their counts.
pub struct Counters {
    catalog: Arc<dyn Catalog>,
    sink: Arc<dyn EventSink>,
    published: Arc<Published>,
    clock: Arc<dyn Clock>,
    effect: Arc<dyn TakesEffect>,
    covered: Option<RemoteLog>,
    conductor: Option<Arc<Conductor>>,
    /// The states that the writers publish.
    writer_states: Option<Arc<dyn PublishedStates>>,
    turns: Turns,
    keys: Arc<KeyLimit>,
    /// Changes of each counter in the current hour: the hour's number since 1970, and how many.
    changes: Mutex<BTreeMap<u32, (i64, u32)>>,
}

/// The partitions of a log whose writers run elsewhere, what those writers know, and how far ahead
/// of the clock an event may be.
pub struct RemoteLog {
    pub logs: Vec<Arc<dyn EventLog>>,
    pub states: Arc<dyn States>,
    pub future_allowance_s: i64,
}

/// Attempts to choose a number for an erasure while other backfills and erasures of the counter
/// begin.
const ERASURE_TRIES: usize = 8;
/// Interval between checks whether every partition has erased.
const ERASED_INTERVAL: Duration = Duration::from_millis(50);

/// How much later than the log's start a backfill begins. With this margin it begins at the same
/// time in every partition although the log is being trimmed.
const TRIM_MARGIN_S: i64 = 3_600;

impl Counters {
    pub fn new(
        catalog: Arc<dyn Catalog>,
        sink: Arc<dyn EventSink>,
        published: Arc<Published>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let announcer =
            Announcer::new(Arc::clone(&catalog), Arc::clone(&sink), Arc::clone(&published));
        Self {
            catalog,
            sink,
            published,
            clock,
            effect: Arc::new(announcer),
            covered: None,
            conductor: None,
            writer_states: None,
            turns: Turns::default(),
            keys: Arc::default(),
            changes: Mutex::default(),
        }
    }

    /// Refuses to set buckets of new keys for counters that have reached this limit of keys.
    pub fn with_key_limit(self, keys: Arc<KeyLimit>) -> Self {
        Self { keys, ..self }
    }

    /// Uses a log whose partitions are counted by other processes.
    pub fn of_cluster(self, effect: Arc<dyn TakesEffect>, covered: RemoteLog) -> Self {
        Self { effect, covered: Some(covered), ..self }
    }

    /// Uses a conductor that works by the states the writers publish.
    pub fn with_conductor(self, states: Arc<dyn PublishedStates>) -> Self {
        let conductor = Conductor::new(Arc::clone(&self.sink), Arc::clone(&states));
        Self { conductor: Some(Arc::new(conductor)), writer_states: Some(states), ..self }
    }

    /// Returns the conductor of backfills, if there is one.
    pub fn conductor(&self) -> Option<Arc<Conductor>> {
        self.conductor.clone()
    }

    /// Returns the newest version of every counter, ordered by id.
    pub async fn list(&self) -> Result<Vec<Versioned>, catalog::Error> {
        self.catalog.list().await
    }

    /// Returns a number that grows with every change of a counter or of the cache policy.
    pub async fn revision(&self) -> Result<i64, catalog::Error> {
        self.catalog.revision().await
    }

    pub async fn get(&self, id: u32) -> Result<Versioned, catalog::Error> {
        self.catalog.get(id).await
    }

    /// Returns the versions of a counter, newest first.
    pub async fn versions(&self, id: u32) -> Result<Vec<Versioned>, catalog::Error> {
        self.catalog.versions(id).await
    }

    /// Returns one version of a counter.
    pub async fn at_version(&self, id: u32, version: u32) -> Result<Versioned, Error> {
        let mut versions = self.versions(id).await?.into_iter();
        let found = versions.find(|found| found.version == version);
        found.ok_or(Error::VersionUnknown { id, version })
    }

    /// Returns why a configuration conflicts with the existing counters.
    pub async fn conflicts(&self, counter: &Counter) -> Result<Vec<Problem>, catalog::Error> {
        let others: Vec<Counter> =
            self.list().await?.into_iter().map(|found| found.counter).collect();
        Ok(conflicts(counter, &others))
    }

    pub async fn cache_policy(&self) -> Result<VersionedPolicy, catalog::Error> {
        self.catalog.cache_policy().await
    }

    /// Returns the newest versions of the cache policy, newest first.
    pub async fn cache_policies(
        &self,
        len_max: usize,
    ) -> Result<Vec<VersionedPolicy>, catalog::Error> {
        self.catalog.cache_policies(len_max).await
    }

    /// Sets the cache policy if it is at version `expected`.
    pub async fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        by: &str,
        reason: &str,
    ) -> Result<VersionedPolicy, catalog::Error> {
        let change =
            Change { by: by.to_owned(), reason: reason.to_owned(), at_s: self.clock.now_s() };
        self.catalog.set_cache_policy(policy, expected, change).await
    }

    /// Creates a counter. Returns once it counts.
    pub async fn create(
        &self,
        counter: Counter,
        by: &str,
        reason: &str,
    ) -> Result<Versioned, Error> {
        let created = self.catalog.create(counter, self.change(by, reason)?).await?;
        self.follow().await?;
        Ok(created)
    }

    /// Replaces the counter of this id if it is at version `expected`. Returns once the new version
    /// counts.
    pub async fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        by: &str,
        reason: &str,
    ) -> Result<Versioned, Error> {
        let replaced = self.version_of(counter, expected, self.change(by, reason)?).await?;
        self.follow().await?;
        Ok(replaced)
    }

    /// Archives a counter: it no longer counts or answers. Its versions stay.
    pub async fn archive(
        &self,
        id: u32,
        expected: Option<u32>,
        by: &str,
        reason: &str,
    ) -> Result<Versioned, Error> {
        let counter = Counter { state: State::Archived, ..self.get(id).await?.counter };
        self.replace(counter, expected, by, reason).await
    }

    /// Requests a backfill of a counter from the log; returns when it has begun. While a backfill
    /// is undecided no other one begins: a second caller waits for the same one.
    pub async fn backfill(&self, id: u32) -> Result<(), Error> {
        self.sink.check()?;
        let found = self.get(id).await?;
        self.follow().await?;

        let conductor = self
            .conductor
            .as_ref()
            .ok_or_else(|| Error::Stopped("nobody conducts backfills".into()))?;
        if let Some(number) = conductor.next_number(id) {
            let after_s = self.covered_from_s().await?;
            self.introduce(standing_of(&found), &found.counter).await?;

            let control = Control::Backfill {
                counter: id,
                after_s,
                number: Some(number),
                configuration: None,
            };

            let end = self.sink.append_control(DECIDER, control.to_json()).await?;
            self.wait_applied(&[(DECIDER, end)]).await?;
        }

        // Notifies the other partitions at once.
        Ok(conductor.conduct().await?)
    }

    /// Erases the counts of a key; returns when every partition has erased them. Events that arrive
    /// later count again. The log keeps the events themselves for its retention, but no backfill or
    /// recount counts them.
    pub async fn erase(&self, id: u32, key: &str) -> Result<(), Error> {
        self.sink.check()?;
        let found = self.get(id).await?;
        if !Template::parse(&found.counter.template).is_ok_and(|template| template.matches(key)) {
            return Err(Error::KeyOfAnother { counter: id, key: key.to_owned() });
        }
        self.follow().await?;
        self.introduce(standing_of(&found), &found.counter).await?;
        let erase = Control::Erase { counter: id, key: key.to_owned() };
        self.send(move |_| erase.clone()).await
    }

    /// Erases all counts of a counter; returns when every partition counts from zero. The
    /// configuration stays; a running backfill is cancelled, and later backfills count none of the
    /// erased events. The store frees the space in the background.
    pub async fn erase_all(&self, id: u32) -> Result<(), Error> {
        self.sink.check()?;
        let found = self.get(id).await?;
        self.follow().await?;
        self.introduce(standing_of(&found), &found.counter).await?;

        let conductor = self
            .conductor
            .as_ref()
            .ok_or_else(|| Error::Stopped("nobody conducts erasures".into()))?;
        self.erase_where_decided(conductor, id).await?;

        // The other partitions follow in the same order of switches and erasures.
        conductor.conduct().await?;

        while !conductor.is_followed(id) {
            if let Some(reason) = self.published.failure() {
                return Err(Error::Stopped(reason));
            }
            tokio::time::sleep(ERASED_INTERVAL).await;
            conductor.conduct().await?;
        }

        Ok(())
    }

    /// Erases the counts of an archived counter.
    pub async fn purge(&self, id: u32) -> Result<(), Error> {
        match self.get(id).await?.counter.state {
            State::Archived => self.erase_all(id).await,
            _ => Err(Error::NotArchived(id)),
        }
    }

    /// Erases in partition 0. Concurrent callers each get their own number.
    async fn erase_where_decided(&self, conductor: &Conductor, id: u32) -> Result<(), Error> {
        for _ in 0..ERASURE_TRIES {
            let number = conductor.free_number(id);
            let control = Control::EraseAll { counter: id, number, replaces: None };
            let end = self.sink.append_control(DECIDER, control.to_json()).await?;
            self.wait_applied(&[(DECIDER, end)]).await?;
            if conductor.has_erased(id, end - 1) {
                return Ok(());
            }
        }
        Err(Error::Stopped("others change the counter at the same time: try again".into()))
    }

    /// Returns the time from which every partition holds every event, so that a backfill begins at
    /// the same time in all. A writer in this process knows it itself.
    async fn covered_from_s(&self) -> Result<Option<i64>, Error> {
        let Some(RemoteLog { logs, future_allowance_s, .. }) = &self.covered else {
            return Ok(None);
        };
        let logs = logs.clone();
        let ahead_s = future_allowance_s + TRIM_MARGIN_S;
        let newest = move || logs.iter().map(|log| covered_from_s(&**log, ahead_s)).max();
        let found = tokio::task::spawn_blocking(newest).await;
        found.map_err(|error| Error::Stopped(error.to_string().into()))
    }

    /// Makes sure that every partition knows the current version of a counter before a request for
    /// it is written: the writers of other processes learn of a change on their own, but later.
    async fn introduce(&self, standing: Standing, counter: &Counter) -> Result<(), Error> {
        let Some(RemoteLog { states, .. }) = &self.covered else {
            return Ok(());
        };
        let is_newest = |parts: &[Part]| {
            parts
                .last()
                .and_then(|part| part.rules.last())
                .is_some_and(|rule| rule.counter == *counter)
        };

        let known = states.parts(counter.id);
        let knows = |partition: &Partition| {
            known.iter().any(|(of, parts)| of == partition && is_newest(parts))
        };
        let control =
            Control::counter(standing.version, standing.changed_at, counter.clone()).to_json();

        for partition in (0..self.sink.partitions()).filter(|partition| !knows(partition)) {
            self.sink.append_control(partition, control.clone()).await?;
        }
        Ok(())
    }

    /// Propagates all changes of the catalog. Returns when they have taken effect.
    pub async fn follow(&self) -> Result<(), Error> {
        self.effect.take_effect().await
    }

    /// Sends every partition its part, or none of them any, and waits until all parts have taken
    /// effect.
    async fn send(
        &self,
        of_partition: impl Fn(Partition) -> Control + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let payload_of = Box::new(move |partition| of_partition(partition).to_json());
        let ends = self.sink.append_to_all(payload_of).await?;
        self.wait_applied(&ends).await
    }

    async fn wait_applied(&self, ends: &[(Partition, Offset)]) -> Result<(), Error> {
        self.published.wait_applied(ends).await.map_err(Error::Stopped)
    }

    /// Makes another version of a counter. The catalog keeps every version, and so does every
    /// partition while the log has events from before it, so their number is limited.
    async fn version_of(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> Result<Versioned, Error> {
        let id = counter.id;
        let hour = change.at_s.div_euclid(HOUR_S);

        if self.get(id).await?.version >= VERSIONS_MAX {
            return Err(Error::TooManyVersions(id));
        }
        {
            let mut changes = self.changes.lock();
            changes.retain(|_, (of_hour, _)| *of_hour == hour);

            let (_, made) = changes.entry(id).or_insert((hour, 0));
            if *made >= VERSIONS_PER_HOUR_MAX {
                return Err(Error::ChangedTooOften(id));
            }
            *made += 1;
        }
        Ok(self.catalog.replace(counter, expected, change).await?)
    }

    fn change(&self, by: &str, reason: &str) -> Result<Change, Error> {
        if reason.len() > REASON_LEN_MAX {
            Err(Error::ReasonTooLong)
        } else {
            Ok(Change { by: by.to_owned(), reason: reason.to_owned(), at_s: self.clock.now_s() })
        }
    }
}
