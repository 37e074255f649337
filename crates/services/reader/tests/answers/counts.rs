use crate::support::{Service, TODAY_S, range};
use proptest::prelude::*;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::retention::RetentionDays;
use raingauge_ports::buckets::{BucketWriter, Cell};
use raingauge_reader::{Answer, Range, Step};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// The cells of a range, found by walking from its start: the widest one that begins here and still
/// fits.
fn cells(from_s: i64, to_s: i64) -> Vec<(Granularity, i64)> {
    let mut at = Granularity::Quarter.floor(from_s);
    let to_s = Granularity::Quarter.floor(to_s);
    let mut cells = Vec::new();

    while at < to_s {
        let fits = |granularity: &Granularity| {
            granularity.starts_at(at) && at + granularity.width_s() <= to_s
        };
        let granularity = *Granularity::ALL
            .iter()
            .rev()
            .find(|granularity| fits(granularity))
            .expect("a quarter hour");

        cells.push((granularity, at));
        at += granularity.width_s();
    }

    cells
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_count_is_the_sum_over_its_quarter_hours(
        events in prop::collection::vec((0..12 * DAY_S, -5..50_i64), 0..80),
        ranges in prop::collection::vec((0..12 * DAY_S, 0..12 * DAY_S), 1..20),
        parts in prop::collection::btree_set(1..12_i64, 0..3),
    ) {
        let begin_s = TODAY_S - 12 * DAY_S;
        let parts =
            (1..).zip(parts).map(|(generation, day)| (begin_s + day * DAY_S, generation + 1));
        let service = Service::forever([(0, 1)].into_iter().chain(parts).collect());
        for (time_s, value) in &events {
            service.add("c:x", begin_s + time_s, *value);
            service.add("c:other", begin_s + time_s, 1);
        }
        let quarter = Granularity::Quarter;
        for (from, to) in ranges {
            let (from_s, to_s) = (begin_s + from.min(to), begin_s + from.max(to));
            let (from_floor, to_floor) = (quarter.floor(from_s), quarter.floor(to_s));
            let inside = events
                .iter()
                .filter(|(time_s, _)| (from_floor..to_floor).contains(&(begin_s + time_s)));
            let count = inside.map(|(_, value)| value).sum();
            let answer = runtime().block_on(service.count(range("c:x", from_s, to_s)));
            prop_assert_eq!(answer, Ok(Answer { from_s: from_floor, to_s: to_floor, count }));
        }
    }

    #[test]
    fn a_range_answers_as_long_as_all_its_cells_are_kept(
        quarter in 1..4_u32,
        hour in 0..4_u32,
        day in 0..4_u32,
        ends in (0..96 * 12_i64, 0..96 * 12_i64),
        aligned_s in prop::sample::select(vec![QUARTER_S, HOUR_S, DAY_S]),
    ) {
        let days = RetentionDays {
            quarter: Some(quarter),
            hour: Some(quarter + hour),
            day: Some(quarter + hour + day),
        };
        let service = Service::new(json!(days), vec![(0, 1)], TODAY_S + HOUR_S);
        let at = |quarters: i64| TODAY_S - (quarters * QUARTER_S) / aligned_s * aligned_s;
        let (from_s, to_s) = (at(ends.0.max(ends.1)), at(ends.0.min(ends.1)));
        let horizons = days.horizons(TODAY_S + HOUR_S);
        let kept =
            cells(from_s, to_s).iter().all(|(granularity, at)| *at >= horizons.of(*granularity));
        let answer = runtime().block_on(service.count(range("c:x", from_s, to_s)));
        let code = answer.map(|answer| answer.count).map_err(|failure| failure.code.as_str());
        prop_assert_eq!(code, if kept { Ok(0) } else { Err("range_expired") });
    }
}

#[tokio::test]
async fn what_has_expired_stays_expired_when_the_counter_is_kept_longer() {
    let service = Service::forever(vec![(0, 1)]);
    let view = service.published.view();
    let lost = RetentionDays { quarter: Some(1), hour: Some(2), day: None }.horizons(TODAY_S);
    let timelines = vec![view.timelines[0].clone().kept_from(lost)];
    let view = raingauge_ports::published::View {
        ruleset: view.ruleset.clone(),
        timelines,
        ..Default::default()
    };

    service.published.set_view(view.into());
    let code = async |from_s| {
        service.count(range("c:x", from_s, TODAY_S)).await.map_err(|failure| failure.code.as_str())
    };
    assert_eq!(code(TODAY_S - 2 * DAY_S + 900).await, Err("range_expired"));
    assert!(
        code(TODAY_S - 2 * DAY_S + 3_600).await.is_ok() && code(TODAY_S - 9 * DAY_S).await.is_ok()
    );

    let series =
        service.reader.series(&range("c:x", TODAY_S - 9 * DAY_S, TODAY_S), Step::Hour, "UTC").await;
    assert_eq!(series.unwrap_err().code.as_str(), "range_expired");
}

