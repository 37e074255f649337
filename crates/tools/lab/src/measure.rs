//! Pacing of requests and recording of their latencies.
//!
//! In a closed loop the next request waits for the previous answer, which finds the maximum rate
//! but hides the wait of a user while the server stalls. In an open loop requests are due at fixed
//! moments, independently of the server, and a latency starts when its request was *due*: time
//! spent waiting for a free connection counts.

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Longer latencies are recorded as this value.
const LATENCY_MAX: Duration = Duration::from_secs(60);
/// How long an open loop waits after its end for outstanding answers.
pub const DRAIN_MAX: Duration = Duration::from_secs(10);
/// The same for a closed loop, whose connections have one request under way each: their answers say
/// what the server has done, which is compared with what it keeps.
const CLOSED_DRAIN_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    Closed,
    /// Requests per second.
    Open(f64),
    /// The same for a client that shares its core with the server: it sleeps while nothing is due,
    /// whereas [`Self::Open`] spins.
    OpenShared(f64),
}

impl Pace {
    /// Requests per second of an open loop.
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Open(rate_per_s) | Self::OpenShared(rate_per_s) => Some(rate_per_s),
        }
    }

    /// How long a run waits after its end for outstanding answers.
    pub fn drain_max(self) -> Duration {
        match self {
            Self::Closed => CLOSED_DRAIN_MAX,
            Self::Open(_) | Self::OpenShared(_) => DRAIN_MAX,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub pace: Pace,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// The moments at which requests are due, independently of the server.
pub trait Arrivals {
    /// The due time of the oldest pending request; `None` if there is none left.
    fn next_due(&self) -> Option<Instant>;
    /// Takes that request.
    fn advance(&mut self);

    /// Takes the oldest pending request if it is due.
    fn take_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next_due().filter(|due| *due <= now)?;
        self.advance();
        Some(due)
    }

    fn is_exhausted(&self) -> bool {
        self.next_due().is_none()
    }
}

/// Requests due at a constant rate.
#[derive(Debug, Clone)]
pub struct Schedule {
    start: Instant,
    end: Instant,
    interval_s: f64,
    taken: u64,
}

impl Schedule {
    pub fn new(start: Instant, end: Instant, rate_per_s: f64) -> Self {
        Self { start, end, interval_s: 1.0 / rate_per_s, taken: 0 }
    }
}

impl Arrivals for Schedule {
    fn next_due(&self) -> Option<Instant> {
        let due = self.start + Duration::from_secs_f64(self.interval_s * self.taken as f64);
        (due < self.end).then_some(due)
    }

    fn advance(&mut self) {
        self.taken += 1;
    }
}

/// Records the measured window of a run.
pub struct Recorder {
    pace: Pace,
    begin: Instant,
    end: Instant,
    histogram: Histogram<u64>,
    requests: u64,
    units: u64,
}

impl Recorder {
    pub fn new(run: &Run, start: Instant) -> Result<Self> {
        let histogram = Histogram::new_with_bounds(100, LATENCY_MAX.as_nanos() as u64, 3)
            .map_err(|error| anyhow!("cannot create a histogram: {error}"))?;
        let begin = start + run.warm_up;
        Ok(Self {
            pace: run.pace,
            begin,
            end: begin + run.duration,
            histogram,
            requests: 0,
            units: 0,
        })
    }

    pub fn end(&self) -> Instant {
        self.end
    }

    /// Records an answer that arrived at `now` to a request intended at `intended`; `units` is its
    /// number of ranges or events. A closed loop counts answers inside the window, an open loop the
    /// requests due in it. Returns whether the answer was counted.
    pub fn complete(&mut self, intended: Instant, now: Instant, units: u64) -> bool {
        let moment = match self.pace {
            Pace::Closed => now,
            Pace::Open(_) | Pace::OpenShared(_) => intended,
        };
        if moment < self.begin || moment >= self.end {
            return false;
        }
        self.record(intended, now, units);
        true
    }

    /// Records requests that were due but never sent or answered, with the time that they have
    /// waited so far.
    pub fn abandon(&mut self, arrivals: &mut dyn Arrivals, now: Instant) -> u64 {
        let mut abandoned = 0;
        while let Some(intended) = arrivals.take_due(now) {
            abandoned += u64::from(self.give_up(intended, now));
        }
        abandoned
    }

    /// Records a request that has no answer at the end of the run, with the time that it has waited
    /// so far. Returns whether it counts as unanswered: in a closed loop always, because its answer
    /// would have come inside the window from a faster server.
    pub fn give_up(&mut self, intended: Instant, now: Instant) -> bool {
        match self.pace {
            Pace::Closed => {
                self.record(intended, now, 0);
                true
            }
            Pace::Open(_) | Pace::OpenShared(_) => self.complete(intended, now, 0),
        }
    }

    fn record(&mut self, intended: Instant, now: Instant, units: u64) {
        let latency = now.duration_since(intended).min(LATENCY_MAX);
        self.histogram.saturating_record(latency.as_nanos() as u64);
        self.requests += 1;
        self.units += units;
    }

    pub fn finish(self, unanswered: u64) -> Measurement {
        let elapsed_s = (self.end - self.begin).as_secs_f64();
        let quantile_us =
            |quantile: f64| self.histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        let answered = self.requests.saturating_sub(unanswered);

        Measurement {
            requests: answered,
            unanswered,
            elapsed_s,
            requests_per_s: answered as f64 / elapsed_s,
            units_per_s: self.units as f64 / elapsed_s,
            latency: Latency {
                mean_us: self.histogram.mean() / 1_000.0,
                p50_us: quantile_us(0.5),
                p99_us: quantile_us(0.99),
                p999_us: quantile_us(0.999),
                max_us: self.histogram.max() as f64 / 1_000.0,
            },
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Latency {
    /// Missing in records of earlier versions.
    #[serde(default)]
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Measurement {
    pub requests: u64,
    /// Requests that were due, or under way in a closed loop, and unanswered when the run ended.
    pub unanswered: u64,
    pub elapsed_s: f64,
    pub requests_per_s: f64,
    /// Ranges or events per second.
    pub units_per_s: f64,
    pub latency: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pace: Pace) -> Run {
        Run { pace, warm_up: Duration::from_secs(1), duration: Duration::from_secs(10) }
    }

    #[test]
    fn a_stalled_server_shows_in_the_latencies_of_everything_that_was_due() {
        // 100 requests per second; the server answers at once, except for a stall between 3 s and 4
        // s.
        let start = Instant::now();
        let mut recorder = Recorder::new(&run(Pace::Open(100.0)), start).unwrap();
        let mut schedule = Schedule::new(start, recorder.end(), 100.0);

        for tick_ms in 0..11_000 {
            let now = start + Duration::from_millis(tick_ms);
            if (3_000..4_000).contains(&tick_ms) {
                continue;
            }

            while let Some(intended) = schedule.take_due(now) {
                recorder.complete(intended, now, 10);
            }
        }

        assert!(schedule.is_exhausted());
        let measured = recorder.finish(0);
        assert_eq!(measured.requests, 1_000);

        // A tenth of the requests fell into the stall, evenly distributed.
        assert!((990_000.0..=1_001_000.0).contains(&measured.latency.max_us), "{measured:?}");
        assert!((880_000.0..=920_000.0).contains(&measured.latency.p99_us), "{measured:?}");
        assert!(measured.latency.p50_us <= 1_000.0, "{measured:?}");
    }

    #[test]
    fn requests_left_over_count_with_the_time_they_have_waited() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&run(Pace::Open(10.0)), start).unwrap();
        let mut schedule = Schedule::new(start, recorder.end(), 10.0);
        let now = recorder.end() + Duration::from_secs(5);
        let abandoned = recorder.abandon(&mut schedule, now);
        let measured = recorder.finish(abandoned);
        assert_eq!((abandoned, measured.requests), (100, 0));
        assert_eq!(measured.units_per_s, 0.0);
        assert!(measured.latency.p50_us >= 5_000_000.0);
    }

    #[test]
    fn a_request_under_way_is_unanswered_in_any_loop() {
        for pace in [Pace::Closed, Pace::Open(1.0)] {
            let start = Instant::now();
            let mut recorder = Recorder::new(&run(pace), start).unwrap();
            let intended = start + Duration::from_secs(9);
            let now = start + Duration::from_secs(21);
            assert!(recorder.give_up(intended, now));
            let measured = recorder.finish(1);
            assert_eq!((measured.requests, measured.unanswered), (0, 1), "{pace:?}");
            assert!(measured.latency.max_us >= 11_900_000.0, "{measured:?}");
        }
    }

    #[test]
    fn a_closed_loop_counts_answers_inside_the_window_only() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&run(Pace::Closed), start).unwrap();
        for second in [0, 1, 10, 11] {
            let now = start + Duration::from_secs(second) + Duration::from_millis(1);
            recorder.complete(now - Duration::from_millis(1), now, 10);
        }
        let measured = recorder.finish(0);
        assert_eq!((measured.requests, measured.units_per_s), (2, 2.0));
        assert!((990.0..=1_010.0).contains(&measured.latency.p50_us));
    }
}
