//! Runs the commands of a drain: one hold of the lock after the other.

mod refusals;

use crate::admission::{self, Admission};
use crate::ahead::is_ahead;
use crate::answer::{Answer, Budget};
use crate::blocking::{self, Wait};
use crate::execute::{Executed, execute};
use crate::failures;
use crate::group::{Group, Moment};
use crate::keyspace::{Keyspace, Miss, PREFETCH_LEN};
use crate::limits::{HOLD_CHANGE_BYTES, HOLD_COMMANDS_MAX, LOAD_ROUNDS_MAX, RUN_REPLY_BYTES};
use crate::loader::Luggage;
use crate::objects::Objects;
use crate::session::Session;
use crate::wake::Wake;
use raingauge_ports::objects::Key;
use raingauge_resp::{Arguments, Controls, Drain, Failure, Id, Replies, Room, Spec};
use smallvec::SmallVec;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The first command that it did not run: one of the door, or one for the next call.
    pub next: usize,
    /// The replies, in their order.
    pub segments: Vec<Segment>,
    /// How long commands waited for their keys to get something.
    pub waited: Duration,
}

/// Replies that may go out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Length of all replies up to its end, in bytes.
    pub end: usize,
    /// The group that has to be durable before; 0 for none. Later segments have later groups.
    pub stamp: u64,
}

/// Why a hold ended.
pub(crate) enum Stop {
    /// The drain is empty.
    End,
    /// The next command is not one of objects.
    Door,
    /// There are enough replies of this run.
    Full,
    /// There were enough commands for one hold.
    Cut,
    /// There were enough changes for one hold.
    Heavy,
    /// The disk does not keep up.
    Behind,
    /// Keys of the next command are not in memory.
    Missing,
    /// The next command, or one of its transaction, is about all keys.
    Ahead,
    /// The next command waits for its keys.
    Waiting,
}

/// What came of one command.
pub(crate) enum Step {
    /// It replied. The stamp is that of the newest object that it saw.
    Done { stamp: u64 },
    /// It has to wait for something.
    Stop(Stop),
}

/// A drain that is being run.
pub(crate) struct Run<'r> {
    pub session: &'r mut Session,
    pub controls: &'r mut dyn Controls,
    pub drain: &'r Drain,
    pub out: &'r mut Replies,
    pub next: usize,
    pub luggage: Luggage,
    pub misses: Vec<Miss>,
    /// How many of the misses the next command cannot do without.
    pub needed: usize,
    /// Answers for the commands of a transaction that are about all keys.
    pub answers: VecDeque<Result<Answer, Failure>>,
    /// How many changed keys those answers have looked at.
    pub overlaid: usize,
    /// Keys that the next command has missed so far.
    gathered: Vec<Key>,
    /// How often the next command found a key missing.
    pub rounds: usize,
    /// The wait of the next command.
    pub wait: Option<Wait>,
    /// When the next command waits no longer, once it has waited.
    pub waits_until: Option<tokio::time::Instant>,
    /// Its place among those that wait, once it has waited.
    pub ticket: Option<u64>,
    /// What its wait ends with, once it has waited.
    pub woken: Option<oneshot::Receiver<Wake>>,
    pub waited: Duration,
    /// Length of the replies when the run began.
    replied_before: usize,
    /// Commands of this hold, and whether each failed.
    pub noted: Vec<(&'static Spec, bool)>,
    /// Commands before this one change the store each by itself: it refused them together.
    alone_until: usize,
    /// How often the store was too busy for a group of this drain since it last took one.
    busy_rounds: usize,
    segments: Vec<Segment>,
}

impl Objects {
    /// Runs commands of a drain, from `from` on, and writes their replies. Returns at a command of
    /// the door outside of a transaction, after about a megabyte of replies, and at the end.
    pub async fn run(
        &self,
        session: &mut Session,
        controls: &mut dyn Controls,
        drain: &Drain,
        from: usize,
        out: &mut Replies,
    ) -> Ran {
        let replied_before = out.len();
        let mut run = Run {
            replied_before,
            session,
            controls,
            drain,
            out,
            next: from,
            luggage: Luggage::default(),
            misses: Vec::new(),
            needed: 0,
            answers: VecDeque::new(),
            overlaid: 0,
            wait: None,
            waits_until: None,
            ticket: None,
            woken: None,
            waited: Duration::ZERO,
            gathered: Vec::new(),
            rounds: 0,
            noted: Vec::new(),
            alone_until: from,
            busy_rounds: 0,
            segments: Vec::new(),
        };

        loop {
            match self.hold(&mut run) {
                Stop::End | Stop::Door | Stop::Full => break,
                Stop::Cut => tokio::task::yield_now().await,
                // A store that cannot make the group durable refuses the next one.
                Stop::Heavy => _ = self.durable(run.session.last_stamp).await,
                // The store slows callers down, whatever they wait for.
                Stop::Behind => _ = self.durable(0).await,
                Stop::Missing => self.load(&mut run).await,
                Stop::Ahead => self.look_ahead(&mut run).await,
                Stop::Waiting => self.wait_for_keys(&mut run).await,
            }
        }
        Ran { next: run.next, segments: run.segments, waited: run.waited }
    }

