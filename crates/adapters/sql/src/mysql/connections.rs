//! The connections to the server: a few, opened on demand.
//!
//! The driver's own pool retries a refused connection until it fails with "timed out", and keeps
//! waiting for the answer to an abandoned statement. Here the first error is reported, and a
//! connection on which anything failed is dropped, which ends whatever the server still does for
//! it. So no restart is needed after the server was away.

use super::fault::{Faults, is_collision};
use super::options::MySqlOptions;
use super::schema;
use crate::database::{Unavailable, Written};
use parking_lot::Mutex;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, FromRow, MySql};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Longest age of a connection. Renewing it follows a host name that leads to another server by
/// now.
const AGE_MAX: Duration = Duration::from_secs(600);

/// How long the server keeps a connection that is longer idle than any call may take.
const IDLE_AFTER_CALL_S: u64 = 5;

pub struct Connections {
    connect: MySqlConnectOptions,
    faults: Faults,
    connect_timeout: Duration,
    call_timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Aged>>,
}

/// A connection and the time it was opened.
struct Aged {
    connection: MySqlConnection,
    made: Instant,
}

/// A connection for one call, with the time that the call has left. Dropping it disconnects, which
/// rolls back.
pub struct Lease<'a> {
    connections: &'a Connections,
    aged: Aged,
    deadline: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub fn new(options: &MySqlOptions) -> Result<Self, Unavailable> {
        let (connect, faults) = options.prepare()?;
        let MySqlOptions { connect_timeout, call_timeout, .. } = *options;
        let permits = Semaphore::new(options.connections_max.max(1) as usize);
        Ok(Self { connect, faults, connect_timeout, call_timeout, permits, idle: Mutex::default() })
    }

    pub async fn lease(&self) -> Result<Lease<'_>, Unavailable> {
        let deadline = Instant::now() + self.call_timeout;
        let permit = match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_closed)) => {
                return Err(self
                    .faults
                    .refuse("it has been closed, because raingauge is stopping"));
            }
            Err(_elapsed) => {
                return Err(self.faults.refuse("other calls keep its connections busy: try again"));
            }
        };

        // Connecting, or discovering that a connection is dead, must not use up all the time of the
        // call.
        let connected_by = deadline.min(Instant::now() + self.connect_timeout);
        let aged = match self.idle(connected_by).await {
            Some(aged) => aged,
            None => self.connect(connected_by).await?,
        };
        Ok(Lease { connections: self, aged, deadline, _permit: permit })
    }

    /// Returns an idle connection that still answers.
    async fn idle(&self, deadline: Instant) -> Option<Aged> {
        loop {
            let mut aged = self.idle.lock().pop()?;
            if aged.made.elapsed() > AGE_MAX {
                continue;
            }
            // A connection that never answers must leave time for a new one.
            let patience = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
            match timeout_at(patience, aged.connection.ping()).await {
                Ok(Ok(())) => return Some(aged),
                _ => self.idle.lock().clear(),
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<Aged, Unavailable> {
        let connecting = async {
            let mut connection = self.open().await?;
            schema::check(&mut connection, &self.faults).await?;
            Ok(Aged { connection, made: Instant::now() })
        };
        timeout_at(deadline, connecting)
            .await
            .unwrap_or_else(|_| Err(self.faults.too_slow(self.connect_timeout)))
    }

    async fn open(&self) -> Result<MySqlConnection, Unavailable> {
        let explain = |error| self.faults.explain(error);
        let mut connection = self.connect.connect().await.map_err(explain)?;

        // A server may have other defaults. Strict mode: a value that does not fit is an error and
        // is never truncated. Lock timeout: the server stops waiting for a lock when the caller
        // does. Isolation: the lock comes before the first read, which then sees everything
        // committed; servers that log statements refuse a lower level. Waiting for a client: a
        // process that stands still in the middle of a change loses the connection and its locks.
        let call_s = self.call_timeout.as_secs().max(1);
        let idle_s = call_s + IDLE_AFTER_CALL_S;
        let setup = format!(
            "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = {call_s}, wait_timeout = {idle_s}; \
             SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        );

        sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut connection).await.map_err(explain)?;
        Ok(connection)
    }

    /// Brings the schema up to date, on a connection of its own.
    pub async fn migrate(&self, timeout: Duration) -> Result<schema::Migrated, Unavailable> {
        let connected_by = Instant::now() + self.connect_timeout;
        let mut connection = timeout_at(connected_by, self.open())
            .await
            .unwrap_or_else(|_| Err(self.faults.too_slow(self.connect_timeout)))?;
        let migrated =
            timeout_at(Instant::now() + timeout, schema::migrate(&mut connection, &self.faults))
                .await
                .unwrap_or_else(|_| Err(self.faults.too_slow(timeout)))?;
        self.hang_up(connection).await;
        Ok(migrated)
    }

    /// Closes idle connections; those in use follow when their calls end. Later calls are refused.
    pub async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for aged in idle {
            self.hang_up(aged.connection).await;
        }
    }

    /// Returns an error about the database with this sentence.
    pub fn refuse(&self, sentence: &str) -> Unavailable {
        self.faults.refuse(sentence)
    }

    /// Says goodbye, so that the server does not log a lost connection. The server notices the end
    /// in any case.
    async fn hang_up(&self, connection: MySqlConnection) {
        let _ = timeout_at(Instant::now() + self.connect_timeout, connection.close()).await;
    }
}

impl Lease<'_> {
    /// Returns all rows of a result.
    pub async fn fetch<R>(
        &mut self,
        query: QueryAs<'_, MySql, R, MySqlArguments>,
    ) -> Result<Vec<R>, Unavailable>
    where
        R: for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
    {
        let answer = timeout_at(self.deadline, query.fetch_all(&mut self.aged.connection)).await;
        answer.map_err(|_| self.too_slow())?.map_err(|error| self.explain(error))
    }

    pub async fn execute(
        &mut self,
        query: Query<'_, MySql, MySqlArguments>,
    ) -> Result<(), Unavailable> {
        let answer = timeout_at(self.deadline, query.execute(&mut self.aged.connection)).await;
        answer.map_err(|_| self.too_slow())?.map(drop).map_err(|error| self.explain(error))
    }

    /// As `execute`, for a statement that may meet another transaction.
    pub async fn execute_or_collide(
        &mut self,
        query: Query<'_, MySql, MySqlArguments>,
    ) -> Result<Written, Unavailable> {
        let answer = timeout_at(self.deadline, query.execute(&mut self.aged.connection)).await;
        match answer.map_err(|_| self.too_slow())? {
            Ok(done) => Ok(Written::Rows(done.rows_affected())),
            Err(error) if is_collision(&error) => Ok(Written::Collided),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Runs statements without parameters and returns the total number of changed rows.
    pub async fn run_all(&mut self, statements: &'static str) -> Result<u64, Unavailable> {
        let answer =
            timeout_at(self.deadline, sqlx::raw_sql(statements).execute(&mut self.aged.connection))
                .await;
        let done = answer.map_err(|_| self.too_slow())?.map_err(|error| self.explain(error))?;
        Ok(done.rows_affected())
    }

    pub async fn commit_all(&mut self) -> Result<(), Unavailable> {
        let faults = &self.connections.faults;
        match timeout_at(self.deadline, sqlx::raw_sql("COMMIT").execute(&mut self.aged.connection))
            .await
        {
            Ok(answer) => answer.map(drop).map_err(|error| faults.explain_commit(error)),
            Err(_) => Err(faults.uncertain()),
        }
    }

    /// Returns the connection to the pool. Allowed only between two transactions.
    pub fn give_back(self) {
        if !self.connections.permits.is_closed() {
            self.connections.idle.lock().push(self.aged);
        }
    }

    fn too_slow(&self) -> Unavailable {
        self.connections.faults.too_slow(self.connections.call_timeout)
    }

    /// A failure of this connection most likely affects the idle ones, too.
    fn explain(&self, error: sqlx::Error) -> Unavailable {
        self.connections.idle.lock().clear();
        self.connections.faults.explain(error)
    }
}
