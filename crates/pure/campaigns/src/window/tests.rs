use super::*;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use proptest::prelude::*;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

/// Counts an event of value 1, with the state stored and read back.
fn step(window: &Window, tally: &mut Tally, at_ms: i64) -> Option<(i64, i64)> {
    let change = window.count(tally, at_ms, 1).map(|change| (change.before, change.after));
    assert_eq!(Tally::decode(window, &tally.encode()).as_ref(), Ok(&*tally));
    change
}

#[test]
fn the_window_of_a_campaign_ends_before_its_end() {
    let window = Window::Campaign { from_ms: 10, until_ms: 20 };
    let mut tally = window.empty();
    let changes = [9, 10, 19, 20, 15].map(|at_ms| step(&window, &mut tally, at_ms).unwrap());
    assert_eq!(changes, [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3)]);
    assert_eq!(window.value(&tally, 99), Some(3));
}

#[test]
fn rolling_windows_include_both_ends() {
    let window = Window::last(100, 3).unwrap();
    let mut tally = window.empty();
    assert_eq!(step(&window, &mut tally, 1_000), Some((0, 1)));
    assert_eq!(step(&window, &mut tally, 1_100), Some((1, 2)));
    assert_eq!(window.value(&tally, 1_100), Some(2));
    assert_eq!(window.value(&tally, 1_101), Some(1));
    assert_eq!(step(&window, &mut tally, 1_101), Some((1, 2)));
    // A late event inside the window completes the count.
    assert_eq!(step(&window, &mut tally, 1_001), Some((2, 3)));
    // One before the window is not seen, now or later.
    assert_eq!(step(&window, &mut tally, 1_000), Some((3, 3)));
    assert_eq!(window.value(&tally, 5), Some(3));
    // Events of one millisecond are several events.
    assert_eq!(step(&window, &mut tally, 1_101), Some((3, 4)));
    assert_eq!(step(&window, &mut tally, 9_999), Some((0, 1)));
}

#[test]
fn rolling_windows_are_exact_up_to_the_number_they_are_compared_with() {
    let window = Window::last(HOUR_MS, 256).unwrap();
    let mut tally = window.empty();
    for number in 0..300 {
        let expected = (number.min(257), (number + 1).min(257));
        assert_eq!(step(&window, &mut tally, number), Some(expected));
    }

    assert_eq!(Window::last(HOUR_MS, 257), None);
    assert_eq!(Window::last(HOUR_MS, usize::MAX), None);
}

#[test]
fn days_follow_the_clock_where_summer_begins_and_ends() {
    let zone = Zone::of_name("America/New_York").unwrap();
    let window = Window::Calendar { period: Period::Day, zone };
    for (first, hours) in [("2018-03-11T05:00:00Z", 23), ("2018-11-04T04:00:00Z", 25)] {
        let first = ms(first);
        let mut tally = window.empty();
        assert_eq!(step(&window, &mut tally, first - 1), Some((0, 1)));
        for hour in 0..hours {
            let expected = Some((hour, hour + 1));
            assert_eq!(step(&window, &mut tally, first + hour * HOUR_MS), expected);
        }
        let next = first + hours * HOUR_MS;
        assert_eq!(step(&window, &mut tally, next - 1), Some((hours, hours + 1)));
        assert_eq!(step(&window, &mut tally, next), Some((0, 1)));
        // An event 24 hours late, over the changed day, still finds its own day.
        let late = next + 10 * MINUTE_MS;
        assert_eq!(step(&window, &mut tally, late), Some((1, 2)));
        let is_day_before = late - 24 * HOUR_MS < first;
        let expected = if is_day_before { (1, 2) } else { (hours + 1, hours + 2) };
        assert_eq!(step(&window, &mut tally, late - 24 * HOUR_MS), Some(expected));
    }
}

#[test]
fn a_period_that_is_no_longer_kept_counts_nothing() {
    let window = Window::Calendar { period: Period::Week, zone: Zone::utc() };
    let mut tally = window.empty();
    let week = 7 * 24 * HOUR_MS;
    assert_eq!(step(&window, &mut tally, 10 * week), Some((0, 1)));
    assert_eq!(step(&window, &mut tally, 8 * week), Some((0, 1)));
    assert_eq!(window.value(&tally, 8 * week), Some(1));
    assert_eq!(step(&window, &mut tally, 7 * week), None);
    assert_eq!(window.value(&tally, 7 * week), None);
    assert_eq!(window.value(&tally, 9 * week), Some(0));
    assert_eq!(window.value(&tally, 11 * week), Some(0));
}

#[test]
fn sums_beyond_64_bits_come_back() {
    let window = Window::Campaign { from_ms: 0, until_ms: 1 };
    let mut tally = window.empty();
    for _ in 0..3 {
        window.count(&mut tally, 0, i64::MAX);
    }
    assert_eq!(window.value(&tally, 0), Some(i64::MAX));
    for _ in 0..3 {
        window.count(&mut tally, 0, -i64::MAX);
    }
    assert_eq!(window.value(&tally, 0), Some(0));
}

