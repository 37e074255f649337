//! A circuit breaker in front of an engine: shared by its callers, with log lines and metrics.

use parking_lot::Mutex;
use raingauge_policy::breaker::{Breaker, Options, Pass, State};
use std::sync::Arc;

pub struct EngineBreaker {
    engine: &'static str,
    breaker: Mutex<Breaker>,
    state: metrics::Gauge,
    transitions: [metrics::Counter; 3],
}

impl EngineBreaker {
    pub fn new(engine: &'static str, options: Options) -> Arc<Self> {
        let transitions = |to: State| {
            let to = to.name();
            metrics::counter!("raingauge_breaker_transitions_total", "engine" => engine, "to" => to)
        };
        let state = metrics::gauge!("raingauge_breaker_state", "engine" => engine);
        state.set(0.0);

        Arc::new(Self {
            engine,
            breaker: Mutex::new(Breaker::new(options)),
            state,
            transitions: [State::Closed, State::HalfOpen, State::Open].map(transitions),
        })
    }

    /// See [`Breaker::admit`].
    pub fn admit(&self, now_ms: i64) -> Result<Pass, i64> {
        self.with(|breaker| breaker.admit(now_ms))
    }

    /// See [`Breaker::record`].
    pub fn record(&self, now_ms: i64, pass: Pass, succeeded: u64, failed: u64) {
        self.with(|breaker| breaker.record(now_ms, pass, succeeded, failed));
    }

    /// Works on the breaker, and reports a change of its state.
    fn with<T>(&self, work: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breaker = self.breaker.lock();
        let before = breaker.state();
        let done = work(&mut breaker);
        let after = breaker.state();
        if before == after {
            return done;
        }

        // Under the lock, so that the last report is the current state.
        self.state.set(f64::from(after as u8));
        self.transitions[after as usize].increment(1);

        let engine = self.engine;
        let from = before.name();
        let to = after.name();

        if after == State::Open {
            tracing::warn!(
                engine,
                from,
                to,
                "the circuit breaker opened: the engine is left alone"
            );
        } else {
            tracing::info!(engine, from, to, "the circuit breaker changed its state");
        }

        done
    }
}
