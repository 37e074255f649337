//! SQLite: one table clustered by key, granularity and time, in WAL mode with a full sync at each commit, prepared
//! statements, a generous cache. It runs inside the measuring process: there is no server and no second core.

use super::drive::Worker;
use super::{Writes, aggregate};
use crate::plan::Granularity;
use crate::workload::{BATCH_RANGES, Bucket, Workload, key_of};
use anyhow::{Result, ensure};
use rusqlite::{Connection, Transaction, params};
use std::path::Path;
use std::rc::Rc;

const SCHEMA: &str = "
    CREATE TABLE buckets (
        key TEXT NOT NULL, granularity INTEGER NOT NULL, bucket INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (key, granularity, bucket)
    ) WITHOUT ROWID;
    CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID;
";
const SUM: &str =
    "SELECT COALESCE(SUM(count), 0) FROM buckets WHERE key = ?1 AND granularity = ?2 AND bucket >= ?3 AND bucket < ?4";
const UPSERT: &str = "INSERT INTO buckets (key, granularity, bucket, count) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (key, granularity, bucket) DO UPDATE SET count = count + excluded.count";
const REMEMBER: &str = "INSERT INTO seen (id) VALUES (?1) ON CONFLICT DO NOTHING";
const TOTAL: &str = "SELECT COALESCE(SUM(count), 0) FROM buckets WHERE granularity = ?1 AND bucket >= ?2";

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -524288; PRAGMA mmap_size = 2147483648;",
    )?;
    Ok(connection)
}

pub fn version() -> &'static str {
    rusqlite::version()
}

/// Makes the tables, in a new file.
pub fn create(path: &Path) -> Result<()> {
    Ok(open(path)?.execute_batch(SCHEMA)?)
}

pub fn load_history(path: &Path, workload: &Workload) -> Result<u64> {
    let mut connection = open(path)?;
    let transaction = connection.transaction()?;
    let mut loaded = 0;
    for bucket in workload.buckets() {
        upsert(&transaction, &bucket)?;
        loaded += 1;
    }
    transaction.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); ANALYZE;")?;
    Ok(loaded)
}

fn upsert(transaction: &Transaction<'_>, bucket: &Bucket) -> Result<()> {
    transaction.prepare_cached(UPSERT)?.execute(params![
        key_of(bucket.city),
        bucket.granularity.number(),
        bucket.time_s,
        bucket.count
    ])?;
    Ok(())
}

pub struct Reader {
    connection: Connection,
    workload: Rc<Workload>,
}

impl Reader {
    pub fn new(path: &Path, workload: Rc<Workload>) -> Result<Self> {
        Ok(Self { connection: open(path)?, workload })
    }
}

impl Worker for Reader {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let batches = &self.workload.batches;
        let mut statement = self.connection.prepare_cached(SUM)?;
        for range in &batches[(turn % batches.len() as u64) as usize] {
            let key = key_of(range.asked.city);
            let mut count: i64 = 0;
            for slice in &range.slices {
                let parameters = params![key, slice.granularity.number(), slice.from_s, slice.to_s];
                count += statement.query_row(parameters, |row| row.get::<_, i64>(0))?;
            }
            ensure!(count == range.expected, "SQLite answered {count}, right is {}", range.expected);
        }
        Ok(BATCH_RANGES as u64)
    }
}

pub struct Writer {
    connection: Connection,
    writes: Rc<Writes>,
}

impl Writer {
    pub fn new(path: &Path, writes: &Rc<Writes>) -> Result<Self> {
        Ok(Self { connection: open(path)?, writes: writes.clone() })
    }
}

impl Worker for Writer {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let batch = self.writes.batch(turn);
        let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut new = Vec::with_capacity(batch.len());
        if self.writes.dedupe {
            let mut remember = transaction.prepare_cached(REMEMBER)?;
            for (drop, id) in batch.iter().zip(self.writes.new_ids(batch.len())) {
                if remember.execute([crate::events::id_text(id)])? == 1 {
                    new.push(drop);
                }
            }
        } else {
            new.extend(batch);
        }
        for bucket in aggregate(new.iter().copied()) {
            upsert(&transaction, &bucket)?;
        }
        transaction.commit()?;
        Ok(self.writes.count(new.len()))
    }
}

/// The sum of all daily counts from a day on.
pub fn total(path: &Path, from_day_s: i64) -> Result<i64> {
    let parameters = params![Granularity::Day.number(), from_day_s];
    Ok(open(path)?.query_row(TOTAL, parameters, |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::super::drive;
    use super::*;
    use crate::events::Drops;
    use crate::measure::{Pace, Run};
    use crate::peers::live_from_day_s;
    use crate::workload::Settings;
    use std::time::Duration;

    #[test]
    fn reads_are_right_and_writes_add_up_with_and_without_remembered_ids() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.sqlite");
        let now_s = crate::now_s();
        let workload = Rc::new(Workload::new(Settings { keys: 40, history: 3_000, seed: 2 }, now_s));
        create(&path).unwrap();
        load_history(&path, &workload).unwrap();
        let runtime = drive::runtime().unwrap();
        let run = Run { pace: Pace::Closed, warm_up: Duration::ZERO, duration: Duration::from_millis(50) };
        let reader = Reader::new(&path, workload.clone()).unwrap();
        let (measured, _) = drive::drive(&runtime, vec![reader], &run).unwrap();
        assert!(measured.requests > 0);
        for dedupe in [false, true] {
            let from_s = live_from_day_s(&workload);
            let before = total(&path, from_s).unwrap();
            let writes = Writes::new(Rc::new(Drops::new(40, 100, 2, now_s)), dedupe);
            drive::drive(&runtime, vec![Writer::new(&path, &writes).unwrap()], &run).unwrap();
            writes.check("SQLite", before, total(&path, from_s).unwrap()).unwrap();
        }
    }
}
