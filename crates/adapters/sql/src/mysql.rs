//! The catalog in a database of MySQL or MariaDB.

mod connections;
mod database;
mod fault;
mod options;
mod schema;

use crate::decide::{self, Decision};
use crate::drafts::SqlDrafts;
use crate::people::SqlPeople;
use crate::rollouts::SqlRollouts;
use crate::rows::{self, PolicyRow, Row};
use crate::watch::{SqlChecks, SqlInstances};
use connections::{Connections, Lease};
pub use options::{MySqlOptions, MySqlTls};
use raingauge_core::counter::Counter;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::{Catalog, Change, Error, Versioned, VersionedPolicy};
pub use schema::Migrated;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Longest time of a migration, with waiting for another one.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);

/// Every change begins with this. It locks the one row until the change ends, so that what a change decides by is
/// still true when it writes, and so that numbers become visible in their order: who has seen 7 will never find a 6
/// that was not there before. To write the row, and not only to lock it, also makes one of two changes fail that
/// meet on different nodes of a cluster with several primaries, where locks hold on one node only.
const BEGIN: &str = "START TRANSACTION; UPDATE catalog_revision SET revision = revision + 1";
const REVISION: &str = "SELECT revision FROM catalog_revision";
const ADD: &str = "INSERT INTO counter_versions
    (revision, counter_id, version, configuration, changed_by, reason, changed_at)
    VALUES ((SELECT revision FROM catalog_revision), ?, ?, ?, ?, ?, ?)";

const NO_REVISION: &str =
    "its table catalog_revision does not have its one row: restore the catalog from a backup";

/// The catalog in a database of MySQL or MariaDB, which any number of processes and machines may share.
#[derive(Clone)]
pub struct MySqlCatalog {
    connections: Arc<Connections>,
}

impl MySqlCatalog {
    /// Connects, and refuses a database whose schema is not the one of this program.
    pub async fn open(options: &MySqlOptions) -> Result<Self, Error> {
        let catalog = Self::lazy(options)?;
        catalog.connections.lease().await?.give_back();
        Ok(catalog)
    }

    /// Checks the options only; the first call connects. For roles that may start before their database.
    /// Whether the schema fits is found out with every connection, so a call says what `open` would have said.
    pub fn lazy(options: &MySqlOptions) -> Result<Self, Error> {
        Ok(Self { connections: Arc::new(Connections::new(options)?) })
    }

    /// Makes the tables or brings them up to date. Several may try at once: they wait for each other.
    pub async fn migrate(options: &MySqlOptions) -> Result<Migrated, Error> {
        Connections::new(options)?.migrate(MIGRATION_TIMEOUT).await
    }

    /// The drafts in the same database.
    pub fn drafts(&self) -> SqlDrafts<Self> {
        SqlDrafts(self.clone())
    }

    /// The instances in the same database.
    pub fn instances(&self) -> SqlInstances<Self> {
        SqlInstances(self.clone())
    }

    /// The checks in the same database.
    pub fn checks(&self) -> SqlChecks<Self> {
        SqlChecks(self.clone())
    }

    /// The people in the same database.
    pub fn people(&self) -> SqlPeople<Self> {
        SqlPeople(self.clone())
    }

    /// The rollouts in the same database.
    pub fn rollouts(&self) -> SqlRollouts<Self> {
        SqlRollouts(self.clone())
    }

    /// Hangs up. Later calls are refused.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    async fn rows(
        &self,
        statement: &'static str,
        id: Option<u32>,
    ) -> Result<Vec<Versioned>, Error> {
        let mut lease = self.connections.lease().await?;
        let mut query = sqlx::query_as(statement);
        if let Some(id) = id {
            query = query.bind(i64::from(id));
        }
        let rows: Vec<Row> = lease.rows(query).await?;
        lease.give_back();
        rows::from_rows(rows)
    }

    /// Decides and writes in one transaction that no other change runs beside.
    async fn change(
        &self,
        decide: impl FnOnce(&[Versioned]) -> Result<Decision, Error> + Send,
    ) -> Result<Versioned, Error> {
        let mut lease = self.begin().await?;
        let newest: Vec<Row> = lease.rows(sqlx::query_as(rows::LIST)).await?;
        let added = match rows::from_rows(newest).and_then(|newest| decide(&newest)) {
            Ok(Decision::Add(added)) => added,
            Ok(Decision::Keep(current)) => return give_up(lease, Ok(current)).await,
            Err(refusal) => return give_up(lease, Err(refusal)).await,
        };
        let (id, version, configuration, changed_by, reason, changed_at) = rows::to_row(&added);
        let statement = sqlx::query(ADD).bind(id).bind(version).bind(configuration);
        lease.execute(statement.bind(changed_by).bind(reason).bind(changed_at)).await?;
        lease.commit().await?;
        lease.give_back();
        Ok(added)
    }

    async fn change_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> Result<VersionedPolicy, Error> {
        let mut lease = self.begin().await?;
        let newest: Vec<PolicyRow> = lease.rows(sqlx::query_as(rows::POLICY)).await?;
        let decision = rows::policy_of(newest.into_iter().next())
            .and_then(|current| Ok((current.next(policy, expected, change)?, current)));
        let next = match decision {
            Ok((Some(next), _)) => next,
            Ok((None, current)) => return give_up(lease, Ok(current)).await,
            Err(refusal) => return give_up(lease, Err(refusal)).await,
        };
        let (version, policy, changed_by, reason, changed_at) = rows::policy_row(&next);
        let statement = sqlx::query(rows::ADD_POLICY).bind(version).bind(policy);
        lease.execute(statement.bind(changed_by).bind(reason).bind(changed_at)).await?;
        lease.commit().await?;
        lease.give_back();
        Ok(next)
    }

    /// Begins a change; it waits for those that are under way.
    async fn begin(&self) -> Result<Lease<'_>, Error> {
        let mut lease = self.connections.lease().await?;
        if lease.run(BEGIN).await? == 1 {
            return Ok(lease);
        }
        Err(lease.refuse(NO_REVISION))
    }
}

/// Ends a change that writes nothing. When that fails, hanging up does the same.
async fn give_up<T>(mut lease: Lease<'_>, answer: Result<T, Error>) -> Result<T, Error> {
    if lease.run("ROLLBACK").await.is_ok() {
        lease.give_back();
    }
    answer
}

impl fmt::Debug for MySqlCatalog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MySqlCatalog").finish_non_exhaustive()
    }
}

impl Catalog for MySqlCatalog {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(self.rows(rows::LIST, None))
    }

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(
            async move { self.rows(rows::GET, Some(id)).await?.pop().ok_or(Error::NotFound(id)) },
        )
    }

    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        Box::pin(async move {
            let versions = self.rows(rows::VERSIONS, Some(id)).await?;
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
            let mut lease = self.connections.lease().await?;
            let rows: Vec<(i64,)> = lease.rows(sqlx::query_as(REVISION)).await?;
            let [(revision,)] = rows[..] else {
                return Err(lease.refuse(NO_REVISION));
            };
            lease.give_back();
            Ok(revision)
        })
    }

    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(async {
            let mut lease = self.connections.lease().await?;
            let newest: Vec<PolicyRow> = lease.rows(sqlx::query_as(rows::POLICY)).await?;
            lease.give_back();
            rows::policy_of(newest.into_iter().next())
        })
    }

    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>> {
        Box::pin(async move {
            let mut lease = self.connections.lease().await?;
            let newest: Vec<PolicyRow> =
                lease.rows(sqlx::query_as(rows::POLICIES).bind(len_max as i64)).await?;
            lease.give_back();
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
