//! The same traffic under each cache strategy and plan, on the engines of a cluster and on the
//! embedded ones: the load on the store at the turn of a quarter hour, and the cost of a count.

use super::bench::{Bench, Options, Treatment, Window};
use super::prices::{Cost, Prices};
use super::record::{BatchRecord, Record, TruthCheck};
use super::report::analysis::Analysis;
use super::report::bins::{HOUR_MS, MINUTE_MS, QUARTER_MS, Tally, ratio};
use super::report::fold::Spike;
use super::report::numbers::{Numbers, PerMillion, PhaseNumbers};
use super::scenario::Scenario;
use crate::measure::Pace;
use crate::report::grouped;
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
const BETWEEN_MS: i64 = 2 * MINUTE_MS;
/// The same at the machine's speed.
const SOON_MS: i64 = 3_000;

/// The measurements of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub engines: &'static str,
    pub plan: String,
    pub strategy: String,
    /// How batches were sent; empty for the arrivals of the traffic model.
    pub pace: String,
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

/// The same traffic for every case.
pub struct Comparison<'a> {
    pub scenario: &'a Scenario,
    pub options: &'a Options,
    pub prices: &'a Prices,
    /// Replaces the arrivals of the traffic model: seconds of a closed loop, and of an open loop
    /// at half of the first case's rate. The scenario's clock then runs at the machine's speed.
    pub closed_loop: Option<u32>,
}

/// The engines, and the plan and strategy that counts are read by.
type Case<'a> = (&'static str, &'a str, &'a str);

impl Comparison<'_> {
    /// Measures each pair of plan and strategy on the engines of a cluster.
    pub fn on_cluster(&self, cases: &[(&str, &str)]) -> Result<Vec<Row>> {
        let mut plans: Vec<&str> = cases.iter().map(|(plan, _)| *plan).collect();
        plans.sort_unstable();
        plans.dedup();
        self.measure(Bench::on_cluster(self.scenario, &plans, self.options)?, "cluster", cases)
    }

    /// Does the same in one process with the embedded engines.
    pub fn embedded(&self, cases: &[(&str, &str)]) -> Result<Vec<Row>> {
        self.measure(Bench::embedded(self.scenario, self.options)?, "embedded", cases)
    }

    fn measure(
        &self,
        mut bench: Bench<'_>,
        engines: &'static str,
        cases: &[(&str, &str)],
    ) -> Result<Vec<Row>> {
        let mut rows: Vec<Row> = Vec::new();
        for (plan, strategy) in cases {
            let case = (engines, *plan, *strategy);
            match self.closed_loop {
                None => {
                    let window = window(bench.now_ms(), self.scenario.length_ms()?);
                    rows.push(self.row(&mut bench, case, None, window)?);
                }
                Some(seconds) => {
                    let length_ms = i64::from(seconds) * 1_000;
                    let filled = quiet_window(bench.now_ms(), length_ms, length_ms);
                    let closed = self.row(&mut bench, case, Some(Pace::Closed), filled)?;

                    let first = rows.first().unwrap_or(&closed);
                    let rate_per_s = first.numbers.batches as f64 / f64::from(seconds) / 2.0;
                    let paced = quiet_window(bench.now_ms(), 0, length_ms);
                    let pace = Pace::OpenShared(rate_per_s.max(1.0));
                    let open = self.row(&mut bench, case, Some(pace), paced)?;
                    rows.extend([closed, open]);
                }
            }
        }

        bench.stop()?;
        Ok(rows)
    }

    fn row(
        &self,
        bench: &mut Bench<'_>,
        (engines, plan, strategy): Case<'_>,
        pace: Option<Pace>,
        window: Window,
    ) -> Result<Row> {
        let pace_words = match pace {
            None => String::new(),
            Some(pace) => pace
                .rate_per_s()
                .map_or("closed loop".to_owned(), |rate| format!("open loop, {rate:.0} batches/s")),
        };
        let treatment = Treatment { plan, before: strategy, after: strategy, pace };
        let record = bench
            .record(treatment, window, &[])
            .with_context(|| format!("{engines}, {plan}, {strategy}"))?;
        let batches = record.answers.len();
        eprintln!("lab: {engines}, {plan}, {strategy}: {batches} batches {pace_words}");

        let equal = bench.compare(plan)?;
        let phases = Numbers::new(&Analysis::new(&record)).phases;
        Ok(Row {
            engines,
            plan: plan.to_owned(),
            strategy: strategy.to_owned(),
            pace: pace_words,
            cost: Cost::of(&record, self.prices),
            share_at_turn: share_at_turn(&record),
            kept_pace: kept_pace(&record),
            equal,
            numbers: phases.into_iter().next().unwrap_or_default(),
            checked: record.checked,
        })
    }
}

/// The next window of whole quarter hours; the first quarter hour fills caches. All windows begin
/// at the same minute of an hour, so that all contain the same turns.
fn window(now_ms: i64, length_ms: i64) -> Window {
    let offset_ms = 3 * QUARTER_MS;
    let earliest_ms = now_ms + BETWEEN_MS - offset_ms;
    let from_ms = offset_ms + (earliest_ms + HOUR_MS - 1).div_euclid(HOUR_MS) * HOUR_MS;
    Window { from_ms, recorded_from_ms: from_ms + QUARTER_MS, to_ms: from_ms + length_ms }
}

