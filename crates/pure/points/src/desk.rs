//! The desk: decides commands into entries, one after the other, over what books loaded.
//!
//! A command is settled first, then checked, then decided. What it leaves are entries, which
//! everything else follows from. A refusal that is a matter of business is an entry as well, and
//! stays the answer for its key; a command that is malformed, or that may succeed later, leaves
//! nothing.

mod award;
mod check;
mod correct;
mod reverse;
mod spend;

use crate::calendar::HOUR_MS;
use crate::command::{Body, Command};
use crate::earned::Earned;
use crate::entry::{Entry, EntryKey, Kind};
use crate::identity::{BudgetId, Key, ReferenceId, WalletId};
use crate::limits::TOGETHER_MAX;
use crate::programme::{Programme, Programmes};
use crate::refused;
use crate::settle::{next_entry, seal};
use crate::snapshot::{Before, Snapshot, Turn};
use crate::totals::TotalId;
use crate::wallet::Wallet;
use hashbrown::HashMap;
use raingauge_core::code::{Code, Refusal};
use std::sync::Arc;

/// What became of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The first entry carries the key. What of the command was due at once is settled behind it.
    Done(Vec<Arc<Entry>>),
    /// The command was done before: the entry that carries its key.
    Replayed(Arc<Entry>),
    /// Refused for ever.
    Refused { refusal: Refusal, entry: Arc<Entry>, replayed: bool },
    /// Nothing was written, and the same command may succeed another time.
    Invalid(Refusal),
}

/// Decides the commands of a turn.
pub struct Desk<'a> {
    programmes: &'a Programmes,
    state: Snapshot,
    now_ms: i64,
    entries: Vec<Arc<Entry>>,
    before: Before,
    /// Of a group of commands that happen together or not at all.
    group: Option<Before>,
}

/// A command that was found sound, with what all decisions need of it.
pub(crate) struct Order<'a> {
    command: &'a Command,
    programme: &'a Arc<Programme>,
    id: WalletId,
    key: Key,
    fingerprint: u64,
    occurred_ms: i64,
}

impl Order<'_> {
    /// Fills in what an entry has of its command. One entry of a command carries the key.
    fn mark(&self, entry: &mut Entry, carries_key: bool) {
        entry.reference = self.command.reference.clone();
        entry.reason = self.command.reason.clone();
        if carries_key {
            entry.key = Some(EntryKey {
                hash: self.key,
                text: self.command.key.clone(),
                source: self.command.source.clone(),
            });
            entry.fingerprint = self.fingerprint;
        }
    }
}

impl<'a> Desk<'a> {
    /// A desk for a turn at a time, which is no earlier than that of any of its books.
    pub fn new(programmes: &'a Programmes, state: Snapshot, now_ms: i64) -> Self {
        let last = state.heads.iter().map(|head| head.recorded_ms).max();
        let now_ms = last.map_or(now_ms, |last| last.max(now_ms));
        // Most wallets that were loaded change. A map that grew would move all of them each time.
        let before =
            Before { wallets: HashMap::with_capacity(state.wallets.len()), ..Before::default() };
        Self {
            programmes,
            entries: Vec::with_capacity(state.wallets.len()),
            state,
            now_ms,
            before,
            group: None,
        }
    }

    /// The time of the turn.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Decides a command.
    pub fn execute(&mut self, command: &Command) -> Answer {
        self.execute_keyed(command, command.key_hash())
    }

    /// Decides a command whose [`Command::key_hash`] is known.
    pub fn execute_keyed(&mut self, command: &Command, key: Key) -> Answer {
        let order = match self.order(command, key) {
            Ok(order) => order,
            Err(refusal) => return Answer::Invalid(refusal),
        };
        if let Some(entry) = self.state.keys.get(&order.key) {
            return replayed(entry.clone(), &order);
        }

        self.settle(&order.id);
        match self.decide(&order) {
            Ok(mut entries) => {
                let written = self.entries.len();
                self.settle_what_came_late(&order.id);
                entries.extend_from_slice(&self.entries[written..]);
                if let Body::Transfer { to, .. } = &command.body {
                    self.settle(&WalletId { member: to.clone(), ..order.id.clone() });
                }
                Answer::Done(entries)
            }
            Err(refusal) if is_final(refusal.code) => {
                let mut entry = Entry::draft(&order.id, Kind::Refused, order.occurred_ms);
                order.mark(&mut entry, true);
                entry.refusal = Some(refusal.clone());
                let entry = self.record(entry, order.programme);
                Answer::Refused { refusal, entry, replayed: false }
            }
            Err(refusal) => Answer::Invalid(refusal),
        }
    }

