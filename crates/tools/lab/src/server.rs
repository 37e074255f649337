//! The raingauge process under test: start, preparation of its counter and history, totals, stop.

use crate::http::Target;
use crate::http::client::Client;
use crate::workload::{Bucket, Settings, Workload, key_of};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STOP_MAX: Duration = Duration::from_secs(60);
const LOAD_BUCKETS: usize = 5_000;
const TOTAL_KEYS: u32 = 1_000;
pub const TEMPLATE: &str = "lab:city:{city}";

/// A raingauge process that the lab starts, on its own core.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(binary: &Path, data_dir: &Path, core: usize) -> Result<Self> {
        let mut child = Command::new("taskset")
            .args(["-c", &core.to_string()])
            .arg(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {} by taskset", binary.display()))?;

        let stdout = child.stdout.take().context("the server has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;

        let Some(address) = find_address(&line) else {
            child.kill()?;
            child.wait()?;
            bail!("the server printed no address: {line:?}");
        };
        Ok(Self { child, address })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to drain and stop; returns the time that this took.
    pub fn stop(mut self) -> Result<Duration> {
        let start = Instant::now();
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        while start.elapsed() < STOP_MAX {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server stopped with {status}");
                return Ok(start.elapsed());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("the server did not stop within {STOP_MAX:?} of SIGTERM")
    }
}

impl std::ops::Drop for Server {
    /// A failed run leaves no process behind; a stopped process is already gone.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Finds the first `host:port` in the server's line, regardless of the surrounding text.
fn find_address(line: &str) -> Option<SocketAddr> {
    line.split(|character: char| character.is_whitespace() || "/\"',".contains(character))
        .find_map(|word| word.parse().ok())
}

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

    /// Sets every bucket of the history by `POST /v1/buckets`; returns the number of buckets.
    pub fn load_history(&mut self, workload: &Workload) -> Result<u64> {
        let mut loaded = 0;
        let mut pending = Vec::with_capacity(LOAD_BUCKETS);
        for bucket in workload.buckets() {
            pending.push(bucket);
            if pending.len() == LOAD_BUCKETS {
                loaded += self.load(&mut pending)?;
            }
        }
        loaded += self.load(&mut pending)?;
        Ok(loaded)
    }

    fn load(&mut self, buckets: &mut Vec<Bucket>) -> Result<u64> {
        if buckets.is_empty() {
            return Ok(0);
        }
        let items: Vec<String> = buckets
            .iter()
            .map(|bucket| {
                format!(
                    r#"{{"key":"{}","granularity":"{}","time":{},"count":{}}}"#,
                    key_of(bucket.city),
                    bucket.granularity.name(),
                    bucket.time_s,
                    bucket.count
                )
            })
            .collect();

        let answer =
            self.client.json("POST", "/v1/buckets", format!("[{}]", items.join(",")).as_bytes())?;
        let accepted = answer["accepted"].as_u64();
        ensure!(accepted == Some(buckets.len() as u64), "of {} buckets: {answer}", buckets.len());

        let count = buckets.len() as u64;
        buckets.clear();
        Ok(count)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_any_reasonable_line() {
        let expected: SocketAddr = ([127, 0, 0, 1], 40_123).into();
        for line in [
            "http://127.0.0.1:40123\n",
            "127.0.0.1:40123\n",
            "raingauge is listening on http://127.0.0.1:40123/ (pid 7)\n",
            "{\"listening\":\"127.0.0.1:40123\"}\n",
        ] {
            assert_eq!(find_address(line), Some(expected), "{line}");
        }
        assert_eq!(find_address("error: the address is in use\n"), None);
    }
}
