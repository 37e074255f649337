//! MySQL and MariaDB, for statements that all databases understand.

mod connections;
mod fault;
mod options;
mod schema;

use crate::books::Books;
use crate::catalog::Catalog;
use crate::database::{
    Change, Database, Dialect, Lock, PointsDialect, Row, Statement, Unavailable, Written, bound,
    lock,
};
use connections::{Connections, Lease};
pub use options::{MySqlOptions, MySqlTls, Settings as MySqlSettings};
use raingauge_ports::catalog::Error;
use raingauge_ports::points;
pub use schema::Migrated;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Longest time of a migration, including waiting for another one.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);

/// Every change locks one row until it ends, so that the grounds of its decision still hold when it
/// writes, and numbers become visible in order: a reader that has seen 7 never finds a 6 that was
/// not there before. The change also writes the row, not only locks it. That makes one of two
/// changes fail that meet on different nodes of a cluster with several primaries, where locks hold
/// on one node only.
const CATALOG: Dialect = Dialect {
    lock: Some(lock!("catalog_revision")),
    revision: "SELECT revision FROM catalog_revision",
    add: "INSERT INTO counter_versions
        (revision, counter_id, version, configuration, changed_by, reason, changed_at)
        VALUES ((SELECT revision FROM catalog_revision), ?, ?, ?, ?, ?, ?)",
    changed_since: None,
};

/// An update locks the row alone; a locking read of a missing row would lock the gap, and two
/// transactions that add different budgets would wait for each other.
const POINTS: PointsDialect = PointsDialect {
    heads: "SELECT book, sequence, recorded_ms, hash, position, versions,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 FROM points_heads",
    lock_budget: "INSERT INTO points_budgets (programme, name, used) VALUES (?, ?, 0)
        ON DUPLICATE KEY UPDATE used = used",
    read_locked_budget: "SELECT used FROM points_budgets WHERE programme = ? AND name = ?
        FOR UPDATE",
};

/// The catalog in a MySQL or MariaDB database, which any number of processes and machines may
/// share.
pub type MySqlCatalog = Catalog<MySql>;

impl MySqlCatalog {
    /// Connects, and refuses a database whose schema does not match this program.
    pub async fn open(options: &MySqlOptions) -> Result<Self, Error> {
        let database = MySql::lazy(options)?;
        database.connections.lease().await?.give_back();
        Ok(Self::over(database))
    }

    /// Only checks the options; the first call connects. For roles that may start before their
    /// database. Every new connection checks the schema, so a call reports what `open` would have
    /// reported.
    pub fn lazy(options: &MySqlOptions) -> Result<Self, Error> {
        Ok(Self::over(MySql::lazy(options)?))
    }

    /// Creates the tables or brings them up to date. Several processes may try at once: they wait
    /// for each other.
    pub async fn migrate(options: &MySqlOptions) -> Result<Migrated, Error> {
        Ok(Connections::new(options)?.migrate(MIGRATION_TIMEOUT).await?)
    }
}

/// The books of points in a MySQL or MariaDB database, which any number of processes and machines
/// may share.
pub type MySqlBooks = Books<MySql>;

impl MySqlBooks {
    /// Connects, makes the books the first time, and refuses another number of books than there is.
    /// Calls that block their thread wait on `runtime`, so no thread of it may make them.
    pub async fn open(
        options: &MySqlOptions,
        count: u16,
        runtime: Handle,
    ) -> Result<Self, points::Error> {
        Self::over(MySql::lazy(options)?, count, runtime).await
    }
}

/// A database on a server.
#[derive(Clone)]
pub struct MySql {
    connections: Arc<Connections>,
}

impl MySql {
    pub(crate) fn lazy(options: &MySqlOptions) -> Result<Self, Unavailable> {
        Ok(Self { connections: Arc::new(Connections::new(options)?) })
    }
}

/// Omits the connections, whose address contains a password.
impl fmt::Debug for MySql {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MySql").finish_non_exhaustive()
    }
}

impl Database for MySql {
    const CATALOG: &'static Dialect = &CATALOG;
    const POINTS: &'static PointsDialect = &POINTS;

    type Change<'a> = Lease<'a>;

    async fn rows<R: Row>(&self, statement: Statement) -> Result<Vec<R>, Unavailable> {
        let mut lease = self.connections.lease().await?;
        let rows = Change::rows(&mut lease, statement).await?;
        lease.give_back();
        Ok(rows)
    }

    async fn run(&self, statement: Statement) -> Result<(), Unavailable> {
        let mut lease = self.connections.lease().await?;
        Change::run(&mut lease, statement).await?;
        lease.give_back();
        Ok(())
    }

    async fn begin(&self, lock: Option<&'static Lock>) -> Result<Lease<'_>, Unavailable> {
        let mut lease = self.connections.lease().await?;
        let Some(lock) = lock else {
            lease.run_all("START TRANSACTION").await?;
            return Ok(lease);
        };

        match lease.run_all(lock.begin).await? {
            1 => Ok(lease),
            _ => Err(self.refuse(lock.missing)),
        }
    }

    async fn close(&self) {
        self.connections.close().await;
    }

    fn refuse(&self, sentence: &str) -> Unavailable {
        self.connections.refuse(sentence)
    }
}

impl Change for Lease<'_> {
    async fn rows<R: Row>(&mut self, statement: Statement) -> Result<Vec<R>, Unavailable> {
        let query = bound!(sqlx::query_as::<sqlx::MySql, R>(statement.text), statement.values);
        self.fetch(query).await
    }

    async fn run(&mut self, statement: Statement) -> Result<(), Unavailable> {
        let query = bound!(sqlx::query::<sqlx::MySql>(statement.text), statement.values);
        self.execute(query).await
    }

    async fn write(&mut self, statement: Statement) -> Result<Written, Unavailable> {
        let query = bound!(sqlx::query::<sqlx::MySql>(statement.text), statement.values);
        self.execute_or_collide(query).await
    }

    async fn commit(mut self) -> Result<(), Unavailable> {
        self.commit_all().await?;
        self.give_back();
        Ok(())
    }

    async fn give_up(mut self) {
        // If this fails, disconnecting has the same effect.
        if self.run_all("ROLLBACK").await.is_ok() {
            self.give_back();
        }
    }
}
