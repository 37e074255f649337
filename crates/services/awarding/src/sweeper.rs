//! Writes down what is due: points that mature or expire, holds that time out, tiers that end.
//!
//! ```text
//!   due index ──few──▶ teller: settle           many──▶ queue `expiry` ──range by range──▶ teller
//! ```
//!
//! Nothing depends on when this happens: each command and each read settles the wallet that it is
//! about. A range that is worked on twice, or half, finds the rest in the due index. So a sweep
//! that was asked for is carried out beside the request, and one that ends half way, with its
//! process, is continued by the next one that begins by itself.

mod register;
mod walk;

pub use register::{SweepState, SweepStatus};

use crate::deps::{Deps, Options};
use crate::error::Error;
use crate::letterbox::{Letterbox, MALFORMED, Outcome};
use crate::letters::{Bound, SweepRange};
use crate::right::Right;
use crate::shared::Shared;
use crate::tail::blocking;
use crate::teller::SETTLE_MAX;
use raingauge_core::code::{Code, Refusal};
use raingauge_points::WalletId;
use raingauge_ports::points::{DueWallet, QueueName, Receipt, ReceivedLetter};
use register::Register;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

const HOUR_MS: i64 = 3_600_000;
/// Wallets of a range that are looked for at once.
const DUE_LEN: usize = 2_000;
/// Longest wait for the first letter.
const WAIT: Duration = Duration::from_secs(1);
/// Pause before books that had no room are asked again.
const ROOM_PAUSE: Duration = Duration::from_millis(10);
/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks for wallets that are due, and settles them.
pub struct Sweeper {
    deps: Deps,
    options: Options,
    shared: Arc<Shared>,
    letterbox: Letterbox,
    right: Right,
    register: Register,
    /// A sweep was asked for.
    asked: Notify,
    /// One sweep at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Sweeper {
    pub fn new(deps: Deps, options: Options, shared: Arc<Shared>) -> Self {
        let queues = Arc::clone(&deps.queues);
        let clock = Arc::clone(&deps.clock);
        let letterbox = Letterbox::new(queues, clock, QueueName::Expiry, options.retry);
        let right = Right::new(&deps.lease);
        let turn = tokio::sync::Mutex::default();
        let register = Register::default();
        Self { deps, options, shared, letterbox, right, register, asked: Notify::new(), turn }
    }

    /// The last sweeps that were asked for or found something, newest first.
    pub fn statuses(&self) -> Vec<SweepStatus> {
        self.register.all()
    }

    /// Asks for a sweep of what is due now, or was at an earlier time. [`Sweeper::obey`] carries
    /// it out.
    pub fn begin(&self, until_ms: Option<i64>) -> Result<SweepStatus, Error> {
        let now_ms = self.deps.clock.now_ms();
        if until_ms.is_some_and(|until_ms| until_ms > now_ms) {
            let detail = "what is due later cannot be settled yet: until lies in the future";
            return Err(Error::Refused(Refusal::new(Code::TimeInFuture, detail)));
        }
        let status = self.register.ask(now_ms, hour_of(until_ms.unwrap_or(now_ms)))?;
        self.asked.notify_one();
        Ok(status)
    }

