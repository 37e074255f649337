use super::*;
use raingauge_ports::clock::ManualClock;

const START_S: i64 = 1_727_215_200;

/// The measures of a process, with counters that the test sets second by second.
struct World {
    measures: Measures,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at_s(START_S));
        let measures = Measures::new(
            || "raingauge_events_accepted_total 5".to_owned(),
            Arc::clone(&clock) as _,
        );
        Self { measures, clock }
    }

    fn at(&self, seconds: i64, processes: &[(&str, u64)]) {
        self.clock.set_s(START_S + seconds);
        let reading = |(process, counts): &(&str, u64)| Reading {
            process: (*process).to_owned(),
            at_ms: (START_S + seconds) * 1_000,
            values: Values::parse(&format!("raingauge_range_counts_total {counts}")),
        };
        self.measures.record(processes.iter().map(reading).collect());
    }
}

#[test]
fn a_process_reads_its_own_metrics() {
    let told = World::new();
    assert_eq!(told.measures.read().values.total(values::ACCEPTED), 5.0);
}

#[test]
fn rates_are_those_of_all_processes_over_the_last_minute() {
    let told = World::new();
    assert_eq!(told.measures.present().rate(values::RANGE_COUNTS), 0.0);
    told.at(0, &[("a", 1_000), ("b", 7)]);
    assert!(told.measures.moments().is_empty());
    told.at(5, &[("a", 1_050), ("b", 7)]);
    told.at(10, &[("a", 1_100), ("b", 57)]);
    assert_eq!(told.measures.present().rate(values::RANGE_COUNTS), 15.0);
    assert_eq!(told.measures.totals().total(values::RANGE_COUNTS), 1_157.0);
    // What is older than a minute is no longer the present.
    told.at(68, &[("a", 1_100), ("b", 57)]);
    assert_eq!(told.measures.present().values.total(values::RANGE_COUNTS), 100.0);
}

#[test]
fn processes_come_go_and_restart() {
    let told = World::new();
    told.at(0, &[("a", 10)]);

    // What b had counted before it was seen did not happen now.
    told.at(5, &[("a", 20), ("b", 9_000)]);
    told.at(10, &[("b", 9_010)]);

    // Under the same name, from 0 again.
    told.at(15, &[("b", 4)]);
    let counts: Vec<f64> = told
        .measures
        .moments()
        .iter()
        .map(|moment| moment.values.total(values::RANGE_COUNTS))
        .collect();

    assert_eq!(counts, [10.0, 10.0, 4.0]);
    assert_eq!(told.measures.totals().total(values::RANGE_COUNTS), 4.0);
}

#[test]
fn an_hour_is_kept_and_no_more() {
    let told = World::new();
    for step in 0..MOMENTS_MAX as i64 + 50 {
        told.at(step * 5, &[("a", step as u64 * 10)]);
    }

    let moments = told.measures.moments();
    assert_eq!(moments.len(), MOMENTS_MAX);
    assert_eq!(
        moments.last().map(|moment| moment.at_s),
        Some(START_S + (MOMENTS_MAX as i64 + 49) * 5)
    );

    let spans = told.measures.spans(30);
    assert!(spans.iter().all(|span| span.to_s - span.from_s == 30 && span.from_s % 30 == 0));
    assert!(spans[1..spans.len() - 1].iter().all(|span| span.rate(values::RANGE_COUNTS) == 2.0));
}

#[test]
fn a_clock_that_is_set_back_makes_no_moment() {
    let told = World::new();
    told.at(100, &[("a", 1)]);
    told.at(50, &[("a", 2)]);
    assert!(told.measures.moments().is_empty());
    told.at(55, &[("a", 3)]);
    assert_eq!(told.measures.moments().len(), 1);
}

#[test]
fn numbers_of_a_counter_are_those_of_all_writers() {
    let told = World::new();
    let reading = |process: &str, late: u32| Reading {
        process: process.to_owned(),
        at_ms: 0,
        values: Values::parse(&format!(
            "raingauge_late_refused_total{{counter=\"34\",granularity=\"hour\"}} {late}\n\
             raingauge_events_skipped_total{{counter=\"34\",reason=\"field_missing\"}} 1\n\
             raingauge_events_skipped_total{{counter=\"341\",reason=\"field_missing\"}} 5"
        )),
    };

    told.measures.record(vec![reading("a", 2), reading("b", 3)]);
    assert_eq!(told.measures.late_refused(34), BTreeMap::from([("hour".to_owned(), 5)]));
    assert_eq!(told.measures.skipped(34), BTreeMap::from([("field_missing".to_owned(), 2)]));
    assert!(told.measures.late_refused(3).is_empty());
}

#[test]
fn shares_need_something_to_share() {
    let span = |text: &str| Span { seconds: 1.0, values: Values::parse(text), ..Span::default() };
    assert_eq!(span("").hit_share(), None);
    let text = "raingauge_cache_hits_total{strategy=\"live\"} 3\nraingauge_cache_misses_total{strategy=\"live\"} 1\n\
                raingauge_rows_read_total 8\nraingauge_range_counts_total 4";
    assert_eq!(span(text).hit_share(), Some(0.75));
    assert_eq!(span(text).ratio(values::ROWS, values::RANGE_COUNTS), Some(2.0));
    assert_eq!(span(text).ratio(values::CQL_ROWS, values::CQL_COUNTS), None);
}