    /// Takes the lock once, and runs commands until one cannot go on.
    fn hold(&self, run: &mut Run<'_>) -> Stop {
        let durable = self.durable_stamp();
        let began = Instant::now();
        let first = run.next;
        let is_full = self.is_full();
        let clock = self.look_at_clock();
        let mut group = Group::default();
        let mut keyspace = match self.lock.hold() {
            Ok(keyspace) => keyspace,
            Err(error) => return run.refuse_rest(&failures::of_store(&error)),
        };
        let Session { touches, last_stamp, .. } = *run.session;
        keyspace.begin(clock, touches, last_stamp);
        run.unpack(&mut keyspace);
        let mut prefetched = first;

        let stop = loop {
            if run.next == run.drain.len() {
                break Stop::End;
            }
            if run.out.len() - run.replied_before > RUN_REPLY_BYTES {
                break Stop::Full;
            }
            if run.next - first >= HOLD_COMMANDS_MAX {
                break Stop::Cut;
            }
            if keyspace.changed_bytes() > HOLD_CHANGE_BYTES {
                break Stop::Heavy;
            }
            if group.begun.is_some() && (is_full || run.next < run.alone_until) {
                break Stop::Cut;
            }

            if run.next >= prefetched {
                prefetched = run.prefetch(&mut keyspace);
            }
            let before = run.moment(&keyspace);
            match self.step(&mut keyspace, run) {
                Step::Stop(stop) => break stop,
                Step::Done { stamp } => {
                    blocking::serve(&mut keyspace);
                    let begins_multi = !before.in_multi && run.session.in_multi();
                    if group.written.is_none() && begins_multi {
                        group.multi = Some(before);
                    }
                    if group.begun.is_none() && keyspace.has_group() {
                        group.begun = Some(before);
                    }
                    if group.written.is_none() && keyspace.has_written() {
                        group.written = Some(before);
                    }
                    if group.begun.is_none() {
                        keyspace.deliver(0);
                        run.note_segment(stamp, durable);
                    } else {
                        group.seen = stamp.max(group.seen);
                    }
                    run.advance();
                }
            }
        };

        if matches!(stop, Stop::Missing) {
            run.gather(&mut keyspace);
        }
        let commands = run.next - first;
        keyspace.totals().holds += 1;
        let finished = keyspace.finish(group.answered(), |group| self.submit(group));
        // What the store refused did not happen: some of it runs again, and is counted then.
        let refused = finished.as_ref().err().and_then(|error| group.refused_from(error));
        if let Some(from) = refused {
            keyspace.totals().go_back(from.lookups);
        }
        let counted = refused.map_or(commands, |from| from.command - first);
        keyspace.totals().commands += counted as u64;
        let evicted = self.make_room(&mut keyspace, durable);
        drop(keyspace);
        drop(evicted);

        let repeats = run.end_group(finished, &group, durable);
        run.report(began, commands);
        repeats.unwrap_or(stop)
    }

    /// Runs the next command.
    fn step(&self, keyspace: &mut Keyspace, run: &mut Run<'_>) -> Step {
        let drain = run.drain;
        let command = drain.get(run.next);
        let spec = match run.session.gate.admit(&command) {
            Ok(spec) => spec,
            Err(failure) if command.spec().is_some_and(|spec| spec.id == Id::Exec) => {
                return run.refuse_exec(keyspace, &failure);
            }
            Err(failure) => {
                run.out.fail(&failure);
                run.abort_transaction();
                return Step::Done { stamp: 0 };
            }
        };

        if run.session.in_multi() && !runs_in_multi(spec.id) {
            run.queue(spec, command.arguments);
            return Step::Done { stamp: 0 };
        }
        if spec.room != Room::Objects {
            return Step::Stop(Stop::Door);
        }

        match spec.id {
            Id::Multi => run.multi(),
            Id::Discard => run.discard(keyspace),
            Id::Unwatch => run.unwatch(keyspace),
            Id::Watch => run.watch(keyspace, spec, command.arguments),
            Id::Exec => run.exec(keyspace),
            id if is_ahead(id) => Step::Stop(Stop::Ahead),
            Id::Swapdb => {
                run.miss_swapped(keyspace, command.arguments);
                if run.misses.is_empty() {
                    return run.command(keyspace, spec, command.arguments);
                }
                Step::Stop(Stop::Missing)
            }
            _ if run.woken.is_some() => run.try_again(keyspace, spec, command.arguments),
            _ => run.command(keyspace, spec, command.arguments),
        }
    }