    /// Decides commands of which all are done, or none. Where one is refused, so are the others; a
    /// refusal that the command would get alone is all that is left.
    pub fn execute_together(&mut self, commands: &[Command]) -> Vec<Answer> {
        if commands.is_empty() {
            return Vec::new();
        }
        if commands.len() > TOGETHER_MAX {
            let detail = format!("at most {TOGETHER_MAX} commands happen together");
            let refusal = Refusal::new(Code::LimitOutOfRange, detail);
            return commands.iter().map(|_| Answer::Invalid(refusal.clone())).collect();
        }

        let decided = self.all_or_nothing(|desk| {
            let mut answers = Vec::with_capacity(commands.len());
            for command in commands {
                let answer = desk.execute(command);
                if !matches!(answer, Answer::Done(_) | Answer::Replayed(_)) {
                    return Err((answers.len(), answer));
                }
                answers.push(answer);
            }
            Ok(answers)
        });
        let (failed, answer) = match decided {
            Ok(answers) => return answers,
            Err(failed) => failed,
        };

        let answer = self.refuse_alone(&commands[failed], answer);
        let (Answer::Refused { refusal, .. } | Answer::Invalid(refusal)) = &answer else {
            unreachable!("it failed")
        };
        let detail = format!("not done, because command {failed} was refused: {}", refusal.detail);
        let others = Answer::Invalid(Refusal::new(Code::TransactionRefused, detail));
        let mut answers = vec![others; commands.len()];
        answers[failed] = answer;
        answers
    }

    /// Decides the command that a group failed with by itself. A refusal of its own is kept; one
    /// that followed from the commands before it leaves nothing, so that it can be sent again.
    fn refuse_alone(&mut self, command: &Command, answer: Answer) -> Answer {
        let Answer::Refused { refusal, replayed: false, .. } = answer else { return answer };
        let alone = self.all_or_nothing(|desk| match desk.execute(command) {
            refused @ Answer::Refused { .. } => Ok(refused),
            _ => Err(refusal),
        });
        alone.unwrap_or_else(Answer::Invalid)
    }

