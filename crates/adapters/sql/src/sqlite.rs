//! The catalog in an SQLite file.

mod database;
mod fault;
mod schema;

use crate::decide::{self, Decision};
use crate::drafts::SqlDrafts;
use crate::people::SqlPeople;
use crate::rollouts::SqlRollouts;
use crate::rows::{self, PolicyRow, Row};
use crate::watch::{SqlChecks, SqlInstances};
use fault::Faults;
use raingauge_core::counter::Counter;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::{Catalog, Change, Error, Versioned, VersionedPolicy};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Connections that read at the same time. Few read the catalog: every role holds a copy in memory.
const READERS_MAX: u32 = 2;
/// How long a change waits for one of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for those before it in this process.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

const ADD: &str = "INSERT INTO counter_versions
    (counter_id, version, configuration, changed_by, reason, changed_at) VALUES (?, ?, ?, ?, ?, ?)";
/// Every change adds one row to one of the two, and none is ever deleted.
const REVISION: &str = "SELECT (SELECT COALESCE(MAX(revision), 0) FROM counter_versions)
    + (SELECT COALESCE(MAX(version), 0) FROM cache_policies)";
/// Of a revision as that statement answers it, the least that its changes of counters may come to.
const REVISION_OF_COUNTERS: &str = "SELECT ? - COALESCE(MAX(version), 0) FROM cache_policies";
const NEWEST_REVISION: &str = "SELECT COALESCE(MAX(revision), 0) FROM counter_versions";

/// The catalog in an SQLite file, which several processes of one machine may share.
#[derive(Clone, Debug)]
pub struct SqliteCatalog {
    readers: SqlitePool,
    /// One connection: changes of this process wait for each other in a queue, and only those of other processes
    /// meet at the lock of the file, which is not fair.
    writer: SqlitePool,
    /// All counters as the last change of this process found them: the next one reads what has changed since.
    newest: Arc<Mutex<Newest>>,
    faults: Arc<Faults>,
}

/// The newest versions of all counters, by id, at a revision of `counter_versions`.
#[derive(Debug, Default)]
struct Newest {
    revision: i64,
    counters: Vec<Versioned>,
}

impl Newest {
    fn take_up(&mut self, changed: Vec<Versioned>, revision: i64) {
        for found in changed {
            match self.counters.binary_search_by_key(&found.counter.id, |known| known.counter.id) {
                Ok(place) => self.counters[place] = found,
                Err(place) => self.counters.insert(place, found),
            }
        }
        self.revision = revision;
    }
}

