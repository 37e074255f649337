//! Positions of a log's partitions in the store, for processes other than their writers.

use crate::writer::Stored;
use crate::{Cluster, error, states};
use raingauge_ports::BoxFuture;
use raingauge_ports::cluster::{self, Error, StoredPosition};
use raingauge_ports::log::{Offset, Partition};

pub struct Checkpoints {
    cql: Cluster,
    log: String,
}

impl Checkpoints {
    /// `log` is the log's name: its topic.
    pub fn new(cql: Cluster, log: impl Into<String>) -> Self {
        Self { cql, log: log.into() }
    }

    async fn read(&self) -> Result<Vec<StoredPosition>, crate::Error> {
        let statement = &self.cql.statements.checkpoints;
        let found = self
            .cql
            .session
            .execute_unpaged(statement, (&self.log,))
            .await
            .map_err(error::request)?;

        let rows = found.into_rows_result().map_err(error::request)?;
        let rows = rows.rows::<(i32, i64, Option<i64>)>().map_err(error::request)?;
        let included =
            |(partition, position, state_version): (i32, i64, Option<i64>)| StoredPosition {
                partition: partition as Partition,
                position: position as Offset,
                state_version: state_version.unwrap_or(0),
            };

        rows.map(|row| row.map(included)).collect::<Result<_, _>>().map_err(error::request)
    }

    async fn read_state(&self, partition: Partition) -> Result<Vec<u8>, crate::Error> {
        let statement = &self.cql.statements.checkpoint;
        let found =
            self.cql.session.execute_unpaged(statement, (&self.log, i32::from(partition))).await;
        let rows = found.map_err(error::request)?.into_rows_result().map_err(error::request)?;
        let row = rows.maybe_first_row::<Stored>().map_err(error::request)?;
        let stored = row.and_then(|(_, _, state, _, _)| state).unwrap_or_default();
        states::get(&self.cql, &self.log, partition, stored).await
    }

    async fn read_progress(&self, partition: Partition) -> Result<Vec<u8>, crate::Error> {
        let statement = &self.cql.statements.progress;
        let found =
            self.cql.session.execute_unpaged(statement, (&self.log, i32::from(partition))).await;
        let rows = found.map_err(error::request)?.into_rows_result().map_err(error::request)?;
        let row = rows.maybe_first_row::<(i64, Vec<u8>)>().map_err(error::request)?;
        Ok(row.map(|(_, progress)| progress).unwrap_or_default())
    }
}

impl cluster::Checkpoints for Checkpoints {
    fn included(&self) -> BoxFuture<'_, Result<Vec<StoredPosition>, Error>> {
        Box::pin(async { self.read().await.map_err(|error| Error(error.to_string())) })
    }

    fn state(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        Box::pin(async move {
            self.read_state(partition).await.map_err(|error| Error(error.to_string()))
        })
    }

    fn progress(&self, partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        Box::pin(async move {
            self.read_progress(partition).await.map_err(|error| Error(error.to_string()))
        })
    }
}
