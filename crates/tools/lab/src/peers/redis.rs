//! Redis: one string per bucket, `key:granularity:time`, written by INCRBY and read by MGET, all
//! pipelined.
//!
//! Deduplication uses SET NX before the INCRBYs. The two are not atomic: a crash between them loses
//! the batch. A script that does both would be safe but slower; this measures the usual, faster
//! form.

use super::client::{Client, Mode, Peer};
use super::question::Question;
use super::resp::{self, Connection, Reply};
use super::{Writes, aggregate};
use crate::plan::{DAY_S, Granularity};
use crate::workload::{Workload, key_of};
use anyhow::{Result, bail};

const LOAD_PIPELINE: usize = 5_000;
const MGET_KEYS: usize = 1_000;
const DEDUPE_TTL_S: &[u8] = b"86400";
const ALWAYS: &str = "SET NX for each id, then INCRBY; appendfsync always";

pub struct Redis {
    pub port: u16,
    pub keys: u32,
    /// Events of this day and later are new.
    pub live_from_s: i64,
}

pub struct Handle {
    connection: Connection,
    pipeline: Vec<u8>,
}

/// One MGET per range, or one for all days.
pub struct Asking {
    bytes: Vec<u8>,
    /// For each range, whether it has any buckets and therefore an MGET.
    asked: Vec<bool>,
    is_series: bool,
}

fn bucket_key(city: u32, granularity: Granularity, time_s: i64) -> String {
    format!("{}:{}:{time_s}", key_of(city), &granularity.name()[..1])
}

async fn load_history(port: u16, workload: &Workload) -> Result<()> {
    let mut connection = Connection::open(port).await?;
    let mut pipeline = Vec::new();
    let mut pending = 0;

    for bucket in workload.buckets() {
        let key = bucket_key(bucket.city, bucket.granularity, bucket.time_s);
        resp::command(
            &mut pipeline,
            &[b"SET", key.as_bytes(), bucket.count.to_string().as_bytes()],
        );
        pending += 1;

        if pending == LOAD_PIPELINE {
            finish(&mut connection, &mut pipeline, &mut pending).await?;
        }
    }

    finish(&mut connection, &mut pipeline, &mut pending).await
}

async fn finish(
    connection: &mut Connection,
    pipeline: &mut Vec<u8>,
    pending: &mut usize,
) -> Result<()> {
    connection.send(pipeline).await?;
    for _ in 0..std::mem::take(pending) {
        connection.reply().await?;
    }
    pipeline.clear();
    Ok(())
}

fn mget(bytes: &mut Vec<u8>, keys: &[String]) {
    let words: Vec<&[u8]> =
        std::iter::once(&b"MGET"[..]).chain(keys.iter().map(|key| key.as_bytes())).collect();
    resp::command(bytes, &words);
}

/// Sums the counts in an array; a missing key counts 0.
async fn counts(connection: &mut Connection) -> Result<Vec<i64>> {
    let Reply::Array(length) = connection.reply().await? else {
        bail!("Redis answered MGET without an array")
    };
    let mut counts = Vec::with_capacity(length);
    for _ in 0..length {
        let reply = connection.reply().await?;
        counts.push(if let Reply::Integer(count) = reply { count } else { 0 });
    }
    Ok(counts)
}