/// The bytes that ledgers hold.
#[test]
fn the_bytes_of_a_tally_are_fixed() {
    let calendar = Window::Calendar { period: Period::Day, zone: Zone::utc() };
    let last = Window::last(HOUR_MS, 4).unwrap();
    let campaign = Window::Campaign { from_ms: 0, until_ms: 1 };
    let sums = Calendar { newest: 20_000, sums: [1, -1, 64] };
    let fixed: [(&Window, Tally, &[u8]); 5] = [
        (&campaign, Tally::Campaign(300), &[0x10, 0xd8, 0x04]),
        (&calendar, Tally::Calendar(None), &[0x11]),
        (&calendar, Tally::Calendar(Some(sums)), &[0x11, 0xc0, 0xb8, 0x02, 0x02, 0x01, 0x80, 0x01]),
        (&last, Tally::Last(vec![]), &[0x12, 0x00]),
        (&last, Tally::Last(vec![-1, 0, 0, 200]), &[0x12, 0x04, 0x01, 0x01, 0x00, 0xc8, 0x01]),
    ];
    for (window, tally, bytes) in fixed {
        assert_eq!(tally.encode(), bytes, "{tally:?}");
        assert_eq!(Tally::decode(window, bytes), Ok(tally));
    }

    assert!(Tally::decode(&last, &[0x11]).is_err(), "of another kind");
    assert!(Tally::decode(&last, &[0x12, 0x82, 0x02, 0x00]).is_err(), "258 times");
    assert!(Tally::decode(&campaign, &[0x10, 0x00, 0x00]).is_err(), "something follows");
}

/// Every event so far: what a window comes to, by its definition.
struct Naive {
    window: Window,
    zone: TimeZone,
    events: Vec<(i64, i64)>,
}

impl Naive {
    /// Sum of the events that are seen from a time, in 64 bits.
    fn value(&self, at_ms: i64) -> i64 {
        let newest = self.events.iter().map(|event| event.0).max().unwrap_or(at_ms).max(at_ms);
        let seen = self.events.iter().filter(|(time, _)| match &self.window {
            Window::Campaign { from_ms, until_ms } => time >= from_ms && time < until_ms,
            Window::Calendar { period, .. } => {
                self.first(*period, *time) == self.first(*period, at_ms)
            }
            Window::Last { length_ms, .. } => *time >= newest - length_ms,
        });
        match &self.window {
            Window::Last { kept, .. } => seen.count().min(*kept) as i64,
            _ => seen.map(|(_, value)| value).sum(),
        }
    }

    /// First day of the period of a time.
    fn first(&self, period: Period, at_ms: i64) -> Date {
        let date = self.zone.to_datetime(Timestamp::from_millisecond(at_ms).unwrap()).date();
        match period {
            Period::Day => date,
            Period::Week => {
                date.tomorrow().unwrap().nth_weekday(-1, jiff::civil::Weekday::Monday).unwrap()
            }
            Period::Month => date.first_of_month(),
        }
    }
}

fn windows() -> impl Strategy<Value = Window> {
    let zone = Zone::of_name("America/New_York").unwrap();
    let periods = prop::sample::select(vec![Period::Day, Period::Week, Period::Month]);
    prop_oneof![
        (0..200_i64, 0..200_i64).prop_map(|(from, length)| Window::Campaign {
            from_ms: start_ms() + from * HOUR_MS,
            until_ms: start_ms() + (from + length) * HOUR_MS,
        }),
        periods.prop_map(move |period| Window::Calendar { period, zone: zone.clone() }),
        (1..50_i64, 1..9_usize)
            .prop_map(|(hours, largest)| Window::last(hours * HOUR_MS, largest).unwrap()),
    ]
}

/// Two days before summer time begins or ends in New York.
fn start_ms() -> i64 {
    ms("2018-03-09T05:00:00Z")
}

/// Lateness as in a file of taxi rides sorted by pickup: mostly minutes, at times a day or more.
fn lateness_ms() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..90 * MINUTE_MS,
        2 => 0..24 * HOUR_MS,
        1 => 0..100 * HOUR_MS,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tallies_equal_a_recount_of_all_events(
        window in windows(),
        in_november in any::<bool>(),
        arrivals in prop::collection::vec((0..8 * HOUR_MS, lateness_ms(), -2..5_i64), 1..60),
    ) {
        let zone = TimeZone::get("America/New_York").unwrap();
        let mut naive = Naive { window, zone, events: Vec::new() };
        let mut tally = naive.window.empty();
        let mut now_ms = start_ms();
        if in_november {
            now_ms = ms("2018-11-02T04:00:00Z");
        }

        for (pause_ms, late_ms, value) in arrivals {
            now_ms += pause_ms;
            let at_ms = now_ms - late_ms;
            let window = naive.window.clone();
            let known = window.value(&tally, at_ms);
            let change = window.count(&mut tally, at_ms, value);
            prop_assert_eq!(&Tally::decode(&window, &tally.encode()).unwrap(), &tally);

            let before = naive.value(at_ms);
            naive.events.push((at_ms, value));
            if let Some(change) = change {
                prop_assert_eq!(change, Change { before, after: naive.value(at_ms) });
                prop_assert_eq!(known, Some(before));
            } else {
                // Nothing within 24 hours of the newest event is too old.
                let newest = naive.events.iter().map(|event| event.0).max().unwrap();
                prop_assert!(newest - at_ms > 24 * HOUR_MS);
                prop_assert_eq!(known, None);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        window in windows(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        kind in 0x10_u8..0x13,
    ) {
        let bytes = [&[kind], &bytes[..]].concat();
        if let Ok(tally) = Tally::decode(&window, &bytes) {
            prop_assert_eq!(tally.encode(), bytes);
        }
    }
}
