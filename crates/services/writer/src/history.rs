//! The history in the log: how far back it reaches, and walking through it.

use raingauge_core::bucket::Granularity;
use raingauge_core::ruleset::Scratch;
use raingauge_ports::log::{Block, Error, EventLog, Offset};
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use std::time::{Duration, Instant};

/// Bytes per read of the log.
const READ_BYTES: usize = 4 << 20;
/// How long a log that has more entries may return none, and the pause of a walk before it asks
/// again.
const SILENCE_MAX: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the second, the start of a UTC day, from which on the log holds every event that was
/// ever counted: all of them were accepted after the log's start, because no event comes from
/// further ahead than the allowance. 0 while nothing was trimmed.
pub fn covered_from_s(log: &dyn EventLog, future_allowance_s: i64) -> i64 {
    match log.start_ms() {
        0 => 0,
        start_ms => Granularity::Day.ceil(start_ms.div_euclid(1_000) + future_allowance_s + 1),
    }
}

/// One entry of the log on a walk.
pub struct Step<'a> {
    pub offset: Offset,
    /// When it was appended, in seconds since 1970.
    pub appended_s: i64,
    pub entry: Entry<'a>,
}

/// Visits the entries of `[from, to)` that are not trimmed, with memory for the visitor. Ends with
/// an error soon after the stop signal. Blocks the thread.
pub fn walk(
    log: &dyn EventLog,
    from: Offset,
    to: Offset,
    stop: &Stop,
    visit: impl for<'a> FnMut(Step<'a>, &mut Scratch<'a>),
) -> Result<(), Error> {
    let mut next = from.max(log.start());
    let walked = walk_on(log, &mut next, to, stop, visit);
    log.leave(next);
    walked
}

/// Walks, and moves `next` behind the last entry read.
fn walk_on(
    log: &dyn EventLog,
    next: &mut Offset,
    to: Offset,
    stop: &Stop,
    mut visit: impl for<'a> FnMut(Step<'a>, &mut Scratch<'a>),
) -> Result<(), Error> {
    let mut silent_since = None;
    while *next < to {
        if stop.is_set() {
            return Err(stopped());
        }
        let blocks = match log.read(*next, READ_BYTES) {
            // The log was trimmed during the walk.
            Err(Error::Trimmed { start, .. }) if start > *next => {
                *next = start;
                continue;
            }
            blocks => blocks?,
        };

        let Some(end) = blocks.last().map(Block::end) else {
            let log_end = log.end();
            if *next >= log_end {
                return Ok(());
            }

            if silent_since.get_or_insert_with(Instant::now).elapsed() > SILENCE_MAX {
                return Err(Error::Io(std::io::Error::other(
                    "the event log does not answer: try again",
                )));
            }

            log.wait_beyond(log_end, PAUSE);
            continue;
        };

        silent_since = None;
        let first = std::mem::replace(next, end);

        for block in &blocks {
            if stop.is_set() {
                return Err(stopped());
            }
            let appended_s = block.appended_ms.div_euclid(1_000);
            let mut scratch = Scratch::default();

            for entry in block.entries(first) {
                let (offset, entry) = entry?;
                if offset >= to {
                    return Ok(());
                }
                visit(Step { offset, appended_s, entry }, &mut scratch);
            }
        }
    }

    Ok(())
}

fn stopped() -> Error {
    Error::Io(std::io::Error::other("nobody waits any more for what the log is read for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use raingauge_memory as memory;
    use raingauge_ports::contract::log::batch;
    use raingauge_ports::log::{EventSink, LogTimes, Needs, Partition};
    use raingauge_ports::scans::Scans;

    /// A log that records where a walk has left it.
    #[derive(Default)]
    struct Noted {
        log: memory::Log,
        left: Mutex<Vec<Offset>>,
    }

    impl EventLog for Noted {
        fn partition(&self) -> Partition {
            self.log.partition()
        }

        fn read(&self, from: Offset, _bytes_max: usize) -> Result<Vec<Block>, Error> {
            self.log.read(from, 1)
        }

        fn leave(&self, offset: Offset) {
            self.left.lock().push(offset);
        }

        fn start(&self) -> Offset {
            self.log.start()
        }

        fn end(&self) -> Offset {
            self.log.end()
        }

        fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
            self.log.wait_beyond(offset, timeout)
        }
    }

    impl LogTimes for Noted {
        fn start_ms(&self) -> i64 {
            self.log.start_ms()
        }

        fn trim(&self, needs: Needs) -> Result<(), Error> {
            self.log.trim(needs)
        }
    }

    /// A walk keeps no window behind it, wherever it ends.
    #[tokio::test]
    async fn a_walk_leaves_the_place_where_it_ends() {
        let noted = Noted::default();
        for ids in [["a", "b"], ["c", "d"], ["e", "f"]] {
            noted.log.append(batch(&ids)).await.expect("appended");
        }

        let walk_to = |to, stop: &Stop| {
            let mut visited = Vec::new();
            let walked = walk(&noted, 1, to, stop, |step, _| visited.push(step.offset));
            (walked.is_ok(), visited, noted.left.lock().pop())
        };

        assert_eq!(walk_to(6, &Stop::default()), (true, vec![1, 2, 3, 4, 5], Some(6)));

        // A block was read as a whole, so reading would have continued behind it.
        assert_eq!(walk_to(3, &Stop::default()), (true, vec![1, 2], Some(4)));
        let turn = Scans::default().turn("anna").await.expect("a turn");
        let stop = turn.stop().clone();
        drop(turn);
        assert_eq!(walk_to(6, &stop), (false, vec![], Some(1)));
    }
}
