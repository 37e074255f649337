//! SQLite, for statements that all databases understand.

mod fault;
mod schema;

use crate::books::Books;
use crate::catalog::Catalog;
use crate::database::{
    Change, Database, Dialect, Lock, PointsDialect, Row, Statement, Unavailable, Written, bound,
};
use fault::{Faults, is_known_already};
use raingauge_ports::catalog::Error;
use raingauge_ports::points;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Most concurrent readers. The catalog is rarely read: every role holds a copy in memory.
const READERS_MAX: u32 = 2;
/// How long a change waits for a change of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for earlier calls of this process.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most prepared statements of a connection. Books of points have one for each power of two of
/// rows.
const STATEMENTS_MAX: usize = 256;

/// Every change adds one row to one of two tables, and none is ever deleted, so the sum of their
/// numbers is the revision. For a known revision, subtracting all policies leaves a lower bound for
/// the changes of counters.
const CATALOG: Dialect = Dialect {
    lock: None,
    revision: "SELECT (SELECT COALESCE(MAX(revision), 0) FROM counter_versions)
        + (SELECT COALESCE(MAX(version), 0) FROM cache_policies)",
    add: "INSERT INTO counter_versions
        (counter_id, version, configuration, changed_by, reason, changed_at)
        VALUES (?, ?, ?, ?, ?, ?)",
    changed_since: Some(
        "SELECT counter_id, version, configuration, changed_by, reason, changed_at
        FROM counter_versions changed
        WHERE revision > ? - (SELECT COALESCE(MAX(version), 0) FROM cache_policies)
        AND NOT EXISTS (SELECT 1 FROM counter_versions newer
            WHERE newer.counter_id = changed.counter_id AND newer.version > changed.version)
        ORDER BY counter_id",
    ),
};

const POINTS: PointsDialect = PointsDialect {
    heads: "SELECT book, sequence, recorded_ms, hash, position, versions, NULL FROM points_heads",
    lock_budget: "INSERT INTO points_budgets (programme, name, used) VALUES (?, ?, 0)
        ON CONFLICT (programme, name) DO UPDATE SET used = used",
    read_locked_budget: "SELECT used FROM points_budgets WHERE programme = ? AND name = ?",
};

/// The catalog in an SQLite file, which several processes of one machine may share.
pub type SqliteCatalog = Catalog<Sqlite>;

impl SqliteCatalog {
    /// Opens the catalog in this file, creates the file if it does not exist, and brings its schema
    /// up to date.
    pub async fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::over(Sqlite::open(path).await?))
    }
}

/// The books of points in an SQLite file, which several processes of one machine may share.
pub type SqliteBooks = Books<Sqlite>;

impl SqliteBooks {
    /// Opens the books in the file of a catalog, which it creates if it does not exist, and refuses
    /// another number of books than there is. Calls that block their thread wait on `runtime`, so
    /// no thread of it may make them.
    pub async fn open(path: &Path, count: u16, runtime: Handle) -> Result<Self, points::Error> {
        Self::over(Sqlite::open(path).await?, count, runtime).await
    }
}

/// An SQLite file.
#[derive(Clone, Debug)]
pub struct Sqlite {
    readers: SqlitePool,
    /// One connection. Changes of this process wait for each other in a queue; only changes of
    /// other processes compete for the lock of the file, which is not fair.
    writer: SqlitePool,
    faults: Arc<Faults>,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path) -> Result<Self, Unavailable> {
        let faults = Arc::new(Faults::of(path));

        // Each commit is synced, so an acknowledged change survives a power cut.
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            .statement_cache_capacity(STATEMENTS_MAX)
            .foreign_keys(true);

        schema::prepare(&options, &faults).await?;

        let pool = |connections_max| {
            SqlitePoolOptions::new()
                .max_connections(connections_max)
                .acquire_timeout(QUEUE_TIMEOUT)
                // A file does not disconnect: its connections need neither tests nor renewal.
                .test_before_acquire(false)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_lazy_with(options.clone())
        };
        Ok(Self { readers: pool(READERS_MAX), writer: pool(1), faults })
    }
}

/// A transaction that holds the write lock of the file.
pub struct SqliteChange<'a> {
    transaction: sqlx::Transaction<'static, sqlx::Sqlite>,
    faults: &'a Faults,
}

impl Database for Sqlite {
    const CATALOG: &'static Dialect = &CATALOG;
    const POINTS: &'static PointsDialect = &POINTS;

    type Change<'a> = SqliteChange<'a>;

    async fn rows<R: Row>(&self, statement: Statement) -> Result<Vec<R>, Unavailable> {
        let query = bound!(sqlx::query_as::<sqlx::Sqlite, R>(statement.text), statement.values);
        query.fetch_all(&self.readers).await.map_err(|error| self.faults.explain(error))
    }

    async fn run(&self, statement: Statement) -> Result<(), Unavailable> {
        let query = bound!(sqlx::query::<sqlx::Sqlite>(statement.text), statement.values);
        query.execute(&self.writer).await.map(drop).map_err(|error| self.faults.explain(error))
    }

    async fn begin(&self, lock: Option<&'static Lock>) -> Result<SqliteChange<'_>, Unavailable> {
        let explain = |error| self.faults.explain(error);
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(explain)?;

        if let Some(lock) = lock {
            let locking = sqlx::query::<sqlx::Sqlite>(lock.take).execute(&mut *transaction);
            if locking.await.map_err(explain)?.rows_affected() != 1 {
                return Err(self.faults.refuse(lock.missing));
            }
        }
        Ok(SqliteChange { transaction, faults: &self.faults })
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    fn refuse(&self, sentence: &str) -> Unavailable {
        self.faults.refuse(sentence)
    }
}

impl Change for SqliteChange<'_> {
    async fn rows<R: Row>(&mut self, statement: Statement) -> Result<Vec<R>, Unavailable> {
        let query = bound!(sqlx::query_as::<sqlx::Sqlite, R>(statement.text), statement.values);
        let rows = query.fetch_all(&mut *self.transaction).await;
        rows.map_err(|error| self.faults.explain(error))
    }

    async fn run(&mut self, statement: Statement) -> Result<(), Unavailable> {
        let query = bound!(sqlx::query::<sqlx::Sqlite>(statement.text), statement.values);
        let done = query.execute(&mut *self.transaction).await;
        done.map(drop).map_err(|error| self.faults.explain(error))
    }

    async fn write(&mut self, statement: Statement) -> Result<Written, Unavailable> {
        let query = bound!(sqlx::query::<sqlx::Sqlite>(statement.text), statement.values);
        match query.execute(&mut *self.transaction).await {
            Ok(done) => Ok(Written::Rows(done.rows_affected())),
            Err(error) if is_known_already(&error) => Ok(Written::Collided),
            Err(error) => Err(self.faults.explain(error)),
        }
    }

    async fn commit(self) -> Result<(), Unavailable> {
        self.transaction.commit().await.map_err(|error| self.faults.explain(error))
    }

    async fn give_up(self) {
        // If the rollback fails, the end of the connection rolls back.
        let _ = self.transaction.rollback().await;
    }
}