    /// Loads what the next commands miss.
    async fn load(&self, run: &mut Run<'_>) {
        let misses = std::mem::take(&mut run.misses);
        run.rounds += 1;
        if run.rounds > LOAD_ROUNDS_MAX {
            let line = "BUSY the keys of the command are evicted as fast as they are loaded";
            return self.refuse(run, &Failure::text(line));
        }

        let now_ms = self.expired_ms();
        let loaded = self.loader.load(misses, run.needed, now_ms, &mut run.luggage).await;
        if let Err(failure) = loaded {
            self.refuse(run, &failure);
        }
    }

    /// Answers the next command, which is about all keys, or those of the transaction that it ends.
    async fn look_ahead(&self, run: &mut Run<'_>) {
        let database = run.session.database;
        if let Some(transaction) = &run.session.transaction {
            run.answers = self.answer_transaction(transaction, database).await;
            return;
        }

        let command = run.drain.get(run.next);
        let bytes_max = self.options().together_bytes_max();
        let mut budget = Budget::new(bytes_max, failures::answer_too_large);
        match self.answer_ahead(command, database, &mut budget).await {
            Ok(answer) => answer.write(run.out),
            Err(failure) => run.out.fail(&failure),
        }
        run.note_segment(self.store().progress().submitted(), self.durable_stamp());
        run.advance();
    }

    /// Answers the next command with a failure. An EXEC ends its transaction and the watch; what
    /// else is refused leaves the watch, since a later EXEC relies on it.
    fn refuse(&self, run: &mut Run<'_>, failure: &Failure) {
        if run.session.transaction.take().is_some() {
            run.session.unwatch();
        }
        run.answers.clear();
        run.out.fail(failure);
        run.note_segment(0, 0);
        run.advance();
    }
}

