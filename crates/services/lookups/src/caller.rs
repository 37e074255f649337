//! One lookup of a service or a database: its places, its rate and its breaker.

use crate::engines::{Engines, Failure};
use crate::places::{Places, Speed};
use metrics::counter;
use parking_lot::Mutex;
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::documents::Lookup;
use raingauge_campaigns::schedule::{Concurrency, Pace};
use raingauge_policy::breaker::{self, Breaker, Pass};
use raingauge_policy::rate::{Bucket, Rate, Wait};
use raingauge_ports::campaigns::LookupError;
use raingauge_ports::clock::Clock;
use serde_json::Value as Json;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait for the rate. A call that would wait longer fails, and its evaluation is put off.
const RATE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Largest burst, which keeps sums of times within 64 bits.
const BURST_MAX: u32 = 1_000_000;

/// The answer to a call, or why there is none.
pub type Outcome = Result<Json, LookupError>;

pub struct Caller {
    name: String,
    /// No other caller of this process has it, so that answers of an earlier version of the lookup
    /// are not those of this one.
    pub number: u64,
    pub lookup: Lookup,
    zone: Zone,
    places: Places,
    /// When times began to count.
    began: Instant,
    pacing: Mutex<Pacing>,
    breaker: Mutex<Breaker>,
}

struct Pacing {
    bucket: Bucket,
    rate: Option<Rate>,
}

impl Caller {
    pub fn new(name: &str, number: u64, lookup: Lookup) -> Self {
        let sleep_ms = i64::try_from(lookup.breaker.sleep_ms).unwrap_or(i64::MAX).max(1);
        let failed_percent = lookup.breaker.failed_percent;
        let Concurrency { min, max } = lookup.concurrency;
        let options = breaker::Options { failed_percent, sleep_ms, ..breaker::Options::default() };
        Self {
            name: name.to_owned(),
            number,
            // A zone that this release does not know has the hours of UTC.
            zone: Zone::of_name(&lookup.zone).unwrap_or_else(Zone::utc),
            places: Places::new(name, min..=max),
            began: Instant::now(),
            pacing: Mutex::new(Pacing { bucket: Bucket::FULL, rate: None }),
            breaker: Mutex::new(Breaker::new(options)),
            lookup,
        }
    }

    pub fn ttl(&self) -> Duration {
        Duration::from_secs(u64::from(self.lookup.ttl_s))
    }

    /// Asks for a key, when there is a place and the rate allows it.
    pub async fn call(&self, key: &str, engines: &Engines, clock: &dyn Clock) -> Outcome {
        let failed = |why: String| Err(LookupError::Failed(why));
        let Ok(mut place) = self.places.acquire().await else {
            return failed("raingauge is stopping".to_owned());
        };
        if !self.wait_for_rate(clock).await {
            self.note_refused("rate");
            return failed("its rate is used up".to_owned());
        }
        let pass = match self.breaker.lock().admit(self.elapsed_ms()) {
            Ok(pass) => pass,
            Err(wait_ms) => {
                self.note_refused("breaker");
                return failed(format!("it failed too often, and is left alone for {wait_ms} ms"));
            }
        };

        let began_ns = self.elapsed_ns();
        place.begin(began_ns);
        let answer = engines.ask(&self.lookup, key).await;

        let now_ns = self.elapsed_ns();
        place.end(now_ns, self.speed(now_ns - began_ns, &answer));
        self.note(pass, answer.as_ref().err());
        answer.map_err(|failure| LookupError::Failed(failure.why))
    }

    /// Notes that a call failed without a request, and why.
    pub fn note_refused(&self, reason: &'static str) {
        counter!(
            "raingauge_campaign_lookup_refused_total",
            "lookup" => self.name.clone(), "reason" => reason
        )
        .increment(1);
    }

    /// An answer that takes half of the timeout or longer is no reason to ask for more at a time:
    /// answers would come late before there is another sign of it.
    fn speed(&self, took_ns: i64, answer: &Result<Json, Failure>) -> Speed {
        let took = Duration::from_nanos(took_ns.unsigned_abs());
        match answer {
            Ok(_) if took < Duration::from_millis(self.lookup.timeout_ms) / 2 => Speed::Fast,
            Err(failure) if failure.is_outage => Speed::TooMuch,
            Ok(_) | Err(_) => Speed::Slow,
        }
    }

    fn note(&self, pass: Pass, failure: Option<&Failure>) {
        let is_outage = failure.is_some_and(|failure| failure.is_outage);
        let mut breaker = self.breaker.lock();
        breaker.record(self.elapsed_ms(), pass, u64::from(!is_outage), u64::from(is_outage));
    }

    /// Takes a token, or answers `false` if there is none for too long.
    async fn wait_for_rate(&self, clock: &dyn Clock) -> bool {
        let deadline = Instant::now() + RATE_WAIT_MAX;
        while let Err(Wait(wait_ns)) = self.take(clock.now_ms()) {
            let ready = Instant::now() + Duration::from_nanos(wait_ns.unsigned_abs());
            if ready > deadline {
                return false;
            }
            tokio::time::sleep_until(ready).await;
        }
        true
    }

    fn take(&self, now_ms: i64) -> Result<(), Wait> {
        let Some(schedule) = &self.lookup.rate else { return Ok(()) };
        let Pace { per_second, burst } = *schedule.at(now_ms, &self.zone);
        let rate = Rate::per_second(per_second.max(1), burst.clamp(1, BURST_MAX));

        let now_ns = self.elapsed_ns();
        let Pacing { bucket, rate: before } = &mut *self.pacing.lock();
        if let Some(before) = before.filter(|before| *before != rate) {
            bucket.change(before, rate, now_ns);
        }
        *before = Some(rate);
        bucket.take(rate, now_ns, 1)
    }

    fn elapsed_ns(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}
