//! Redis: one string per bucket, `key:granularity:time`, written by INCRBY and read by MGET, all pipelined.
//!
//! Remembering ids takes SET NX before the INCRBYs. The two are not atomic: a crash between them loses the batch.
//! Users who know it put both into a script, which is slower; what is measured here is the usual, faster form.

use super::drive::Worker;
use super::resp::{self, Connection, Reply};
use super::{Writes, aggregate};
use crate::plan::{DAY_S, Granularity};
use crate::workload::{BATCH_RANGES, Workload, key_of};
use anyhow::{Result, bail, ensure};
use std::rc::Rc;
use tokio::runtime::Runtime;

/// Batches rendered for reading; more would not change what the server does, only the client's memory.
const READ_BATCHES: usize = 1_024;
const LOAD_PIPELINE: usize = 5_000;
const MGET_KEYS: usize = 1_000;
const DEDUPE_TTL_S: &[u8] = b"86400";

fn bucket_key(city: u32, granularity: Granularity, time_s: i64) -> String {
    format!("{}:{}:{time_s}", key_of(city), granularity.letter())
}

/// Old keys would make wrong counts, and this program deletes nothing that it did not write.
pub async fn ensure_empty(port: u16) -> Result<()> {
    let mut connection = Connection::open(port).await?;
    let mut pipeline = Vec::new();
    resp::command(&mut pipeline, &[b"DBSIZE"]);
    connection.send(&pipeline).await?;
    let size = connection.reply().await?;
    ensure!(size == Reply::Integer(0), "the Redis at port {port} is not empty; start new servers by scripts/peers");
    Ok(())
}

pub async fn load_history(port: u16, workload: &Workload) -> Result<u64> {
    let mut connection = Connection::open(port).await?;
    let mut pipeline = Vec::new();
    let mut pending = 0;
    let mut loaded = 0;
    for bucket in workload.buckets() {
        let key = bucket_key(bucket.city, bucket.granularity, bucket.time_s);
        resp::command(&mut pipeline, &[b"SET", key.as_bytes(), bucket.count.to_string().as_bytes()]);
        pending += 1;
        if pending == LOAD_PIPELINE {
            loaded += finish(&mut connection, &mut pipeline, &mut pending).await?;
        }
    }
    loaded += finish(&mut connection, &mut pipeline, &mut pending).await?;
    Ok(loaded)
}

async fn finish(connection: &mut Connection, pipeline: &mut Vec<u8>, pending: &mut usize) -> Result<u64> {
    connection.send(pipeline).await?;
    for _ in 0..*pending {
        connection.reply().await?;
    }
    pipeline.clear();
    Ok(std::mem::take(pending) as u64)
}

/// A batch of ten ranges: ten MGETs in one pipeline. A range without a bucket has no MGET.
struct Request {
    bytes: Vec<u8>,
    /// The right answer of each MGET, in order.
    expected: Vec<i64>,
}

pub struct Reader {
    connection: Connection,
    requests: Rc<Vec<Request>>,
}

pub fn readers(runtime: &Runtime, port: u16, workload: &Workload, connections: usize) -> Result<Vec<Reader>> {
    let requests: Rc<Vec<Request>> = Rc::new(
        workload
            .batches
            .iter()
            .take(READ_BATCHES)
            .map(|batch| {
                let mut request = Request { bytes: Vec::new(), expected: Vec::new() };
                for range in batch {
                    let keys: Vec<String> = range
                        .slices
                        .iter()
                        .flat_map(|slice| {
                            slice.buckets().map(|time_s| bucket_key(range.asked.city, slice.granularity, time_s))
                        })
                        .collect();
                    if keys.is_empty() {
                        continue;
                    }
                    let words: Vec<&[u8]> =
                        std::iter::once(&b"MGET"[..]).chain(keys.iter().map(|key| key.as_bytes())).collect();
                    resp::command(&mut request.bytes, &words);
                    request.expected.push(range.expected);
                }
                request
            })
            .collect(),
    );
    (0..connections)
        .map(|_| Ok(Reader { connection: runtime.block_on(Connection::open(port))?, requests: requests.clone() }))
        .collect()
}

impl Worker for Reader {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let request = &self.requests[(turn % self.requests.len() as u64) as usize];
        self.connection.send(&request.bytes).await?;
        for &expected in &request.expected {
            let count = sum_of_array(&mut self.connection).await?;
            ensure!(count == expected, "Redis answered {count}, right is {expected}");
        }
        Ok(BATCH_RANGES as u64)
    }
}

async fn sum_of_array(connection: &mut Connection) -> Result<i64> {
    let Reply::Array(length) = connection.reply().await? else { bail!("Redis answered MGET without an array") };
    let mut sum = 0;
    for _ in 0..length {
        if let Reply::Integer(count) = connection.reply().await? {
            sum += count;
        }
    }
    Ok(sum)
}

pub struct Writer {
    connection: Connection,
    writes: Rc<Writes>,
    pipeline: Vec<u8>,
}

pub fn writers(runtime: &Runtime, port: u16, writes: &Rc<Writes>, connections: usize) -> Result<Vec<Writer>> {
    (0..connections)
        .map(|_| {
            let connection = runtime.block_on(Connection::open(port))?;
            Ok(Writer { connection, writes: writes.clone(), pipeline: Vec::new() })
        })
        .collect()
}

impl Writer {
    /// Which drops of a batch are new.
    async fn remember(&mut self, count: usize) -> Result<Vec<bool>> {
        self.pipeline.clear();
        for id in self.writes.new_ids(count) {
            let key = format!("seen:{}", crate::events::id_text(id));
            resp::command(&mut self.pipeline, &[b"SET", key.as_bytes(), b"1", b"NX", b"EX", DEDUPE_TTL_S]);
        }
        self.connection.send(&self.pipeline).await?;
        let mut new = Vec::with_capacity(count);
        for _ in 0..count {
            new.push(self.connection.reply().await? == Reply::Done);
        }
        Ok(new)
    }
}

impl Worker for Writer {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let writes = self.writes.clone();
        let batch = writes.batch(turn);
        let new = if writes.dedupe { self.remember(batch.len()).await? } else { vec![true; batch.len()] };
        let buckets = aggregate(batch.iter().zip(&new).filter(|(_, new)| **new).map(|(drop, _)| drop));
        self.pipeline.clear();
        for bucket in &buckets {
            let key = bucket_key(bucket.city, bucket.granularity, bucket.time_s);
            resp::command(&mut self.pipeline, &[b"INCRBY", key.as_bytes(), bucket.count.to_string().as_bytes()]);
        }
        self.connection.send(&self.pipeline).await?;
        for _ in &buckets {
            self.connection.reply().await?;
        }
        Ok(writes.count(new.iter().filter(|new| **new).count()))
    }
}

/// The sum of all daily counts from a day on.
pub async fn total(port: u16, keys: u32, from_day_s: i64) -> Result<i64> {
    let mut connection = Connection::open(port).await?;
    let to_s = crate::now_s();
    let cells: Vec<String> = (0..keys)
        .flat_map(|city| {
            let days = (from_day_s..=to_s).step_by(DAY_S as usize);
            days.map(move |time_s| bucket_key(city, Granularity::Day, time_s))
        })
        .collect();
    let mut sum = 0;
    for chunk in cells.chunks(MGET_KEYS) {
        let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..]).chain(chunk.iter().map(|key| key.as_bytes())).collect();
        let mut pipeline = Vec::new();
        resp::command(&mut pipeline, &words);
        connection.send(&pipeline).await?;
        sum += sum_of_array(&mut connection).await?;
    }
    Ok(sum)
}
