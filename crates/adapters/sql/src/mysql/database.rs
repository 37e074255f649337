//! MySQL under statements that all databases understand.

use super::MySqlCatalog;
use super::connections::Lease;
use crate::database::{Away, Change, Database, NO_LOCK_ROW, Row, Statement, bound};
use sqlx::MySql;

impl Database for MySqlCatalog {
    type Change<'a> = Lease<'a>;

    async fn rows<R: Row>(&self, statement: Statement) -> Result<Vec<R>, Away> {
        let mut lease = self.connections.lease().await?;
        let rows = Change::rows(&mut lease, statement).await?;
        lease.give_back();
        Ok(rows)
    }

    async fn run(&self, statement: Statement) -> Result<(), Away> {
        let mut lease = self.connections.lease().await?;
        Change::run(&mut lease, statement).await?;
        lease.give_back();
        Ok(())
    }

    async fn begin(&self, lock: &'static str) -> Result<Lease<'_>, Away> {
        let mut lease = self.connections.lease().await?;
        Lease::run(&mut lease, "START TRANSACTION").await?;
        match Lease::run(&mut lease, lock).await? {
            1 => Ok(lease),
            _ => Err(lease.refuse(NO_LOCK_ROW).into()),
        }
    }
}

impl Change for Lease<'_> {
    async fn rows<R: Row>(&mut self, statement: Statement) -> Result<Vec<R>, Away> {
        let query = bound!(sqlx::query_as::<MySql, R>(statement.text), statement.values);
        Ok(Lease::rows(self, query).await?)
    }

    async fn run(&mut self, statement: Statement) -> Result<(), Away> {
        let query = bound!(sqlx::query::<MySql>(statement.text), statement.values);
        Ok(self.execute(query).await?)
    }

    async fn commit(mut self) -> Result<(), Away> {
        Lease::commit(&mut self).await?;
        self.give_back();
        Ok(())
    }

    async fn give_up(mut self) {
        // When that fails, hanging up does the same.
        if Lease::run(&mut self, "ROLLBACK").await.is_ok() {
            self.give_back();
        }
    }
}
