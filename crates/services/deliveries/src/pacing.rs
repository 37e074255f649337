//! When the next request to a destination may be sent.
//!
//! ```text
//!   requests under way < limit? ──▶ rested? ──▶ a token? ──▶ breaker ──▶ send
//! ```
//!
//! The rate follows the schedule of the destination. A destination that has too much to do halves
//! it, and it doubles again, step by step, while there are no complaints. The number of requests at
//! a time grows by one with each response that comes in time, and is halved with the rate, and when
//! a response does not come.

use crate::destination::{self, Destination};
use raingauge_campaigns::schedule::{Concurrency, Pace};
use raingauge_policy::breaker::{self, Breaker, Pass};
use raingauge_policy::concurrency::Limit;
use raingauge_policy::rate::{Bucket, Rate, Wait as Missing};
use std::sync::Arc;

const MS_NS: i64 = 1_000_000;
/// Time without complaints after which a halved rate doubles.
const EASE_NS: i64 = 10_000 * MS_NS;
/// Longest time that a destination is left alone because it asked for it. What it asked for one
/// delivery is kept for that one.
const REST_MAX_NS: i64 = 60_000 * MS_NS;
/// A rate is halved this often at most.
const HALVINGS_MAX: u32 = 16;
/// Largest burst, which keeps sums of times within 64 bits.
const BURST_MAX: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970, which the schedule goes by.
    pub wall_ms: i64,
    /// Nanoseconds of the machine since some moment. They never go back.
    pub elapsed_ns: i64,
}

/// Why no request may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Enough requests are under way.
    Concurrency,
    /// The rate is used up for these nanoseconds.
    Rate(i64),
    /// The destination is left alone for these nanoseconds: it fails, or asked for it.
    Rest(i64),
}

/// A request that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    pass: Pass,
    at_ns: i64,
}

/// What a response, or its absence, says about the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Fine,
    Failed,
    /// There was no response in time.
    Late,
    /// It has too much to do, and may have asked for a pause of these milliseconds.
    TooMuch {
        is_failure: bool,
        asked_ms: Option<i64>,
    },
}

pub struct Pacing {
    destination: Arc<Destination>,
    /// The pace of the schedule, and the second for which it was looked up.
    pace: Pace,
    pace_s: i64,
    rate: Rate,
    bucket: Bucket,
    halvings: u32,
    halved_ns: i64,
    eased_ns: i64,
    rest_until_ns: i64,
    breaker: Breaker,
    limit: Limit,
}

impl Pacing {
    /// Begins with a full bucket, and few requests at a time.
    pub fn new(destination: Arc<Destination>, now: Moment) -> Self {
        let pace = *destination.rate.at(now.wall_ms, &destination.zone);
        let Concurrency { min, max } = destination.concurrency;
        Self {
            pace,
            pace_s: now.wall_ms.div_euclid(1_000),
            rate: rate(pace, 0),
            bucket: Bucket::FULL,
            halvings: 0,
            halved_ns: i64::MIN,
            eased_ns: i64::MIN,
            rest_until_ns: i64::MIN,
            breaker: Breaker::new(destination.breaker),
            limit: Limit::new(min..=max),
            destination,
        }
    }

    /// Follows another version of the destination. Its address may be another one, so that failures
    /// are forgotten; the tokens that are there stay.
    pub fn follow(&mut self, destination: Arc<Destination>, now: Moment) {
        let Concurrency { min, max } = destination.concurrency;
        self.breaker = Breaker::new(destination.breaker);
        self.rest_until_ns = i64::MIN;
        self.limit.bound(min..=max);
        self.pace = *destination.rate.at(now.wall_ms, &destination.zone);
        self.destination = destination;
        self.change_rate(now);
    }

    /// Lets a request pass, or says what it has to wait for.
    pub fn admit(&mut self, now: Moment, in_flight: usize) -> Result<Permit, Obstacle> {
        self.refresh(now);
        if in_flight >= usize::from(self.limit()) {
            return Err(Obstacle::Concurrency);
        }
        if let Some(rest_ns) = self.asked_rest_ns(now) {
            return Err(Obstacle::Rest(rest_ns));
        }
        let there = self.bucket.check(self.rate, now.elapsed_ns, 1);
        there.map_err(|Missing(wait_ns)| Obstacle::Rate(wait_ns))?;

        let pass = self.breaker.admit(now.elapsed_ns / MS_NS);
        let pass = pass.map_err(|wait_ms| Obstacle::Rest(wait_ms * MS_NS))?;

        self.bucket.charge(self.rate, now.elapsed_ns, 1);
        Ok(Permit { pass, at_ns: now.elapsed_ns })
    }