#[tokio::test]
async fn each_item_fails_alone() {
    let service = Service::forever(vec![(0, 1)]);
    service.add("c:x", TODAY_S, i64::MAX);
    service.add("c:x", TODAY_S + 900, 1);
    service.add("c:y", TODAY_S, i64::MAX);
    service.add("c:y", TODAY_S, i64::MAX);

    let ranges = [
        range("c:x", TODAY_S, TODAY_S + 900),
        range("nobody", TODAY_S, TODAY_S + 900),
        range("c:x", TODAY_S + 900, TODAY_S),
        range("c:x", -1, TODAY_S),
        range("c:x", 0, 200 * 366 * DAY_S),
        range("c:x", TODAY_S, TODAY_S + 1_800),
        range("c:y", TODAY_S, TODAY_S + 900),
        range("c:silent", TODAY_S, TODAY_S + 900),
    ];

    let answers = service.reader.counts(&ranges).await;
    let codes = answers
        .into_iter()
        .map(|answer| answer.map(|answer| answer.count).map_err(|failure| failure.code.as_str()));
    let expected = [
        Ok(i64::MAX),
        Err("key_unknown"),
        Err("range_backwards"),
        Err("time_out_of_range"),
        Err("range_too_long"),
        Err("overflow"),
        Err("overflow"),
        Ok(0),
    ];

    assert_eq!(codes.collect::<Vec<_>>(), expected);
    service.published.fail("the disk is full");

    let answers = service.reader.counts(&ranges).await;
    assert!(answers.iter().all(|answer| {
        answer.as_ref().is_err_and(|failure| failure.code.as_str() == "unavailable")
    }));
}

/// A sum that overflows in one part alone is still a count, when the other part takes it back.
#[tokio::test]
async fn parts_are_added_before_the_sum_has_to_fit() {
    let service = Service::forever(vec![(0, 1), (TODAY_S, 2)]);
    let set = |generation, granularity, time_s, count| {
        service.store.set(generation, "c:x", 0, Cell { granularity, time_s, count }).unwrap();
    };
    for place in 0..2 {
        set(1, Granularity::Day, TODAY_S - (place + 1) * DAY_S, i64::MAX);
        set(2, Granularity::Quarter, TODAY_S + place * QUARTER_S, -i64::MAX);
    }
    let answer = service.count(range("c:x", TODAY_S - 2 * DAY_S, TODAY_S + 2 * QUARTER_S)).await;
    assert_eq!(answer.map(|answer| answer.count), Ok(0));
    let half = service.count(range("c:x", TODAY_S - 2 * DAY_S, TODAY_S)).await;
    assert_eq!(half.map_err(|failure| failure.code.as_str()), Err("overflow"));
}

#[tokio::test]
async fn fresh_takes_in_the_open_quarter_hour_and_says_how_far() {
    let service = Service::forever(vec![(0, 1)]);
    let open_s = TODAY_S + 10 * QUARTER_S;
    service.clock.set_s(open_s + 400);

    let ask = async |to_s, fresh| {
        let answer = service.count(Range { fresh, ..range("c:x", TODAY_S, to_s) }).await.unwrap();
        (answer.to_s - open_s, answer.count)
    };
    for (time_s, value) in [(open_s - 1, 1), (open_s, 10), (open_s + 500, 100)] {
        service.add("c:x", time_s, value);
        service.published.saw_event(time_s);
    }

    assert_eq!(ask(open_s + 400, false).await, (0, 1));
    assert_eq!(ask(open_s + 400, true).await, (501, 111), "an event from a little ahead is in it");
    assert_eq!(ask(open_s + 600, true).await, (600, 111));
    assert_eq!(ask(open_s, true).await, (0, 1));
    assert_eq!(ask(open_s - 1, true).await, (-QUARTER_S, 0), "a closed quarter hour is floored");
    assert_eq!(ask(open_s + QUARTER_S, true).await, (QUARTER_S, 111));
    service.published.saw_event(open_s + 2_000);
    assert_eq!(ask(open_s + 400, true).await, (QUARTER_S, 111));

    let inside = Range { fresh: true, ..range("c:x", open_s + 100, open_s + 400) };
    let answer = service.count(inside).await.unwrap();
    assert_eq!((answer.from_s, answer.count), (open_s, 110));
}
