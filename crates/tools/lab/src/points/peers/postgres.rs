//! PostgreSQL: a transfer function one by one, and one statement over arrays for a batch.

use super::{Award, Awarder, Ledger};
use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Row};

const SCHEMA: &str = "
    CREATE TABLE wallets (member int8 PRIMARY KEY, balance int8 NOT NULL) WITH (fillfactor = 70);
    CREATE TABLE entries (
        key text PRIMARY KEY, member int8 NOT NULL, points int8 NOT NULL, at timestamptz NOT NULL DEFAULT now()
    );
    CREATE FUNCTION award(new_key text, to_member int8, new_points int8) RETURNS int8 LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO entries (key, member, points) VALUES (new_key, to_member, new_points) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN RETURN 0; END IF;
        UPDATE wallets SET balance = balance + new_points WHERE member = to_member;
        RETURN 1;
    END $$;
";
const ONE: &str = "SELECT award($1, $2, $3)";
/// Rows are locked in the order of members, so that two batches do not wait for each other.
const BATCH: &str = "
    WITH new AS (
        INSERT INTO entries (key, member, points)
        SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[])
        ON CONFLICT DO NOTHING RETURNING member, points
    ), sums AS (
        SELECT member, SUM(points)::int8 AS points, COUNT(*) AS awards FROM new GROUP BY member
    ), locked AS (
        SELECT wallets.member FROM wallets JOIN sums USING (member) ORDER BY wallets.member FOR UPDATE OF wallets
    ), added AS (
        UPDATE wallets SET balance = balance + sums.points
        FROM sums JOIN locked USING (member) WHERE wallets.member = sums.member
    )
    SELECT COALESCE(SUM(awards), 0)::int8 FROM sums";
const TOTALS: &str = "
    SELECT (SELECT COALESCE(SUM(balance), 0)::int8 FROM wallets),
           (SELECT COALESCE(SUM(points), 0)::int8 FROM entries)";

pub struct Postgres {
    pub port: u16,
    pub user: String,
}

impl Postgres {
    async fn open(&self) -> Result<PgConnection> {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(&self.user)
            .database("postgres");
        PgConnection::connect_with(&options).await.context("no PostgreSQL")
    }
}

impl Awarder for PgConnection {
    async fn award(&mut self, batch: &[Award]) -> Result<u64> {
        if let [one] = batch {
            let query = sqlx::query(ONE).bind(&one.key).bind(one.member).bind(one.points);
            return Ok(u64::try_from(query.fetch_one(self).await?.try_get::<i64, _>(0)?)?);
        }
        let keys: Vec<&str> = batch.iter().map(|award| award.key.as_str()).collect();
        let members: Vec<i64> = batch.iter().map(|award| award.member).collect();
        let points: Vec<i64> = batch.iter().map(|award| award.points).collect();
        let query = sqlx::query(BATCH).bind(keys).bind(members).bind(points);
        Ok(u64::try_from(query.fetch_one(self).await?.try_get::<i64, _>(0)?)?)
    }
}

impl Ledger for Postgres {
    type Awarder = PgConnection;

    async fn connect(&self) -> Result<PgConnection> {
        self.open().await
    }

    async fn prepare(&self, members: u64) -> Result<()> {
        let mut connection = self.open().await?;
        sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;
        sqlx::query(
            "INSERT INTO wallets SELECT number, 0 FROM generate_series(0, $1 - 1) AS number",
        )
        .bind(i64::try_from(members)?)
        .execute(&mut connection)
        .await?;
        sqlx::raw_sql("VACUUM (ANALYZE, FREEZE) wallets").execute(&mut connection).await?;
        sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
        Ok(())
    }

    async fn totals(&self) -> Result<(i64, i64)> {
        let row = sqlx::query(TOTALS).fetch_one(&mut self.open().await?).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }
}
