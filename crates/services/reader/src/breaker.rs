//! A circuit breaker in front of an engine: shared by its callers, with log lines and metrics.

use parking_lot::Mutex;
use raingauge_policy::breaker::{Breaker, Options, Pass, State};
use std::sync::Arc;

/// A breaker in front of one engine, with its log lines and metrics.
pub struct Engine {
    name: &'static str,
    breaker: Mutex<Breaker>,
    state: metrics::Gauge,
    transitions: [metrics::Counter; 3],
}

impl Engine {
    pub fn new(name: &'static str, options: Options) -> Arc<Self> {
        let transition = |state: State| metrics::counter!("raingauge_breaker_transitions_total", "engine" => name, "to" => state.name());
        let state = metrics::gauge!("raingauge_breaker_state", "engine" => name);
        state.set(0.0);
        Arc::new(Self {
            name,
            breaker: Mutex::new(Breaker::new(options)),
            state,
            transitions: [State::Closed, State::HalfOpen, State::Open].map(transition),
        })
    }

    /// See [`Breaker::admit`].
    pub fn admit(&self, now_ms: i64) -> Result<Pass, i64> {
        self.told(|breaker| breaker.admit(now_ms))
    }

    /// See [`Breaker::record`].
    pub fn record(&self, now_ms: i64, pass: Pass, succeeded: u64, failed: u64) {
        self.told(|breaker| breaker.record(now_ms, pass, succeeded, failed));
    }

    /// Works on the breaker, and tells when that moved it to another state.
    fn told<T>(&self, work: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breaker = self.breaker.lock();
        let before = breaker.state();
        let done = work(&mut breaker);
        let after = breaker.state();
        if before != after {
            // Under the lock, so that what is told last is how it stands.
            self.state.set(f64::from(after as u8));
            self.transitions[after as usize].increment(1);
            let (engine, from, to) = (self.name, before.name(), after.name());
            match after {
                State::Open => tracing::warn!(
                    engine,
                    from,
                    to,
                    "the circuit breaker opened: the engine is left alone"
                ),
                _ => tracing::info!(engine, from, to, "the circuit breaker moved"),
            }
        }
        done
    }
}
