//! Samples the resource usage of each part of the system while counts are served.

use super::metrics;
use super::record::{Sample, StoreCounters};
use crate::fast::Fast;
use crate::http::Target;
use crate::http::client::Client;
use crate::process::usage;
use anyhow::{Context, Result};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A connection to the store, for its own statistics.
pub struct Store {
    runtime: Runtime,
    session: Session,
}

impl Store {
    pub fn connect(contact_points: &str) -> Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let nodes: Vec<&str> = contact_points.split(',').collect();
        let session = runtime
            .block_on(SessionBuilder::new().known_nodes(nodes).build())
            .context("the bucket store")?;
        Ok(Self { runtime, session })
    }

    pub fn execute(&self, statement: &str) -> Result<()> {
        self.runtime
            .block_on(self.session.query_unpaged(statement, ()))
            .with_context(|| statement.to_owned())?;
        Ok(())
    }

    pub fn version(&self) -> Result<String> {
        let statement = "SELECT release_version FROM system.local";
        let rows =
            self.runtime.block_on(self.session.query_unpaged(statement, ()))?.into_rows_result()?;
        Ok(rows.first_row::<(String,)>()?.0)
    }

    /// Returns the hits and misses of its block cache so far.
    fn own_cache(&self) -> Result<(u64, u64)> {
        let statement =
            "SELECT hit_count, request_count FROM system_views.caches WHERE name = 'chunks'";
        let rows =
            self.runtime.block_on(self.session.query_unpaged(statement, ()))?.into_rows_result()?;
        let Some((hits, requests)) = rows.maybe_first_row::<(i64, i64)>()? else {
            return Ok((0, 0));
        };
        Ok((hits as u64, (requests - hits).max(0) as u64))
    }
}

pub struct Probe {
    pub clock: Fast,
    /// Process ids by name.
    pub processes: BTreeMap<String, u32>,
    pub reader: Target,
    pub writer: Target,
    /// The store, if it has statistics.
    pub store: Option<Store>,
    pub every: Duration,
}

impl Probe {
    /// Samples until it is stopped, and once more.
    pub fn run(&self, stop: &AtomicBool) -> Result<Vec<Sample>> {
        let began = Instant::now();
        let mut samples = Vec::new();
        let (mut reader, mut writer) =
            (Client::connect(&self.reader)?, Client::connect(&self.writer)?);

        for turn in 1.. {
            let is_last = stop.load(Ordering::Acquire);
            samples.push(self.sample(&mut reader, &mut writer)?);

            if is_last {
                break;
            }
            std::thread::sleep(
                (began + self.every * turn).saturating_duration_since(Instant::now()),
            );
        }

        Ok(samples)
    }

    fn sample(&self, reader: &mut Client, writer: &mut Client) -> Result<Sample> {
        let at_ms = self.clock.now_ms();
        let page = reader.call("GET", "/metrics", b"")?.text();
        let number = |name: &str, label: &str| metrics::sum(&page, name, label) as u64;
        let (own_hits, own_misses) = self.store.as_ref().map_or(Ok((0, 0)), Store::own_cache)?;
        let counted = writer.call("GET", "/metrics", b"")?.text();

        Ok(Sample {
            at_ms,
            parts: self
                .processes
                .iter()
                .map(|(name, id)| Ok((name.clone(), usage(*id)?)))
                .collect::<Result<_>>()?,
            store: StoreCounters {
                requests: number("raingauge_cql_read_requests_total", ""),
                rows: number("raingauge_cql_read_rows_total", ""),
                own_hits,
                own_misses,
            },
            breakers_opened: number("raingauge_breaker_transitions_total", "to=\"open\""),
            events: metrics::sum(&counted, "raingauge_events_applied_total", "") as u64,
        })
    }
}
