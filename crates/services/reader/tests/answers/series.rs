use crate::support::{Service, TODAY_S, range};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use proptest::prelude::*;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::code::Refusal;
use raingauge_reader::{Point, Series, Step, midnight_s};
use serde_json::json;

/// Zones at whole hours, half hours and quarters of them, with and without summer time, with half
/// an hour of it, and some where clocks jump at midnight.
const ZONES: [&str; 16] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Eucla",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Sao_Paulo",
    "America/Asuncion",
    "America/Havana",
    "America/Scoresbysund",
    "Africa/Casablanca",
];

fn series(
    service: &Service,
    from_s: i64,
    to_s: i64,
    step: Step,
    zone: &str,
) -> Result<Series, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(service.reader.series(&range("c:x", from_s, to_s), step, zone))
}

fn seconds(time: &str) -> i64 {
    time.parse::<Timestamp>().expect("a time").as_second()
}

/// Where a quarter hour belongs: what the clocks of the zone show when it begins.
fn label(at: i64, step: Step, zone: &TimeZone) -> (Date, i64, i64) {
    let local = Timestamp::from_second(at).expect("a time").to_zoned(zone.clone());
    let date = local.date();
    match step {
        Step::Quarter => (date, at, 0),
        Step::Hour => (date, local.hour().into(), local.offset().seconds().into()),
        Step::Day => (date, 0, 0),
        Step::Week => {
            let since_monday = i64::from(date.weekday().to_monday_zero_offset());
            (date - since_monday.days(), 0, 0)
        }
        Step::Month => (date.first_of_month(), 0, 0),
    }
}

/// The points of a series by walking through its quarter hours. Where clocks are set back over
/// midnight, the date that comes back is part of the day that had begun.
fn walk(events: &[(i64, i64)], from_s: i64, to_s: i64, step: Step, zone: &TimeZone) -> Vec<Point> {
    let mut points = Vec::<Point>::new();
    let mut last = None;
    let floor = |time_s| Granularity::Quarter.floor(time_s);
    for at in (floor(from_s)..floor(to_s)).step_by(QUARTER_S as usize) {
        let label = label(at, step, zone);
        let comes_back = step >= Step::Day && last > Some(label);
        if last != Some(label) && !comes_back {
            points.push(Point { time: at, count: 0 });
            last = Some(label);
        }

        let inside = events.iter().filter(|(time_s, _)| floor(*time_s) == at);
        points.last_mut().expect("a point").count += inside.map(|(_, value)| value).sum::<i64>();
    }

    points
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn points_are_the_sums_over_what_the_clocks_of_the_zone_show(
        zone in prop::sample::select(&ZONES[..]),
        step in prop::sample::select(&Step::ALL[..]),
        begin_s in seconds("2012-01-01T00:00:00Z")..seconds("2030-01-01T00:00:00Z"),
        to_transition in any::<bool>(),
        len_s in 0..6 * DAY_S,
        events in prop::collection::vec((0..6 * DAY_S, -5..50_i64), 0..40),
        part_day in 0..6_i64,
        has_parts in any::<bool>(),
    ) {
        let time_zone = TimeZone::get(zone).unwrap();
        let after = time_zone.following(Timestamp::from_second(begin_s).unwrap()).next();
        let from_s = match after.filter(|_| to_transition) {
            Some(transition) => transition.timestamp().as_second() - len_s / 2,
            None => begin_s,
        };

        // Weeks and months need a longer range to have several points.
        let stretch = match step {
            Step::Week => 4,
            Step::Month => 12,
            _ => 1,
        };
        let len_s = len_s * stretch;
        let part_s = Granularity::Day.floor(from_s) + part_day * stretch * DAY_S;
        // One part is summed in memory, two are read cell by cell.
        let parts = if has_parts { vec![(0, 1), (part_s, 2)] } else { vec![(0, 1)] };
        let service = Service::forever(parts);
        let events: Vec<(i64, i64)> =
            events.iter().map(|(time_s, value)| (from_s + time_s * stretch, *value)).collect();
        events.iter().for_each(|(time_s, value)| service.add("c:x", *time_s, *value));
        let points = series(&service, from_s, from_s + len_s, step, zone).unwrap().points;
        prop_assert_eq!(&points, &walk(&events, from_s, from_s + len_s, step, &time_zone));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let whole = runtime.block_on(service.count(range("c:x", from_s, from_s + len_s))).unwrap();
        prop_assert_eq!(points.iter().map(|point| point.count).sum::<i64>(), whole.count);
    }
}

