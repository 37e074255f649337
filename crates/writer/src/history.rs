//! What can be told from the log: how far back it covers, and walking through it.

use raingauge_core::bucket::Granularity;
use raingauge_core::event::Event;
use raingauge_ports::log::{Block, Error, EventLog, Offset};
use raingauge_ports::record::Entry;

/// Bytes of the log that are read at once.
const READ_BYTES: usize = 4 << 20;

/// The second, the start of a UTC day, from which on the log holds every event that was ever counted:
/// all of them were accepted after the log's start, because none comes from further ahead than the allowance.
/// 0 while nothing was trimmed.
pub fn covered_from_s(log: &dyn EventLog, future_allowance_s: i64) -> i64 {
    match log.start_ms() {
        0 => 0,
        start_ms => Granularity::Day.ceil(start_ms.div_euclid(1_000) + future_allowance_s),
    }
}

/// One entry of the log on a walk.
pub enum Step<'a> {
    Event(&'a Event<'a>),
    Control(&'a [u8]),
}

/// Visits the entries of `[from, to)`, with their offset and the second in which they were appended. Blocks the thread.
pub fn walk(
    log: &dyn EventLog,
    from: Offset,
    to: Offset,
    mut visit: impl FnMut(Offset, i64, Step<'_>),
) -> Result<(), Error> {
    let mut next = from;
    while next < to {
        let blocks = log.read(next, READ_BYTES)?;
        let Some(end) = blocks.last().map(Block::end) else { return Ok(()) };
        for block in &blocks {
            let appended_s = block.appended_ms.div_euclid(1_000);
            for entry in block.entries(next) {
                match entry? {
                    (offset, _) if offset >= to => return Ok(()),
                    (offset, Entry::Event(event)) => visit(offset, appended_s, Step::Event(&event)),
                    (offset, Entry::Control(payload)) => visit(offset, appended_s, Step::Control(payload)),
                }
            }
        }
        next = end;
    }
    Ok(())
}
