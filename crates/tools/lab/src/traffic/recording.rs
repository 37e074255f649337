//! Recorded requests for a replay: one line of JSON per batch,
//! `{"atMs":12,"requests":[{"key":…,"fromTime":…,"toTime":…}]}`, with the milliseconds since the
//! first batch. Times of ranges are seconds since 1970 if positive, and otherwise seconds relative
//! to the time of the request.

use crate::measure::Arrivals;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedBatch {
    pub at_ms: u64,
    pub requests: Vec<Request>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    pub key: String,
    pub from_time: i64,
    pub to_time: i64,
}

impl RecordedBatch {
    /// The request body, for a request at `now_s`.
    pub fn body(&self, now_s: i64) -> String {
        let time = |time: i64| if time > 0 { time } else { now_s + time };
        let request = |request: &Request| {
            serde_json::json!({
                "key": request.key, "fromTime": time(request.from_time), "toTime": time(request.to_time),
            })
        };
        let requests: Vec<_> = self.requests.iter().map(request).collect();
        serde_json::json!({ "requests": requests }).to_string()
    }
}

/// Reads a recording; it fails if the times are not in order.
pub fn read(lines: impl BufRead) -> Result<Vec<RecordedBatch>> {
    let mut all: Vec<RecordedBatch> = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }

        let recorded: RecordedBatch = serde_json::from_str(&line)
            .with_context(|| format!("line {number} of the recording"))?;
        let is_later = all.last().is_none_or(|before| before.at_ms <= recorded.at_ms);
        ensure!(
            is_later,
            "line {number} of the recording is before the one above it: sort it by atMs"
        );
        all.push(recorded);
    }

    ensure!(!all.is_empty(), "the recording has no requests");
    Ok(all)
}

pub fn write(out: &mut impl Write, recorded: &RecordedBatch) -> Result<()> {
    serde_json::to_writer(&mut *out, recorded)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// The due times of a recording, at `speed` times its pace.
pub struct Replay {
    start: Instant,
    speed: f64,
    at_ms: Vec<u64>,
    next: usize,
}

impl Replay {
    pub fn new(start: Instant, speed: f64, recording: &[RecordedBatch]) -> Self {
        Self {
            start,
            speed,
            at_ms: recording.iter().map(|recorded| recorded.at_ms).collect(),
            next: 0,
        }
    }

    /// From the first request to the last one.
    pub fn duration(&self) -> Duration {
        let ends = self.at_ms.first().zip(self.at_ms.last());
        ends.map_or(Duration::ZERO, |(first, last)| self.scaled(last - first))
    }

    fn scaled(&self, ms: u64) -> Duration {
        Duration::from_secs_f64(ms as f64 / 1_000.0 / self.speed)
    }
}

impl Arrivals for Replay {
    fn next_due(&self) -> Option<Instant> {
        let at_ms = self.at_ms.get(self.next)?;
        Some(self.start + self.scaled(at_ms - self.at_ms[0]))
    }

    fn advance(&mut self) {
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_asked_at_its_moments() {
        let request =
            |from_time, to_time| Request { key: "drops:oslo".to_owned(), from_time, to_time };
        let all = [
            RecordedBatch { at_ms: 1_000, requests: vec![request(900, 1_800)] },
            RecordedBatch {
                at_ms: 3_000,
                requests: vec![request(-3_600, 0), request(1_800, 2_700)],
            },
        ];
        let mut file = Vec::new();
        all.iter().for_each(|recorded| write(&mut file, recorded).unwrap());

        let found = read(&file[..]).unwrap();
        assert_eq!(found, all);

        let body: serde_json::Value = serde_json::from_str(&found[1].body(10_000)).unwrap();
        assert_eq!(
            (&body["requests"][0]["fromTime"], &body["requests"][0]["toTime"]),
            (&6_400.into(), &10_000.into())
        );

        let start = Instant::now();
        let mut replay = Replay::new(start, 4.0, &found);
        assert_eq!(replay.duration(), Duration::from_millis(500));
        assert_eq!(replay.take_due(start), Some(start));
        assert_eq!(replay.take_due(start + Duration::from_millis(499)), None);

        let last = start + Duration::from_millis(500);
        assert_eq!(replay.take_due(last), Some(last));
        assert!(replay.is_exhausted());
    }

    #[test]
    fn a_recording_that_goes_back_or_is_empty_is_refused() {
        let lines = b"{\"atMs\":5,\"requests\":[]}\n\n{\"atMs\":4,\"requests\":[]}\n";
        assert!(read(&lines[..]).unwrap_err().to_string().contains("line 3"));
        assert!(read(&b"\n"[..]).unwrap_err().to_string().contains("no requests"));
        assert!(format!("{:#}", read(&b"{}"[..]).unwrap_err()).contains("line 1"));
    }
}
