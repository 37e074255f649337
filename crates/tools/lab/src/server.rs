//! The lab's counter on a running server: preparation, history, totals.

use crate::http::Target;
use crate::http::client::Client;
use crate::plan::Granularity;
use crate::workload::{Bucket, Settings, Workload, key_of};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub const BUCKETS_PER_REQUEST: usize = 5_000;
const TOTAL_KEYS: u32 = 1_000;
pub const TEMPLATE: &str = "lab:city:{city}";

/// The lab's counter on a server: its configuration, its history, its total.
pub struct Lab {
    pub target: Target,
    client: Client,
    settings: Settings,
    start_s: i64,
}

impl Lab {
    /// Creates the counter if it is missing; the other calls need it.
    pub fn prepare(target: &Target, workload: &Workload) -> Result<Self> {
        let client = Client::connect(target)?;
        let mut lab = Self {
            target: target.clone(),
            client,
            settings: workload.settings,
            start_s: workload.start_s(),
        };
        lab.ensure_counter()?;
        Ok(lab)
    }

    fn ensure_counter(&mut self) -> Result<()> {
        let listed = self.client.json("GET", "/v1/counters", b"")?;
        let is_ours =
            |counter: &Value| counter["template"] == TEMPLATE && counter["state"] == "active";
        if listed["counters"].as_array().is_some_and(|counters| counters.iter().any(is_ours)) {
            return Ok(());
        }

        let counter = json!({
            "name": "lab_drops",
            "template": TEMPLATE,
            "eventType": crate::events::EVENT_TYPE,
            "value": 1,
            "retentionDays": { "quarter": null, "hour": null, "day": null },
            "state": "active",
            "owner": "lab",
            "description": "Synthetic drops for measuring raingauge",
        });

        self.client.json("POST", "/v1/counters", &serde_json::to_vec(&counter)?)?;
        Ok(())
    }

    /// Sets every bucket of the history; returns the number of buckets.
    pub fn load_history(&mut self, workload: &Workload) -> Result<usize> {
        let item = |bucket: Bucket| {
            let Bucket { city, granularity, time_s, count } = bucket;
            bucket_json(&key_of(city), granularity, time_s, count)
        };
        let mut items = workload.buckets().map(item);
        let mut loaded = 0;
        loop {
            let chunk: Vec<String> = items.by_ref().take(BUCKETS_PER_REQUEST).collect();
            if chunk.is_empty() {
                return Ok(loaded);
            }
            set_buckets(&mut self.client, &chunk)?;
            loaded += chunk.len();
        }
    }

    /// Returns the sum of all counts of all keys, history and live drops, up to the last full
    /// quarter hour.
    pub fn total(&mut self) -> Result<i64> {
        let to_s = crate::now_s();
        let mut total = 0;
        let mut first = 0;
        while first < self.settings.keys {
            let last = (first + TOTAL_KEYS).min(self.settings.keys);
            let requests: Vec<Value> = (first..last)
                .map(
                    |city| json!({ "key": key_of(city), "fromTime": self.start_s, "toTime": to_s }),
                )
                .collect();

            let body = serde_json::to_vec(&json!({ "requests": requests }))?;
            let answer = self.client.json("POST", "/v1/counts", &body)?;
            let results = answer["results"].as_array().context("an answer without results")?;
            for result in results {
                total += result["count"].as_i64().with_context(|| format!("no count: {result}"))?;
            }
            first = last;
        }

        Ok(total)
    }
}

/// A bucket for [`set_buckets`].
pub fn bucket_json(key: &str, granularity: Granularity, time_s: i64, count: i64) -> String {
    let granularity = granularity.name();
    format!(r#"{{"key":"{key}","granularity":"{granularity}","time":{time_s},"count":{count}}}"#)
}

/// Sets buckets by `POST /v1/buckets`; fails if any is refused.
pub fn set_buckets(client: &mut Client, items: &[String]) -> Result<()> {
    let answer = client.json("POST", "/v1/buckets", format!("[{}]", items.join(",")).as_bytes())?;
    ensure!(
        answer["accepted"] == items.len(),
        "of {} buckets some were refused: {}",
        items.len(),
        answer["rejected"][0]
    );
    Ok(())
}
