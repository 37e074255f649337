//! The cluster that an experiment runs on: its processes, its counters and their history.

use crate::cluster::roles::{Role, Setup};
use crate::cluster::servers::Servers;
use crate::counts::Answer;
use crate::http::client::Client;
use crate::plan::{DAY_S, Granularity};
use crate::server::{BUCKETS_PER_REQUEST, bucket_json, set_buckets};
use crate::traffic::questions::{self, Keys, RangeQuery};
use anyhow::{Context, Result, ensure};
use sqlx::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS_PER_REQUEST: usize = 500;
const LOADED_MAX: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(50);

pub struct Place {
    setup: Setup,
    pub writer: Role,
    /// Readers by plan; empty if the writer also reads.
    readers: BTreeMap<String, Role>,
}

impl Place {
    /// Processes with their own keyspace, topic and name on the engines of a cluster, not yet
    /// started: one reader per plan.
    pub fn on_cluster(
        plans: &[&str],
        servers: &Servers,
        binary: &Path,
        name: &str,
        logs: &Path,
    ) -> Result<Self> {
        let mut setup = Setup::new(binary, logs, servers, name, 1)?;

        // Slow requests are measured, not refused.
        setup.set("cql.request_timeout_ms", "5000");
        setup.set("cql.speculative_after_ms", "0");
        setup.set("cluster.commit_interval_ms", "100");

        // All history is loaded through raingauge.
        setup.set("cql.foreign_rows", "no");
        setup.set("maintenance.compaction_command", &servers.nodetool_command(1)?);
        setup.set("maintenance.compaction_tables", "all");
        setup.set("maintenance.pause_s", "0");
        setup.set(
            "mysql.url",
            &own_database(servers.needed("MYSQL")?, &format!("raingauge_{name}"))?,
        );
        setup.migrate()?;

        let redis = servers.needed("REDIS")?;
        let reader = |plan: &&str| {
            let name = format!("reader-{plan}");
            let settings = [
                ("CACHE__RESULT", "redis"),
                ("CACHE__REDIS_URLS", redis),
                ("CACHE__REDIS_TIMEOUT_MS", "200"),
                ("CQL__READ_PLAN", plan),
                ("CLUSTER__INSTANCE", &name),
            ];
            Ok(((*plan).to_owned(), Role::new(&name, "reader", &settings)?))
        };

        let readers = plans.iter().map(reader).collect::<Result<_>>()?;
        Ok(Self { setup, writer: Role::new("writer", "writer,portal", &[])?, readers })
    }

    /// One process with the embedded engines.
    pub fn embedded(binary: &Path, logs: &Path) -> Result<Self> {
        let role = Role::new("embedded", "reader,writer,portal", &[("CACHE__RESULT", "memory")])?;
        Ok(Self { setup: Setup::embedded(binary, logs), writer: role, readers: BTreeMap::new() })
    }

    /// The process that reads by a plan.
    pub fn reader(&self, plan: &str) -> &Role {
        self.readers.get(plan).unwrap_or(&self.writer)
    }

    /// Changes a setting for every process that is started later.
    pub fn set(&mut self, name: &str, value: &str) {
        self.setup.set(name, value);
    }

    pub fn start(&mut self) -> Result<()> {
        let mut roles: Vec<&mut Role> =
            std::iter::once(&mut self.writer).chain(self.readers.values_mut()).collect();
        for role in &mut roles {
            role.start(&self.setup)?;
        }
        for role in roles {
            role.wait_ready(&self.setup)?;
        }
        Ok(())
    }

    pub fn stop(&mut self) -> Result<()> {
        for reader in self.readers.values_mut() {
            reader.stop()?;
        }
        self.writer.stop()
    }

    /// The processes that answer counts.
    pub fn answering(&self) -> Vec<&Role> {
        if self.readers.is_empty() { vec![&self.writer] } else { self.readers.values().collect() }
    }

    /// Creates the counters, and waits until every reader has the last one.
    pub fn make_counters(&self, keys: &Keys) -> Result<()> {
        let mut portal = Client::connect(&self.writer.target())?;
        let counters = keys.counters();
        for counter in &counters {
            portal.json("POST", "/v1/counters", counter.to_string().as_bytes())?;
        }

        let deadline = Instant::now() + LOADED_MAX;
        let last = counters.last().and_then(|counter| counter["name"].as_str()).unwrap_or_default();
        let key = format!("lab:{}:any", last.trim_start_matches("lab_"));

        for reader in self.answering() {
            let mut client = Client::connect(&reader.target())?;
            while client
                .call("GET", &format!("/v1/counts?key={key}&fromTime=900&toTime=1800"), b"")?
                .status
                != 200
            {
                ensure!(
                    Instant::now() < deadline,
                    "{} did not have every counter within {LOADED_MAX:?}",
                    reader.name
                );
                std::thread::sleep(POLL);
            }
        }

        Ok(())
    }

