//! Turns rows into batches on one thread; a few threads send them; the caller's thread keeps
//! account.

use crate::Rows;
use crate::account::Account;
use crate::sink::{Receipt, Sink};
use raingauge_core::code::Refusal;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Rows of one batch.
const BATCH_ROWS_MAX: usize = 5_000;
/// Bytes of rows after which a batch is closed; an event is about twice as long as its row.
const BATCH_BYTES: usize = 1 << 20;
/// Most unsettled batches. It bounds the memory of an import, also while one batch is sent
/// repeatedly.
const UNSETTLED_MAX: usize = 12;

/// The rows of a batch, besides their events.
#[derive(Default)]
pub(crate) struct Lines {
    /// The line of each event's row, and where the row ends in `raw`.
    events: Vec<(u64, usize)>,
    raw: Vec<u8>,
    /// Rows that gave no event.
    pub rejected: Vec<(u64, Refusal, Vec<u8>)>,
    /// The number of the last row.
    pub last_row: u64,
    /// How far the file had been read.
    pub bytes_read: u64,
}

/// A batch that is durable, or refused as a whole.
pub(crate) struct BatchOutcome {
    pub number: u64,
    pub lines: Lines,
    pub receipt: Receipt,
    /// The last event of the batch, if the sink keeps it.
    pub last_event: Option<Vec<u8>>,
}

struct Work<P> {
    number: u64,
    lines: Lines,
    payload: P,
}

impl Lines {
    /// The line of an event, and its row.
    pub fn event(&self, index: usize) -> Option<(u64, &[u8])> {
        let (line, end) = *self.events.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.events[before].1);
        Some((line, &self.raw[start..end]))
    }

    fn is_full(&self) -> bool {
        self.events.len() + self.rejected.len() >= BATCH_ROWS_MAX || self.raw.len() >= BATCH_BYTES
    }
}

/// Sends all rows. Returns the last event, if the sink keeps it.
pub fn send_all<S: Sink>(
    mut rows: Rows,
    sink: &S,
    account: &mut Account<'_>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let (permits, permitted) = channel();
    for _ in 0..UNSETTLED_MAX {
        permits.send(())?;
    }

    let (work, waiting) = channel();
    let waiting = Mutex::new(waiting);
    let (answers, answered) = channel();

    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&mut rows, sink, permitted, work));
        for _ in 0..sink.senders() {
            let answers = answers.clone();
            scope.spawn(|| send(sink, &waiting, answers));
        }

        drop(answers);
        let settled = settle(account, answered, permits);
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));

        // An error of the sink ends the reader too, so the sink's error is the one to report.
        settled.and_then(|last| read.map(|()| last))
    })
}

/// Makes batches until the file ends or the receiver is gone.
fn read<S: Sink>(
    rows: &mut Rows,
    sink: &S,
    permitted: Receiver<()>,
    work: Sender<Work<S::Payload>>,
) -> anyhow::Result<()> {
    for number in 0.. {
        if permitted.recv().is_err() {
            break;
        }
        let (payload, lines, ended) = batch(rows, sink, BATCH_ROWS_MAX)?;
        let is_empty = lines.events.is_empty() && lines.rejected.is_empty();
        if !is_empty && work.send(Work { number, lines, payload }).is_err() || ended {
            break;
        }
    }
    Ok(())
}

/// Reads the rows of one batch, at most `rows_max`. Returns whether the file has ended.
pub(crate) fn batch<S: Sink>(
    rows: &mut Rows,
    sink: &S,
    rows_max: usize,
) -> anyhow::Result<(S::Payload, Lines, bool)> {
    let mut payload = sink.begin()?;
    let mut lines = Lines::default();
    let mut ended = false;

    for _ in 0..rows_max {
        let Some(row) = rows.next_row()? else {
            ended = true;
            break;
        };
        lines.last_row = row.number;

        match row.event {
            Ok(event) => {
                sink.push(&mut payload, event)?;
                lines.raw.extend_from_slice(row.raw);
                lines.events.push((row.line, lines.raw.len()));
            }
            Err(refusal) => lines.rejected.push((row.line, refusal, row.raw.to_vec())),
        }

        if lines.is_full() {
            break;
        }
    }

    lines.bytes_read = rows.bytes_read();
    Ok((payload, lines, ended))
}

/// Sends batches until there are no more, or one fails.
fn send<S: Sink>(
    sink: &S,
    waiting: &Mutex<Receiver<Work<S::Payload>>>,
    answers: Sender<anyhow::Result<BatchOutcome>>,
) {
    loop {
        let next = waiting.lock().map(|waiting| waiting.recv());
        let Ok(Ok(Work { number, lines, payload })) = next else {
            return;
        };
        let last_event = S::last_event(&payload);
        let sent =
            if lines.events.is_empty() { Ok(Receipt::default()) } else { sink.send(payload) };
        let failed = sent.is_err();

        let settled = sent.map(|receipt| BatchOutcome { number, lines, receipt, last_event });
        if answers.send(settled).is_err() || failed {
            return;
        }
    }
}

/// Passes the receipts on in the order of the rows, and lets the reader make a further batch for
/// each.
fn settle(
    account: &mut Account<'_>,
    answered: Receiver<anyhow::Result<BatchOutcome>>,
    permits: Sender<()>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let mut early = std::collections::BTreeMap::new();
    let mut next = 0;
    let mut last_event = None;

    for answer in answered {
        let settled = answer?;
        early.insert(settled.number, settled);

        while let Some(settled) = early.remove(&next) {
            account.settle(&settled)?;
            last_event = settled.last_event.or(last_event);
            next += 1;

            // The reader may have reached the end.
            let _ = permits.send(());
        }
    }

    Ok(last_event)
}
