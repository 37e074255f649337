//! Uploads of tables and segments.

use crate::documents::Documents;
use crate::error::Error;
use crate::upload_rows::{self, Format, Row, RowReader};
use raingauge_campaigns::documents::{Document, Kind, Named, Table};
use raingauge_campaigns::limits::TABLE_CHANGES_MAX;
use raingauge_counters::documents::Provenance;
use raingauge_ports::campaigns::{StoredDocument, TableLoad, TableLoads, TableVersion, Tables};
use raingauge_ports::clock::Clock;
use std::collections::HashSet;
use std::sync::Arc;

/// Rows that are stored together.
const ROWS_OF_BATCH: usize = 2_000;

/// The tables that documents describe, and their rows.
pub struct Uploads {
    documents: Arc<Documents>,
    tables: Arc<dyn Tables>,
    loads: Arc<dyn TableLoads>,
    clock: Arc<dyn Clock>,
}

/// A new version of a table on its way in. One that is dropped before it is finished leaves the
/// table as it was.
pub struct Upload {
    loads: Arc<dyn TableLoads>,
    clock: Arc<dyn Clock>,
    load: Option<TableLoad>,
    reader: Option<RowReader>,
    rows: Vec<Row>,
}

impl Uploads {
    pub fn new(
        documents: Arc<Documents>,
        tables: Arc<dyn Tables>,
        loads: Arc<dyn TableLoads>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { documents, tables, loads, clock }
    }

    /// The tables that have rows, by name.
    pub async fn loaded(&self) -> Result<Vec<TableVersion>, Error> {
        Ok(self.tables.list().await?)
    }

    /// Begins to load all rows of a table.
    pub async fn begin(&self, name: &str, format: Format) -> Result<Upload, Error> {
        let table = self.table(name).await?;
        let load = self.loads.begin(name).await?;
        Ok(Upload {
            loads: Arc::clone(&self.loads),
            clock: Arc::clone(&self.clock),
            load: Some(load),
            reader: Some(RowReader::new(table, format)),
            rows: Vec::new(),
        })
    }

    /// Sets and removes single rows: lines of JSON, of which one with `"deleted": true` removes its
    /// row. Returns how many rows that were.
    pub async fn change(&self, name: &str, lines: &[u8]) -> Result<usize, Error> {
        let table = self.table(name).await?;
        let changes = upload_rows::changes(&table, lines)?;
        if changes.len() > TABLE_CHANGES_MAX {
            return Err(Error::Upload(format!(
                "at most {TABLE_CHANGES_MAX} rows change at once: send several requests, or load the table"
            )));
        }
        let len = changes.len();
        self.loads.change(name, changes).await?;
        Ok(len)
    }

    /// Deletes a table and its rows.
    pub async fn delete(
        &self,
        name: &str,
        expected: Option<u32>,
        provenance: Provenance<'_>,
    ) -> Result<StoredDocument, Error> {
        let deleted = self.documents.delete(Kind::Table, name, expected, provenance).await?;
        self.loads.remove(name).await?;
        Ok(deleted)
    }

    /// Removes rows of tables that were deleted by a process that ended before it removed them.
    pub async fn remove_orphans(&self) -> Result<(), Error> {
        let documents = self.documents.list(Kind::Table).await?;
        let known: HashSet<String> = documents.into_iter().map(|document| document.id).collect();
        for TableVersion { name, .. } in self.tables.list().await? {
            if !known.contains(&name) {
                self.loads.remove(&name).await?;
            }
        }
        Ok(())
    }

    async fn table(&self, name: &str) -> Result<Table, Error> {
        let found = self.documents.get(Kind::Table, name, None).await?;
        match Document::read(Kind::Table, &found.configuration) {
            Ok(Document::Table(Named { content, .. })) => Ok(content),
            Ok(_) => Err(Error::not_found(Kind::Table.name(), name)),
            Err(problems) => Err(Error::invalid(Kind::Table.name(), problems)),
        }
    }
}

impl Upload {
    /// Takes the next bytes.
    pub async fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(reader) = &mut self.reader {
            reader.feed(bytes, &mut self.rows)?;
        }
        if self.rows.len() < ROWS_OF_BATCH { Ok(()) } else { self.store().await }
    }

    /// Switches to the new version.
    pub async fn finish(mut self) -> Result<TableVersion, Error> {
        if let Some(reader) = self.reader.take() {
            reader.finish(&mut self.rows)?;
        }
        self.store().await?;

        let load = self.load.as_ref().expect("it is taken when the upload ends");
        let version = self.loads.finish(load, self.clock.now_ms()).await?;
        self.load = None;
        Ok(version)
    }

    async fn store(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let load = self.load.as_ref().expect("it is taken when the upload ends");
        if !rows.is_empty() {
            self.loads.add(load, rows).await?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(load) = self.load.take() else { return };
        let loads = Arc::clone(&self.loads);
        // Without a runtime the process is ending, and the next one removes the rows.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = loads.abandon(&load).await {
                    tracing::warn!(table = load.table, %error, "rows of an upload remain");
                }
            });
        }
    }
}