impl SqliteCatalog {
    /// Opens the catalog in this file, which is made when it does not exist, and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, Error> {
        let faults = Arc::new(Faults::of(path));
        // A change that was acknowledged outlasts a power cut: each commit is synced.
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true);
        schema::prepare(&options, &faults).await?;
        let pool = |connections_max| {
            SqlitePoolOptions::new()
                .max_connections(connections_max)
                .acquire_timeout(QUEUE_TIMEOUT)
                // A file does not hang up: its connections need no test and no renewal.
                .test_before_acquire(false)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_lazy_with(options.clone())
        };
        Ok(Self { readers: pool(READERS_MAX), writer: pool(1), newest: Arc::default(), faults })
    }

    /// The drafts in the same file.
    pub fn drafts(&self) -> SqlDrafts<Self> {
        SqlDrafts(self.clone())
    }

    /// The instances in the same file.
    pub fn instances(&self) -> SqlInstances<Self> {
        SqlInstances(self.clone())
    }

    /// The checks in the same file.
    pub fn checks(&self) -> SqlChecks<Self> {
        SqlChecks(self.clone())
    }

    /// The people in the same file.
    pub fn people(&self) -> SqlPeople<Self> {
        SqlPeople(self.clone())
    }

    /// The rollouts in the same file.
    pub fn rollouts(&self) -> SqlRollouts<Self> {
        SqlRollouts(self.clone())
    }

    /// Waits for what is under way and closes the file. Later calls are refused.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    async fn rows(&self, statement: &'static str, id: u32) -> Result<Vec<Versioned>, Error> {
        let rows: Vec<Row> = sqlx::query_as(statement)
            .bind(i64::from(id))
            .fetch_all(&self.readers)
            .await
            .map_err(self.fault())?;
        rows::from_rows(rows)
    }

    /// Decides and writes in one transaction. It holds the lock for writing from the beginning, so that what it decides
    /// by is still true when it writes. Without a commit it ends as if it had never been.
    async fn change(
        &self,
        decide: impl FnOnce(&[Versioned]) -> Result<Decision, Error> + Send,
    ) -> Result<Versioned, Error> {
        let mut transaction =
            self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(self.fault())?;
        let mut newest = self.newest.lock().await;
        let changed = sqlx::query_as(rows::CHANGED).bind(newest.revision);
        let changed: Vec<Row> = changed.fetch_all(&mut *transaction).await.map_err(self.fault())?;
        let revision = sqlx::query_scalar(NEWEST_REVISION)
            .fetch_one(&mut *transaction)
            .await
            .map_err(self.fault())?;
        newest.take_up(rows::from_rows(changed)?, revision);
        let added = match decide(&newest.counters)? {
            // Who changed it may have been removed since, and have a number for a name.
            Decision::Keep(current) => {
                drop((transaction, newest));
                return self.get(current.counter.id).await;
            }
            Decision::Add(added) => added,
        };
        drop(newest);
        let (id, version, configuration, changed_by, reason, changed_at) = rows::to_row(&added);
        let statement = sqlx::query(ADD).bind(id).bind(version).bind(configuration);
        let statement = statement.bind(changed_by).bind(reason).bind(changed_at);
        statement.execute(&mut *transaction).await.map_err(self.fault())?;
        transaction.commit().await.map_err(self.fault())?;
        Ok(added)
    }

    async fn change_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> Result<VersionedPolicy, Error> {
        let mut transaction =
            self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(self.fault())?;
        let row: Option<PolicyRow> = sqlx::query_as(rows::POLICY)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(self.fault())?;
        let current = rows::policy_of(row)?;
        let Some(next) = current.next(policy, expected, change)? else {
            return Ok(current);
        };
        let (version, policy, changed_by, reason, changed_at) = rows::policy_row(&next);
        let statement = sqlx::query(rows::ADD_POLICY).bind(version).bind(policy);
        let statement = statement.bind(changed_by).bind(reason).bind(changed_at);
        statement.execute(&mut *transaction).await.map_err(self.fault())?;
        transaction.commit().await.map_err(self.fault())?;
        Ok(next)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> Error + '_ {
        |error| self.faults.explain(error)
    }
}

impl Catalog for SqliteCatalog {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(async {
            let rows: Vec<Row> =
                sqlx::query_as(rows::LIST).fetch_all(&self.readers).await.map_err(self.fault())?;
            rows::from_rows(rows)
        })
    }

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(async move { self.rows(rows::GET, id).await?.pop().ok_or(Error::NotFound(id)) })
    }

    fn changed_since(&self, revision: i64) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(async move {
            let least =
                sqlx::query_scalar(REVISION_OF_COUNTERS).bind(revision).fetch_one(&self.readers);
            let least: i64 = least.await.map_err(self.fault())?;
            let changed: Vec<Row> = sqlx::query_as(rows::CHANGED)
                .bind(least)
                .fetch_all(&self.readers)
                .await
                .map_err(self.fault())?;
            rows::from_rows(changed)
        })
    }

    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(async move {
            let versions = self.rows(rows::VERSIONS, id).await?;
            if versions.is_empty() { Err(Error::NotFound(id)) } else { Ok(versions) }
        })
    }

    fn create(&self, counter: Counter, change: Change) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(self.change(|newest| decide::create(newest, counter, change)))
    }

    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(self.change(move |newest| decide::replace(newest, counter, expected, change)))
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        Box::pin(async {
            sqlx::query_scalar(REVISION).fetch_one(&self.readers).await.map_err(self.fault())
        })
    }

    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(async {
            let row: Option<PolicyRow> = sqlx::query_as(rows::POLICY)
                .fetch_optional(&self.readers)
                .await
                .map_err(self.fault())?;
            rows::policy_of(row)
        })
    }

    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>> {
        Box::pin(async move {
            let statement = sqlx::query_as(rows::POLICIES).bind(len_max as i64);
            let newest: Vec<PolicyRow> =
                statement.fetch_all(&self.readers).await.map_err(self.fault())?;
            rows::policies_of(newest)
        })
    }

    fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(self.change_policy(policy, expected, change))
    }
}
