//! Counts over the Redis door: the questions of `lab counts` as RAIN.COUNT, or as RAIN.COUNTS of
//! several, in pipelines; each answer is compared with the correct one.

use super::load::{self, Work};
use crate::measure::{Measurement, Run};
use crate::workload::{Range, Workload, key_of};
use anyhow::{Result, ensure};
use raingauge_resp_client::command;
use std::net::SocketAddr;

/// Pipelines to cycle through.
const PIPELINES: usize = 256;

struct Questions<'a> {
    pipelines: Vec<Pipeline<'a>>,
    current: Vec<usize>,
    next: usize,
    /// Whether counts are compared with the correct ones.
    history_known: bool,
    checked: u64,
}

struct Pipeline<'a> {
    bytes: Vec<u8>,
    commands: usize,
    ranges: Vec<&'a Range>,
}

/// How many counts a pipeline has, and how many of them one command asks for.
#[derive(Clone, Copy)]
pub struct Shape {
    pub pipeline: usize,
    pub together: usize,
}

/// Measures pipelines of counts on a number of connections. Units are counts.
pub fn measure(
    workload: &Workload,
    address: SocketAddr,
    connections: usize,
    shape: Shape,
    run: &Run,
    history_known: bool,
) -> Result<(Measurement, u64)> {
    let ranges: Vec<&Range> = workload.batches.iter().flatten().collect();
    let pipelines = ranges.chunks_exact(shape.pipeline.max(1)).take(PIPELINES);
    let pipelines = pipelines.map(|ranges| Pipeline::of(ranges, shape.together)).collect();
    let current = vec![0; connections];
    let mut questions = Questions { pipelines, current, next: 0, history_known, checked: 0 };
    ensure!(!questions.pipelines.is_empty(), "pipelines of {} counts are too long", shape.pipeline);
    let load = load::run(address, connections, run, &mut questions)?;
    Ok((load.measured, questions.checked))
}

impl<'a> Pipeline<'a> {
    fn of(ranges: &[&'a Range], together: usize) -> Self {
        let mut bytes = Vec::new();
        let mut commands = 0;
        for ranges in ranges.chunks(together.max(1)) {
            let len = ranges.len().to_string();
            let mut words = match together {
                0 | 1 => vec!["RAIN.COUNT".to_owned()],
                _ => vec!["RAIN.COUNTS".to_owned(), len],
            };
            for range in ranges {
                let asked = &range.asked;
                let times = [asked.from_s, asked.to_s].map(|time_s| time_s.to_string());
                words.push(key_of(asked.city));
                words.extend(times);
            }

            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            command(&mut bytes, &words);
            commands += 1;
        }
        Self { bytes, commands, ranges: ranges.to_vec() }
    }
}

impl Work for Questions<'_> {
    fn fill(&mut self, slot: usize, bytes: &mut Vec<u8>) -> usize {
        self.current[slot] = self.next;
        self.next = (self.next + 1) % self.pipelines.len();
        let pipeline = &self.pipelines[self.current[slot]];
        bytes.extend_from_slice(&pipeline.bytes);
        pipeline.commands
    }

    fn check(&mut self, slot: usize, replies: &[u8]) -> Result<usize> {
        let ranges = &self.pipelines[self.current[slot]].ranges;
        let mut rest = replies;
        for range in ranges {
            let (mut line, mut after) = load::line(rest)?;
            // The array of a command.
            if line.starts_with(b"*") {
                (line, after) = load::line(after)?;
            }
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
        Ok(ranges.len())
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
        let history_known = true;
        for together in [1, 3] {
            let pipelines = vec![Pipeline::of(&ranges, together)];
            let current = vec![0];
            let mut questions =
                Questions { pipelines, current, next: 0, history_known, checked: 0 };

            let mut bytes = Vec::new();
            assert_eq!(questions.fill(0, &mut bytes), ranges.len().div_ceil(together));
            let array = |ranges: &[&Range]| match together {
                1 => String::new(),
                _ => format!("*{}\r\n", ranges.len()),
            };
            let counts = |ranges: &[&Range]| {
                ranges.iter().map(|range| format!(":{}\r\n", range.expected)).collect::<String>()
            };
            let replies = ranges.chunks(together).map(|part| array(part) + &counts(part));
            let replies: String = replies.collect();
            assert_eq!(questions.check(0, replies.as_bytes()).unwrap(), ranges.len());

            let wrong = replies.replacen(':', ":1", 1);
            let refused = questions.check(0, wrong.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("WRONG"), "{refused}");
            let begin: &[u8] = match together {
                1 => b"*4\r\n$10\r\nRAIN.COUNT\r\n",
                _ => b"*11\r\n$11\r\nRAIN.COUNTS\r\n$1\r\n3\r\n",
            };
            assert!(bytes.starts_with(begin), "{}", bytes.escape_ascii());
        }
    }
}