    /// Sets the history bucket by bucket, and waits until the reader returns it. Returns the number
    /// of buckets.
    pub fn load(&self, keys: &Keys, history: &[(u32, i64)]) -> Result<usize> {
        let buckets = buckets(history);
        let mut client = Client::connect(&self.writer.target())?;
        let item = |((rank, granularity, time_s), count): (&(u32, Granularity, i64), &i64)| {
            bucket_json(&keys.key(*rank), *granularity, *time_s, *count)
        };
        let items: Vec<String> = buckets.iter().map(item).collect();

        let deadline = Instant::now() + LOADED_MAX;
        for part in items.chunks(BUCKETS_PER_REQUEST) {
            // The writer may learn of a counter later than a reader. Setting a bucket twice changes
            // nothing.
            while let Err(error) = set_buckets(&mut client, part) {
                if Instant::now() >= deadline {
                    return Err(error);
                }
                std::thread::sleep(POLL);
            }
        }

        for reader in self.answering() {
            wait_loaded(reader, keys, history)?;
        }
        Ok(buckets.len())
    }
}

/// Creates a separate database for the counters of this run, and returns its address.
fn own_database(server: &str, database: &str) -> Result<String> {
    let (address, _) =
        server.rsplit_once('/').context("the address of MySQL does not end in a database")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime
        .block_on(async {
            let mut connection = sqlx::MySqlConnection::connect(server).await?;
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {database}")))
                .execute(&mut connection)
                .await?;
            connection.close().await
        })
        .with_context(|| format!("cannot create the database {database}"))?;

    Ok(format!("{address}/{database}"))
}

/// Waits until a reader returns the complete history of every key.
fn wait_loaded(reader: &Role, keys: &Keys, history: &[(u32, i64)]) -> Result<()> {
    let mut expected = BTreeMap::<u32, i64>::new();
    history.iter().for_each(|(rank, _)| *expected.entry(*rank).or_default() += 1);

    let (Some(from_s), Some(to_s)) = (
        history.iter().map(|(_, time_s)| *time_s).min(),
        history.iter().map(|(_, time_s)| *time_s).max(),
    ) else {
        return Ok(());
    };

    let (from_s, to_s) =
        (crate::plan::floor(from_s, DAY_S), crate::plan::floor(to_s, DAY_S) + DAY_S);
    let ranks: Vec<u32> = expected.keys().copied().collect();
    let mut client = Client::connect(&reader.target())?;
    let deadline = Instant::now() + LOADED_MAX;

    for part in ranks.chunks(KEYS_PER_REQUEST) {
        let asked: Vec<RangeQuery> =
            part.iter().map(|rank| RangeQuery { rank: *rank, from_s, to_s }).collect();
        let right: Vec<Option<i64>> = part.iter().map(|rank| expected.get(rank).copied()).collect();
        while counts(&mut client, &questions::body(keys, &asked, true))? != right {
            ensure!(
                Instant::now() < deadline,
                "{} did not return the whole history within {LOADED_MAX:?}",
                reader.name
            );
            std::thread::sleep(POLL);
        }
    }

    Ok(())
}

/// Returns the counts of a batch; `None` for those that failed.
pub fn counts(client: &mut Client, body: &str) -> Result<Vec<Option<i64>>> {
    let answer = client.json("POST", "/v1/counts", body.as_bytes())?;
    let answer: Answer = serde_json::from_value(answer).context("not a counts response")?;
    Ok(answer.results.into_iter().map(|item| item.count).collect())
}

/// Returns the non-empty buckets of a history, in every granularity.
fn buckets(history: &[(u32, i64)]) -> BTreeMap<(u32, Granularity, i64), i64> {
    let mut buckets = BTreeMap::new();
    for (rank, time_s) in history {
        for granularity in Granularity::ALL {
            let start_s = crate::plan::floor(*time_s, granularity.width_s());
            *buckets.entry((*rank, granularity, start_s)).or_default() += 1;
        }
    }
    buckets
}