    /// Notes the end of a request, with those that are still under way.
    pub fn note(&mut self, now: Moment, permit: Permit, signal: Signal, in_flight: usize) {
        let is_failure = match signal {
            Signal::Fine => false,
            Signal::Failed | Signal::Late => true,
            Signal::TooMuch { is_failure, .. } => is_failure,
        };
        let now_ms = now.elapsed_ns / MS_NS;
        self.breaker.record(now_ms, permit.pass, u64::from(!is_failure), u64::from(is_failure));

        match signal {
            Signal::Fine => self.limit.raise(in_flight),
            Signal::Failed => {}
            Signal::Late => self.limit.lower(permit.at_ns, now.elapsed_ns),
            Signal::TooMuch { asked_ms, .. } => {
                self.limit.lower(permit.at_ns, now.elapsed_ns);
                // Requests that set out before a change say nothing about what came of it.
                if permit.at_ns >= self.halved_ns {
                    self.halvings = (self.halvings + 1).min(HALVINGS_MAX);
                    self.halved_ns = now.elapsed_ns;
                    self.change_rate(now);
                }

                let asked_ns = asked_ms.unwrap_or_default().saturating_mul(MS_NS);
                let until_ns = now.elapsed_ns + asked_ns.clamp(0, REST_MAX_NS);
                self.rest_until_ns = self.rest_until_ns.max(until_ns);
            }
        }
    }

    /// How long the destination is left alone because it asked for it.
    pub fn asked_rest_ns(&self, now: Moment) -> Option<i64> {
        let rest_ns = self.rest_until_ns.saturating_sub(now.elapsed_ns);
        (rest_ns > 0).then_some(rest_ns)
    }

    /// Requests per second, as they are sent now; `None` if they are not bounded.
    pub fn per_second(&self) -> Option<u32> {
        self.scheduled_per_second().map(|number| halved(number, self.halvings))
    }

    /// Requests per second, as the schedule says.
    pub fn scheduled_per_second(&self) -> Option<u32> {
        destination::bound(self.pace)
    }

    /// Requests at a time.
    pub fn limit(&self) -> u16 {
        self.limit.number()
    }

    pub fn breaker(&self) -> breaker::State {
        self.breaker.state()
    }

    /// Whether the last requests did not fail.
    pub fn is_healthy(&self) -> bool {
        self.breaker.state() == breaker::State::Closed
    }

    /// Follows the schedule, and eases a halved rate.
    fn refresh(&mut self, now: Moment) {
        let now_s = now.wall_ms.div_euclid(1_000);
        if now_s != self.pace_s {
            self.pace = *self.destination.rate.at(now.wall_ms, &self.destination.zone);
            self.pace_s = now_s;
        }

        let changed_ns = self.halved_ns.max(self.eased_ns);
        if self.halvings > 0 && now.elapsed_ns.saturating_sub(changed_ns) >= EASE_NS {
            self.halvings -= 1;
            self.eased_ns = now.elapsed_ns;
        }
        self.change_rate(now);
    }

    fn change_rate(&mut self, now: Moment) {
        let rate = rate(self.pace, self.halvings);
        if rate != self.rate {
            self.bucket.change(self.rate, rate, now.elapsed_ns);
            self.rate = rate;
        }
    }
}

fn halved(number: u32, halvings: u32) -> u32 {
    (number >> halvings).max(1)
}