impl Run<'_> {
    /// Looks for the keys of the next commands together. Returns the first command behind them.
    fn prefetch(&self, keyspace: &mut Keyspace) -> usize {
        let mut next = self.next;
        let end = self.drain.len().min(next + PREFETCH_LEN);
        // What a transaction queues is used by its EXEC.
        if self.session.in_multi() {
            return end;
        }

        let mut names: SmallVec<[&[u8]; PREFETCH_LEN]> = SmallVec::new();
        while next < end && names.len() < PREFETCH_LEN {
            let command = self.drain.get(next);
            if let Some(spec) = command.spec().filter(|spec| spec.accepts(command.arguments.len()))
            {
                spec.key_positions(command.arguments, |at, _| {
                    if names.len() < PREFETCH_LEN {
                        names.push(command.arguments.at(at));
                    }
                });
            }
            next += 1;
        }

        // One key alone gains nothing.
        if names.len() > 1 {
            keyspace.prefetch(self.session.database, &names);
        }
        next
    }

    /// Forgets what was loaded for the next command, and how often.
    pub(crate) fn forget_rounds(&mut self) {
        self.rounds = 0;
        self.gathered.clear();
    }

    /// Goes on to the command behind the next one, which was answered.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
        self.forget_rounds();
        self.waits_until = None;
        self.ticket = None;
        if self.woken.take().is_some() {
            self.session.unblocker.0.lock().take();
        }
    }

    /// Runs one command whose keys may be missing.
    pub(crate) fn command(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &'static Spec,
        arguments: Arguments<'_>,
    ) -> Step {
        let database = self.session.database;
        let luggage = &self.luggage;
        let misses = &mut self.misses;
        match admission::admit(keyspace, luggage, spec, arguments, database, misses) {
            Ok(Admission::Missing) => {
                self.miss_behind(keyspace);
                Step::Stop(Stop::Missing)
            }
            Ok(Admission::Ready { stamp, weight }) => {
                match self.execute(keyspace, spec, arguments, weight) {
                    Some(timeout_ms) => self.stop_waiting(keyspace, spec, timeout_ms),
                    None => Step::Done { stamp },
                }
            }
            Err(failure) => {
                self.out.fail(&failure);
                self.noted.push((spec, true));
                Step::Done { stamp: 0 }
            }
        }
    }

    /// Runs one command whose keys are in memory. Returns how long it waits, if it does.
    pub(crate) fn execute(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &'static Spec,
        arguments: Arguments<'_>,
        weight: usize,
    ) -> Option<i64> {
        let database = self.session.database;
        let executed = execute(keyspace, database, spec, arguments, weight, self.out);
        self.noted.push((spec, executed == Executed::Refused));
        match executed {
            Executed::Done { database } => self.session.database = database,
            Executed::Refused => {}
            Executed::Waits { timeout_ms } => return Some(timeout_ms),
        }
        None
    }

    /// Ends the hold at a command that waits, once what was replied before is on its way.
    pub(crate) fn stop_waiting(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &'static Spec,
        timeout_ms: i64,
    ) -> Step {
        if self.out.len() > self.replied_before {
            return Step::Stop(Stop::Full);
        }

        let command = self.drain.get(self.next);
        self.queue_behind(keyspace, spec, command, timeout_ms);
        Step::Stop(Stop::Waiting)
    }

    /// Collects what the commands behind the next one miss as well.
    fn miss_behind(&mut self, keyspace: &mut Keyspace) {
        let database = self.session.database;
        self.needed = self.misses.len();
        let mut known = HashSet::new();
        for at in self.next + 1..self.drain.len() {
            let command = self.drain.get(at);
            let changes_database = |spec: &Spec| {
                matches!(spec.id, Id::Select | Id::Swapdb | Id::Flushdb | Id::Flushall)
            };
            let is_enough = self.misses.len() >= self.luggage.keys_max();
            if is_enough || command.spec().is_some_and(changes_database) {
                break;
            }

            let misses = &mut self.misses;
            let place = |database| database;
            admission::collect_misses(
                keyspace,
                &self.luggage,
                command,
                database,
                place,
                &mut known,
                misses,
            );
        }
    }

    /// Adds the keys that the next command missed in earlier rounds to those of this one: what a
    /// small memory evicts in between is loaded again, so that at last all are there together.
    fn gather(&mut self, keyspace: &mut Keyspace) {
        let needed = self.misses.iter().take(self.needed).map(|miss| miss.key.clone());
        let needed: Vec<Key> = needed.collect();
        let known: HashSet<&Key> = needed.iter().collect();
        self.gathered.retain(|key| !known.contains(key));
        let again = self.gathered.iter().map(|key| keyspace.miss(key.database, &key.name));
        self.misses.splice(0..0, again);
        self.needed += self.gathered.len();
        self.gathered.extend(needed);
    }

    /// Puts what was loaded into the keyspace.
    fn unpack(&mut self, keyspace: &mut Keyspace) {
        for loaded in std::mem::take(&mut self.luggage.loaded) {
            if let Some((miss, failure)) = keyspace.insert(loaded) {
                self.luggage.refuse(miss, failure);
            }
        }
    }

    /// Ends a segment behind the last reply.
    pub(crate) fn note_segment(&mut self, stamp: u64, durable: u64) {
        let end = self.out.len();
        let stamp = if stamp <= durable { 0 } else { stamp };
        match self.segments.last_mut() {
            Some(last) if stamp <= last.stamp => last.end = end,
            _ => self.segments.push(Segment { end, stamp }),
        }
    }

    /// The moment before the next command.
    fn moment(&self, keyspace: &Keyspace) -> Moment {
        Moment {
            mark: self.out.mark(),
            command: self.next,
            database: self.session.database,
            in_multi: self.session.in_multi(),
            messages: keyspace.messages_len(),
            noted: self.noted.len(),
            is_watching: self.session.watch.is_some(),
            lookups: keyspace.lookups(),
        }
    }

    /// Tells the door which commands ran, and about how long each took.
    fn report(&mut self, began: Instant, commands: usize) {
        let elapsed_us = began.elapsed().as_micros() as u64;
        let each_us = elapsed_us / commands.max(1) as u64;
        for (spec, failed) in self.noted.drain(..) {
            self.controls.ran(spec, each_us, failed);
        }
    }
}

/// Whether a command runs between MULTI and EXEC instead of waiting for EXEC.
fn runs_in_multi(id: Id) -> bool {
    matches!(id, Id::Exec | Id::Discard | Id::Multi | Id::Watch | Id::Quit | Id::Reset)
}
