//! What the ledger forgets, in files of its own: lines of JSON that are slow to read and cheap to
//! keep.
//!
//! ```text
//!   ledger, outbox ── a day that is over ──▶ 2026-11-22.tmp ── sync, rename ──▶ ….ndjson.gz
//!                                                                                   │
//!   worker ── expire ──▶ Guarded ── nothing that is not written yet ──▶ ledger ◀────┘
//! ```
//!
//! A day is written as a whole or not at all, and a day that has a file is not written again. So a
//! crash between the file and what the ledger forgets neither loses a line nor doubles one.

mod files;
mod measures;
#[cfg(test)]
mod tests;
mod walk;

pub use files::read;

use crate::{actions, decisions};
use files::{Day, DayFile, Files};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    DecisionQuery, Error, Horizons, LedgerReader, LedgerRetention, Outbox, StateKind,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Mutex;
use walk::Walk;

/// Where the history is read from.
#[derive(Clone)]
pub struct Sources {
    pub ledger: Arc<dyn LedgerReader>,
    pub outbox: Arc<dyn Outbox>,
}

/// The history of one data folder.
#[derive(Clone)]
pub struct History {
    files: Files,
    /// Whether the ledger waits for it. The files of earlier times are there all the same.
    is_on: bool,
    /// Held while files are changed.
    turn: Arc<Mutex<()>>,
    /// The ledger may forget what is older, in milliseconds since 1970.
    written_before_ms: Arc<AtomicI64>,
}

/// The ledger, as it forgets nothing that the history does not have.
struct Guarded {
    ledger: Arc<dyn LedgerRetention>,
    history: History,
}

impl History {
    /// The history in a folder, which is made with the first file. One that is off writes none,
    /// and lets the ledger forget.
    pub fn new(folder: PathBuf, is_on: bool) -> Self {
        Self {
            files: Files::new(folder),
            is_on,
            turn: Arc::default(),
            written_before_ms: Arc::new(AtomicI64::new(i64::MIN)),
        }
    }

    /// The ledger, as it forgets nothing that was not written before.
    pub fn guard(&self, ledger: Arc<dyn LedgerRetention>) -> Arc<dyn LedgerRetention> {
        if self.is_on { Arc::new(Guarded { ledger, history: self.clone() }) } else { ledger }
    }

    /// Writes the days that ended at or before a time, in milliseconds since 1970, each into a file
    /// of its own. Nothing may be decided or delivered any more with an earlier time. After an
    /// error, the ledger keeps the day that was not written and those behind it.
    pub async fn write(&self, sources: &Sources, until_ms: i64) -> Result<(), Error> {
        if !self.is_on {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let end = Day::of(until_ms);
        let files = self.files.clone();
        let last = in_background(move || files.last()).await?;
        let known = Day::of(self.written_before_ms());
        let from = last.map_or(known, |day| known.max(day.next()));
        self.note_written(from);
        if from >= end {
            return Ok(());
        }

        let walk = Walk { sources, from, to: end };
        let mut day = walk.first().await?.unwrap_or(end);
        while day < end {
            self.note_written(day);
            self.write_day(sources, day).await?;
            day = day.next();
        }
        self.note_written(end);
        Ok(())
    }

    async fn write_day(&self, sources: &Sources, day: Day) -> Result<(), Error> {
        let files = self.files.clone();
        let mut file = in_background(move || files.begin(day)).await?;

        let mut query = DecisionQuery {
            from_ms: day.start_ms(),
            to_ms: Some(day.next().start_ms()),
            len_max: LEDGER_PAGE_LEN_MAX,
            ..DecisionQuery::default()
        };
        loop {
            let page = sources.ledger.decisions(query.clone()).await?;
            file = append(file, page.decisions.iter().map(decisions::shown).collect()).await?;
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }

        let mut walk = walk::Deliveries::of(day);
        while let Some(records) = walk.next(&*sources.outbox).await? {
            file = append(file, records.iter().map(actions::shown).collect()).await?;
        }

        let bytes = in_background(move || file.finish()).await?;
        bytes.into_iter().for_each(measures::note_file);
        Ok(())
    }

    /// Removes files of days that ended before a time, in milliseconds since 1970.
    pub async fn remove_before(&self, before_ms: i64) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let files = self.files.clone();
        in_background(move || files.remove_before(Day::of(before_ms))).await
    }

    /// Removes the lines about a subject from all files. It takes as long as reading them, and goes
    /// on when the caller has left.
    pub async fn erase(&self, subject: &str) -> Result<(), Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let files = self.files.clone();
        let subject = subject.to_owned();
        in_background(move || {
            let _turn = turn;
            files.erase(&subject)
        })
        .await
    }

    fn written_before_ms(&self) -> i64 {
        self.written_before_ms.load(Ordering::Acquire)
    }

    /// Lets the ledger forget what lies before a day.
    fn note_written(&self, day: Day) {
        let known_ms = self.written_before_ms.fetch_max(day.start_ms(), Ordering::AcqRel);
        measures::note_until(known_ms.max(day.start_ms()));
    }
}

async fn append(file: DayFile, lines: Vec<Value>) -> Result<DayFile, Error> {
    in_background(move || file.append(&lines)).await
}

/// Runs work on files outside the asynchronous threads.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::Io(error.to_string())))
}

impl LedgerRetention for Guarded {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        let written_before_ms = self.history.written_before_ms();
        let horizons = Horizons {
            decisions_before_ms: horizons.decisions_before_ms.min(written_before_ms),
            // An action takes its decision along.
            actions_before_ms: horizons.actions_before_ms.min(written_before_ms),
            deliveries_before_ms: horizons.deliveries_before_ms.min(written_before_ms),
        };
        self.ledger.expire(horizons, scan_max)
    }

    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error> {
        self.ledger.remove_states(kind, owner, len_max)
    }
}
