//! What the teller, the tasks around it and handles share.

use crate::error::Error;
use crate::intake::{Intake, Manner};
use crate::limits::REQUEST_COMMANDS_MAX;
use crate::snapshot::Snapshot;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raingauge_points::{Answer, Command, WalletId};
use raingauge_ports::log::Offset;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The bounded queue of requests, and what others see of the teller.
pub(crate) struct Shared {
    pub intake: Intake,
    snapshot: ArcSwap<Snapshot>,
    position: watch::Sender<Offset>,
    changes: watch::Sender<u64>,
    /// Grows with every turn that wrote entries.
    turns: watch::Sender<u64>,
    trouble: Mutex<Option<String>>,
    /// Why events of partitions are not awarded.
    inflow_trouble: Mutex<Option<String>>,
    /// By how much the clock differs from that of the database, if that is too much.
    clock_apart_ms: Mutex<Option<i64>>,
    is_stopping: AtomicBool,
}

impl Shared {
    pub fn new(commands_max: usize) -> Self {
        Self {
            intake: Intake::new(commands_max),
            snapshot: ArcSwap::default(),
            position: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            turns: watch::Sender::new(0),
            trouble: Mutex::default(),
            inflow_trouble: Mutex::default(),
            clock_apart_ms: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Shows what is in force and up to where the log is awarded.
    pub fn publish(&self, snapshot: Snapshot, has_changed: bool) {
        let position = snapshot.position;
        self.snapshot.store(Arc::new(snapshot));
        if has_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        self.position.send_if_modified(|known| std::mem::replace(known, position) != position);
    }

    /// Wakes those who follow the entries.
    pub fn note_entries(&self) {
        self.turns.send_modify(|turns| *turns += 1);
    }

    pub fn turns(&self) -> watch::Receiver<u64> {
        self.turns.subscribe()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn positions(&self) -> watch::Receiver<Offset> {
        self.position.subscribe()
    }

    /// Notes what the last turn found out about the clock.
    pub fn note_clock(&self, apart_ms: Option<i64>) {
        *self.clock_apart_ms.lock() = apart_ms;
    }

    /// Fails while the clock of this machine is not to be believed.
    pub fn check_clock(&self) -> Result<(), Error> {
        match *self.clock_apart_ms.lock() {
            Some(apart_ms) => Err(Error::ClockApart { apart_ms }),
            None => Ok(()),
        }
    }

    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    pub fn inflow_trouble(&self) -> Option<String> {
        self.inflow_trouble.lock().clone()
    }

    pub fn set_inflow_trouble(&self, trouble: Option<String>) {
        *self.inflow_trouble.lock() = trouble;
    }

    /// Takes nothing any more, and lets the teller end.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.intake.close("raingauge is stopping");
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Decides commands in one turn, and answers each.
    pub async fn decide(
        &self,
        commands: Vec<Command>,
        manner: Manner,
    ) -> Vec<Result<Answer, Error>> {
        let len = commands.len();
        let failed = |error: &Error| (0..len).map(|_| Err(error.clone())).collect();
        if len == 0 {
            return Vec::new();
        }
        if len > REQUEST_COMMANDS_MAX {
            let detail = format!("{len} commands are more than {REQUEST_COMMANDS_MAX}");
            return failed(&Error::TooLarge(detail));
        }

        let answers = match self.intake.push(commands, manner) {
            Ok(answers) => answers,
            Err(error) => return failed(&error),
        };
        match answers.await {
            Ok(answers) => answers,
            // The teller dropped the request: it ended in the middle of the turn.
            Err(_) => failed(&Error::Closed("the teller has ended".to_owned())),
        }
    }

    /// Asks for wallets to be settled. The answer is how many entries that took.
    pub fn settle(
        &self,
        wallets: Vec<WalletId>,
    ) -> Result<impl Future<Output = Result<usize, Error>> + use<>, Error> {
        let answer = self.intake.settle(wallets)?;
        let ended = |_| Error::Closed("the teller has ended".to_owned());
        Ok(async move { answer.await.map_err(ended)? })
    }
}
