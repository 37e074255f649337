//! MariaDB: entries that ignore known keys and return the new ones, and one update of the wallets.

use super::{Award, Awarder, Ledger};
use anyhow::{Context, Result};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::BTreeMap;
use std::str::FromStr;

const WALLETS: &str = "CREATE OR REPLACE TABLE lab_wallets (member BIGINT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE = InnoDB";
const ENTRIES: &str = "
    CREATE OR REPLACE TABLE lab_entries (
        id BIGINT AUTO_INCREMENT PRIMARY KEY, `key` VARCHAR(64) CHARACTER SET ascii NOT NULL UNIQUE,
        member BIGINT NOT NULL, points BIGINT NOT NULL
    ) ENGINE = InnoDB";
const MEMBERS: &str = "INSERT INTO lab_wallets SELECT seq, 0 FROM seq_0_to_";
const TOTALS: &str = "
    SELECT (SELECT CAST(COALESCE(SUM(balance), 0) AS SIGNED) FROM lab_wallets),
           (SELECT CAST(COALESCE(SUM(points), 0) AS SIGNED) FROM lab_entries)";

pub struct MariaDb {
    pub url: String,
}

impl MariaDb {
    async fn open(&self) -> Result<MySqlConnection> {
        let options = MySqlConnectOptions::from_str(&self.url)?;
        MySqlConnection::connect_with(&options).await.context("no MariaDB")
    }
}

/// `head` with `values` for each of `len` rows.
fn statement(head: &str, values: &str, len: usize, tail: &str) -> String {
    let rows = vec![values; len].join(", ");
    format!("{head} {rows} {tail}")
}

impl Awarder for MySqlConnection {
    async fn award(&mut self, batch: &[Award]) -> Result<u64> {
        let mut transaction = self.begin().await?;
        let head = "INSERT IGNORE INTO lab_entries (`key`, member, points) VALUES";
        let text = statement(head, "(?, ?, ?)", batch.len(), "RETURNING member, points");
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for award in batch {
            insert = insert.bind(&award.key).bind(award.member).bind(award.points);
        }

        // In the order of members, so that two batches do not wait for each other.
        let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
        let rows = insert.fetch_all(&mut *transaction).await?;
        for row in &rows {
            *sums.entry(row.try_get(0)?).or_default() += row.try_get::<i64, _>(1)?;
        }
        if !sums.is_empty() {
            let head = "INSERT INTO lab_wallets (member, balance) VALUES";
            let tail = "ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)";
            let mut update =
                sqlx::query(AssertSqlSafe(statement(head, "(?, ?)", sums.len(), tail)));
            for (member, points) in &sums {
                update = update.bind(member).bind(points);
            }
            update.execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(rows.len() as u64)
    }
}

impl Ledger for MariaDb {
    type Awarder = MySqlConnection;

    async fn connect(&self) -> Result<MySqlConnection> {
        self.open().await
    }

    async fn prepare(&self, members: u64) -> Result<()> {
        let mut connection = self.open().await?;
        sqlx::raw_sql(WALLETS).execute(&mut connection).await?;
        sqlx::raw_sql(ENTRIES).execute(&mut connection).await?;
        let members = format!("{MEMBERS}{}", members - 1);
        sqlx::raw_sql(AssertSqlSafe(members)).execute(&mut connection).await?;
        Ok(())
    }

    async fn totals(&self) -> Result<(i64, i64)> {
        let row = sqlx::query(TOTALS).fetch_one(&mut self.open().await?).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }
}
