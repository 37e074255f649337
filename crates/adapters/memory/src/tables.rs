//! Uploaded tables in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{self, TableError, TableLoad, TableLoads, TableRow, TableVersion};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;

#[derive(Debug, Default)]
pub struct Tables {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    /// The version of the newest load of any table.
    newest: u64,
    tables: BTreeMap<String, (TableVersion, Rows)>,
    /// Loads that have begun, with the number of rows that were added to them.
    loads: HashMap<u64, (String, u64, Rows)>,
}

type Rows = HashMap<String, TableRow>;

impl Content {
    fn begin(&mut self, table: &str) -> TableLoad {
        self.newest += 1;
        self.loads.insert(self.newest, (table.to_owned(), 0, Rows::new()));
        TableLoad { table: table.to_owned(), version: self.newest }
    }

    fn finish(&mut self, load: &TableLoad, loaded_ms: i64) -> Result<TableVersion, TableError> {
        let TableLoad { table, version } = load;
        let replaced = || TableError::Replaced(table.clone());
        let (_, added, rows) = self.loads.remove(version).ok_or_else(replaced)?;

        let finished =
            TableVersion { name: table.clone(), version: *version, rows: added, loaded_ms };
        self.tables.insert(table.clone(), (finished.clone(), rows));
        self.loads.retain(|_, (loading, ..)| loading != table);
        Ok(finished)
    }

    fn change(&mut self, table: &str, changes: Vec<(String, Option<TableRow>)>) {
        if !self.tables.contains_key(table) {
            self.newest += 1;
            let name = table.to_owned();
            let version = TableVersion { name, version: self.newest, rows: 0, loaded_ms: 0 };
            self.tables.insert(table.to_owned(), (version, Rows::new()));
        }
        let Some((_, rows)) = self.tables.get_mut(table) else { return };
        for (key, row) in changes {
            match row {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }
}

impl campaigns::Tables for Tables {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TableVersion>, TableError>> {
        let content = self.content.lock();
        let versions = content.tables.values().map(|(version, _)| version.clone()).collect();
        Box::pin(ready(Ok(versions)))
    }

    fn get<'a>(
        &'a self,
        table: &'a str,
        keys: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Option<TableRow>>, TableError>> {
        let content = self.content.lock();
        let rows = content.tables.get(table).map(|(_, rows)| rows);
        let found = keys.iter().map(|key| rows.and_then(|rows| rows.get(key)).cloned());
        Box::pin(ready(Ok(found.collect())))
    }
}

impl TableLoads for Tables {
    fn begin<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<TableLoad, TableError>> {
        Box::pin(ready(Ok(self.content.lock().begin(table))))
    }

    fn add<'a>(
        &'a self,
        load: &'a TableLoad,
        rows: Vec<(String, TableRow)>,
    ) -> BoxFuture<'a, Result<(), TableError>> {
        let mut content = self.content.lock();
        let added = match content.loads.get_mut(&load.version) {
            Some((_, added, loaded)) => {
                *added += rows.len() as u64;
                loaded.extend(rows);
                Ok(())
            }
            None => Err(TableError::Replaced(load.table.clone())),
        };
        Box::pin(ready(added))
    }

    fn finish<'a>(
        &'a self,
        load: &'a TableLoad,
        loaded_ms: i64,
    ) -> BoxFuture<'a, Result<TableVersion, TableError>> {
        Box::pin(ready(self.content.lock().finish(load, loaded_ms)))
    }

    fn abandon<'a>(&'a self, load: &'a TableLoad) -> BoxFuture<'a, Result<(), TableError>> {
        self.content.lock().loads.remove(&load.version);
        Box::pin(ready(Ok(())))
    }

    fn change<'a>(
        &'a self,
        table: &'a str,
        rows: Vec<(String, Option<TableRow>)>,
    ) -> BoxFuture<'a, Result<(), TableError>> {
        self.content.lock().change(table, rows);
        Box::pin(ready(Ok(())))
    }

    fn remove<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<(), TableError>> {
        self.content.lock().tables.remove(table);
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_contract_is_kept() {
        let suite = raingauge_ports::contract::campaigns::tables::suite;
        suite(async || Tables::default()).await;
    }
}