/// Every jump of every zone: the points begin where a walk through the quarter hours says. Only
/// where clocks jumped a minute after midnight, as Newfoundland's did until 2011, hours cannot be
/// cut.
#[test]
fn every_zone_is_cut_where_its_clocks_say() {
    let service = Service::forever(vec![(0, 1)]);
    let (begin, end_s) = ("2007-01-01T00:00:00Z".parse().unwrap(), seconds("2028-01-01T00:00:00Z"));

    for name in jiff::tz::db().available() {
        let zone = TimeZone::get(name.as_str()).unwrap();
        let jumps = zone.following(begin).map(|jump| jump.timestamp().as_second());
        for jump_s in jumps.take_while(|jump_s| *jump_s < end_s) {
            let (from_s, to_s) = (jump_s - DAY_S, jump_s + 2 * DAY_S);
            for step in [Step::Hour, Step::Day, Step::Week, Step::Month] {
                let expected = walk(&[], from_s, to_s, step, &zone);
                let series = series(&service, from_s, to_s, step, name.as_str());
                if jump_s % QUARTER_S != 0 && step == Step::Hour {
                    assert_eq!(
                        series.map_err(|failure| failure.code.as_str()),
                        Err("timezone_unaligned"),
                        "{name} {jump_s}"
                    );
                    continue;
                }

                assert_eq!(
                    series.map(|series| series.points),
                    Ok(expected),
                    "{name} {jump_s} {step:?}"
                );
            }
        }
    }
}

#[test]
fn days_are_as_long_as_the_clocks_make_them() {
    let service = Service::forever(vec![(0, 1)]);
    let hours = |from: &str, to: &str, zone: &str| {
        let points = series(&service, seconds(from), seconds(to), Step::Day, zone).unwrap().points;
        points
            .windows(2)
            .map(|pair| (pair[1].time - pair[0].time) as f64 / HOUR_S as f64)
            .collect::<Vec<f64>>()
    };

    assert_eq!(
        hours("2024-03-29T23:00:00Z", "2024-04-02T00:00:00Z", "Europe/Berlin"),
        [24.0, 23.0, 24.0]
    );
    assert_eq!(
        hours("2024-10-25T22:00:00Z", "2024-10-29T00:00:00Z", "Europe/Berlin"),
        [24.0, 25.0, 24.0]
    );
    assert_eq!(
        hours("2024-04-05T13:00:00Z", "2024-04-09T00:00:00Z", "Australia/Lord_Howe"),
        [24.0, 24.5, 24.0]
    );
    assert_eq!(
        hours("2024-10-04T13:30:00Z", "2024-10-08T00:00:00Z", "Australia/Lord_Howe"),
        [24.0, 23.5, 24.0]
    );

    // Cairo has no midnight on this day, and Samoa had no 30th of December.
    assert_eq!(
        hours("2024-04-24T22:00:00Z", "2024-04-28T00:00:00Z", "Africa/Cairo"),
        [24.0, 23.0, 24.0]
    );
    assert_eq!(
        hours("2011-12-28T10:00:00Z", "2012-01-01T10:00:00Z", "Pacific/Apia"),
        [24.0, 24.0, 24.0]
    );
}

