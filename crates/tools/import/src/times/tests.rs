use super::*;
use proptest::prelude::*;

fn times(format: &str, timezone: Option<&str>) -> Times {
    let mut problems = Vec::new();
    Times::new(format, timezone, &mut problems).unwrap_or_else(|| panic!("{problems:?}"))
}

fn read_s(format: &str, timezone: Option<&str>, text: &str) -> Result<i64, Fault> {
    times(format, timezone).read_ms(text).map(|time_ms| time_ms / 1_000)
}

const NEW_YORK: Option<&str> = Some("America/New_York");
const PLAIN: &str = "%Y-%m-%d %H:%M:%S";

#[test]
fn the_shapes_of_real_files() {
    assert_eq!(read_s(PLAIN, None, "2018-01-11 18:24:44"), Ok(1_515_695_084));
    assert_eq!(
        times("%Y/%m/%d %H:%M:%S%.f", None).read_ms("2016/01/01 00:30:04.91"),
        Ok(1_451_608_204_910)
    );
    assert_eq!(
        times("%Y/%m/%d %H:%M:%S%.f", None).read_ms("2016/01/01 00:30:04"),
        Ok(1_451_608_204_000)
    );
    assert_eq!(read_s("rfc3339", None, "2018-02-27T22:26:39Z"), Ok(1_519_770_399));
    assert_eq!(read_s("epoch_seconds", None, "1400269500"), Ok(1_400_269_500));
    assert_eq!(times("epoch_seconds", None).read_ms("1400269500.0625"), Ok(1_400_269_500_062));
    assert_eq!(times("epoch_millis", None).read_ms("1400269500123"), Ok(1_400_269_500_123));
    assert_eq!(
        read_s("%d/%b/%Y:%H:%M:%S %z", None, "17/May/2015:10:05:03 +0200"),
        Ok(1_431_849_903)
    );
    assert_eq!(read_s("%Y-%m-%d", None, "1970-01-02"), Ok(86_400));
    assert_eq!(read_s("%s", None, "86400"), Ok(86_400));
}

/// jiff accepts a month of one digit, so the fast path must not reject it.
#[test]
fn parts_that_are_not_filled_up_with_zeros() {
    assert_eq!(read_s("%m/%d/%Y %H:%M", None, "1/2/1970 3:04"), Ok(86_400 + 3 * 3_600 + 4 * 60));
}

#[test]
fn wall_times_of_a_zone() {
    assert_eq!(
        read_s(PLAIN, NEW_YORK, "2019-01-15 03:36:12"),
        read_s(PLAIN, None, "2019-01-15 08:36:12")
    );
    assert_eq!(
        read_s(PLAIN, NEW_YORK, "2019-07-15 03:36:12"),
        read_s(PLAIN, None, "2019-07-15 07:36:12")
    );

    // The clocks went from 02:00 to 03:00 on 10 March, and from 02:00 back to 01:00 on 3 November.
    assert_eq!(read_s(PLAIN, NEW_YORK, "2019-03-10 02:30:00"), Err(Fault::Skipped));
    assert_eq!(
        read_s(PLAIN, NEW_YORK, "2019-03-10 03:00:00"),
        read_s(PLAIN, None, "2019-03-10 07:00:00")
    );
    assert_eq!(
        read_s(PLAIN, NEW_YORK, "2019-11-03 01:30:00"),
        read_s(PLAIN, None, "2019-11-03 05:30:00")
    );
    assert_eq!(read_s("%m/%d/%Y %H:%M", NEW_YORK, "3/10/2019 2:30"), Err(Fault::Skipped));
}

#[test]
fn what_is_no_time() {
    for text in [
        "",
        "yesterday",
        "2019-02-29 00:00:00",
        "2019-01-01 24:00:00",
        "2019-01-01 00:00:00.5",
        "2019-01-01",
    ] {
        assert_eq!(read_s(PLAIN, None, text), Err(Fault::Unreadable), "{text}");
    }

    assert_eq!(read_s(PLAIN, None, "1969-12-31 23:59:59"), Err(Fault::OutOfSpan));
    assert_eq!(read_s("epoch_seconds", None, "-1"), Err(Fault::OutOfSpan));
    assert_eq!(read_s("epoch_seconds", None, "99999999999999999999"), Err(Fault::OutOfSpan));
    assert_eq!(read_s("epoch_seconds", None, "1e9"), Err(Fault::Unreadable));
}

#[test]
fn what_is_no_format() {
    for (format, timezone) in [
        ("iso", None),
        ("%H:%M", None),
        ("%Y-%m-%d %Z", None),
        ("%Y-%m-%d %", None),
        ("%Y-%m-%d %M", None),
        (PLAIN, Some("Mars/Olympus")),
        ("rfc3339", NEW_YORK),
        ("%Y-%m-%dT%H:%M:%S%z", NEW_YORK),
    ] {
        let mut problems = Vec::new();
        assert!(Times::new(format, timezone, &mut problems).is_none(), "{format} {timezone:?}");
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}

fn any_format() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        PLAIN,
        "%FT%T%.f",
        "%d.%m.%Y %R",
        "%Y%m%d%H%M%S",
        "%m/%d/%Y %H:%M:%S%.f",
        "%Y-%m-%d",
    ])
}

/// Texts that nearly match a format: formatted with it, then changed in one character.
fn nearly_a_time() -> impl Strategy<Value = (&'static str, String)> {
    let change = prop::option::of((any::<prop::sample::Index>(), "[0-9 .:/Tx-]"));
    (any_format(), 0i64..4_102_444_800_000, change).prop_map(|(format, time_ms, change)| {
        let mut text = strtime::format(
            format,
            &Timestamp::from_millisecond(time_ms).unwrap().to_zoned(TimeZone::UTC),
        )
        .unwrap();

        if let Some((at, other)) = change {
            let at = at.index(text.len());
            text.replace_range(at..=at, &other);
        }

        (format, text)
    })
}

proptest! {
    /// The fast path accepts nothing that jiff rejects, and returns the same times.
    #[test]
    fn by_hand_or_by_jiff(
        (format, text) in nearly_a_time(),
        zone in prop::sample::select(vec![None, NEW_YORK]),
    ) {
        let times = times(format, zone);
        let Shape::Strftime { steps, .. } = &times.shape else { panic!("a strftime format") };
        let civil = Civil::read(steps.as_deref().unwrap(), &text);
        let by_hand = civil.map(|civil| times.place(civil));
        if let Some(by_hand) = by_hand {
            prop_assert_eq!(by_hand, times.read_by_jiff(format, &text));
        }
    }

    #[test]
    fn every_whole_time_is_read_by_hand(
        format in any_format(),
        time_ms in 0i64..4_102_444_800_000,
    ) {
        let time = Timestamp::from_millisecond(time_ms).unwrap().to_zoned(TimeZone::UTC);
        let text = strtime::format(format, &time).unwrap();
        prop_assert!(Civil::read(&compile(format).unwrap(), &text).is_some(), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        for format in ["rfc3339", "epoch_seconds", "epoch_millis", PLAIN, "%c", "%A %d %B %Y"] {
            if let Some(times) = Times::new(format, None, &mut Vec::new()) {
                let _ = times.read_ms(&text);
            }
        }
    }
}
