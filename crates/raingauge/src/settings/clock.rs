//! The clock of an experiment.

use super::check::Checker;
use raingauge_core::time::parse_time_s;
use raingauge_ports::clock::{Clock, FastClock, SystemClock};
use std::sync::Arc;

/// Days of service time pass in minutes; beyond this factor, requests take longer than the range
/// they ask for.
pub const FACTOR_MAX: u32 = 3_600;

/// Reads the clock that everything uses.
pub fn read(from: &mut Checker) -> Option<FastClock> {
    let text = from.text("clock", "experiment");
    if text.is_empty() {
        return None;
    }

    let clock = parse(&text);
    if clock.is_none() {
        let message = format!("{text:?} does not say when a clock starts and how fast it runs");
        let advice = format!(
            "Give two times and a whole number up to {FACTOR_MAX}, such as \"2024-11-05T00:00:00Z at 2026-11-21T12:00:00Z times 600\", or nothing"
        );
        from.problem("clock.experiment", from.origin("clock.experiment"), message, advice);
    }

    clock
}

fn parse(text: &str) -> Option<FastClock> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [start, "at", machine_start, "times", factor] = words[..] else {
        return None;
    };
    let factor = factor.parse().ok().filter(|factor| (1..=FACTOR_MAX).contains(factor))?;
    let ms = |text: &str| parse_time_s(text)?.checked_mul(1_000);
    Some(FastClock { start_ms: ms(start)?, machine_start_ms: ms(machine_start)?, factor })
}

pub fn clock(experiment: Option<FastClock>) -> Arc<dyn Clock> {
    match experiment {
        Some(clock) => Arc::new(clock),
        None => Arc::new(SystemClock),
    }
}
