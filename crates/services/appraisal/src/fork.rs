//! A ledger of its own for one programme: the same decisions, over what the fork itself decided.

use crate::limits::{FORECAST_MEMBERS_MAX, FORECAST_TURN_LEN_MAX};
use hashbrown::{HashMap, HashSet};
use raingauge_points::{
    Answer, BookHead, BudgetId, Command, Desk, Earned, Footprint, Key, Points, Programme,
    Programmes, ReferenceId, Snapshot, Totals, Turn, Wallet, WalletId,
};
use raingauge_replay::Error;
use std::sync::Arc;

const HOUR_MS: i64 = 3_600_000;

/// A command whose turn has not come, with what its caller notes of it.
struct Waiting<T> {
    command: Command,
    note: T,
}

/// Begins without wallets. Its clock is that of the events, to the hour.
pub struct Fork<T> {
    programmes: Programmes,
    programme: Arc<Programme>,
    head: BookHead,
    wallets: HashMap<WalletId, Wallet>,
    references: HashMap<ReferenceId, Earned>,
    totals: Totals,
    budgets: HashMap<BudgetId, Points>,
    /// The keys of all commands so far: an event that comes twice awards once.
    keys: HashSet<Key>,
    waiting: Vec<Waiting<T>>,
    now_ms: i64,
}

impl<T> Fork<T> {
    pub fn new(programme: Arc<Programme>) -> Self {
        let mut programmes = Programmes::new();
        programmes.insert(Arc::clone(&programme));
        Self {
            programmes,
            programme,
            head: BookHead::default(),
            wallets: HashMap::new(),
            references: HashMap::new(),
            totals: Totals::default(),
            budgets: HashMap::new(),
            keys: HashSet::new(),
            waiting: Vec::new(),
            now_ms: i64::MIN,
        }
    }

    pub fn programme(&self) -> &Arc<Programme> {
        &self.programme
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn members(&self) -> usize {
        self.wallets.len()
    }

    /// Takes the command of an event that happened at a time. `note` learns what became of the
    /// commands before it, once it is decided.
    pub fn take(
        &mut self,
        command: Command,
        at_ms: i64,
        note: T,
        noted: &mut impl FnMut(T, &Command, &Answer),
    ) -> Result<(), Error> {
        if !self.keys.insert(command.key_hash()) {
            return Ok(());
        }
        let is_later = at_ms.div_euclid(HOUR_MS) > self.now_ms.div_euclid(HOUR_MS);
        if is_later || self.waiting.len() >= FORECAST_TURN_LEN_MAX {
            self.flush(noted)?;
        }
        self.now_ms = self.now_ms.max(at_ms);
        self.waiting.push(Waiting { command, note });
        Ok(())
    }

    /// Decides what waits.
    pub fn flush(&mut self, noted: &mut impl FnMut(T, &Command, &Answer)) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (commands, notes): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|waiting| (waiting.command, waiting.note)).unzip();
        let footprint = Footprint::of(&commands, &self.programmes, self.now_ms);
        let state = self.load(&footprint);

        let mut desk = Desk::new(&self.programmes, state, self.now_ms);
        for (command, note) in commands.iter().zip(notes) {
            let answer = desk.execute(command);
            noted(note, command, &answer);
        }
        let turn = desk.finish();
        self.apply(turn);

        if self.wallets.len() > FORECAST_MEMBERS_MAX {
            return Err(Error::TooLarge(format!(
                "a forecast has at most {FORECAST_MEMBERS_MAX} members: take a shorter range"
            )));
        }
        Ok(())
    }

    /// Settles every wallet to the end of a range.
    pub fn settle_all(&mut self, until_ms: i64) {
        let until_hour = u32::try_from(until_ms.div_euclid(HOUR_MS)).unwrap_or(0);
        let is_due = |wallet: &Wallet| wallet.due_hour.is_some_and(|hour| hour <= until_hour);
        let due: Vec<WalletId> = self
            .wallets
            .iter()
            .filter(|(_, wallet)| is_due(wallet))
            .map(|(id, _)| id.clone())
            .collect();

        self.now_ms = self.now_ms.max(until_ms);
        for ids in due.chunks(FORECAST_TURN_LEN_MAX) {
            let mut footprint = Footprint::default();
            ids.iter().for_each(|id| footprint.wallet(id.clone()));
            let state = self.load(&footprint);
            let mut desk = Desk::new(&self.programmes, state, self.now_ms);
            for id in ids {
                desk.settle(id);
            }
            let turn = desk.finish();
            self.apply(turn);
        }
    }

    fn load(&self, footprint: &Footprint) -> Snapshot {
        let mut state = Snapshot {
            heads: vec![self.head],
            books: 1,
            totals: self.totals.clone(),
            ..Snapshot::default()
        };
        self.load_into(footprint, &mut state);
        let missing = state.missing();
        self.load_into(&missing, &mut state);
        state
    }

    fn load_into(&self, footprint: &Footprint, state: &mut Snapshot) {
        for id in &footprint.wallets {
            if let Some(wallet) = self.wallets.get(id) {
                state.wallets.insert(id.clone(), wallet.clone());
            }
        }
        for id in &footprint.references {
            if let Some(earned) = self.references.get(id) {
                state.references.insert(id.clone(), earned.clone());
            }
        }
        for id in &footprint.budgets {
            if let Some(used) = self.budgets.get(id) {
                state.budgets.insert(id.clone(), *used);
            }
        }
    }

    fn apply(&mut self, turn: Turn) {
        self.head.sequence += turn.entries.len() as u64;
        self.head.recorded_ms = turn.recorded_ms;
        self.wallets.extend(turn.wallets);
        self.references.extend(turn.references);
        self.budgets.extend(turn.budgets);
        self.totals.0.extend(turn.totals);
    }
}
