//! The recent past of this process, and with it of the whole system: its own metrics, read every
//! few seconds and kept for an hour. The portal needs no other server to draw from them; Prometheus
//! keeps years.
//!
//! ```text
//!   /metrics of this process ──┐
//!   announcements of others ───┴─▶ Values ──▶ increase since the last reading ──▶ Moment, Moment …
//! ```

mod text;
pub mod values;

use parking_lot::Mutex;
use raingauge_policy::rollout::Tally;
use raingauge_ports::clock::Clock;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
pub use values::Values;

/// How often the metrics are read.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Moments that are kept: one hour of them.
pub const MOMENTS_MAX: usize = 720;
/// Seconds that rates and percentiles of the present cover.
pub const PRESENT_S: i64 = 60;
/// Series of a metric that are kept of each moment, those with the largest values.
const LABELS_MAX: usize = 64;

/// What one process has counted since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// An id of the process, unique and valid until it ends.
    pub process: String,
    /// When it was read, in milliseconds since 1970.
    pub at_ms: i64,
    pub values: Values,
}

/// A span of some seconds, over all processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Its end, in seconds since 1970.
    pub at_s: i64,
    pub seconds: f64,
    /// Increases over the span, and gauges at its end.
    pub values: Values,
}

/// Several moments together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    pub from_s: i64,
    pub to_s: i64,
    pub seconds: f64,
    pub values: Values,
}

impl Span {
    fn of<'a>(moments: impl Iterator<Item = &'a Moment>) -> Self {
        let mut span = Self::default();
        for moment in moments {
            if span.seconds == 0.0 {
                span.from_s = moment.at_s - moment.seconds.round() as i64;
            }
            span.to_s = moment.at_s;
            span.seconds += moment.seconds;
            span.values.add(&moment.values);
        }
        span
    }

    /// Increase of a metric per second.
    pub fn rate(&self, metric: &str) -> f64 {
        if self.seconds > 0.0 { self.values.total(metric) / self.seconds } else { 0.0 }
    }

    /// Increase per second by label.
    pub fn rates(&self, metric: &str) -> BTreeMap<String, f64> {
        let seconds = self.seconds.max(f64::MIN_POSITIVE);
        self.values.by(metric).map(|(labels, value)| (labels.to_owned(), value / seconds)).collect()
    }

    /// Ratio of two metrics, such as rows per range count; `None` when the divisor did not
    /// increase.
    pub fn ratio(&self, metric: &str, of: &str) -> Option<f64> {
        let of = self.values.total(of);
        (of > 0.0).then(|| self.values.total(metric) / of)
    }

    /// Share of lookups that the caches answered; `None` without lookups.
    pub fn hit_share(&self) -> Option<f64> {
        let hits = self.values.total(values::CACHE_HITS);
        let others = [values::CACHE_MISSES, values::CACHE_ERRORS, values::CACHE_SKIPPED];
        let all = hits + others.iter().map(|metric| self.values.total(metric)).sum::<f64>();
        (all > 0.0).then(|| hits / all)
    }
}

/// Renders the metrics of this process.
type Render = Box<dyn Fn() -> String + Send + Sync>;

/// The measures of the last hour.
pub struct Measures {
    render: Render,
    clock: Arc<dyn Clock>,
    kept: Mutex<History>,
}

#[derive(Default)]
struct History {
    /// The newest reading of each process.
    newest: HashMap<String, Reading>,
    moments: VecDeque<Moment>,
    /// When the newest moment ended, in milliseconds since 1970.
    ended_ms: Option<i64>,
}

impl Measures {
    /// `render` returns the metrics of this process in the text format of Prometheus.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static, clock: Arc<dyn Clock>) -> Self {
        Self { render: Box::new(render), clock, kept: Mutex::default() }
    }

    /// Reads the metrics of this process.
    pub fn read(&self) -> Reading {
        let values = Values::parse(&(self.render)());
        Reading { process: String::new(), at_ms: self.clock.now_ms(), values }
    }

    /// Adds a moment: what all processes did since their previous readings. Processes without a
    /// reading are forgotten.
    pub fn record(&self, readings: Vec<Reading>) {
        let now_ms = self.clock.now_ms();
        let mut kept = self.kept.lock();
        let began_ms = kept.ended_ms.replace(now_ms);
        let mut values = Values::default();

        for reading in &readings {
            match kept.newest.get(&reading.process) {
                Some(before) => values.add(&reading.values.since(&before.values)),
                // What it did before it was known does not belong to this moment.
                None => values.add(&reading.values.clone().without_totals()),
            }
        }

        kept.newest =
            readings.into_iter().map(|reading| (reading.process.clone(), reading)).collect();

        // The first reading has nothing to compare with, and a clock that was set back measures no
        // time.
        let Some(millis) = began_ms.map(|began_ms| now_ms - began_ms).filter(|millis| *millis > 0)
        else {
            return;
        };
        if kept.moments.len() == MOMENTS_MAX {
            kept.moments.pop_front();
        }

        let values = values.without_counters().bounded(LABELS_MAX);
        kept.moments.push_back(Moment {
            at_s: now_ms.div_euclid(1_000),
            seconds: millis as f64 / 1e3,
            values,
        });
    }

    /// The moments that are kept, oldest first.
    pub fn moments(&self) -> Vec<Moment> {
        self.kept.lock().moments.iter().cloned().collect()
    }

    /// Returns the end of the newest moment, and what readers did in the moments that ended after
    /// `at_s`.
    pub fn tally_after(&self, at_s: i64) -> (i64, Tally) {
        let kept = self.kept.lock();
        let mut tally = Tally::default();
        kept.moments
            .iter()
            .filter(|moment| moment.at_s > at_s)
            .for_each(|moment| tally.add(&moment.values.tally()));
        (kept.moments.back().map_or(at_s, |moment| moment.at_s), tally)
    }

    /// The last minute, as far as it is known.
    pub fn present(&self) -> Span {
        let from_s = self.clock.now_s() - PRESENT_S;
        Span::of(self.kept.lock().moments.iter().filter(|moment| moment.at_s > from_s))
    }

    /// Spans of `seconds` from the oldest moment to the newest, for charts. They begin at whole
    /// multiples, so that a span always contains the same moments.
    pub fn spans(&self, seconds: i64) -> Vec<Span> {
        let kept = self.kept.lock();
        let mut spans = BTreeMap::<i64, Vec<&Moment>>::new();
        for moment in &kept.moments {
            spans.entry((moment.at_s - 1).div_euclid(seconds)).or_default().push(moment);
        }
        let span = |(number, moments): (i64, Vec<&Moment>)| {
            let (from_s, to_s) = (number * seconds, (number + 1) * seconds);
            Span { from_s, to_s, ..Span::of(moments.into_iter()) }
        };
        spans.into_iter().map(span).collect()
    }

    /// What all running processes have counted since their start.
    pub fn totals(&self) -> Values {
        let mut totals = Values::default();
        self.kept.lock().newest.values().for_each(|reading| totals.add(&reading.values));
        totals
    }

    /// Contributions to buckets of this counter that came too late, by granularity, since the
    /// writers started.
    pub fn late_refused(&self, counter: u32) -> BTreeMap<String, u64> {
        self.totals().under(values::LATE_REFUSED, &counter.to_string())
    }

    /// Events of this counter's type that contributed nothing, by reason, since the writers
    /// started.
    pub fn skipped(&self, counter: u32) -> BTreeMap<String, u64> {
        self.totals().under(values::SKIPPED, &counter.to_string())
    }
}

#[cfg(test)]
mod tests;
