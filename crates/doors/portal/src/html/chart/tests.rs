use super::*;
use jiff::tz::TimeZone;

static UTC: TimeZone = TimeZone::UTC;

fn chart<'a>(values: Vec<Option<f64>>, zone: &'a TimeZone) -> Chart<'a> {
    let times: Vec<i64> = (0..values.len() as i64).map(|place| place * 900).collect();
    let to_s = times.len() as i64 * 900;
    Chart {
        title: "rain:city:<7> by quarter hour".into(),
        words: "487 in all".into(),
        times,
        lines: vec![Line { name: "rain:city:<7>".into(), values, kind: Kind::Bars }],
        from_s: 0,
        to_s,
        points: Points::Buckets,
        unit: Unit::Count,
        scale: Scale::Linear,
        zone,
        now_s: None,
        marks: Vec::new(),
    }
}

fn elements(markup: &str) -> usize {
    markup.matches('<').count() / 2
}

#[test]
fn few_points_are_bars_and_the_table_has_their_numbers() {
    let markup = chart(vec![Some(3.0), Some(0.0), Some(1_200.0)], &UTC).figure().into_string();
    assert!(markup.contains("chart-bar") && !markup.contains("chart-surface"), "{markup}");
    assert!(
        markup.contains("Thu 1970-01-01 00:30 – 00:45") && markup.contains("1,200"),
        "{markup}"
    );
    assert!(!markup.contains("00:15 – 00:30"), "{markup}");
    assert!(!markup.contains("<7>") && !markup.contains("style="), "{markup}");
}

#[test]
fn a_year_of_quarter_hours_is_a_small_surface() {
    let markup = chart(vec![Some(1.0); 35_040], &UTC);
    let picture = markup.document().into_string();
    assert!(
        picture.contains("chart-surface") && elements(&picture) < 100,
        "{}",
        elements(&picture)
    );
    assert!(picture.len() < 40_000, "{}", picture.len());
    let figure = markup.figure().into_string();
    assert!(figure.contains("The picture adds up 48 at a time"), "{figure}");
    assert!(figure.contains("The latest 400 of 35,040 rows"), "{figure}");
}

#[test]
fn unknown_values_break_a_line_and_empty_charts_are_drawn() {
    let mut line = chart(vec![Some(1.0), None, Some(2.0)], &UTC);
    line.lines[0].kind = Kind::Line;
    let markup = line.figure().into_string();
    let (_, path) = markup.split_once(" d=\"M1667").expect("a path");
    let path = path.split('"').next().unwrap_or_default();
    assert!(path.contains('M') && !path.contains('L'), "{path}");
    let empty = chart(Vec::new(), &UTC).figure().into_string();
    assert!(empty.contains("Every value is 0.") && empty.contains("No data yet"), "{empty}");
    assert!(!line.figure().into_string().contains("No data yet"));
}

#[test]
fn an_open_bucket_is_paler_and_now_has_a_mark() {
    let mut open = chart(vec![Some(1.0), Some(2.0)], &UTC);
    open.now_s = Some(1_000);
    let markup = open.figure().into_string();
    assert!(markup.contains("chart-bar open") && markup.contains(">now<"), "{markup}");
}

#[test]
fn a_file_needs_no_style_sheet() {
    let mut two = chart(vec![Some(1.0), Some(2.0)], &UTC);
    let second = Line { name: "other".into(), values: vec![Some(5.0), None], kind: Kind::Line };
    two.lines.push(second);
    let file = two.document().into_string();
    assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{file}");
    assert!(
        file.contains(">other<") && file.contains("&lt;7&gt;") && file.contains("fill=\"#14788c\""),
        "{file}"
    );
}
