//! PostgreSQL: one table with a primary key over key, granularity and time. A batch of events is
//! one upsert from arrays, a batch of ranges one query, both prepared; commits are durable
//! (synchronous_commit = on).

use super::client::{Client, Mode, Peer};
use super::question::{Days, Question};
use super::{Writes, aggregate};
use crate::plan::Granularity;
use crate::workload::{Bucket, Range, Workload, key_of};
use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Executor, Row};
use std::collections::HashSet;

const LOAD_ROWS: usize = 20_000;
const SCHEMA: &str = "
    CREATE TABLE buckets (
        key text NOT NULL, granularity int2 NOT NULL, bucket int8 NOT NULL, count int8 NOT NULL,
        PRIMARY KEY (key, granularity, bucket)
    );
    CREATE TABLE seen (id text PRIMARY KEY);
";
const SUM: &str = "
    SELECT part.number, SUM(found.count)::int8
    FROM unnest($1::int4[], $2::text[], $3::int2[], $4::int8[], $5::int8[]) AS part (number, key, granularity, from_s, to_s)
    CROSS JOIN LATERAL (
        SELECT COALESCE(SUM(buckets.count), 0) AS count FROM buckets
        WHERE buckets.key = part.key AND buckets.granularity = part.granularity
          AND buckets.bucket >= part.from_s AND buckets.bucket < part.to_s
    ) AS found
    GROUP BY part.number";
const UPSERT: &str = "
    INSERT INTO buckets (key, granularity, bucket, count)
    SELECT * FROM unnest($1::text[], $2::int2[], $3::int8[], $4::int8[])
    ON CONFLICT (key, granularity, bucket) DO UPDATE SET count = buckets.count + excluded.count";
const REMEMBER: &str =
    "INSERT INTO seen (id) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING id";
const SERIES: &str = "
    SELECT bucket, count FROM buckets
    WHERE key = $1 AND granularity = $2 AND bucket >= $3 AND bucket < $4";
const TOTAL: &str =
    "SELECT COALESCE(SUM(count), 0)::int8 FROM buckets WHERE granularity = $1 AND bucket >= $2";

pub struct Postgres {
    pub port: u16,
    pub user: String,
    /// Events of this day and later are new.
    pub live_from_s: i64,
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

async fn upsert(
    connection: impl Executor<'_, Database = sqlx::Postgres>,
    buckets: &[Bucket],
) -> Result<u64> {
    let keys: Vec<String> = buckets.iter().map(|bucket| key_of(bucket.city)).collect();
    let granularities: Vec<i16> = buckets.iter().map(|bucket| bucket.granularity as i16).collect();
    let times: Vec<i64> = buckets.iter().map(|bucket| bucket.time_s).collect();
    let counts: Vec<i64> = buckets.iter().map(|bucket| bucket.count).collect();
    let query = sqlx::query(UPSERT).bind(keys).bind(granularities).bind(times).bind(counts);
    Ok(query.execute(connection).await?.rows_affected())
}

/// The array parameters of all slices, built once.
pub struct Slices {
    numbers: Vec<i32>,
    keys: Vec<String>,
    granularities: Vec<i16>,
    from_s: Vec<i64>,
    to_s: Vec<i64>,
    ranges: usize,
}

impl Slices {
    fn new(ranges: &[Range]) -> Self {
        let parts: Vec<_> = ranges
            .iter()
            .enumerate()
            .flat_map(|(number, range)| {
                range.slices.iter().map(move |slice| (number as i32, range.asked.city, *slice))
            })
            .collect();
        Self {
            numbers: parts.iter().map(|(number, ..)| *number).collect(),
            keys: parts.iter().map(|(_, city, _)| key_of(*city)).collect(),
            granularities: parts.iter().map(|(.., slice)| slice.granularity as i16).collect(),
            from_s: parts.iter().map(|(.., slice)| slice.from_s).collect(),
            to_s: parts.iter().map(|(.., slice)| slice.to_s).collect(),
            ranges: ranges.len(),
        }
    }
}

pub enum Asking {
    Counts(Slices),
    Series(Days),
}

pub struct Handle(PgConnection);

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        match question {
            Question::Counts(ranges) => Asking::Counts(Slices::new(ranges)),
            Question::Series(days, _) => Asking::Series(*days),
        }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        match asking {
            Asking::Counts(slices) => counts(&mut self.0, slices).await,
            Asking::Series(days) => {
                let query =
                    sqlx::query(SERIES).bind(key_of(days.city)).bind(Granularity::Day as i16);
                let rows = query.bind(days.from_s).bind(days.to_s).fetch_all(&mut self.0).await?;
                let found = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
                days.filled(found.collect::<Result<Vec<_>>>()?)
            }
        }
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        if !writes.dedupe {
            upsert(&mut self.0, &aggregate(batch.iter())).await?;
            return Ok(batch.len() as u64);
        }

        let ids: Vec<String> =
            writes.new_ids(batch.len()).into_iter().map(crate::events::id_text).collect();
        let mut transaction = self.0.begin().await?;
        let rows = sqlx::query(REMEMBER).bind(&ids).fetch_all(&mut *transaction).await?;
        let new: HashSet<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let fresh = batch
            .iter()
            .zip(&ids)
            .filter(|(_, id)| new.contains(id.as_str()))
            .map(|(drop, _)| drop);

        upsert(&mut *transaction, &aggregate(fresh)).await?;
        transaction.commit().await?;
        Ok(new.len() as u64)
    }
}

async fn counts(connection: &mut PgConnection, slices: &Slices) -> Result<Vec<i64>> {
    let query = sqlx::query(SUM)
        .bind(&slices.numbers)
        .bind(&slices.keys)
        .bind(&slices.granularities)
        .bind(&slices.from_s)
        .bind(&slices.to_s);
    let mut counts = vec![0; slices.ranges];
    for row in query.fetch_all(connection).await? {
        let number = usize::try_from(row.try_get::<i32, _>(0)?)?;
        *counts.get_mut(number).context("an unknown number in the answer")? = row.try_get(1)?;
    }
    Ok(counts)
}

impl Peer for Postgres {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a row for each bucket, SUM over the primary key, one prepared query"
    }

    fn modes(&self) -> Vec<Mode> {
        let with_ids = Mode::new("table of ids, upsert", 10_000, 4);
        vec![Mode::new("upsert", 10_000, 1).durable(), with_ids.durable().exactly_once()]
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle(self.open().await?))
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connection = self.open().await?;
        sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;

        let mut pending = Vec::with_capacity(LOAD_ROWS);
        for bucket in workload.buckets() {
            pending.push(bucket);
            if pending.len() == LOAD_ROWS {
                upsert(&mut connection, &pending).await?;
                pending.clear();
            }
        }

        upsert(&mut connection, &pending).await?;
        sqlx::raw_sql("VACUUM (ANALYZE, FREEZE) buckets").execute(&mut connection).await?;
        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        sqlx::raw_sql("CHECKPOINT").execute(&mut self.open().await?).await?;
        Ok(())
    }

    /// The sum of all daily counts from the first live day on.
    async fn total(&self) -> Result<i64> {
        let query = sqlx::query(TOTAL).bind(Granularity::Day as i16).bind(self.live_from_s);
        Ok(query.fetch_one(&mut self.open().await?).await?.try_get(0)?)
    }
}