/// The next window that lies within a quarter hour, or begins with one if it is longer.
fn quiet_window(now_ms: i64, fill_ms: i64, length_ms: i64) -> Window {
    let earliest_ms = now_ms + SOON_MS;
    let left_ms = QUARTER_MS - earliest_ms.rem_euclid(QUARTER_MS);
    let has_room = fill_ms + length_ms < left_ms;
    let from_ms = if has_room { earliest_ms } else { earliest_ms + left_ms };
    let recorded_from_ms = from_ms + fill_ms;
    Window { from_ms, recorded_from_ms, to_ms: recorded_from_ms + length_ms }
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

/// Formats a table with one row per measurement.
pub fn markdown(rows: &[Row]) -> String {
    let has_paces = rows.iter().any(|row| !row.pace.is_empty());
    let head = if has_paces {
        "| engines, plan, strategy | pace | counts/s | ratio | p50, p99 ms | requests, rows a count \
         | not by the store | failed |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n"
    } else {
        "| engines, plan, strategy | counts by the store | first 30 s, 5 min over the mean: full \
         hours | others | p50, p99 ms | requests, rows a count | CPU s a million counts | cost a \
         million | late, early |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    };
    let line = |row: &Row| if has_paces { row.rate_line(rows) } else { row.turn_line() };
    head.to_owned() + &rows.iter().map(line).collect::<String>()
}

impl Row {
    fn turn_line(&self) -> String {
        let numbers = &self.numbers;
        let turn = |spike: &Spike| {
            format!("{}, {}", or_dash(spike.first_30_s, 2), or_dash(spike.first_5_min, 2))
        };
        let share = |part: u64| 100.0 * part as f64 / self.checked.compared.max(1) as f64;

        format!(
            "| {} | {} % | {} | {} | {} | {} | {} | {} | {:.2} %, {:.1} % |\n",
            self.name(),
            or_dash(numbers.store_share.map(|share| 100.0 * share), 1),
            turn(&numbers.load_full_hours),
            turn(&numbers.load_others),
            self.latencies(),
            self.reads(),
            or_dash(numbers.per_million.cpu_s_all, 0),
            or_dash(self.cost.per_million, 4),
            share(self.checked.late),
            share(self.checked.early),
        )
    }

    fn rate_line(&self, rows: &[Row]) -> String {
        let percent = |share: Option<f64>| or_dash(share.map(|share| 100.0 * share), 1);
        // The first row of the same engines is the measure.
        let first = rows.iter().find(|row| row.engines == self.engines);
        let rate = self.numbers.counts_per_s;
        let over = first.and_then(|first| ratio(rate?, first.numbers.counts_per_s?));

        format!(
            "| {} | {} | {} | {} | {} | {} | {} % | {} % |\n",
            self.name(),
            self.pace,
            rate.map_or("–".to_owned(), grouped),
            or_dash(over, 1),
            self.latencies(),
            self.reads(),
            percent(self.numbers.hit_share),
            percent(self.numbers.failed_share),
        )
    }

    fn name(&self) -> String {
        format!("{}, {}, `{}`", self.engines, self.plan, self.strategy)
    }

    fn latencies(&self) -> String {
        format!("{}, {}", or_dash(self.numbers.p50_ms, 2), or_dash(self.numbers.p99_ms, 2))
    }

    fn reads(&self) -> String {
        let per_count = |value: Option<f64>| or_dash(value.map(|value| value / 1e6), 2);
        let PerMillion { store_requests, store_rows, .. } = self.numbers.per_million;
        format!("{}, {}", per_count(store_requests), per_count(store_rows))
    }
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_begins_a_quarter_before_the_full_hour() {
        let start_ms = 1_730_774_700_000;
        for minutes in 0..180 {
            let now_ms = start_ms + minutes * 60_000;
            let window = window(now_ms, 95 * 60_000);
            assert_eq!(window.recorded_from_ms % HOUR_MS, 0, "{minutes}");
            let wait_ms = window.from_ms - now_ms;
            assert!((BETWEEN_MS..=BETWEEN_MS + HOUR_MS).contains(&wait_ms), "{minutes}: {wait_ms}");
        }
    }
    #[test]
    fn no_quarter_hour_begins_during_a_closed_loop() {
        let length_ms = 30_000;
        for now_ms in (0..2 * QUARTER_MS).step_by(7_000) {
            let window = quiet_window(now_ms, length_ms, length_ms);
            let quarter = |at_ms: i64| at_ms.div_euclid(QUARTER_MS);
            assert_eq!(quarter(window.from_ms), quarter(window.to_ms - 1), "{now_ms}");
            assert!(window.from_ms >= now_ms + SOON_MS, "{now_ms}");
            assert_eq!(window.to_ms - window.recorded_from_ms, length_ms);
        }
        assert_eq!(quiet_window(0, 0, 2 * QUARTER_MS).from_ms, QUARTER_MS, "it begins with one");
    }

    #[test]
    fn the_table_says_what_was_measured() {
        let row = |pace: &str, counts_per_s| Row {
            engines: "cluster",
            plan: "tables".to_owned(),
            strategy: "none".to_owned(),
            pace: pace.to_owned(),
            numbers: PhaseNumbers { counts_per_s: Some(counts_per_s), ..PhaseNumbers::default() },
            share_at_turn: None,
            kept_pace: None,
            checked: TruthCheck::default(),
            equal: 0,
            cost: Cost::default(),
        };

        let rates = markdown(&[row("closed loop", 5_852.0), row("open loop", 2_926.0)]);
        let last = rates.lines().last();
        assert_eq!(
            last,
            Some("| cluster, tables, `none` | open loop | 2,926 | 0.5 | –, – | –, – | – % | – % |")
        );
        assert!(markdown(&[row("", 1.0)]).contains("over the mean"));
    }
}
