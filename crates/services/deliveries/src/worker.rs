//! The deliveries of one destination over HTTP.

use crate::attempt::{self, Report};
use crate::destination::Destination;
use crate::pacing::{Moment, Obstacle, Pacing, Permit};
use crate::secrets::Secrets;
use crate::shared::{GoneDestination, Shared};
use crate::status::{Failure, Place};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use raingauge_campaigns::retry::Verdict;
use raingauge_campaigns::sign::Secret;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{ActionId, Delivery, Error, Settlement};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Shortest and longest pause before the outbox is asked again, after it had too little.
const POLL_MIN: Duration = Duration::from_millis(10);
const POLL_MAX: Duration = Duration::from_millis(100);
/// Pause after an error of the outbox.
const PAUSE: Duration = Duration::from_secs(1);
/// Most deliveries that are taken ahead of being sent. Those can be neither cancelled nor redriven.
const AHEAD_MAX: usize = 512;

pub struct Worker {
    shared: Arc<Shared>,
    place: Arc<Place>,
    documents: watch::Receiver<Arc<Destination>>,
    destination: Arc<Destination>,
    pacing: Pacing,
    secrets: Secrets,
    /// Deliveries that were taken, in their order.
    queue: VecDeque<Delivery>,
    /// More of them, on their way from the ledger.
    taking: Option<Taking>,
    sending: FuturesUnordered<BoxFuture<'static, Attempt>>,
    /// Before these times, there is no point in asking the outbox or the breaker.
    next_poll: Instant,
    poll_pause: Duration,
    rest_until: Instant,
    /// Since when the rate is all that deliveries wait for.
    limited_since: Option<Instant>,
    limited: Duration,
    began: Instant,
}

/// Deliveries that were asked for, and those that came; fewer than asked for are all that are due.
type Taking = BoxFuture<'static, (usize, Result<Vec<Delivery>, Error>)>;

/// An attempt that has ended.
struct Attempt {
    action: ActionId,
    permit: Permit,
    report: Report,
    settlement: Settlement,
}

impl Worker {
    pub fn new(
        shared: Arc<Shared>,
        place: Arc<Place>,
        mut documents: watch::Receiver<Arc<Destination>>,
    ) -> Self {
        let destination = documents.borrow_and_update().clone();
        let began = Instant::now();
        let now = Moment { wall_ms: shared.clock.now_ms(), elapsed_ns: 0 };
        Self {
            pacing: Pacing::new(Arc::clone(&destination), now),
            secrets: Secrets::of(destination.secret.clone()),
            queue: VecDeque::new(),
            taking: None,
            sending: FuturesUnordered::new(),
            next_poll: began,
            poll_pause: POLL_MIN,
            rest_until: began,
            limited_since: None,
            limited: Duration::ZERO,
            began,
            shared,
            place,
            documents,
            destination,
        }
    }

    /// Sends until it is stopped or the destination is removed, and then waits for the requests
    /// that are under way.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            self.take();
            let pause = self.send();
            self.show();

