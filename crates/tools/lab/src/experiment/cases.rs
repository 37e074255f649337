//! The same traffic under each cache strategy and plan, on the engines of a cluster and on the
//! embedded ones: the load on the store at the turn of a quarter hour, and the cost of a count.

use super::bench::{Bench, Options, Treatment, Window};
use super::prices::{Cost, Prices};
use super::record::{BatchRecord, Record, TruthCheck};
use super::report::analysis::Analysis;
use super::report::bins::{MINUTE_MS, QUARTER_MS, Tally, ratio};
use super::report::fold::Spike;
use super::report::numbers::{Numbers, PhaseNumbers};
use super::scenario::Scenario;
use anyhow::{Context, Result};
use serde::Serialize;

/// The plans and strategies on a cluster. The first is that of the published service without its
/// cache.
pub const ON_CLUSTER: [(&str, &str); 6] = [
    ("tables", "none"),
    ("tables", "result"),
    ("tiles", "none"),
    ("tiles", "result"),
    ("tiles", "phased"),
    ("tiles", "live"),
];
/// The embedded engines keep active tiles in memory under every strategy, so `live` and `none` are
/// equivalent.
pub const EMBEDDED: [(&str, &str); 3] = [("tiles", "none"), ("tiles", "result"), ("tiles", "live")];
/// Pause between two cases, in which the readers follow the new policy.
const BETWEEN_MS: i64 = 2 * 60_000;

/// The measurements of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub engines: &'static str,
    pub plan: String,
    pub strategy: String,
    pub numbers: PhaseNumbers,
    /// The store's share of the counts in the first minute of a quarter hour, relative to its
    /// overall share: the load that evenly spread requests would cause.
    pub share_at_turn: Option<f64>,
    /// Share of the batches answered within a minute of the service's time. If many were later, the
    /// machine was busy with other work, and requests cannot be attributed to a turn.
    pub kept_pace: Option<f64>,
    pub checked: TruthCheck,
    /// Number of counts up to now that were compared afterwards; all of them were correct.
    pub equal: usize,
    pub cost: Cost,
}

/// Measures every combination of plan and strategy on a cluster.
pub fn on_cluster(
    scenario: &Scenario,
    options: &Options,
    cases: &[(&str, &str)],
    prices: &Prices,
) -> Result<Vec<Row>> {
    let mut plans: Vec<&str> = cases.iter().map(|(plan, _)| *plan).collect();
    plans.sort_unstable();
    plans.dedup();
    let bench = Bench::on_cluster(scenario, &plans, options)?;
    measure(bench, scenario, ("cluster", cases), prices)
}

/// Does the same in one process with the embedded engines.
pub fn embedded(
    scenario: &Scenario,
    options: &Options,
    cases: &[(&str, &str)],
    prices: &Prices,
) -> Result<Vec<Row>> {
    measure(Bench::embedded(scenario, options)?, scenario, ("embedded", cases), prices)
}

fn measure(
    mut bench: Bench<'_>,
    scenario: &Scenario,
    (engines, cases): (&'static str, &[(&str, &str)]),
    prices: &Prices,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (plan, strategy) in cases {
        let window = window(bench.now_ms(), scenario.to_ms()? - scenario.from_ms()?);
        let treatment = Treatment { plan, before: strategy, after: strategy };
        let record = bench
            .record(treatment, window, &[])
            .with_context(|| format!("{engines}, {plan}, {strategy}"))?;
        eprintln!("lab: {engines}, {plan}, {strategy}: {} batches", record.answers.len());

        let equal = bench.compare(plan)?;
        rows.push(row(engines, &record, equal, prices));
    }

    bench.stop()?;
    Ok(rows)
}

/// The next window of whole quarter hours; the first quarter hour fills caches. All windows begin
/// at the same minute of an hour, so that all contain the same turns.
fn window(now_ms: i64, length_ms: i64) -> Window {
    const HOUR_MS: i64 = 4 * QUARTER_MS;
    let offset_ms = 3 * QUARTER_MS;
    let earliest_ms = now_ms + BETWEEN_MS - offset_ms;
    let from_ms = offset_ms + (earliest_ms + HOUR_MS - 1).div_euclid(HOUR_MS) * HOUR_MS;
    Window { from_ms, recorded_from_ms: from_ms + QUARTER_MS, to_ms: from_ms + length_ms }
}

fn row(engines: &'static str, record: &Record, equal: usize, prices: &Prices) -> Row {
    let numbers =
        Numbers::new(&Analysis::new(record)).phases.into_iter().next().unwrap_or_default();
    Row {
        engines,
        plan: record.plan.clone(),
        strategy: record.strategies[0].clone(),
        cost: Cost::of(record, prices),
        share_at_turn: share_at_turn(record),
        kept_pace: kept_pace(record),
        equal,
        numbers,
        checked: record.checked,
    }
}

fn share_at_turn(record: &Record) -> Option<f64> {
    let mut all = Tally::default();
    let mut turn = Tally::default();
    for answer in &record.answers {
        all.add(answer);
        if answer.due_ms.rem_euclid(QUARTER_MS) < MINUTE_MS {
            turn.add(answer);
        }
    }
    ratio(turn.share(turn.store)?, all.share(all.store)?)
}

fn kept_pace(record: &Record) -> Option<f64> {
    let waited_ms = |answer: &&BatchRecord| f64::from(answer.latency_us) / 1e3 * record.factor;
    let in_time =
        record.answers.iter().filter(|answer| waited_ms(answer) < MINUTE_MS as f64).count();
    ratio(in_time as f64, record.answers.len() as f64)
}

/// Formats a table with one row per case.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| engines, plan, strategy | counts by the store | first 30 s, 5 min over the mean: full hours | others | \
         p50, p99 ms | requests, rows a count | CPU s a million counts | cost a million | late, early |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );

    let or_dash = |value: Option<f64>, digits: usize| {
        value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
    };
    for row in rows {
        let numbers = &row.numbers;
        let turn = |spike: &Spike| {
            format!("{}, {}", or_dash(spike.first_30_s, 2), or_dash(spike.first_5_min, 2))
        };
        let a_count = |value: Option<f64>| or_dash(value.map(|value| value / 1e6), 2);
        let share = |part: u64| 100.0 * part as f64 / row.checked.compared.max(1) as f64;

        text += &format!(
            "| {}, {}, `{}` | {} % | {} | {} | {}, {} | {}, {} | {} | {} | {:.2} %, {:.1} % |\n",
            row.engines,
            row.plan,
            row.strategy,
            or_dash(numbers.store_share.map(|share| 100.0 * share), 1),
            turn(&numbers.load_full_hours),
            turn(&numbers.load_others),
            or_dash(numbers.p50_ms, 2),
            or_dash(numbers.p99_ms, 2),
            a_count(numbers.per_million.store_requests),
            a_count(numbers.per_million.store_rows),
            or_dash(numbers.per_million.cpu_s_all, 0),
            or_dash(row.cost.per_million, 4),
            share(row.checked.late),
            share(row.checked.early),
        );
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_begins_a_quarter_before_the_full_hour() {
        const HOUR_MS: i64 = 3_600_000;
        let start_ms = 1_730_774_700_000;
        for minutes in 0..180 {
            let now_ms = start_ms + minutes * 60_000;
            let window = window(now_ms, 95 * 60_000);
            assert_eq!(window.recorded_from_ms % HOUR_MS, 0, "{minutes}");
            let wait_ms = window.from_ms - now_ms;
            assert!((BETWEEN_MS..=BETWEEN_MS + HOUR_MS).contains(&wait_ms), "{minutes}: {wait_ms}");
        }
    }
}