#[test]
fn weeks_begin_on_monday_and_months_on_the_first() {
    let service = Service::forever(vec![(0, 1)]);
    let times = |from: &str, to: &str, step: Step, zone: &str| {
        let points = series(&service, seconds(from), seconds(to), step, zone).unwrap().points;
        let time = |point: &Point| Timestamp::from_second(point.time).unwrap().to_string();
        points.iter().map(time).collect::<Vec<_>>()
    };

    // A Wednesday; the clocks of Berlin change on Sunday the 31st.
    assert_eq!(
        times("2024-03-20T00:00:00Z", "2024-04-03T00:00:00Z", Step::Week, "Europe/Berlin"),
        ["2024-03-20T00:00:00Z", "2024-03-24T23:00:00Z", "2024-03-31T22:00:00Z"]
    );
    assert_eq!(
        times("2024-01-31T12:00:00Z", "2024-04-02T00:00:00Z", Step::Month, "America/New_York"),
        [
            "2024-01-31T12:00:00Z",
            "2024-02-01T05:00:00Z",
            "2024-03-01T05:00:00Z",
            "2024-04-01T04:00:00Z"
        ]
    );
    assert_eq!(
        times("2023-12-31T00:00:00Z", "2024-01-09T00:00:00Z", Step::Week, "UTC"),
        ["2023-12-31T00:00:00Z", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"]
    );
}

#[test]
fn midnight_follows_the_clocks_of_the_zone() {
    let noon_s = seconds("2024-04-01T10:00:00Z");
    let midnight = |days_ago, zone| midnight_s(days_ago, noon_s, zone);

    assert_eq!(midnight(0, "UTC"), Some(seconds("2024-04-01T00:00:00Z")));
    assert_eq!(midnight(0, "Europe/Berlin"), Some(seconds("2024-03-31T22:00:00Z")));
    assert_eq!(midnight(1, "Europe/Berlin"), Some(seconds("2024-03-30T23:00:00Z")));
    assert_eq!(midnight(0, "Mars/Olympus"), None);
}

#[test]
fn an_impossible_cut_is_refused() {
    let service =
        Service::new(json!({"quarter": 2, "hour": 5, "day": null}), vec![(0, 1)], TODAY_S);
    let code = |from_s, to_s, step, zone| {
        series(&service, from_s, to_s, step, zone)
            .map(|series| series.points.len())
            .map_err(|failure| failure.code.as_str())
    };

    assert_eq!(code(TODAY_S, TODAY_S + DAY_S, Step::Day, "Mars/Olympus"), Err("timezone_unknown"));
    assert_eq!(code(TODAY_S, TODAY_S - 900, Step::Day, "UTC"), Err("range_backwards"));
    assert_eq!(code(TODAY_S, TODAY_S, Step::Day, "UTC"), Ok(0));
    assert_eq!(
        code(TODAY_S - DAY_S, TODAY_S - DAY_S + 10_000 * 900, Step::Quarter, "UTC"),
        Ok(10_000)
    );
    assert_eq!(
        code(TODAY_S - DAY_S, TODAY_S - DAY_S + 10_001 * 900, Step::Quarter, "Asia/Tokyo"),
        Err("series_too_long")
    );
    assert_eq!(code(TODAY_S - 9 * DAY_S, TODAY_S, Step::Day, "UTC"), Ok(9));
    assert_eq!(
        code(TODAY_S - 9 * DAY_S, TODAY_S, Step::Day, "Europe/Berlin"),
        Err("range_expired")
    );
    assert_eq!(code(TODAY_S - 3 * DAY_S, TODAY_S, Step::Quarter, "UTC"), Err("range_expired"));

    // Liberia's clocks stood 44.5 minutes behind UTC until 1972.
    let forever = Service::forever(vec![(0, 1)]);
    let liberia = series(&forever, 365 * DAY_S, 366 * DAY_S, Step::Hour, "Africa/Monrovia");
    assert_eq!(liberia.unwrap_err().code.as_str(), "timezone_unaligned");
    forever.published.fail("the disk is full");

    assert_eq!(series(&forever, 0, 0, Step::Day, "UTC").unwrap_err().code.as_str(), "unavailable");
}

#[tokio::test]
async fn an_unknown_key_has_no_series() {
    let service = Service::forever(vec![(0, 1)]);
    let series = service.reader.series(&range("nobody", 0, DAY_S), Step::Day, "UTC").await;
    assert_eq!(series.unwrap_err().code.as_str(), "key_unknown");
}
