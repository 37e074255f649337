//! A lease for work that only one process of a cluster may do at a time: a row that expires unless
//! its holder renews it, taken and kept by lightweight transactions.

use crate::{Cluster, error};
use raingauge_ports::BoxFuture;
use raingauge_ports::maintenance::{self, Error, LEASE_TTL};
use scylla::serialize::row::SerializeRow;
use scylla::statement::{SerialConsistency, Statement};
use scylla::value::{CqlValue, Row};

pub struct Lease {
    cql: Cluster,
    name: String,
    holder: String,
}

impl Lease {
    /// `holder` names this process uniquely.
    pub fn new(cql: Cluster, name: impl Into<String>, holder: impl Into<String>) -> Self {
        Self { cql, name: name.into(), holder: holder.into() }
    }

    async fn try_hold(&self) -> Result<bool, crate::Error> {
        let ttl_s = LEASE_TTL.as_secs() as i32;
        let renew = "UPDATE lease_table USING TTL ? SET holder = ? WHERE name = ? IF holder = ?";
        if self.apply(renew, (ttl_s, &self.holder, &self.name, &self.holder)).await? {
            return Ok(true);
        }
        let take = "INSERT INTO lease_table (name, holder) VALUES (?, ?) IF NOT EXISTS USING TTL ?";
        self.apply(take, (&self.name, &self.holder, ttl_s)).await
    }

    async fn try_release(&self) -> Result<(), crate::Error> {
        let statement = "DELETE FROM lease_table WHERE name = ? IF holder = ?";
        self.apply(statement, (&self.name, &self.holder)).await.map(drop)
    }

    /// Returns whether a conditional statement was applied. The driver never retries it: one that
    /// timed out may have been applied, and the next attempt sees that.
    async fn apply(&self, text: &str, values: impl SerializeRow) -> Result<bool, crate::Error> {
        let mut statement = Statement::new(text);
        // One holder across datacenters, too.
        statement.set_serial_consistency(Some(SerialConsistency::Serial));
        let answer =
            self.cql.session.query_unpaged(statement, values).await.map_err(error::request)?;
        let rows = answer.into_rows_result().map_err(error::request)?;
        let row = rows.first_row::<Row>().map_err(error::request)?;
        match row.columns.first() {
            Some(Some(CqlValue::Boolean(is_applied))) => Ok(*is_applied),
            _ => Err(error::request("the answer to a conditional statement lacks [applied]")),
        }
    }
}

impl maintenance::Lease for Lease {
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(self.try_hold().await?) })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(self.try_release().await?) })
    }
}
