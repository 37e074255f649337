//! Cassandra with counter columns: a partition per key, a row per bucket, increments of the same
//! key in one counter batch. The slices of a plan are read concurrently and summed here.
//!
//! An increment is not idempotent: one that timed out may or may not have counted, and a retry may
//! count it twice.

use super::client::{Client, Mode, Peer};
use super::question::{Days, Question};
use super::servers::Running;
use super::{Writes, aggregate};
use crate::plan::{Granularity, Slice};
use crate::workload::{Bucket, Workload, key_of};
use anyhow::{Context, Result, bail};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Counter;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE lab WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE lab.counts (key text, granularity tinyint, bucket bigint, n counter,
     PRIMARY KEY (key, granularity, bucket))",
];
const SELECT: &str = "SELECT bucket, n FROM lab.counts WHERE key = ? AND granularity = ? AND bucket >= ? AND bucket < ?";
const UPDATE: &str =
    "UPDATE lab.counts SET n = n + ? WHERE key = ? AND granularity = ? AND bucket = ?";
/// As many as a node with one core handles well within its timeout.
const BATCHES_IN_FLIGHT: usize = 32;
/// Increments in one batch.
const BATCH_MAX: usize = 50;
const DAY_END_S: i64 = i64::MAX;

pub struct Cassandra {
    pub server: Rc<Running>,
    pub keys: u32,
    /// Events of this day and later are new.
    pub live_from_s: i64,
    /// One session serves all workers; `None` until the tables have been created.
    pub shared: RefCell<Option<Handle>>,
}

struct Statements {
    session: Session,
    select: PreparedStatement,
    update: PreparedStatement,
}

#[derive(Clone)]
pub struct Handle(Arc<Statements>);

pub enum Asking {
    /// The slices of all ranges, each with the index of its range, and the number of ranges.
    Counts(Vec<(usize, u32, Slice)>, usize),
    Series(Days),
}

impl Handle {
    async fn buckets(&self, city: u32, slice: Slice) -> Result<Vec<(i64, i64)>> {
        let values = (key_of(city), slice.granularity as i8, slice.from_s, slice.to_s);
        let rows =
            self.0.session.execute_unpaged(&self.0.select, values).await?.into_rows_result()?;
        let rows = rows.rows::<(i64, Counter)>()?;
        rows.map(|row| row.map(|(bucket, count)| (bucket, count.0)).context("a row")).collect()
    }

    /// Returns the sums of slices, read concurrently, with the indexes of their ranges.
    async fn sums(
        &self,
        parts: impl Iterator<Item = (usize, u32, Slice)>,
        mut add: impl FnMut(usize, i64),
    ) -> Result<()> {
        let mut running = JoinSet::new();
        for (place, city, slice) in parts {
            if running.len() == BATCHES_IN_FLIGHT
                && let Some(done) = running.join_next().await
            {
                let (place, sum) = done??;
                add(place, sum);
            }

            let this = self.clone();
            running.spawn(async move {
                let sum =
                    this.buckets(city, slice).await?.iter().map(|(_, count)| count).sum::<i64>();
                anyhow::Ok((place, sum))
            });
        }

        while let Some(done) = running.join_next().await {
            let (place, sum) = done??;
            add(place, sum);
        }

        Ok(())
    }

    /// Adds buckets that are ordered by city.
    async fn add(&self, buckets: &[Bucket]) -> Result<()> {
        let mut running = JoinSet::new();
        for chunk in buckets
            .chunk_by(|left, right| left.city == right.city)
            .flat_map(|chunk| chunk.chunks(BATCH_MAX))
        {
            if running.len() == BATCHES_IN_FLIGHT
                && let Some(done) = running.join_next().await
            {
                done??;
            }

            let this = self.clone();
            let chunk = chunk.to_vec();
            running.spawn(async move { this.add_batch(&chunk).await });
        }

        while let Some(done) = running.join_next().await {
            done??;
        }
        Ok(())
    }

    async fn add_batch(&self, buckets: &[Bucket]) -> Result<()> {
        let mut batch = Batch::new(BatchType::Counter);
        for _ in buckets {
            batch.append_statement(self.0.update.clone());
        }

        let row = |bucket: &Bucket| {
            (Counter(bucket.count), key_of(bucket.city), bucket.granularity as i8, bucket.time_s)
        };

        let values: Vec<_> = buckets.iter().map(row).collect();
        self.0.session.batch(&batch, values).await?;
        Ok(())
    }
}

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        match question {
            Question::Counts(ranges) => {
                let slices = ranges.iter().enumerate().flat_map(|(place, range)| {
                    range.slices.iter().map(move |slice| (place, range.asked.city, *slice))
                });
                Asking::Counts(slices.collect(), ranges.len())
            }
            Question::Series(days, _) => Asking::Series(*days),
        }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        match asking {
            Asking::Counts(slices, ranges) => {
                let mut counts = vec![0; *ranges];
                self.sums(slices.iter().copied(), |place, sum| counts[place] += sum).await?;
                Ok(counts)
            }
            Asking::Series(days) => {
                let slice =
                    Slice { granularity: Granularity::Day, from_s: days.from_s, to_s: days.to_s };
                days.filled(self.buckets(days.city, slice).await?)
            }
        }
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        if writes.dedupe {
            bail!("counter columns cannot detect duplicates");
        }
        self.add(&aggregate(batch.iter())).await?;
        Ok(batch.len() as u64)
    }
}

impl Peer for Cassandra {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a counter column for each bucket, the slices of a range read side by side"
    }

    fn modes(&self) -> Vec<Mode> {
        vec![Mode::new("counter batches by key; commit log synced every 10 s", 1_000, 4)]
    }

    fn warm_up(&self) -> Duration {
        Duration::from_secs(8)
    }

    async fn connect(&self) -> Result<Handle> {
        if let Some(connected) = self.shared.borrow().as_ref() {
            return Ok(connected.clone());
        }
        let node = format!("127.0.0.1:{}", self.server.port);
        let session =
            SessionBuilder::new().known_node(node).build().await.context("no Cassandra")?;
        let select = session.prepare(SELECT).await?;
        let update = session.prepare(UPDATE).await?;
        let connected = Handle(Arc::new(Statements { session, select, update }));
        Ok(self.shared.borrow_mut().insert(connected).clone())
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let node = format!("127.0.0.1:{}", self.server.port);
        let session =
            SessionBuilder::new().known_node(node).build().await.context("no Cassandra")?;
        for statement in SCHEMA {
            session.query_unpaged(statement, ()).await?;
        }
        let buckets: Vec<Bucket> = workload.buckets().collect();
        self.connect().await?.add(&buckets).await
    }

    async fn settle(&self) -> Result<()> {
        self.server.settle()
    }

    /// The sum of all daily counts from the first live day on.
    async fn total(&self) -> Result<i64> {
        let slice =
            Slice { granularity: Granularity::Day, from_s: self.live_from_s, to_s: DAY_END_S };
        let mut total = 0;
        let parts = (0..self.keys).map(|city| (0, city, slice));
        self.connect().await?.sums(parts, |_, sum| total += sum).await?;
        Ok(total)
    }
}