fn rate(pace: Pace, halvings: u32) -> Rate {
    let burst = halved(pace.burst, halvings).min(BURST_MAX);
    Rate::per_second(halved(pace.per_second, halvings), burst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::tests::destination;
    use serde_json::json;

    /// 2026-11-23T06:59:59Z, a Monday.
    const NOW_MS: i64 = 1_795_417_199_000;

    fn at(ms: i64) -> Moment {
        Moment { wall_ms: NOW_MS + ms, elapsed_ns: ms * MS_NS }
    }

    fn pacing(rate: serde_json::Value) -> Pacing {
        let rate = serde_json::from_value(rate).expect("a schedule");
        Pacing::new(Arc::new(Destination { rate, ..destination("d") }), at(0))
    }

    fn fast() -> Pacing {
        pacing(json!([{"perSecond": 1_000, "burst": 1_000}]))
    }

    /// Requests that pass in a time when each ends at once.
    fn passed(pacing: &mut Pacing, from_ms: i64, to_ms: i64) -> usize {
        let mut passed = 0;
        for ms in from_ms..to_ms {
            while let Ok(permit) = pacing.admit(at(ms), 0) {
                pacing.note(at(ms), permit, Signal::Fine, 0);
                passed += 1;
            }
        }
        passed
    }

    #[test]
    fn at_seven_the_rate_falls_without_a_burst() {
        let mut pacing = pacing(json!([
            {"perSecond": 500, "burst": 500},
            {"from": "07:00", "to": "10:00", "perSecond": 50, "burst": 10},
        ]));
        assert_eq!(pacing.per_second(), Some(500));
        assert_eq!(passed(&mut pacing, 0, 1_000), 999, "the burst, then 500 a second");
        let slow = passed(&mut pacing, 1_000, 2_000);
        assert!((49..=51).contains(&slow), "{slow}");
        assert_eq!(pacing.per_second(), Some(50));

        // A bucket that was full holds 10 at 07:00, and not 500.
        let mut rested = super::tests::pacing(json!([
            {"perSecond": 500, "burst": 500},
            {"from": "07:00", "to": "10:00", "perSecond": 50, "burst": 10},
        ]));
        assert_eq!(passed(&mut rested, 1_000, 2_000), 59);
    }

    #[test]
    fn a_destination_that_has_too_much_gets_less() {
        let mut pacing = fast();
        let too_much = Signal::TooMuch { is_failure: false, asked_ms: None };
        let permits = [0, 1].map(|_| pacing.admit(at(0), 0).expect("a permit"));
        for permit in permits {
            pacing.note(at(5), permit, too_much, 0);
        }
        assert_eq!(pacing.per_second(), Some(500), "both set out before it was halved");
        let permit = pacing.admit(at(10), 0).expect("a permit");
        pacing.note(at(20), permit, too_much, 0);
        assert_eq!((pacing.per_second(), pacing.scheduled_per_second()), (Some(250), Some(1_000)));

        let in_second = |pacing: &mut Pacing, second: i64| {
            passed(pacing, second * 1_000, second * 1_000 + 1_000)
        };
        in_second(&mut pacing, 1);
        assert_eq!(in_second(&mut pacing, 2), 250);
        pacing.refresh(at(10_020));
        assert_eq!(pacing.per_second(), Some(500));
        pacing.refresh(at(20_020));
        assert_eq!(pacing.per_second(), Some(1_000));
    }

    #[test]
    fn a_destination_may_ask_for_a_pause() {
        let mut pacing = fast();
        let permit = pacing.admit(at(0), 0).expect("a permit");
        let signal = |asked_ms| Signal::TooMuch { is_failure: true, asked_ms: Some(asked_ms) };
        pacing.note(at(0), permit, signal(2_000), 0);
        pacing.note(at(0), permit, signal(-7), 0);
        assert_eq!(pacing.admit(at(500), 0), Err(Obstacle::Rest(1_500 * MS_NS)));
        let permit = pacing.admit(at(2_000), 0).expect("a permit");

        pacing.note(at(2_000), permit, signal(i64::MAX), 0);
        assert_eq!(pacing.admit(at(2_000), 0), Err(Obstacle::Rest(REST_MAX_NS)));
        assert!(pacing.admit(at(62_000), 0).is_ok());
    }

    #[test]
    fn requests_at_a_time_follow_the_responses() {
        let mut pacing = fast();
        let Concurrency { min, max } = pacing.destination.concurrency;
        assert_eq!((pacing.limit(), min, max), (2, 2, 8));

        let mut permits = Vec::new();
        while let Ok(permit) = pacing.admit(at(0), permits.len()) {
            permits.push(permit);
        }
        assert_eq!(permits.len(), 2);
        assert_eq!(pacing.admit(at(0), 2), Err(Obstacle::Concurrency));

        let permit = permits[0];
        pacing.note(at(1), permit, Signal::Fine, 0);
        assert_eq!(pacing.limit(), 2, "one would have been enough");
        for _ in 0..20 {
            let in_flight = usize::from(pacing.limit()) - 1;
            pacing.note(at(1), permit, Signal::Fine, in_flight);
        }
        assert_eq!(pacing.limit(), 8);

        pacing.note(at(2), permit, Signal::Late, 7);
        pacing.note(at(2), permit, Signal::Late, 6);
        assert_eq!(pacing.limit(), 4, "both set out before it was halved");
        for ms in 3..10 {
            let permit = pacing.admit(at(ms), 0).expect("a permit");
            pacing.note(at(ms), permit, Signal::Late, 0);
        }
        assert_eq!(pacing.limit(), 2);
    }

    #[test]
    fn a_destination_that_fails_is_left_alone_and_then_probed() {
        let mut pacing = fast();
        for ms in 0..20 {
            assert_eq!(pacing.breaker(), breaker::State::Closed);
            let permit = pacing.admit(at(ms), 0).expect("a permit");
            pacing.note(at(ms), permit, Signal::Failed, 0);
        }
        assert_eq!(pacing.breaker(), breaker::State::Open);
        let Err(Obstacle::Rest(rest_ns)) = pacing.admit(at(20), 0) else { panic!("open") };
        assert_eq!(rest_ns, 4_999 * MS_NS);

        let probe = pacing.admit(at(5_019), 0).expect("a probe");
        assert_eq!(pacing.breaker(), breaker::State::HalfOpen);
        assert!(pacing.admit(at(5_020), 1).is_err(), "one at a time");
        pacing.note(at(5_030), probe, Signal::Fine, 0);
        assert_eq!(pacing.breaker(), breaker::State::Closed);
        assert!(pacing.admit(at(5_031), 0).is_ok());
    }

    #[test]
    fn a_new_version_keeps_the_tokens() {
        let mut pacing = fast();
        assert_eq!(passed(&mut pacing, 0, 1), 1_000);
        let other = Destination {
            rate: serde_json::from_value(json!([{"perSecond": 10, "burst": 100}])).expect("a rate"),
            concurrency: Concurrency { min: 5, max: 6 },
            ..destination("d")
        };
        pacing.follow(Arc::new(other), at(0));
        assert_eq!((pacing.per_second(), pacing.limit()), (Some(10), 5));
        assert_eq!(passed(&mut pacing, 0, 1_001), 10);
    }
}
