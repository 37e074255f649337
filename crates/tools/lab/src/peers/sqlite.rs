//! SQLite: one table clustered by key, granularity and time, in WAL mode with a full sync at each
//! commit, prepared statements, and a large cache. It runs inside the measuring process, without a
//! server or a second core.

use super::client::{Client, Mode, Peer};
use super::question::Question;
use super::{Writes, aggregate};
use crate::plan::Granularity;
use crate::workload::{Bucket, Range, Workload, key_of};
use anyhow::Result;
use rusqlite::{Connection, Transaction, params};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "
    CREATE TABLE buckets (
        key TEXT NOT NULL, granularity INTEGER NOT NULL, bucket INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (key, granularity, bucket)
    ) WITHOUT ROWID;
    CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID;
";
const SUM: &str = "SELECT COALESCE(SUM(count), 0) FROM buckets WHERE key = ?1 AND granularity = ?2 AND bucket >= ?3 AND bucket < ?4";
const UPSERT: &str = "INSERT INTO buckets (key, granularity, bucket, count) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (key, granularity, bucket) DO UPDATE SET count = count + excluded.count";
const REMEMBER: &str = "INSERT INTO seen (id) VALUES (?1) ON CONFLICT DO NOTHING";
const SERIES: &str = "SELECT bucket, count FROM buckets WHERE key = ?1 AND granularity = ?2 AND bucket >= ?3 AND bucket < ?4";
const TOTAL: &str =
    "SELECT COALESCE(SUM(count), 0) FROM buckets WHERE granularity = ?1 AND bucket >= ?2";

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

fn upsert(transaction: &Transaction<'_>, bucket: &Bucket) -> Result<()> {
    transaction.prepare_cached(UPSERT)?.execute(params![
        key_of(bucket.city),
        bucket.granularity as i16,
        bucket.time_s,
        bucket.count
    ])?;
    Ok(())
}

pub struct Sqlite {
    pub path: PathBuf,
    /// Events of this day and later are new.
    pub live_from_s: i64,
}

pub struct Handle(Connection);

impl Handle {
    fn count(&self, range: &Range) -> Result<i64> {
        let mut statement = self.0.prepare_cached(SUM)?;
        let key = key_of(range.asked.city);
        let mut count = 0;
        for slice in &range.slices {
            let parameters = params![key, slice.granularity as i16, slice.from_s, slice.to_s];
            count += statement.query_row(parameters, |row| row.get::<_, i64>(0))?;
        }
        Ok(count)
    }
}

impl Client for Handle {
    type Asking = Question;

    fn prepare(question: &Question) -> Question {
        question.clone()
    }

    async fn ask(&mut self, asking: &Question) -> Result<Vec<i64>> {
        match asking {
            Question::Counts(ranges) => ranges.iter().map(|range| self.count(range)).collect(),
            Question::Series(days, _) => {
                let mut statement = self.0.prepare_cached(SERIES)?;
                let parameters =
                    params![key_of(days.city), Granularity::Day as i16, days.from_s, days.to_s];
                let rows = statement.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
                days.filled(rows.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        let transaction =
            self.0.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut new = Vec::with_capacity(batch.len());

        if writes.dedupe {
            let mut remember = transaction.prepare_cached(REMEMBER)?;
            for (drop, id) in batch.iter().zip(writes.new_ids(batch.len())) {
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
        Ok(new.len() as u64)
    }
}

impl Peer for Sqlite {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a row for each bucket, SUM over the primary key, in the measuring process"
    }

    fn modes(&self) -> Vec<Mode> {
        // SQLite supports a single writer at a time.
        let plain = Mode::new("upsert, WAL, synchronous=FULL", 10_000, 1);
        let with_ids = Mode::new("table of ids, upsert, WAL, synchronous=FULL", 10_000, 1);
        vec![plain.durable(), with_ids.durable().exactly_once()]
    }

    fn connections_max(&self) -> usize {
        1
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle(open(&self.path)?))
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connection = open(&self.path)?;
        connection.execute_batch(SCHEMA)?;
        let transaction = connection.transaction()?;
        for bucket in workload.buckets() {
            upsert(&transaction, &bucket)?;
        }
        transaction.commit()?;
        Ok(connection.execute_batch("ANALYZE")?)
    }

    async fn settle(&self) -> Result<()> {
        Ok(open(&self.path)?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }

    /// The sum of all daily counts from the first live day on.
    async fn total(&self) -> Result<i64> {
        let parameters = params![Granularity::Day as i16, self.live_from_s];
        Ok(open(&self.path)?.query_row(TOTAL, parameters, |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::{Asker, Askings, Writer};
    use super::super::drive::{self, Worker};
    use super::super::question::{Kind, questions};
    use super::*;
    use crate::events::Drops;
    use crate::peers::live_from_day_s;
    use crate::workload::Settings;
    use std::rc::Rc;

    #[test]
    fn reads_are_right_and_writes_add_up_with_and_without_remembered_ids() {
        let folder = tempfile::tempdir().unwrap();
        let now_s = crate::now_s();
        let workload = Workload::new(Settings { keys: 40, history: 3_000, seed: 2 }, now_s);
        let peer = Sqlite {
            path: folder.path().join("lab.sqlite"),
            live_from_s: live_from_day_s(&workload),
        };
        let runtime = drive::runtime().unwrap();

        runtime.block_on(peer.load(&workload)).unwrap();
        runtime.block_on(peer.settle()).unwrap();

        for kind in Kind::ALL {
            let askings = Askings::new("SQLite", &questions(&workload, kind));
            let mut asker = Asker::new(runtime.block_on(peer.connect()).unwrap(), &askings);

            for turn in 0..50 {
                runtime.block_on(asker.take(turn)).unwrap();
            }
        }

        for dedupe in [false, true] {
            let before = runtime.block_on(peer.total()).unwrap();
            let writes = Writes::new(Rc::new(Drops::new(40, 100, 2, now_s)), dedupe);
            let mut writer = Writer::new(runtime.block_on(peer.connect()).unwrap(), &writes);

            for turn in 0..3 {
                assert_eq!(runtime.block_on(writer.take(turn)).unwrap(), 100);
            }
            assert_eq!(runtime.block_on(peer.total()).unwrap() - before, 300);
        }
    }
}
