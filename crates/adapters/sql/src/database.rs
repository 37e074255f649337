//! What statements need of a database. A port whose statements all databases understand is written
//! once, over this:
//!
//! ```text
//!   people ──▶ Statement ──▶ Database: rows, run │ begin ──▶ Change: rows, run, commit │ give_up
//!                               ▲                                ▲
//!                        sqlite, mysql: connections, transactions, what their errors mean
//! ```
//!
//! A statement is a text of this program with `?` in the places of its values, which never become
//! part of the text.

#[cfg(feature = "mysql")]
use sqlx::mysql::MySqlRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow, SqlSafeStr, SqlStr};
use std::future::Future;

/// The statements of the catalog that differ between databases.
#[derive(Debug)]
pub struct Dialect {
    /// The lock of each change; `None` where beginning a transaction locks the whole database.
    pub lock: Option<Lock>,
    /// Reads the revision, which grows with each change of a counter or of the cache policy.
    pub revision: &'static str,
    /// Adds a version of a counter, from the six values of a row of the catalog.
    pub add: &'static str,
    /// Reads the newest versions of the counters that changed after a revision. `None` where a
    /// change reads everything, because the server may have been restored to an earlier state since
    /// the last one.
    pub changed_since: Option<&'static str>,
}

/// The statements of books of points that differ between databases.
#[derive(Debug)]
pub struct PointsDialect {
    /// Heads, each with the time of the database in milliseconds since 1970, or with nothing where
    /// its clock is that of the machine.
    pub heads: &'static str,
    /// Locks the row of a budget until the transaction ends, and adds it with nothing used where it
    /// is missing. Values: programme, budget.
    pub lock_budget: &'static str,
    /// Reads what was committed before the lock, also where the transaction has read before.
    /// Values: programme, budget.
    pub read_locked_budget: &'static str,
}

/// The result of a statement that other transactions may stand in the way of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// How many rows were added, changed or found as they should become.
    Rows(u64),
    /// Another transaction added a row with the same primary key, or both waited for each other.
    /// Everything of this transaction must be read and decided again.
    Collided,
}

/// Why the database did not answer, and what to do. Becomes the `Unavailable` of each port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// Implements the conversion for ports whose errors include an unavailable database.
macro_rules! ports_over {
    ($($port:ident),*) => {
        $(impl From<Unavailable> for raingauge_ports::$port::Error {
            fn from(Unavailable(sentence): Unavailable) -> Self {
                Self::Unavailable(sentence)
            }
        })*
    };
}
ports_over!(catalog, drafts, people, points, rollouts);

impl From<Unavailable> for raingauge_ports::campaigns::documents::Error {
    fn from(Unavailable(sentence): Unavailable) -> Self {
        Self::Unavailable(sentence)
    }
}

/// The row that the changes of a port lock, the only one of its table.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// Takes the lock and increments the number of changes.
    pub take: &'static str,
    /// The same for a transaction that begins with it.
    pub begin: &'static str,
    /// Reads the number of changes.
    pub read: &'static str,
    /// Error text for a missing lock row.
    pub missing: &'static str,
}

/// The lock of a table.
macro_rules! lock {
    ($table:literal) => {
        $crate::database::Lock {
            take: concat!("UPDATE ", $table, " SET revision = revision + 1"),
            begin: concat!("START TRANSACTION; UPDATE ", $table, " SET revision = revision + 1"),
            read: concat!("SELECT revision FROM ", $table),
            missing: concat!(
                "its table ",
                $table,
                " does not have its one row: restore the catalog from a backup"
            ),
        }
    };
}
pub(crate) use lock;

/// The value of one `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Whole(Option<i64>),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Whole(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Whole(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

/// A statement and its values, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub text: SqlStr,
    pub values: Vec<Value>,
}

impl Statement {
    pub fn new(text: &'static str) -> Self {
        Self { text: SqlStr::from_static(text), values: Vec::new() }
    }

    /// A statement that was put together from texts of this program.
    pub fn composed(text: String) -> Self {
        Self { text: AssertSqlSafe(text).into_sql_str(), values: Vec::new() }
    }

    /// Adds the value of the next `?`.
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// Binds the values to a query of either database.
macro_rules! bound {
    ($query:expr, $values:expr) => {
        $values.into_iter().fold($query, |query, value| match value {
            $crate::database::Value::Whole(number) => query.bind(number),
            $crate::database::Value::Text(text) => query.bind(text),
            $crate::database::Value::Bytes(bytes) => query.bind(bytes),
        })
    };
}
pub(crate) use bound;

/// A row that both databases can return: a tuple of `i64`, `Option<i64>`, `String` and
/// `Vec<u8>`.
#[cfg(feature = "mysql")]
pub trait Row:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, MySqlRow> + Send + Unpin
{
}

#[cfg(feature = "mysql")]
impl<T> Row for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, MySqlRow> + Send + Unpin
{
}

/// A row that SQLite can return: a tuple of `i64`, `Option<i64>`, `String` and
/// `Vec<u8>`.
#[cfg(not(feature = "mysql"))]
pub trait Row: for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}

#[cfg(not(feature = "mysql"))]
impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}

/// A database as a whole.
pub trait Database: Clone + Send + Sync + 'static {
    /// Its statements for the catalog.
    const CATALOG: &'static Dialect;
    /// Its statements for books of points.
    const POINTS: &'static PointsDialect;

    type Change<'a>: Change;

    /// Returns all committed rows of a result.
    fn rows<R: Row>(
        &self,
        statement: Statement,
    ) -> impl Future<Output = Result<Vec<R>, Unavailable>> + Send;

    /// Runs one statement that writes, in a transaction of its own.
    fn run(&self, statement: Statement) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Begins a change. No other change with the same lock runs at the same time: it holds the row
    /// of the lock until it ends.
    fn begin(
        &self,
        lock: Option<&'static Lock>,
    ) -> impl Future<Output = Result<Self::Change<'_>, Unavailable>> + Send;

    /// Waits for calls in progress and disconnects. Later calls are refused.
    fn close(&self) -> impl Future<Output = ()> + Send;

    /// Returns an error about the database with this sentence.
    fn refuse(&self, sentence: &str) -> Unavailable;
}

/// A transaction. Dropping it rolls it back.
pub trait Change: Send {
    fn rows<R: Row>(
        &mut self,
        statement: Statement,
    ) -> impl Future<Output = Result<Vec<R>, Unavailable>> + Send;

    fn run(&mut self, statement: Statement)
    -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// As `run`, for a statement that may meet another transaction.
    fn write(
        &mut self,
        statement: Statement,
    ) -> impl Future<Output = Result<Written, Unavailable>> + Send;

    fn commit(self) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Ends a change that writes nothing, so that its connection can be kept.
    fn give_up(self) -> impl Future<Output = ()> + Send;

    /// Returns the change with the decision, or gives up and returns the refusal.
    fn decided<T: Send, E: Send>(
        self,
        decision: Result<T, E>,
    ) -> impl Future<Output = Result<(Self, T), E>> + Send
    where
        Self: Sized,
    {
        async {
            match decision {
                Ok(decided) => Ok((self, decided)),
                Err(refusal) => {
                    self.give_up().await;
                    Err(refusal)
                }
            }
        }
    }
}
