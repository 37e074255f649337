//! PostgreSQL: one table with a primary key over key, granularity and time; a batch of events is one upsert from
//! arrays, a batch of ranges one query, both prepared; a commit is durable (synchronous_commit = on).

use super::drive::Worker;
use super::{Servers, Writes, aggregate};
use crate::plan::Granularity;
use crate::workload::{BATCH_RANGES, Bucket, Range, Workload, key_of};
use anyhow::{Context, Result, ensure};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Executor, Row};
use std::collections::HashSet;
use std::rc::Rc;
use tokio::runtime::Runtime;

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
const REMEMBER: &str = "INSERT INTO seen (id) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING id";
const TOTAL: &str = "SELECT COALESCE(SUM(count), 0)::int8 FROM buckets WHERE granularity = $1 AND bucket >= $2";

pub async fn open(servers: &Servers) -> Result<PgConnection> {
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(servers.postgres_port)
        .username(&servers.postgres_user)
        .database("postgres");
    PgConnection::connect_with(&options).await.context("no PostgreSQL")
}

/// Makes the tables; an error if the database has them already, because nothing is deleted here.
pub async fn create(servers: &Servers) -> Result<()> {
    let made = sqlx::raw_sql(SCHEMA).execute(&mut open(servers).await?).await;
    made.context("cannot make the tables; start new servers by scripts/peers")?;
    Ok(())
}

pub async fn load_history(servers: &Servers, workload: &Workload) -> Result<u64> {
    let mut connection = open(servers).await?;
    let mut pending = Vec::with_capacity(LOAD_ROWS);
    let mut loaded = 0;
    for bucket in workload.buckets() {
        pending.push(bucket);
        if pending.len() == LOAD_ROWS {
            loaded += upsert(&mut connection, &pending).await?;
            pending.clear();
        }
    }
    loaded += upsert(&mut connection, &pending).await?;
    sqlx::raw_sql("VACUUM (ANALYZE, FREEZE) buckets").execute(&mut connection).await?;
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
    Ok(loaded)
}

async fn upsert(connection: impl Executor<'_, Database = sqlx::Postgres>, buckets: &[Bucket]) -> Result<u64> {
    let keys: Vec<String> = buckets.iter().map(|bucket| key_of(bucket.city)).collect();
    let granularities: Vec<i16> = buckets.iter().map(|bucket| bucket.granularity.number()).collect();
    let times: Vec<i64> = buckets.iter().map(|bucket| bucket.time_s).collect();
    let counts: Vec<i64> = buckets.iter().map(|bucket| bucket.count).collect();
    let query = sqlx::query(UPSERT).bind(keys).bind(granularities).bind(times).bind(counts);
    Ok(query.execute(connection).await?.rows_affected())
}

/// The arrays of one batch's slices, rendered once.
struct Request {
    numbers: Vec<i32>,
    keys: Vec<String>,
    granularities: Vec<i16>,
    from_s: Vec<i64>,
    to_s: Vec<i64>,
    expected: Vec<i64>,
}

impl Request {
    fn new(batch: &[Range]) -> Self {
        let parts: Vec<_> = batch
            .iter()
            .enumerate()
            .flat_map(|(number, range)| range.slices.iter().map(move |slice| (number as i32, range.asked.city, *slice)))
            .collect();
        Self {
            numbers: parts.iter().map(|(number, ..)| *number).collect(),
            keys: parts.iter().map(|(_, city, _)| key_of(*city)).collect(),
            granularities: parts.iter().map(|(.., slice)| slice.granularity.number()).collect(),
            from_s: parts.iter().map(|(.., slice)| slice.from_s).collect(),
            to_s: parts.iter().map(|(.., slice)| slice.to_s).collect(),
            expected: batch.iter().map(|range| range.expected).collect(),
        }
    }
}

pub struct Reader {
    connection: PgConnection,
    requests: Rc<Vec<Request>>,
}

pub fn readers(runtime: &Runtime, servers: &Servers, workload: &Workload, connections: usize) -> Result<Vec<Reader>> {
    let requests: Rc<Vec<Request>> = Rc::new(workload.batches.iter().map(|batch| Request::new(batch)).collect());
    (0..connections)
        .map(|_| Ok(Reader { connection: runtime.block_on(open(servers))?, requests: requests.clone() }))
        .collect()
}

impl Worker for Reader {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let request = &self.requests[(turn % self.requests.len() as u64) as usize];
        let query = sqlx::query(SUM)
            .bind(&request.numbers)
            .bind(&request.keys)
            .bind(&request.granularities)
            .bind(&request.from_s)
            .bind(&request.to_s);
        let rows = query.fetch_all(&mut self.connection).await?;
        let mut counts = vec![0; request.expected.len()];
        for row in rows {
            let number = usize::try_from(row.try_get::<i32, _>(0)?)?;
            *counts.get_mut(number).context("a number that was not asked")? = row.try_get(1)?;
        }
        ensure!(counts == request.expected, "PostgreSQL answered {counts:?}, right is {:?}", request.expected);
        Ok(BATCH_RANGES as u64)
    }
}

pub struct Writer {
    connection: PgConnection,
    writes: Rc<Writes>,
}

pub fn writers(runtime: &Runtime, servers: &Servers, writes: &Rc<Writes>, connections: usize) -> Result<Vec<Writer>> {
    (0..connections)
        .map(|_| Ok(Writer { connection: runtime.block_on(open(servers))?, writes: writes.clone() }))
        .collect()
}

impl Worker for Writer {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let batch = self.writes.batch(turn);
        if !self.writes.dedupe {
            upsert(&mut self.connection, &aggregate(batch.iter())).await?;
            return Ok(self.writes.count(batch.len()));
        }
        let ids: Vec<String> = self.writes.new_ids(batch.len()).into_iter().map(crate::events::id_text).collect();
        let mut transaction = self.connection.begin().await?;
        let rows = sqlx::query(REMEMBER).bind(&ids).fetch_all(&mut *transaction).await?;
        let new: HashSet<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let fresh = batch.iter().zip(&ids).filter(|(_, id)| new.contains(id.as_str())).map(|(drop, _)| drop);
        upsert(&mut *transaction, &aggregate(fresh)).await?;
        transaction.commit().await?;
        Ok(self.writes.count(new.len()))
    }
}

/// The sum of all daily counts from a day on.
pub async fn total(servers: &Servers, from_day_s: i64) -> Result<i64> {
    let query = sqlx::query(TOTAL).bind(Granularity::Day.number()).bind(from_day_s);
    Ok(query.fetch_one(&mut open(servers).await?).await?.try_get(0)?)
}
