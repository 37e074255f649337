//! MULTI, EXEC and the keys that are watched until then.

use crate::admission::{self, Admission};
use crate::ahead::is_ahead;
use crate::answer::{Answer, Budget};
use crate::commands::reply_nothing;
use crate::failures;
use crate::keyspace::{Keyspace, Watch};
use crate::limits::{MULTI_BYTES_MAX, MULTI_COMMANDS_MAX, OVERLAY_KEYS_MAX, WATCHED_KEYS_MAX};
use crate::objects::Objects;
use crate::run::{Run, Step, Stop};
use crate::session::{Transaction, Watched};
use bytes::Bytes;
use indexmap::IndexSet;
use raingauge_ports::objects::DATABASES;
use raingauge_resp::{Arguments, Command, Failure, Flags, Id, Room, Spec};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Whether the row of a command is one of these.
fn is_of(command: Command<'_>, of: impl Fn(Id) -> bool) -> bool {
    command.spec().is_some_and(|spec| of(spec.id))
}

/// Whether a command of the door tells about keys as a whole.
fn counts_keys(id: Id) -> bool {
    matches!(id, Id::Info | Id::ClusterCountkeysinslot | Id::ClusterGetkeysinslot)
}

const DONE: Step = Step::Done { stamp: 0 };

/// Which database the commands of a transaction work on, as of its beginning.
struct Route {
    selected: u8,
    /// Where the content of each database was at first.
    swapped: [u8; DATABASES as usize],
}

impl Route {
    fn from(selected: u8) -> Self {
        Self { selected, swapped: std::array::from_fn(|at| at as u8) }
    }

    /// Goes on behind a command.
    fn follow(&mut self, command: Command<'_>) {
        let arguments = command.arguments;
        match command.spec().map(|spec| spec.id) {
            Some(Id::Select) => {
                self.selected = admission::database_of(arguments, 1).unwrap_or(self.selected);
            }
            Some(Id::Swapdb) => {
                let a = admission::database_of(arguments, 1);
                let b = admission::database_of(arguments, 2);
                if let (Some(a), Some(b)) = (a, b) {
                    self.swapped.swap(usize::from(a), usize::from(b));
                }
            }
            _ => {}
        }
    }

    /// Where the content of a database was at first.
    fn place(&self, database: u8) -> u8 {
        self.swapped.get(usize::from(database)).copied().unwrap_or(database)
    }
}

impl Objects {
    /// Answers the commands of a transaction that are about all keys, as of its beginning. What it
    /// changes itself is laid over the answers when it runs.
    pub(crate) async fn answer_transaction(
        &self,
        transaction: &Transaction,
        database: u8,
    ) -> VecDeque<Result<Answer, Failure>> {
        let mut route = Route::from(database);
        let mut answers = VecDeque::new();
        let bytes_max = self.options().together_bytes_max();
        let mut budget = Budget::new(bytes_max, failures::transaction_too_large);
        for command in transaction.commands.commands() {
            route.follow(command);
            let database = route.place(route.selected);
            if is_of(command, is_ahead) {
                answers.push_back(self.answer_ahead(command, database, &mut budget).await);
            }
        }
        answers
    }
}

