//! Writes down what is due: points that mature or expire, holds that time out, tiers that end.
//!
//! ```text
//!   due index ──few──▶ teller: settle           many──▶ queue `expiry` ──range by range──▶ teller
//! ```
//!
//! Nothing depends on when this happens: each command and each read settles the wallet that it is
//! about. A range that is worked on twice, or half, finds the rest in the due index.

use crate::deps::{Deps, Options};
use crate::error::Error;
use crate::letterbox::{Letterbox, MALFORMED, Outcome};
use crate::letters::{Bound, SweepRange};
use crate::limits::SWEEPS_KEPT_MAX;
use crate::right::Right;
use crate::shared::Shared;
use crate::tail::blocking;
use crate::teller::SETTLE_MAX;
use parking_lot::Mutex;
use raingauge_points::WalletId;
use raingauge_ports::points::{DueWallet, QueueName, Receipt, ReceivedLetter};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const HOUR_MS: i64 = 3_600_000;
/// Longest wait for the first letter.
const WAIT: Duration = Duration::from_secs(1);
/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// What a sweep has done so far, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepStatus {
    /// When it began, in milliseconds since 1970, which is also its name.
    pub id: i64,
    /// Wallets that were due at or before this hour, in hours since 1970.
    pub until_hour: u32,
    /// Ranges that were put into the queue, ...
    pub ranges: usize,
    /// ... and those that this process has finished.
    pub ranges_done: usize,
    /// Wallets that this process has settled, and the entries that took.
    pub wallets: u64,
    pub entries: u64,
    pub finished_ms: Option<i64>,
}

/// Looks for wallets that are due, and settles them.
pub struct Sweeper {
    deps: Deps,
    options: Options,
    shared: Arc<Shared>,
    letterbox: Letterbox,
    right: Right,
    statuses: Mutex<VecDeque<SweepStatus>>,
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
        Self { deps, options, shared, letterbox, right, statuses: Mutex::default(), turn }
    }

    /// The last sweeps that found something, newest first.
    pub fn statuses(&self) -> Vec<SweepStatus> {
        self.statuses.lock().iter().rev().cloned().collect()
    }

    /// Sweeps until the process ends.
    pub async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.options.sweep.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.right.is_held().await {
                continue;
            }
            if let Err(error) = self.sweep(None).await {
                tracing::warn!(%error, "wallets that are due are not settled");
            }
        }
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

    /// Settles what is due until a time, at most now: few wallets at once, and many in ranges
    /// through the queue. While ranges of an earlier sweep wait, it leaves the rest to them. While
    /// the clock is not trusted, nothing is due.
    pub async fn sweep(&self, until_ms: Option<i64>) -> Result<SweepStatus, Error> {
        let _turn = self.turn.lock().await;
        let now_ms = self.deps.clock.now_ms();
        let until_ms = until_ms.map_or(now_ms, |until_ms| until_ms.min(now_ms));
        let until_hour = u32::try_from(until_ms.div_euclid(HOUR_MS)).unwrap_or_default();
        let mut status = SweepStatus {
            id: now_ms,
            until_hour,
            ranges: 0,
            ranges_done: 0,
            wallets: 0,
            entries: 0,
            finished_ms: None,
        };

        if !self.deps.clock.is_sound() {
            return Ok(status);
        }
        let depth = self.deps.control.depth(QueueName::Expiry).await?;
        let waiting = depth.waiting + depth.in_flight;
        metrics::gauge!("raingauge_points_sweep_ranges").set(waiting as f64);
        if waiting > 0 {
            let found = self.statuses.lock().back().cloned();
            return Ok(found.unwrap_or(status));
        }

        for book in 0..self.deps.books.books() {
            self.sweep_book(book, &mut status).await?;
        }
        if status.ranges == 0 {
            status.finished_ms = Some(self.deps.clock.now_ms());
        }
        if status.ranges > 0 || status.wallets > 0 {
            self.remember(status.clone());
        }
        Ok(status)
    }

    fn remember(&self, status: SweepStatus) {
        let mut statuses = self.statuses.lock();
        statuses.push_back(status);
        if statuses.len() > SWEEPS_KEPT_MAX {
            statuses.pop_front();
        }
    }

    async fn sweep_book(&self, book: u16, status: &mut SweepStatus) -> Result<(), Error> {
        let len_max = self.options.sweep.range.max(1);
        let mut after: Option<DueWallet> = None;
        loop {
            let due = self.due(book, status.until_hour, after.clone(), len_max).await?;
            let Some(last) = due.last().cloned() else { return Ok(()) };
            if after.is_none() && due.len() < len_max {
                let wallets = due.into_iter().map(|due| due.wallet).collect();
                let (wallets, entries) = self.settle(wallets, None).await?;
                status.wallets += wallets;
                status.entries += entries;
                return Ok(());
            }

            let range = SweepRange {
                sweep: status.id,
                book,
                until_hour: status.until_hour,
                after: after.as_ref().map(Bound::from),
                through: Bound::from(&last),
            };
            let letters = vec![range.letter()];
            self.deps.queues.send(QueueName::Expiry, letters, Duration::ZERO).await?;
            status.ranges += 1;
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
        let mut after = range.after.as_ref().map(DueWallet::from);
        let mut hidden_at = Instant::now();
        loop {
            let due = self.due(range.book, range.until_hour, after.clone(), SETTLE_MAX).await?;
            let own: Vec<DueWallet> = due.into_iter().take_while(|due| *due <= through).collect();
            let Some(last) = own.last().cloned() else { break };
            let wallets = own.into_iter().map(|due| due.wallet).collect();
            let receipt = Some((&received.receipt, &mut hidden_at));
            let (wallets, entries) = self.settle(wallets, receipt).await?;
            self.progress(range.sweep, |status| {
                status.wallets += wallets;
                status.entries += entries;
            });
            after = Some(last);
        }

        let now_ms = self.deps.clock.now_ms();
        self.progress(range.sweep, |status| {
            status.ranges_done += 1;
            if status.ranges_done >= status.ranges {
                status.finished_ms.get_or_insert(now_ms);
            }
        });
        Ok(Outcome::Done)
    }

    fn progress(&self, sweep: i64, change: impl FnOnce(&mut SweepStatus)) {
        let mut statuses = self.statuses.lock();
        if let Some(status) = statuses.iter_mut().find(|status| status.id == sweep) {
            change(status);
        }
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

    /// Settles wallets at the pace of the sweep, while their letter stays hidden. Returns how
    /// many wallets and entries that were.
    async fn settle(
        &self,
        wallets: Vec<WalletId>,
        mut letter: Option<(&Receipt, &mut Instant)>,
    ) -> Result<(u64, u64), Error> {
        let mut entries = 0;
        for wallets in wallets.chunks(SETTLE_MAX) {
            let began = Instant::now();
            entries += self.shared.settle(wallets.to_vec()).await? as u64;
            metrics::counter!("raingauge_points_sweep_wallets_total")
                .increment(wallets.len() as u64);

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
        Ok((wallets.len() as u64, entries))
    }
}
