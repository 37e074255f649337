//! Counts over the Redis door: the questions of `lab counts` as RAIN.COUNT in pipelines, each
//! answer compared with the correct one.

use super::load::{self, Work};
use crate::measure::{Measurement, Run};
use crate::workload::{Range, Workload, key_of};
use anyhow::{Result, ensure};
use raingauge_resp_client::command;
use std::net::SocketAddr;

/// Pipelines to cycle through.
const PIPELINES: usize = 256;

struct Questions<'a> {
    pipelines: Vec<(Vec<u8>, Vec<&'a Range>)>,
    current: Vec<usize>,
    next: usize,
    /// Whether counts are compared with the correct ones.
    history_known: bool,
    checked: u64,
}

/// Measures pipelines of `len` counts on a number of connections. Units are counts.
pub fn measure(
    workload: &Workload,
    address: SocketAddr,
    connections: usize,
    len: usize,
    run: &Run,
    history_known: bool,
) -> Result<(Measurement, u64)> {
    let ranges: Vec<&Range> = workload.batches.iter().flatten().collect();
    let pipelines = ranges.chunks_exact(len.max(1)).take(PIPELINES).map(rendered).collect();
    let current = vec![0; connections];
    let mut questions = Questions { pipelines, current, next: 0, history_known, checked: 0 };
    ensure!(!questions.pipelines.is_empty(), "pipelines of {len} counts are too long");
    let load = load::run(address, connections, run, &mut questions)?;
    Ok((load.measured, questions.checked))
}

fn rendered<'a>(ranges: &[&'a Range]) -> (Vec<u8>, Vec<&'a Range>) {
    let mut bytes = Vec::new();
    for range in ranges {
        let key = key_of(range.asked.city);
        let (from, to) = (range.asked.from_s.to_string(), range.asked.to_s.to_string());
        command(&mut bytes, &[b"RAIN.COUNT", key.as_bytes(), from.as_bytes(), to.as_bytes()]);
    }
    (bytes, ranges.to_vec())
}

impl Work for Questions<'_> {
    fn fill(&mut self, slot: usize, bytes: &mut Vec<u8>) -> usize {
        self.current[slot] = self.next;
        self.next = (self.next + 1) % self.pipelines.len();
        let (rendered, ranges) = &self.pipelines[self.current[slot]];
        bytes.extend_from_slice(rendered);
        ranges.len()
    }

    fn check(&mut self, slot: usize, replies: &[u8]) -> Result<()> {
        let mut rest = replies;
        for range in &self.pipelines[self.current[slot]].1 {
            let (line, after) = load::line(rest)?;
            rest = after;
            let count = line
                .strip_prefix(b":")
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok());
            ensure!(
                count.is_some() && (!self.history_known || count == Some(range.expected)),
                "WRONG COUNT: {:?} returned {}, expected {}",
                range.asked,
                line.escape_ascii(),
                range.expected
            );
            self.checked += u64::from(self.history_known);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Settings;

    #[test]
    fn answers_are_compared_with_the_correct_counts() {
        let settings = Settings { keys: 20, history: 2_000, seed: 1 };
        let workload = Workload::new(settings, 1_795_000_000);
        let ranges: Vec<&Range> = workload.batches[0].iter().collect();
        let pipelines = vec![rendered(&ranges)];
        let mut questions =
            Questions { pipelines, current: vec![0], next: 0, history_known: true, checked: 0 };

        let mut bytes = Vec::new();
        assert_eq!(questions.fill(0, &mut bytes), ranges.len());
        let replies: String =
            ranges.iter().map(|range| format!(":{}\r\n", range.expected)).collect();
        questions.check(0, replies.as_bytes()).unwrap();
        let wrong = replies.replacen(':', ":1", 1);
        assert!(questions.check(0, wrong.as_bytes()).unwrap_err().to_string().contains("WRONG"));
        assert!(bytes.starts_with(b"*4\r\n$10\r\nRAIN.COUNT\r\n"));
    }
}
