//! SQLite under statements that all databases understand.

use super::SqliteCatalog;
use super::fault::Faults;
use crate::database::{Away, Change, Database, NO_LOCK_ROW, Row, Statement, bound};
use sqlx::Sqlite;

/// A transaction that holds the file's lock for writing.
pub struct SqliteChange<'a> {
    transaction: sqlx::Transaction<'static, Sqlite>,
    faults: &'a Faults,
}

impl Database for SqliteCatalog {
    type Change<'a> = SqliteChange<'a>;

    async fn rows<R: Row>(&self, statement: Statement) -> Result<Vec<R>, Away> {
        let query = bound!(sqlx::query_as::<Sqlite, R>(statement.text), statement.values);
        query.fetch_all(&self.readers).await.map_err(|error| self.faults.explain(error).into())
    }

    async fn run(&self, statement: Statement) -> Result<(), Away> {
        let query = bound!(sqlx::query::<Sqlite>(statement.text), statement.values);
        query
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(|error| self.faults.explain(error).into())
    }

    async fn begin(&self, lock: &'static str) -> Result<SqliteChange<'_>, Away> {
        let explain = |error| Away::from(self.faults.explain(error));
        let mut transaction = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(explain)?;
        let locked =
            sqlx::query::<Sqlite>(lock).execute(&mut *transaction).await.map_err(explain)?;
        match locked.rows_affected() {
            1 => Ok(SqliteChange { transaction, faults: &self.faults }),
            _ => Err(self.faults.refuse(NO_LOCK_ROW).into()),
        }
    }
}

impl Change for SqliteChange<'_> {
    async fn rows<R: Row>(&mut self, statement: Statement) -> Result<Vec<R>, Away> {
        let query = bound!(sqlx::query_as::<Sqlite, R>(statement.text), statement.values);
        query
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(|error| self.faults.explain(error).into())
    }

    async fn run(&mut self, statement: Statement) -> Result<(), Away> {
        let query = bound!(sqlx::query::<Sqlite>(statement.text), statement.values);
        query
            .execute(&mut *self.transaction)
            .await
            .map(drop)
            .map_err(|error| self.faults.explain(error).into())
    }

    async fn commit(self) -> Result<(), Away> {
        self.transaction.commit().await.map_err(|error| self.faults.explain(error).into())
    }

    async fn give_up(self) {
        // What cannot be rolled back ends with its connection.
        let _ = self.transaction.rollback().await;
    }
}