            tokio::select! {
                (asked, found) = ended(&mut self.taking) => self.took(asked, found),
                Some(attempt) = self.sending.next() => self.finish(attempt),
                () = tokio::time::sleep(pause) => {}
                changed = stop.changed() => if changed.is_err() { break },
                changed = self.documents.changed() => match changed {
                    Ok(()) => self.follow(),
                    Err(_) => break,
                },
            }
        }

        if let Some(taking) = self.taking.take() {
            let (asked, found) = taking.await;
            self.took(asked, found);
        }
        self.give_back();
        while let Some(attempt) = self.sending.next().await {
            self.finish(attempt);
        }
        self.show();
    }

    fn now(&self) -> Moment {
        let elapsed_ns = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        Moment { wall_ms: self.shared.clock.now_ms(), elapsed_ns }
    }

    /// Begins to take deliveries that are due, if there are too few to go on with.
    fn take(&mut self) {
        let room = self.room();
        let is_early = Instant::now() < self.next_poll;
        if self.taking.is_some() || room == 0 || is_early || self.secrets().is_none() {
            return;
        }

        let shared = Arc::clone(&self.shared);
        let name = self.destination.name.clone();
        self.taking = Some(Box::pin(async move {
            (room, shared.outbox.take(&name, shared.clock.now_ms(), room).await)
        }));
    }

    fn took(&mut self, asked: usize, found: Result<Vec<Delivery>, Error>) {
        self.taking = None;
        let now = Instant::now();
        match found {
            Ok(found) => {
                self.poll_pause = match found.len() {
                    0 => (self.poll_pause * 2).min(POLL_MAX),
                    _ => POLL_MIN,
                };
                // A full answer may leave others behind.
                self.next_poll = if found.len() < asked { now + self.poll_pause } else { now };
                self.queue.extend(found);
            }
            Err(error) => {
                let name = &self.destination.name;
                tracing::error!(destination = name, %error, "due deliveries cannot be read");
                self.next_poll = now + PAUSE;
            }
        }
    }

    /// How many deliveries to take: enough for the requests at a time and for a quarter of a second
    /// at the rate, and a single one for a destination that failed.
    fn room(&self) -> usize {
        let is_resting = Instant::now() < self.rest_until;
        if is_resting || !self.place.is_enabled() || self.shared.results.is_full() {
            return 0;
        }
        let quarter = self.pacing.per_second().map_or(usize::MAX, |number| number as usize / 4);
        let ahead = (2 * usize::from(self.pacing.limit())).min(quarter).clamp(1, AHEAD_MAX);
        let wanted = if self.pacing.is_healthy() { ahead } else { 1 };

        if self.queue.len() * 2 > wanted { 0 } else { wanted - self.queue.len() }
    }

    /// Sends what may be sent now. Returns how long to wait if nothing happens before.
    fn send(&mut self) -> Duration {
        self.note_limited();
        while let Some(delivery) = self.queue.front() {
            if self.shared.withhold(&self.destination.name, delivery) {
                self.queue.pop_front();
                continue;
            }

            let Some(secrets) = self.secrets() else {
                self.give_back();
                return POLL_MAX;
            };

            match self.pacing.admit(self.now(), self.sending.len()) {
                Ok(permit) => {
                    let delivery = self.queue.pop_front().expect("the one that was examined");
                    self.start(delivery, permit, secrets);
                }
                Err(Obstacle::Concurrency) => return POLL_MAX,
                Err(Obstacle::Rate(wait_ns)) => {
                    self.limited_since = Some(Instant::now());
                    return nanoseconds(wait_ns).min(POLL_MAX);
                }
                Err(Obstacle::Rest(rest_ns)) => {
                    self.rest_until = Instant::now() + nanoseconds(rest_ns);
                    self.give_back();
                    return nanoseconds(rest_ns).min(POLL_MAX);
                }
            }
        }

        if self.room() == 0 || self.taking.is_some() {
            return POLL_MAX;
        }
        self.next_poll.saturating_duration_since(Instant::now()).min(POLL_MAX)
    }

    /// The secrets, unless there are none or the destination is disabled.
    fn secrets(&mut self) -> Option<Arc<[Secret]>> {
        if !self.place.is_enabled() {
            return None;
        }
        let secrets = self.secrets.current();
        let obstacle = secrets.as_ref().err().map(|error| {
            format!("nothing is sent to the destination {}: {error}", self.destination.name)
        });
        if obstacle.is_some() {
            self.rest_until = Instant::now() + PAUSE;
        }

        self.place.show(|activity| {
            if let Some(new) = &obstacle
                && activity.obstacle != obstacle
            {
                tracing::error!(destination = self.destination.name, "{new}");
            }
            activity.obstacle = obstacle;
        });
        secrets.ok()
    }

    fn start(&mut self, delivery: Delivery, permit: Permit, secrets: Arc<[Secret]>) {
        let shared = Arc::clone(&self.shared);
        let destination = Arc::clone(&self.destination);
        self.sending.push(Box::pin(async move {
            let Delivery { action, body, .. } = delivery;
            let id = action.to_string();
            let now_s = shared.clock.now_s();
            let request = attempt::request(&destination, &secrets, id.clone(), body, now_s);

            let began = Instant::now();
            let result = shared.sender.send(&request).await;
            metrics::histogram!(
                "raingauge_campaign_delivery_seconds", "destination" => destination.name.clone()
            )
            .record(began.elapsed().as_secs_f64());

            let clock = &*shared.clock;
            let report = Report::of(&result, clock);
            let tries = match report.verdict {
                Verdict::Delivered | Verdict::Refused => 1,
                _ => shared.tries(action).await + 1,
            };
            let settlement = report.settlement(&id, tries, clock);

            Attempt { action, permit, report, settlement }
        }));
    }

    fn finish(&mut self, attempt: Attempt) {
        let Attempt { action, permit, report, settlement } = attempt;
        self.pacing.note(self.now(), permit, report.signal, self.sending.len());
        // The breaker may let the next one pass.
        self.rest_until = self.began;

        let name = &self.destination.name;
        if report.verdict == Verdict::Gone {
            let why = "it answered 410 Gone".to_owned();
            tracing::error!(destination = name, "{why}, and is sent nothing until it is enabled");
            self.place.disable(why.clone());
            let version = self.destination.version;
            self.shared.note_gone(GoneDestination { name: name.clone(), version, why });
        }

        if report.verdict != Verdict::Delivered {
            let failure = Failure { at_ms: self.shared.clock.now_ms(), note: report.note.clone() };
            self.place.show(|activity| activity.last_failure = Some(failure));
        }

        self.shared.settle(name, action, settlement, &report.note);
    }

    /// Follows another version of the document.
    fn follow(&mut self) {
        self.destination = self.documents.borrow_and_update().clone();
        let now = self.now();
        self.pacing.follow(Arc::clone(&self.destination), now);
        self.secrets.follow(&self.destination.secret);
        self.rest_until = self.began;
    }

    fn give_back(&mut self) {
        self.shared.give_back(&self.destination.name, self.queue.drain(..));
    }

    /// Counts the time in which the rate was all that deliveries waited for.
    fn note_limited(&mut self) {
        let Some(since) = self.limited_since.take() else { return };
        self.limited += since.elapsed();
        let seconds = self.limited.as_secs();

        if seconds > 0 {
            self.limited -= Duration::from_secs(seconds);
            metrics::counter!(
                "raingauge_campaign_rate_limited_seconds_total",
                "destination" => self.destination.name.clone()
            )
            .increment(seconds);
        }
    }

    fn show(&self) {
        self.place.show(|activity| {
            activity.version = self.destination.version;
            activity.per_second = self.pacing.per_second();
            activity.scheduled_per_second = self.pacing.scheduled_per_second();
            activity.breaker = self.pacing.breaker();
            activity.concurrency = self.pacing.limit();
            activity.in_flight = self.sending.len();
        });
    }
}

/// Waits for what is being taken; for ever, if that is nothing.
async fn ended(taking: &mut Option<Taking>) -> (usize, Result<Vec<Delivery>, Error>) {
    match taking {
        Some(taking) => taking.await,
        None => std::future::pending().await,
    }
}

fn nanoseconds(wait_ns: i64) -> Duration {
    Duration::from_nanos(wait_ns.unsigned_abs())
}
