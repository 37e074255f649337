//! SQLite: one transaction a batch, prepared statements, WAL with a full sync at each commit.

use super::{Award, Awarder, Ledger};
use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::PathBuf;

const SCHEMA: &str = "
    CREATE TABLE wallets (member INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE entries (
        key TEXT PRIMARY KEY, member INTEGER NOT NULL, points INTEGER NOT NULL
    ) WITHOUT ROWID;
";
const INSERT: &str =
    "INSERT INTO entries (key, member, points) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const ADD: &str = "UPDATE wallets SET balance = balance + ?2 WHERE member = ?1";

pub struct Sqlite {
    pub path: PathBuf,
}

impl Sqlite {
    fn open(&self) -> Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -524288;",
        )?;
        Ok(connection)
    }
}

impl Awarder for Connection {
    async fn award(&mut self, batch: &[Award]) -> Result<u64> {
        let transaction = self.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut new = 0;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            let mut add = transaction.prepare_cached(ADD)?;
            for award in batch {
                if insert.execute(params![award.key, award.member, award.points])? == 1 {
                    add.execute(params![award.member, award.points])?;
                    new += 1;
                }
            }
        }
        transaction.commit()?;
        Ok(new)
    }
}

impl Ledger for Sqlite {
    type Awarder = Connection;

    async fn connect(&self) -> Result<Connection> {
        self.open()
    }

    async fn prepare(&self, members: u64) -> Result<()> {
        let mut connection = self.open()?;
        connection.execute_batch(SCHEMA)?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO wallets VALUES (?1, 0)")?;
            for member in 0..i64::try_from(members)? {
                insert.execute([member])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    async fn totals(&self) -> Result<(i64, i64)> {
        let sum =
            |text: &str| -> Result<i64> { Ok(self.open()?.query_row(text, [], |row| row.get(0))?) };
        Ok((
            sum("SELECT COALESCE(SUM(balance), 0) FROM wallets")?,
            sum("SELECT COALESCE(SUM(points), 0) FROM entries")?,
        ))
    }
}