impl Handle {
    /// Returns which drops of a batch are new.
    async fn remember(&mut self, writes: &Writes, count: usize) -> Result<Vec<bool>> {
        self.pipeline.clear();

        for id in writes.new_ids(count) {
            let key = format!("seen:{}", crate::events::id_text(id));
            resp::command(
                &mut self.pipeline,
                &[b"SET", key.as_bytes(), b"1", b"NX", b"EX", DEDUPE_TTL_S],
            );
        }

        self.connection.send(&self.pipeline).await?;
        let mut new = Vec::with_capacity(count);
        for _ in 0..count {
            new.push(self.connection.reply().await? == Reply::Done);
        }

        Ok(new)
    }
}

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        let mut bytes = Vec::new();
        match question {
            Question::Counts(ranges) => {
                let mut asked = Vec::new();
                for range in ranges {
                    let slices = range.slices.iter();
                    let key = |granularity| {
                        move |time_s| bucket_key(range.asked.city, granularity, time_s)
                    };
                    let keys: Vec<String> = slices
                        .flat_map(|slice| slice.buckets().map(key(slice.granularity)))
                        .collect();
                    asked.push(!keys.is_empty());

                    if !keys.is_empty() {
                        mget(&mut bytes, &keys);
                    }
                }

                Asking { bytes, asked, is_series: false }
            }
            Question::Series(days, _) => {
                let key = |time_s| bucket_key(days.city, Granularity::Day, time_s);
                mget(&mut bytes, &days.starts().map(key).collect::<Vec<_>>());
                Asking { bytes, asked: Vec::new(), is_series: true }
            }
        }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        self.connection.send(&asking.bytes).await?;
        if asking.is_series {
            return counts(&mut self.connection).await;
        }
        let mut sums = Vec::with_capacity(asking.asked.len());
        for is_asked in &asking.asked {
            sums.push(if *is_asked { counts(&mut self.connection).await?.iter().sum() } else { 0 });
        }
        Ok(sums)
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        let new = if writes.dedupe {
            self.remember(writes, batch.len()).await?
        } else {
            vec![true; batch.len()]
        };

        let buckets =
            aggregate(batch.iter().zip(&new).filter(|(_, new)| **new).map(|(drop, _)| drop));
        self.pipeline.clear();

        for bucket in &buckets {
            let key = bucket_key(bucket.city, bucket.granularity, bucket.time_s);
            resp::command(
                &mut self.pipeline,
                &[b"INCRBY", key.as_bytes(), bucket.count.to_string().as_bytes()],
            );
        }

        self.connection.send(&self.pipeline).await?;

        for _ in &buckets {
            self.connection.reply().await?;
        }
        Ok(new.iter().filter(|new| **new).count() as u64)
    }
}

impl Redis {
    async fn command(&self, words: &[&[u8]]) -> Result<()> {
        let mut connection = Connection::open(self.port).await?;
        let mut bytes = Vec::new();
        resp::command(&mut bytes, words);
        connection.send(&bytes).await?;
        connection.reply().await?;
        Ok(())
    }
}

impl Peer for Redis {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a string for each bucket, pipelined MGET"
    }

    fn modes(&self) -> Vec<Mode> {
        let fast = Mode::new("INCRBY; appendfsync everysec", 10_000, 4);
        vec![fast, Mode::new(ALWAYS, 10_000, 4).durable().exactly_once()]
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle { connection: Connection::open(self.port).await?, pipeline: Vec::new() })
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        load_history(self.port, workload).await
    }

    async fn enter(&self, mode: &Mode) -> Result<()> {
        let policy: &[u8] = if mode.durable { b"always" } else { b"everysec" };
        self.command(&[b"CONFIG", b"SET", b"appendfsync", policy]).await
    }

    /// The sum of all daily counts from the first live day on.
    async fn total(&self) -> Result<i64> {
        let mut connection = Connection::open(self.port).await?;
        let to_s = crate::now_s();
        let days = |city| {
            let starts = (self.live_from_s..=to_s).step_by(DAY_S as usize);
            starts.map(move |time_s| bucket_key(city, Granularity::Day, time_s))
        };
        let cells: Vec<String> = (0..self.keys).flat_map(days).collect();
        let mut sum = 0;

        for chunk in cells.chunks(MGET_KEYS) {
            let mut bytes = Vec::new();
            mget(&mut bytes, chunk);
            connection.send(&bytes).await?;
            sum += counts(&mut connection).await?.iter().sum::<i64>();
        }

        Ok(sum)
    }
}
