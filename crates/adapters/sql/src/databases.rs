//! Databases of others, which lookups of campaigns read.
//!
//! Connections only read: SQLite opens the file for reading, and MySQL gets sessions whose
//! transactions are read-only. A statement that takes too long loses its connection, which ends
//! what the server still does for it.

mod row;

#[cfg(feature = "mysql")]
use crate::mysql::MySqlOptions;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{DatabaseError, DatabaseLookup};
use raingauge_settings::settings;
use serde_json::{Map, Value as Json};
use sqlx::AssertSqlSafe;
#[cfg(feature = "mysql")]
use sqlx::Executor as _;
#[cfg(feature = "mysql")]
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use std::collections::BTreeMap;
use std::future::ready;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Most connections to one database. Lookups have limits of their own.
const CONNECTIONS_MAX: u32 = 16;
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);
const SQLITE: &str = "sqlite:";
/// Steps of SQLite between two looks at the clock.
const STEPS: i32 = 10_000;

settings! {
    /// The databases that lookups of campaigns may read.
    pub struct Settings in "campaigns" {
        /// Databases that lookups may read, as NAME=ADDRESS with blanks between them; an address is
        /// sqlite:///path/to/file or mysql://user:password@host:port/database.
        connections: Option<String> = secret();
    }
}

/// Named connections. They are opened when they are first used.
pub struct Databases {
    by_name: BTreeMap<String, Database>,
}

enum Database {
    Sqlite(SqlitePool),
    #[cfg(feature = "mysql")]
    MySql(MySqlPool),
}

impl Databases {
    /// Reads `NAME=ADDRESS` with blanks between them. Says what is wrong without quoting an
    /// address, which may contain a password.
    pub fn open(connections: &str) -> Result<Self, String> {
        let mut by_name = BTreeMap::new();
        for (place, text) in connections.split_whitespace().enumerate() {
            let number = place + 1;
            let Some((name, address)) = text.split_once('=') else {
                return Err(format!("connection {number} is not NAME=ADDRESS"));
            };
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || !name.bytes().all(allowed) {
                return Err(format!(
                    "the name of connection {number} must have letters, digits, `_` and `-`"
                ));
            }
            let database = open(address).map_err(|why| format!("the connection {name} {why}"))?;
            if by_name.insert(name.to_owned(), database).is_some() {
                return Err(format!("there are two connections called {name}"));
            }
        }
        Ok(Self { by_name })
    }
}

fn open(address: &str) -> Result<Database, String> {
    if let Some(rest) = address.strip_prefix(SQLITE) {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .pragma("query_only", "ON")
            .busy_timeout(Duration::from_secs(1));
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS_MAX).idle_timeout(IDLE);
        return Ok(Database::Sqlite(pool.connect_lazy_with(options)));
    }
    open_server(address)
}

#[cfg(feature = "mysql")]
fn open_server(address: &str) -> Result<Database, String> {
    if !address.starts_with("mysql://") {
        return Err("has an address that begins with neither sqlite: nor mysql://".to_owned());
    }
    let prepared = MySqlOptions::new(address).prepare();
    let (options, _) = prepared.map_err(|why| format!("has a wrong address: {}", why.0))?;
    let pool = MySqlPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .idle_timeout(IDLE)
        .after_connect(|connection, _| {
            Box::pin(async move {
                let setup = "SET SESSION autocommit = 1, sql_select_limit = 1; \
                             SET SESSION TRANSACTION READ ONLY";
                connection.execute(sqlx::raw_sql(setup)).await.map(drop)
            })
        });
    Ok(Database::MySql(pool.connect_lazy_with(options)))
}

#[cfg(not(feature = "mysql"))]
fn open_server(_: &str) -> Result<Database, String> {
    Err("has an address that does not begin with sqlite:, and this program has no other \
         databases"
        .to_owned())
}

/// Runs a statement on a connection, and ends the connection when it takes too long.
macro_rules! first_row {
    ($connection:ident, $deadline:ident, $sql:expr, $key:expr, $columns:path) => {{
        let statement = sqlx::query(AssertSqlSafe($sql.to_owned())).bind($key.to_owned());
        let answer = timeout_at($deadline, statement.fetch_optional(&mut *$connection)).await;
        match answer {
            Ok(Ok(Some(row))) => Ok($columns(&row).map(Some).map_err(DatabaseError::Failed)),
            Ok(Ok(None)) => Ok(Ok(None)),
            Ok(Err(error)) if Instant::now() < $deadline => Ok(Err(explained(error))),
            Ok(Err(_)) | Err(_) => {
                drop($connection.detach());
                Err(Elapsed)
            }
        }
    }};
}

/// The time of a statement is over.
struct Elapsed;

type FirstRow = Result<Option<Map<String, Json>>, DatabaseError>;

impl Database {
    async fn row(&self, sql: &str, key: &str, timeout: Duration) -> FirstRow {
        let deadline = Instant::now() + timeout;
        let row = match self {
            Self::Sqlite(pool) => row_of_sqlite(pool, sql, key, deadline).await,
            #[cfg(feature = "mysql")]
            Self::MySql(pool) => row_of_mysql(pool, sql, key, deadline).await,
        };
        row.unwrap_or(Err(DatabaseError::Late(timeout.as_millis() as u64)))
    }
}

async fn row_of_sqlite(
    pool: &SqlitePool,
    sql: &str,
    key: &str,
    deadline: Instant,
) -> Result<FirstRow, Elapsed> {
    let connection = timeout_at(deadline, pool.acquire()).await.map_err(|_| Elapsed)?;
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(explained(error))),
    };

    // The statement runs in this process, and stops when it is asked to.
    let end = deadline.into_std();
    match connection.lock_handle().await {
        Ok(mut handle) => {
            handle.set_progress_handler(STEPS, move || std::time::Instant::now() < end);
        }
        Err(error) => return Ok(Err(explained(error))),
    }
    first_row!(connection, deadline, sql, key, row::of_sqlite)
}

#[cfg(feature = "mysql")]
async fn row_of_mysql(
    pool: &MySqlPool,
    sql: &str,
    key: &str,
    deadline: Instant,
) -> Result<FirstRow, Elapsed> {
    let connection = timeout_at(deadline, pool.acquire()).await.map_err(|_| Elapsed)?;
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(explained(error))),
    };
    first_row!(connection, deadline, sql, key, row::of_mysql)
}

/// What a database says of a statement, and nothing of an address.
fn explained(error: sqlx::Error) -> DatabaseError {
    DatabaseError::Failed(match &error {
        sqlx::Error::Database(refusal) => format!("the database refuses: {}", refusal.message()),
        sqlx::Error::Io(error) => format!("the database cannot be reached: {error}"),
        sqlx::Error::PoolTimedOut => "the database cannot be reached in time".to_owned(),
        sqlx::Error::PoolClosed => "raingauge is stopping".to_owned(),
        error => format!("the answer of the database cannot be read: {error}"),
    })
}

impl DatabaseLookup for Databases {
    fn connections(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    fn row<'a>(
        &'a self,
        connection: &'a str,
        sql: &'a str,
        key: &'a str,
        timeout: Duration,
    ) -> BoxFuture<'a, FirstRow> {
        let Some(database) = self.by_name.get(connection) else {
            let unknown = format!("there is no connection `{connection}`");
            return Box::pin(ready(Err(DatabaseError::Refused(unknown))));
        };
        Box::pin(database.row(sql, key, timeout))
    }
}
