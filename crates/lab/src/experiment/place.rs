//! The cluster that an experiment runs on: its processes, its counters and their history.

use super::scenario::Scenario;
use crate::cluster::roles::{Role, Setup};
use crate::cluster::servers::Servers;
use crate::counts::Answer;
use crate::fast::Fast;
use crate::http::client::Client;
use crate::plan::{DAY_S, Granularity};
use crate::traffic::questions::{self, Asked, Keys};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const BUCKETS_PER_REQUEST: usize = 5_000;
const KEYS_PER_REQUEST: usize = 500;
const LOADED_MAX: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(50);

pub struct Place {
    setup: Setup,
    pub writer: Role,
    pub reader: Role,
}

impl Place {
    /// Processes of their own keyspace, topic and name, not started yet.
    pub fn new(scenario: &Scenario, servers: &Servers, binary: &Path, name: &str, logs: &Path) -> Result<Self> {
        let mut setup = Setup::new(binary, logs, servers, name, 1)?;
        // Nothing is to be measured that is refused for being slow.
        setup.set("cql.request_timeout_ms", "5000");
        setup.set("cql.speculative_after_ms", "0");
        setup.set("cluster.commit_interval_ms", "100");
        setup.set("maintenance.compaction_command", &servers.nodetool_command(1)?);
        setup.set("maintenance.compaction_tables", "all");
        setup.set("maintenance.pause_s", "0");
        let caching = [
            ("CACHE__RESULT", "redis"),
            ("CACHE__REDIS_URLS", servers.needed("REDIS")?),
            ("CACHE__REDIS_TIMEOUT_MS", "200"),
            ("CQL__READ_PLAN", scenario.plan.as_str()),
            ("CLUSTER__INSTANCE", "reader"),
        ];
        setup.migrate()?;
        Ok(Self {
            setup,
            writer: Role::new("writer", "writer,portal", &[])?,
            reader: Role::new("reader", "reader", &caching)?,
        })
    }

    /// A setting for every process that is started from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.setup.set(name, value);
    }

    pub fn start(&mut self) -> Result<()> {
        let roles = [&mut self.writer, &mut self.reader];
        for role in roles {
            role.start(&self.setup)?;
        }
        self.writer.wait_ready(&self.setup)?;
        self.reader.wait_ready(&self.setup)
    }

    pub fn stop(&mut self) -> Result<()> {
        self.reader.stop()?;
        self.writer.stop()
    }

    /// Everything under a clock that stands at the beginning of the scenario, and hardly moves while history is loaded.
    pub fn start_for_loading(&mut self, scenario: &Scenario) -> Result<()> {
        self.set("clock.experiment", &Fast::starting(scenario.from_ms()?, 1).setting());
        self.start()
    }

    /// Makes the counters, and waits until the reader has the last of them.
    pub fn make_counters(&self, keys: &Keys) -> Result<()> {
        let mut portal = Client::connect(&self.writer.target())?;
        let counters = keys.counters();
        for counter in &counters {
            portal.json("POST", "/v1/counters", counter.to_string().as_bytes())?;
        }
        let deadline = Instant::now() + LOADED_MAX;
        let last = counters.last().and_then(|counter| counter["name"].as_str()).unwrap_or_default();
        let key = format!("lab:{}:any", last.trim_start_matches("lab_"));
        let mut reader = Client::connect(&self.reader.target())?;
        while reader.call("GET", &format!("/v1/counts?key={key}&fromTime=900&toTime=1800"), b"")?.status != 200 {
            ensure!(Instant::now() < deadline, "waited {LOADED_MAX:?} until the reader had every counter");
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Sets the history bucket by bucket, and waits until the reader answers it. Answers how many buckets there are.
    pub fn load(&self, keys: &Keys, history: &[(u32, i64)]) -> Result<usize> {
        let buckets = buckets(history);
        let mut client = Client::connect(&self.writer.target())?;
        let lines: Vec<String> = buckets
            .iter()
            .map(|((rank, granularity, time_s), count)| {
                let (key, granularity) = (keys.key(*rank), granularity.name());
                format!(r#"{{"key":"{key}","granularity":"{granularity}","time":{time_s},"count":{count}}}"#)
            })
            .collect();
        for part in lines.chunks(BUCKETS_PER_REQUEST) {
            let answer = client.json("POST", "/v1/buckets", format!("[{}]", part.join(",")).as_bytes())?;
            ensure!(answer["accepted"] == part.len(), "of {} buckets: {answer}", part.len());
        }
        self.wait_loaded(keys, history)?;
        Ok(buckets.len())
    }

    fn wait_loaded(&self, keys: &Keys, history: &[(u32, i64)]) -> Result<()> {
        let mut expected = BTreeMap::<u32, i64>::new();
        history.iter().for_each(|(rank, _)| *expected.entry(*rank).or_default() += 1);
        let (Some(from_s), Some(to_s)) =
            (history.iter().map(|(_, time_s)| *time_s).min(), history.iter().map(|(_, time_s)| *time_s).max())
        else {
            return Ok(());
        };
        let (from_s, to_s) = (crate::plan::floor(from_s, DAY_S), crate::plan::floor(to_s, DAY_S) + DAY_S);
        let ranks: Vec<u32> = expected.keys().copied().collect();
        let (mut client, deadline) = (Client::connect(&self.reader.target())?, Instant::now() + LOADED_MAX);
        for part in ranks.chunks(KEYS_PER_REQUEST) {
            let asked: Vec<Asked> = part.iter().map(|rank| Asked { rank: *rank, from_s, to_s }).collect();
            let right: Vec<Option<i64>> = part.iter().map(|rank| expected.get(rank).copied()).collect();
            while counts(&mut client, &questions::body(keys, &asked, true))? != right {
                ensure!(Instant::now() < deadline, "waited {LOADED_MAX:?} until the history was counted");
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }
}

/// The counts of a batch, `None` for those that failed.
pub fn counts(client: &mut Client, body: &str) -> Result<Vec<Option<i64>>> {
    let answer = client.json("POST", "/v1/counts", body.as_bytes())?;
    let answer: Answer = serde_json::from_value(answer).context("not an answer to counts")?;
    Ok(answer.results.into_iter().map(|item| item.count).collect())
}

/// The buckets of every granularity that a history fills.
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