impl Run<'_> {
    pub(crate) fn multi(&mut self) -> Step {
        if self.session.in_multi() {
            self.out.error("ERR MULTI calls can not be nested");
        } else {
            self.session.transaction = Some(Transaction::default());
            self.out.ok();
        }
        DONE
    }

    /// Keeps a command for EXEC.
    pub(crate) fn queue(&mut self, spec: &Spec, arguments: Arguments<'_>) {
        let Some(transaction) = &mut self.session.transaction else { return };
        let refusal = if spec.flags.has(Flags::NO_MULTI) || spec.room == Room::Rain {
            Some(Failure::text("ERR Command not allowed inside a transaction"))
        } else if transaction.commands.len() >= MULTI_COMMANDS_MAX {
            let line = format!("ERR a transaction has at most {MULTI_COMMANDS_MAX} commands");
            Some(Failure::owned(line))
        } else if transaction.commands.bytes_len() >= MULTI_BYTES_MAX {
            let line = format!("ERR a transaction has at most {MULTI_BYTES_MAX} bytes");
            Some(Failure::owned(line))
        } else {
            None
        };

        match refusal {
            Some(failure) => {
                transaction.is_aborted = true;
                self.out.fail(&failure);
            }
            None => {
                transaction.commands.push(arguments);
                self.out.simple("QUEUED");
            }
        }
    }

    /// Notes that a command of the open transaction was refused.
    pub(crate) fn abort_transaction(&mut self) {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.is_aborted = true;
        }
    }

    /// Answers an EXEC that is malformed or not allowed, which ends the transaction.
    pub(crate) fn refuse_exec(&mut self, keyspace: &mut Keyspace, failure: &Failure) -> Step {
        if self.session.transaction.take().is_none() {
            self.out.fail(failure);
            return DONE;
        }

        self.end_watch(keyspace);
        let line = failure.to_string();
        let why = line.split_once(' ').map_or(line.as_str(), |(_, why)| why);
        self.out.error(&format!("EXECABORT Transaction discarded because of: {why}"));
        DONE
    }

    pub(crate) fn discard(&mut self, keyspace: &mut Keyspace) -> Step {
        if self.session.transaction.take().is_none() {
            self.out.error("ERR DISCARD without MULTI");
            return DONE;
        }

        self.end_watch(keyspace);
        self.out.ok();
        DONE
    }

    pub(crate) fn unwatch(&mut self, keyspace: &mut Keyspace) -> Step {
        self.end_watch(keyspace);
        self.out.ok();
        DONE
    }

    pub(crate) fn watch(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &'static Spec,
        arguments: Arguments<'_>,
    ) -> Step {
        if self.session.in_multi() {
            self.out.error("ERR WATCH inside MULTI is not allowed");
            return DONE;
        }

        let database = self.session.database;
        let luggage = &self.luggage;
        let misses = &mut self.misses;
        match admission::admit(keyspace, luggage, spec, arguments, database, misses) {
            Ok(Admission::Missing) => return self.stop_missing(),
            Ok(Admission::Ready { .. }) => {}
            Err(failure) => {
                self.out.fail(&failure);
                return DONE;
            }
        }

        if self.session.watched() + arguments.len() - 1 > WATCHED_KEYS_MAX {
            let line = format!("ERR a connection watches at most {WATCHED_KEYS_MAX} keys");
            self.out.error(&line);
            return DONE;
        }

        let new = || Watched { watch: Arc::<Watch>::default(), keys: IndexSet::new() };
        let watched = self.session.watch.get_or_insert_with(new);
        for name in arguments.iter().skip(1) {
            let key = (database, Bytes::copy_from_slice(name));
            if watched.keys.insert(key.clone()) {
                let place = keyspace.find(database, name);
                let exists = place.is_some_and(|place| keyspace.slot(place).object.is_some());
                keyspace.watchers().add(database, key.1, &watched.watch, exists);
            }
        }
        self.out.ok();
        DONE
    }

    /// Runs the queued commands, together or not at all.
    pub(crate) fn exec(&mut self, keyspace: &mut Keyspace) -> Step {
        let Some(transaction) = self.session.transaction.take() else {
            self.out.error("ERR EXEC without MULTI");
            return DONE;
        };
        if transaction.is_aborted {
            self.end_watch(keyspace);
            let line = "EXECABORT Transaction discarded because of previous errors.";
            self.out.error(line);
            return DONE;
        }

        if let Err(failure) = self.session.gate.admit_together(&transaction.commands) {
            self.end_watch(keyspace);
            self.out.fail(&failure);
            return DONE;
        }

        let questions = transaction.commands.commands().filter(|one| is_of(*one, is_ahead)).count();
        let sets_events = |command: Command<'_>| is_of(command, |id| id == Id::ConfigSet);
        if questions > 0 || transaction.commands.commands().any(sets_events) {
            keyspace.look_for_new();
        }

        let misses_before = self.misses.len();
        self.miss_watched(keyspace);
        self.miss_queued(keyspace, &transaction);
        let is_missing = self.misses.len() > misses_before;
        if is_missing || questions > self.answers.len() {
            self.session.transaction = Some(transaction);
            return if is_missing { self.stop_missing() } else { Step::Stop(Stop::Ahead) };
        }

        let has_changed =
            self.session.watch.as_ref().is_some_and(|watched| watched.watch.has_changed());
        self.end_watch(keyspace);
        if has_changed {
            self.answers.clear();
            self.out.null_array();
            return DONE;
        }

        let replied_before = self.out.len();
        let bytes_max = keyspace.together_bytes_max();
        self.overlaid = 0;
        self.out.array(transaction.commands.len());
        let mut newest = 0;
        for command in transaction.commands.commands() {
            let is_readonly = command.spec().is_some_and(|spec| spec.is_readonly());
            if is_readonly && self.out.len() - replied_before > bytes_max {
                self.out.fail(&failures::transaction_too_large(bytes_max));
            } else {
                newest = self.queued(keyspace, command).max(newest);
            }
        }
        self.answers.clear();
        Step::Done { stamp: newest }
    }

    /// Runs one command of a transaction. Returns the stamp of the newest object that it saw.
    fn queued(&mut self, keyspace: &mut Keyspace, command: Command<'_>) -> u64 {
        let Ok(spec) = command.check() else {
            self.out.fail(&command.unknown());
            return 0;
        };

        if spec.room != Room::Objects {
            let mark = self.out.mark();
            let controlled = self.controls.control(command, self.out);
            if let Err(failure) = controlled {
                self.out.roll_back(mark);
                self.out.fail(&failure);
            }
            return if counts_keys(spec.id) { keyspace.newest_stamp() } else { 0 };
        }
        if is_ahead(spec.id) {
            match self.overlay(keyspace, command.arguments) {
                Ok(answer) => answer.write(self.out),
                Err(failure) => self.out.fail(&failure),
            }
            return keyspace.newest_stamp();
        }

        let database = self.session.database;
        let arguments = command.arguments;
        let luggage = &self.luggage;
        let misses = &mut self.misses;
        match admission::admit(keyspace, luggage, spec, arguments, database, misses) {
            Ok(Admission::Ready { stamp, weight }) => {
                if self.execute(keyspace, spec, arguments, weight).is_some() {
                    reply_nothing(spec.id, self.out);
                }
                stamp
            }
            Ok(Admission::Missing) => {
                self.misses.clear();
                self.out.error("ERR a key of the transaction is not in memory, try again");
                0
            }
            Err(failure) => {
                self.out.fail(&failure);
                0
            }
        }
    }

    /// The answer to the next command about all keys, with what the transaction has changed so far.
    fn overlay(
        &mut self,
        keyspace: &Keyspace,
        arguments: Arguments<'_>,
    ) -> Result<Answer, Failure> {
        let answer = self.answers.pop_front().unwrap_or(Ok(Answer::Any(Vec::new())))?;
        self.overlaid += keyspace.overlay_len();
        if self.overlaid > OVERLAY_KEYS_MAX {
            let line = "ERR the transaction changes too many keys to ask so often about all keys";
            return Err(Failure::text(line));
        }
        keyspace.overlay(self.session.database).apply(answer, arguments)
    }

    /// Looks whether the watched keys are in memory. Those that have expired change thereby.
    fn miss_watched(&mut self, keyspace: &mut Keyspace) {
        let Some(watched) = &self.session.watch else { return };
        for (database, name) in &watched.keys {
            match keyspace.find(*database, name) {
                Some(place) => {
                    keyspace.admit(place, false, &mut 0);
                }
                None if self.luggage.refusal(*database, name).is_none() => {
                    self.misses.push(keyspace.miss(*database, name));
                }
                None => {}
            }
        }
    }

    /// Looks whether the keys of the queued commands are in memory, each in the database that will
    /// be selected, or swapped to its place, by then.
    fn miss_queued(&mut self, keyspace: &mut Keyspace, transaction: &Transaction) {
        let mut route = Route::from(self.session.database);
        let mut known = HashSet::new();
        for command in transaction.commands.commands() {
            route.follow(command);
            let misses = &mut self.misses;
            admission::collect_misses(
                keyspace,
                &self.luggage,
                command,
                route.selected,
                |database| route.place(database),
                &mut known,
                misses,
            );
        }
    }

    /// Looks whether it is known which keys two databases have that others watch or wait for,
    /// before they are exchanged.
    pub(crate) fn miss_swapped(&mut self, keyspace: &mut Keyspace, arguments: Arguments<'_>) {
        let a = admission::database_of(arguments, 1);
        let b = admission::database_of(arguments, 2);
        let (Some(a), Some(b)) = (a, b) else { return };
        for (watched, other) in [(a, b), (b, a)] {
            let names: Vec<Bytes> = keyspace.watchers().names(watched).cloned().collect();
            for name in names {
                let is_known = keyspace.find(other, &name).is_some();
                if !is_known && self.luggage.refusal(other, &name).is_none() {
                    self.misses.push(keyspace.miss(other, &name));
                }
            }
        }

        // What others wait for is loaded once, as far as it fits, so that the swap serves them.
        self.needed = self.misses.len();
        if self.rounds == 0 {
            for (database, name) in keyspace.waiting().keys_of(a, b) {
                let other = if database == a { b } else { a };
                if keyspace.find(other, &name).is_none() {
                    self.misses.push(keyspace.miss(other, &name));
                }
            }
        }
    }

    pub(crate) fn stop_missing(&mut self) -> Step {
        self.needed = self.misses.len();
        Step::Stop(Stop::Missing)
    }

    fn end_watch(&mut self, keyspace: &mut Keyspace) {
        let Some(watched) = self.session.watch.take() else { return };
        for (database, name) in &watched.keys {
            keyspace.watchers().remove(*database, name, &watched.watch);
        }
    }
}