    /// Sweeps and walks until the process ends.
    pub async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.options.sweep.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.may_begin().await {
                continue;
            }
            if let Err(error) = self.walk().await {
                tracing::warn!(%error, "wallets are not moved to when they are due by now");
            }
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "wallets that are due are not settled");
            }
        }
    }

    /// Whether this process begins sweeps. Otherwise another one does, and reports what waits.
    pub async fn may_begin(&self) -> bool {
        let is_held = self.right.is_held().await;
        if !is_held {
            report_ranges(0);
        }
        is_held
    }

    /// Works on the ranges of the queue until the process ends.
    pub async fn work(self: Arc<Self>) {
        loop {
            if let Err(error) = self.step(WAIT).await {
                tracing::warn!(%error, "a range of a sweep is not settled");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Carries out the sweeps that are asked for, until the process ends.
    pub async fn obey(self: Arc<Self>) {
        loop {
            match self.obey_once().await {
                Ok(true) => {}
                Ok(false) if self.register.next_waiting().is_none() => self.asked.notified().await,
                Ok(false) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    tracing::warn!(%error, "a sweep that was asked for is tried again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Carries out the next sweep that was asked for. Answers `false` when there is none, or when
    /// it has to wait.
    pub async fn obey_once(&self) -> Result<bool, Error> {
        let Some(sweep) = self.register.next_waiting() else { return Ok(false) };
        let carried_out = self.carry_out(&sweep).await;
        if let Err(error) = &carried_out {
            self.register.change(sweep.id, |status| {
                status.state = SweepState::Waiting;
                status.error = Some(error.to_string());
            });
        }
        carried_out
    }

    /// Settles what is due now: few wallets at once, and many in ranges through the queue. While
    /// ranges of an earlier sweep wait, it leaves the rest to them.
    pub async fn sweep(&self) -> Result<SweepStatus, Error> {
        let now_ms = self.deps.clock.now_ms();
        let sweep = self.register.draft(now_ms, hour_of(now_ms));
        self.carry_out_once(&sweep).await?;
        Ok(self.register.current(sweep))
    }

    /// Carries out a sweep that begins by itself. After an error it is over: the next one begins
    /// soon, and does what is left.
    async fn carry_out_once(&self, sweep: &SweepStatus) -> Result<bool, Error> {
        let carried_out = self.carry_out(sweep).await;
        if let Err(error) = &carried_out {
            let now_ms = self.deps.clock.now_ms();
            self.register.change(sweep.id, |status| {
                status.finish(now_ms);
                status.error = Some(error.to_string());
            });
        }
        carried_out
    }

    /// Carries out a sweep. Answers `false` when it has to wait: for ranges of an earlier one, or
    /// because the clock is not trusted, so that nothing is due.
    async fn carry_out(&self, sweep: &SweepStatus) -> Result<bool, Error> {
        let turn = self.turn.lock().await;
        if !self.deps.clock.is_sound() {
            let why = "the clock is not trusted".to_owned();
            self.register.change(sweep.id, |status| status.error = Some(why));
            return Ok(false);
        }
        let depth = self.deps.control.depth(QueueName::Expiry).await?;
        let waiting = depth.waiting + depth.in_flight;
        report_ranges(waiting);
        if waiting > 0 {
            return Ok(false);
        }

        self.register.finish_ranges(self.deps.clock.now_ms());
        self.register.change(sweep.id, |status| status.state = SweepState::Running);
        for book in 0..self.deps.books.books() {
            self.sweep_book(book, sweep).await?;
        }
        drop(turn);
        self.finish(sweep.id);
        Ok(true)
    }

    /// Notes the end of a sweep, if all of its ranges are done.
    fn finish(&self, sweep: i64) {
        let now_ms = self.deps.clock.now_ms();
        self.register.change(sweep, |status| {
            if status.ranges_done >= status.ranges {
                status.finish(now_ms);
            }
        });
    }

    /// Settles what is due in a book, or cuts it into ranges.
    async fn sweep_book(&self, book: u16, sweep: &SweepStatus) -> Result<(), Error> {
        let len_max = self.options.sweep.range.max(1);
        let mut after: Option<DueWallet> = None;
        loop {
            let due = self.due(book, sweep.until_hour, after.clone(), len_max).await?;
            let Some(last) = due.last().cloned() else { return Ok(()) };
            self.register.note(sweep);
            if after.is_none() && due.len() < len_max {
                let wallets = due.into_iter().map(|due| due.wallet).collect();
                return self.settle(sweep.id, wallets, None).await;
            }

            let range = SweepRange {
                sweep: sweep.id,
                book,
                until_hour: sweep.until_hour,
                after: after.as_ref().map(Bound::from),
                through: Bound::from(&last),
            };
            let letters = vec![range.letter()];
            self.deps.queues.send(QueueName::Expiry, letters, Duration::ZERO).await?;
            self.register.change(sweep.id, |status| status.ranges += 1);
            after = Some(last);
        }
    }

    /// Works on one range of the queue. Answers whether there was one.
    pub async fn step(&self, wait: Duration) -> Result<bool, Error> {
        let Some(received) = self.letterbox.receive(1, wait).await?.pop() else {
            return Ok(false);
        };
        let outcome = self.work_on(&received).await?;
        self.letterbox.settle(vec![(received, outcome)]).await?;
        Ok(true)
    }

    async fn work_on(&self, received: &ReceivedLetter) -> Result<Outcome, Error> {
        let range: SweepRange = match serde_json::from_str(&received.letter.body) {
            Ok(range) => range,
            Err(error) => {
                return Ok(Outcome::Dead { reason: MALFORMED, why: error.to_string() });
            }
        };
        let through = DueWallet::from(&range.through);
        let mut hidden_at = Instant::now();
        let look = |after| self.due(range.book, range.until_hour, after, DUE_LEN);
        let mut due = look(range.after.as_ref().map(DueWallet::from)).await?;
        loop {
            let own: Vec<DueWallet> = due.into_iter().take_while(|due| *due <= through).collect();
            let Some(last) = own.last().cloned() else { break };
            let wallets = own.into_iter().map(|due| due.wallet).collect();
            let receipt = Some((&received.receipt, &mut hidden_at));
            let settled = self.settle(range.sweep, wallets, receipt);
            (due, ()) = tokio::try_join!(look(Some(last)), settled)?;
        }

        self.register.change(range.sweep, |status| status.ranges_done += 1);
        // While ranges are still cut, what is done may catch up with them; the cut notes the end.
        if self.turn.try_lock().is_ok() {
            self.finish(range.sweep);
        }
        Ok(Outcome::Done)
    }

    async fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        let books = Arc::clone(&self.deps.books);
        blocking(move || books.due(book, until_hour, after.as_ref(), len_max)).await
    }

    /// Settles wallets at the pace of the sweep, while the books have room and their letter stays
    /// hidden. The teller has the next ones before it is done with the last.
    async fn settle(
        &self,
        sweep: i64,
        wallets: Vec<WalletId>,
        mut letter: Option<(&Receipt, &mut Instant)>,
    ) -> Result<(), Error> {
        let mut under_way = None;
        for wallets in wallets.chunks(SETTLE_MAX) {
            while !self.deps.books.has_room() {
                tokio::time::sleep(ROOM_PAUSE).await;
            }
            let began = Instant::now();
            let next = (wallets.len(), self.shared.settle(wallets.to_vec())?);
            if let Some((len, last)) = under_way.replace(next) {
                self.note_settled(sweep, len, last.await?);
            }

            if let Some((receipt, hidden_at)) = &mut letter
                && hidden_at.elapsed() * 2 > self.options.retry.visibility
            {
                self.letterbox.prolong(receipt).await?;
                **hidden_at = Instant::now();
            }
            let per_s = self.options.sweep.per_s;
            if per_s > 0 {
                let pace = Duration::from_secs_f64(wallets.len() as f64 / f64::from(per_s));
                tokio::time::sleep_until(began + pace).await;
            }
        }
        if let Some((len, last)) = under_way {
            self.note_settled(sweep, len, last.await?);
        }
        Ok(())
    }

    fn note_settled(&self, sweep: i64, wallets: usize, entries: usize) {
        self.register.change(sweep, |status| {
            status.wallets += wallets as u64;
            status.entries += entries as u64;
        });
        metrics::counter!("raingauge_points_sweep_wallets_total").increment(wallets as u64);
    }
}

fn report_ranges(waiting: u64) {
    metrics::gauge!("raingauge_points_sweep_ranges").set(waiting as f64);
}

/// The hour of the due index that a time lies in.
fn hour_of(at_ms: i64) -> u32 {
    u32::try_from(at_ms.div_euclid(HOUR_MS)).unwrap_or_default()
}
