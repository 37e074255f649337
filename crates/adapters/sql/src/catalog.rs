//! The catalog on any database.

use crate::database::{Change, Database, Dialect, Statement};
use crate::documents::Documents;
use crate::drafts::Drafts;
use crate::people::People;
use crate::rollouts::Rollouts;
use crate::rows::{self, PolicyRow, Row};
use crate::watch::{Checks, Instances};
use raingauge_core::counter::Counter;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::decide::{self, Decision};
use raingauge_ports::catalog::{self, Catalog as _, Error, Policies, Versioned, VersionedPolicy};
use std::sync::Arc;
use tokio::sync::Mutex;

const NO_REVISION: &str = "it has no revision: restore the catalog from a backup";

/// The catalog in a database, and access to the other ports stored in the same one.
#[derive(Clone, Debug)]
pub struct Catalog<D> {
    database: D,
    /// All counters as the last change of this process found them. The next change reads only what
    /// has changed since.
    newest: Arc<Mutex<Newest>>,
}

/// The newest versions of all counters, by id, at a revision.
#[derive(Debug, Default)]
struct Newest {
    revision: i64,
    counters: Vec<Versioned>,
}

impl Newest {
    async fn update(&mut self, change: &mut impl Change, dialect: &Dialect) -> Result<(), Error> {
        let Some(changed_since) = dialect.changed_since else {
            let all: Vec<Row> = change.rows(Statement::new(rows::LIST)).await?;
            self.counters = rows::from_rows(all)?;
            return Ok(());
        };

        let changed = Statement::new(changed_since).with(self.revision);
        let changed: Vec<Row> = change.rows(changed).await?;
        let revision: Vec<(i64,)> = change.rows(Statement::new(dialect.revision)).await?;

        for found in rows::from_rows(changed)? {
            match self.counters.binary_search_by_key(&found.counter.id, |known| known.counter.id) {
                Ok(place) => self.counters[place] = found,
                Err(place) => self.counters.insert(place, found),
            }
        }

        self.revision = revision.first().map_or(0, |(revision,)| *revision);
        Ok(())
    }
}

impl<D: Database> Catalog<D> {
    pub(crate) fn over(database: D) -> Self {
        Self { database, newest: Arc::default() }
    }

    /// The documents of products in the same database.
    pub fn documents(&self) -> Documents<D> {
        Documents(self.database.clone())
    }

    /// The drafts in the same database.
    pub fn drafts(&self) -> Drafts<D> {
        Drafts(self.database.clone())
    }

    /// The instances in the same database.
    pub fn instances(&self) -> Instances<D> {
        Instances(self.database.clone())
    }

    /// The checks in the same database.
    pub fn checks(&self) -> Checks<D> {
        Checks(self.database.clone())
    }

    /// The people in the same database.
    pub fn people(&self) -> People<D> {
        People(self.database.clone())
    }

    /// The rollouts in the same database.
    pub fn rollouts(&self) -> Rollouts<D> {
        Rollouts(self.database.clone())
    }

    /// Waits for calls in progress and closes the connections. Later calls are refused.
    pub async fn close(&self) {
        self.database.close().await;
    }

    async fn versioned(&self, statement: Statement) -> Result<Vec<Versioned>, Error> {
        let rows: Vec<Row> = self.database.rows(statement).await?;
        rows::from_rows(rows)
    }

    async fn revision_now(&self) -> Result<i64, Error> {
        let statement = Statement::new(D::CATALOG.revision);
        let rows: Vec<(i64,)> = self.database.rows(statement).await?;
        let missing = D::CATALOG.lock.map_or(NO_REVISION, |lock| lock.missing);
        let revision = rows.first().map(|(revision,)| *revision);
        revision.ok_or_else(|| self.database.refuse(missing).into())
    }

    async fn policies(&self, len_max: usize) -> Result<Vec<VersionedPolicy>, Error> {
        let statement = Statement::new(rows::POLICIES).with(len_max as i64);
        let newest: Vec<PolicyRow> = self.database.rows(statement).await?;
        newest.into_iter().map(rows::policy_of).collect()
    }

    /// Decides and writes in one transaction, during which no other change runs, so that the
    /// grounds of the decision still hold when it writes.
    async fn change(
        &self,
        decide: impl FnOnce(&[Versioned]) -> Result<Decision, Error> + Send,
    ) -> Result<Versioned, Error> {
        let mut change = self.database.begin(D::CATALOG.lock.as_ref()).await?;
        let mut newest = self.newest.lock().await;
        let updated = newest.update(&mut change, D::CATALOG).await;
        let decision = updated.and_then(|()| decide(&newest.counters));

        drop(newest);

        let (mut change, decision) = change.decided(decision).await?;
        let added = match decision {
            Decision::Add(added) => added,
            // The author may have been removed since the read, and have a pseudonym now.
            Decision::Keep(current) => {
                change.give_up().await;
                return self.get(current.counter.id).await;
            }
        };

        change.run(rows::written(D::CATALOG.add, &added)).await?;
        change.commit().await?;
        Ok(added)
    }

    async fn change_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        by: catalog::Change,
    ) -> Result<VersionedPolicy, Error> {
        let mut change = self.database.begin(D::CATALOG.lock.as_ref()).await?;
        let newest: Vec<PolicyRow> =
            change.rows(Statement::new(rows::POLICIES).with(1_i64)).await?;
        let decide = || {
            let current = newest
                .into_iter()
                .next()
                .map_or(Ok(VersionedPolicy::default()), rows::policy_of)?;
            Ok::<_, Error>((current.next(policy, expected, by)?, current))
        };

        let (mut change, (next, current)) = change.decided(decide()).await?;
        let Some(next) = next else {
            change.give_up().await;
            return Ok(current);
        };
        change.run(rows::written_policy(&next)).await?;
        change.commit().await?;

        Ok(next)
    }
}

impl<D: Database> catalog::Catalog for Catalog<D> {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(self.versioned(Statement::new(rows::LIST)))
    }

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>> {
        let statement = Statement::new(rows::GET).with(i64::from(id));
        Box::pin(async move { self.versioned(statement).await?.pop().ok_or(Error::NotFound(id)) })
    }

    fn changed_since(&self, revision: i64) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        match D::CATALOG.changed_since {
            Some(text) => Box::pin(self.versioned(Statement::new(text).with(revision))),
            None => self.list(),
        }
    }

    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        let statement = Statement::new(rows::VERSIONS).with(i64::from(id));
        Box::pin(async move {
            let versions = self.versioned(statement).await?;
            if versions.is_empty() { Err(Error::NotFound(id)) } else { Ok(versions) }
        })
    }

    fn create(
        &self,
        counter: Counter,
        by: catalog::Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(self.change(|newest| decide::create(newest, counter, by)))
    }

    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        by: catalog::Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(self.change(move |newest| decide::replace(newest, counter, expected, by)))
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        Box::pin(self.revision_now())
    }
}

impl<D: Database> Policies for Catalog<D> {
    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(async { Ok(self.policies(1).await?.pop().unwrap_or_default()) })
    }

    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>> {
        Box::pin(self.policies(len_max))
    }

    fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        by: catalog::Change,
    ) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(self.change_policy(policy, expected, by))
    }
}