    /// Finds the programme of a command that is sound.
    fn order<'c>(&self, command: &'c Command, key: Key) -> Result<Order<'c>, Refusal>
    where
        'a: 'c,
    {
        let Some(programme) = self.programmes.get(&command.programme) else {
            let detail = format!("there is no programme `{}`", command.programme);
            return refused(Code::ProgrammeUnknown, detail);
        };
        check::check_command(command, self.now_ms)?;
        let accepted_ms = command.accepted_ms.map_or(self.now_ms, |ms| ms.min(self.now_ms));
        let member = command.member.clone();
        Ok(Order {
            command,
            programme,
            id: WalletId { programme: programme.name().clone(), member },
            key,
            fingerprint: command.fingerprint(),
            occurred_ms: command.occurred_ms.unwrap_or(accepted_ms),
        })
    }

    fn decide(&mut self, order: &Order<'_>) -> Result<Vec<Arc<Entry>>, Refusal> {
        let source = &order.command.source;
        if order.programme.is_former_partner(source) {
            let detail = format!("`{source}` is no partner of the programme any more");
            return refused(Code::SourceForeign, detail);
        }
        let is_closed = self.state.wallets.get(&order.id).is_some_and(|wallet| wallet.closed);
        let needs_open = !matches!(
            order.command.body,
            Body::Reverse { .. }
                | Body::Adjust { .. }
                | Body::Capture { .. }
                | Body::Release { .. }
        );
        if is_closed && needs_open {
            return refused(Code::WalletClosed, "the member's wallet is closed");
        }

        match &order.command.body {
            Body::Award(award) => self.award(order, award),
            Body::Burn { points } => self.burn(order, *points),
            Body::Hold { points, until_ms, reward } => {
                self.hold(order, *points, *until_ms, reward.as_ref())
            }
            Body::Capture { hold, points } => self.capture(order, hold, *points),
            Body::Release { hold } => self.release(order, hold),
            Body::Transfer { to, points } => self.transfer(order, to, *points),
            Body::ExchangeOut { partner, points } => self.exchange_out(order, partner, *points),
            Body::ExchangeIn { partner, points, amount } => {
                self.exchange_in(order, partner, *points, *amount)
            }
            Body::Reverse { key, amount, points, .. } => {
                self.reverse(order, key.as_deref(), *amount, *points)
            }
            Body::Adjust { points, expires_on } => self.adjust(order, *points, *expires_on),
            Body::Tier { tier, until } => self.set_tier(order, tier, *until),
            Body::Close => self.close(order),
        }
    }

    /// Settles a wallet again after a decision of this turn, which may be about the past. The hour
    /// that the decision left tells most wallets apart where nothing is due.
    fn settle_what_came_late(&mut self, id: &WalletId) {
        let due = self.state.wallets.get(id).and_then(|wallet| wallet.due_hour);
        let may_be_due = |hour: u32| (i64::from(hour) - 1) * HOUR_MS < self.now_ms;
        if due.is_some_and(may_be_due) {
            self.settle(id);
        }
    }

    /// Writes down what became true of a wallet by itself, and returns the number of entries.
    pub fn settle(&mut self, id: &WalletId) -> usize {
        let Some(programme) = self.programmes.get(&id.programme) else { return 0 };
        let mut entries = 0;
        while let Some(wallet) = self.state.wallets.get(id) {
            let Some(entry) = next_entry(id, wallet, programme, self.now_ms) else { break };
            self.record(entry, programme);
            entries += 1;
        }
        entries
    }

    /// Settles a wallet that the due index named. Where nothing was due, because the programme
    /// changed, an entry moves it to its true place.
    pub fn sweep(&mut self, id: &WalletId) -> usize {
        let settled = self.settle(id);
        let Some(programme) = self.programmes.get(&id.programme) else { return settled };
        let Some(wallet) = self.state.wallets.get(id) else { return settled };
        if crate::settle::due_hour(wallet, programme) == wallet.due_hour {
            return settled;
        }
        let entry = Entry::draft(id, Kind::Extend, self.now_ms);
        self.record(entry, programme);
        settled + 1
    }

    /// Notes in each book of the turn that a version of a programme is in force.
    pub fn programme(&mut self, name: &str, version: u32) {
        let books: Vec<u16> = self.state.heads.iter().map(|head| head.book).collect();
        for book in books {
            let mut entry = Entry::of_programme(name.into(), Kind::Programme, self.now_ms);
            entry.changes.version = Some(version);
            self.number(&mut entry, book);
            self.keep(entry);
        }
    }

    /// Numbers an entry of a wallet, applies it, and keeps it.
    fn record(&mut self, mut entry: Entry, programme: &Programme) -> Arc<Entry> {
        let id = entry.wallet().expect("the entry is one of a wallet");
        let book = id.book(self.state.books);
        self.number(&mut entry, book);

        let before = self.group.as_mut().unwrap_or(&mut self.before);
        let known = self.state.wallets.get(&id);
        before.wallets.entry_ref(&id).or_insert_with(|| known.cloned());
        let wallet = self.state.wallets.entry(id).or_default();
        seal(&mut entry, wallet, programme);
        self.keep(entry)
    }

    fn number(&mut self, entry: &mut Entry, book: u16) {
        let now_ms = self.now_ms;
        let head = self.state.heads.iter_mut().find(|head| head.book == book);
        let head = head.expect("the books of a turn include those of its wallets");
        head.sequence += 1;
        head.recorded_ms = now_ms;
        entry.book = book;
        entry.sequence = head.sequence;
        entry.recorded_ms = now_ms;
    }

    fn keep(&mut self, entry: Entry) -> Arc<Entry> {
        let entry = Arc::new(entry);
        let before = self.group.as_mut().unwrap_or(&mut self.before);
        self.state.note(&entry, before);
        self.entries.push(entry.clone());
        entry
    }

    /// Runs a decision of which all entries are kept, or none.
    fn all_or_nothing<T, E>(
        &mut self,
        decide: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let heads = self.state.heads.clone();
        let written = self.entries.len();
        let outer = self.group.replace(Before::default());
        let decided = decide(self);

        let own = self.group.take().expect("decisions put groups back");
        self.group = outer;
        if decided.is_ok() {
            self.group.as_mut().unwrap_or(&mut self.before).absorb(own);
        } else {
            self.state.restore(own);
            self.state.heads = heads;
            self.entries.truncate(written);
        }
        decided
    }

    /// The wallet as it is now.
    fn wallet(&self, id: &WalletId) -> Wallet {
        self.state.wallets.get(id).cloned().unwrap_or_default()
    }

    /// What was used of a budget.
    fn used(&self, programme: &Programme, budget: &Arc<str>) -> i64 {
        let id = BudgetId::new(programme.name(), budget);
        self.state.budgets.get(&id).copied().unwrap_or(0)
    }

    /// The state as it is after the commands so far.
    pub fn state(&self) -> &Snapshot {
        &self.state
    }

    /// Takes in what a reference earned, which was loaded after the rest.
    pub fn load(&mut self, id: ReferenceId, earned: Earned) {
        self.state.references.insert(id, earned);
    }

    /// Ends the turn and begins another one over the state as it is now, no earlier than `now_ms`,
    /// for a ledger that nobody else changes: nothing of it is loaded or copied again. Entries,
    /// keys and references of the turn leave the state, which would grow without end; `kept` is
    /// called with each reference that changed.
    pub fn next_turn(&mut self, now_ms: i64, mut kept: impl FnMut(&ReferenceId, &Earned)) {
        self.check_sums();
        for id in self.before.references.keys() {
            kept(id, self.state.references.get(id).expect("it was changed in this turn"));
        }

        self.before.clear();
        self.entries.clear();
        self.state.keys.clear();
        self.state.references.clear();
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Ends the turn: entries, and all that changed with them.
    pub fn finish(self) -> Turn {
        self.check_sums();
        let Self { mut state, now_ms, entries, before, .. } = self;
        fn current<K: Ord + Eq + std::hash::Hash, V>(
            ids: impl Iterator<Item = K>,
            map: &mut HashMap<K, V>,
        ) -> Vec<(K, V)> {
            // Ids are sorted without their values, which are larger.
            let mut ids: Vec<K> = ids.collect();
            ids.sort_unstable();
            let known = ids.into_iter().map(|id| map.remove(&id).map(|value| (id, value)));
            known.flatten().collect()
        }

        let amount = |(id, before): (TotalId, i128)| {
            let after = state.totals.0.get(&id).copied().unwrap_or(0);
            (id, after - before)
        };
        let mut moved: Vec<(TotalId, i128)> = before.totals.into_iter().map(amount).collect();
        moved.sort_unstable();

        Turn {
            recorded_ms: now_ms,
            entries,
            wallets: current(before.wallets.into_keys(), &mut state.wallets),
            moved,
            references: current(before.references.into_keys(), &mut state.references),
            budgets: current(before.budgets.into_keys(), &mut state.budgets),
            position: None,
        }
    }

    /// Checks that nothing is due in a wallet of the turn (I9), and that sums of wallets moved by
    /// as much as the wallets did (I2, I7).
    fn check_sums(&self) {
        for id in self.before.wallets.keys() {
            let due = self.state.wallets.get(id).and_then(|wallet| wallet.due_hour);
            let is_over = due.is_some_and(|hour| i64::from(hour) * HOUR_MS <= self.now_ms);
            assert!(!is_over, "nothing is left to settle in {id} (I9)");
        }

        // Programmes and books of a turn are few.
        let mut moved: Vec<(u16, &Arc<str>, i128)> = Vec::new();
        let mut add = |book: u16, programme, amount: i128| {
            let is_known = |known: &&mut (u16, &Arc<str>, i128)| {
                known.0 == book && (Arc::ptr_eq(known.1, programme) || known.1 == programme)
            };
            match moved.iter_mut().find(is_known) {
                Some(known) => known.2 += amount,
                None => moved.push((book, programme, amount)),
            }
        };
        for (id, before) in &self.before.wallets {
            let before = before.as_ref().map_or(0, Wallet::value);
            let after = self.state.wallets.get(id).map_or(0, Wallet::value);
            add(id.book(self.state.books), &id.programme, after - before);
        }
        for (id, before) in self.before.totals.iter().filter(|(id, _)| id.total.is_of_wallets()) {
            let after = self.state.totals.0.get(id).copied().unwrap_or(0);
            add(id.book, &id.programme, before - after);
        }
        assert!(moved.iter().all(|(.., rest)| *rest == 0), "sums follow wallets (I2): {moved:?}");
    }
}

/// The answer to a command whose key has an entry.
fn replayed(entry: Arc<Entry>, order: &Order<'_>) -> Answer {
    let known = entry.key.as_ref().expect("it was found by its key");
    // Two texts with one hash would be an attack, or never happen.
    let is_same = known.text == order.command.key && known.source == order.command.source;
    if !is_same || entry.fingerprint != order.fingerprint {
        let detail = format!("the key `{}` belongs to another command", order.command.key);
        return Answer::Invalid(Refusal::new(Code::KeyReused, detail));
    }
    match entry.refusal.clone() {
        Some(refusal) => Answer::Refused { refusal, entry, replayed: true },
        None => Answer::Replayed(entry),
    }
}

/// Whether a refusal is the answer for ever.
const fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InsufficientPoints
            | Code::BudgetSpent
            | Code::PartnerLimit
            | Code::WalletClosed
            | Code::HoldResolved
            | Code::ExceedsHold
            | Code::EntryNotReversible
            | Code::ArrearsFloor
            | Code::RewardSoldOut
            | Code::SourceForeign
    )
}

#[cfg(test)]
mod tests;
