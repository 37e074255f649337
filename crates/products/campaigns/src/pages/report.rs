//! Results of tests, backtests and comparisons, in tables and charts. They arrive as the JSON that
//! the API answers.

use super::reasons;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_portal::html::chart::{Chart, Kind, Line, Points, Scale, Unit};
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use serde_json::Value as Json;

const STEPS: [Column<'_>; 5] = [
    Column::Text("Step"),
    Column::Number("Times granted"),
    Column::Number("Subjects"),
    Column::Text("Spend"),
    Column::Text("Refused"),
];
const BUDGETS: [Column<'_>; 5] = [
    Column::Text("Budget"),
    Column::Number("Reserved"),
    Column::Number("Of"),
    Column::Text("Used up"),
    Column::Text("Will last until, as it looks"),
];
const COMPARED: [Column<'_>; 5] = [
    Column::Text("Step"),
    Column::Number("Granted before"),
    Column::Number("Granted after"),
    Column::Number("Subjects who gain"),
    Column::Number("Subjects who lose"),
];
const CHANGED: [Column<'_>; 3] =
    [Column::Text("Subject"), Column::Number("Before"), Column::Number("After")];

/// The members of an array or none.
fn items(json: &Json) -> &[Json] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn whole(json: &Json) -> String {
    words::number(json.as_i64().unwrap_or(0).into())
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

/// What a backtest found. Subjects are values of events, which not everyone sees.
pub fn backtest(result: &Json, shows_subjects: bool) -> Markup {
    let steps = items(&result["steps"]);
    html! {
        (covered(result))
        (parts::table("result-title", &STEPS, &html! {
            @for step in steps {
                tr {
                    th scope="row" { (text(&step["step"])) }
                    td.number {
                        (whole(&step["triggers"]))
                        @if let [low, high] = items(&step["interval"]) {
                            br;
                            span.quiet { (whole(low)) " to " (whole(high)) }
                        }
                    }
                    td.number { (whole(&step["subjects"])) }
                    td { (sums(&step["spend"])) }
                    td { (refusals(&step["refused"])) }
                }
            }
        }))
        @for step in steps {
            @let by_day = points(&step["byDay"]);
            @if by_day.len() > 1 { h3 { "Granted by day: " (text(&step["step"])) } (chart(text(&step["step"]), &by_day)) }
        }
        (budgets(items(&result["budgets"])))
        @for step in steps { (divided(step)) @if shows_subjects { (top(step)) } }
        (undecided(result))
    }
}

fn covered(result: &Json) -> Markup {
    html! {
        p {
            (whole(&result["events"])) " events"
            @if let [from, to] = items(&result["covered"]) { ", which happened from " (text(from)) " to " (text(to)) }
            "."
            @if result["sample"].as_i64().unwrap_or(1) > 1 { " One in " (whole(&result["sample"])) " subjects was replayed, and the numbers stand for all." }
            @if result["late"].as_i64().unwrap_or(0) > 0 { " " (whole(&result["late"])) " of them arrived too late to decide anything." }
        }
    }
}

fn sums(spend: &Json) -> Markup {
    html! {
        @for (place, (name, sum)) in spend.as_object().into_iter().flatten().enumerate() {
            @if place > 0 { br; }
            (name) " " (whole(sum))
        }
    }
}

fn refusals(refused: &Json) -> Markup {
    let some =
        refused.as_object().into_iter().flatten().filter(|(_, count)| count.as_i64() != Some(0));
    html! { @for (code, count) in some { (reasons::badge(code)) " " (whole(count)) " " } }
}

/// Pairs of a date and a number.
fn points(by_day: &Json) -> Vec<(Date, f64)> {
    let point = |pair: &Json| Some((text(&pair[0]).parse().ok()?, pair[1].as_f64()?));
    items(by_day).iter().filter_map(point).collect()
}

fn chart(title: &str, points: &[(Date, f64)]) -> Markup {
    let zone = TimeZone::UTC;
    let start_s =
        |date: Date| date.to_zoned(TimeZone::UTC).map_or(0, |start| start.timestamp().as_second());
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else {
        return html! {};
    };
    let fortnight = last.checked_sub(jiff::Span::new().days(13)).unwrap_or(*first);
    let first = fortnight.min(*first);

    // A day without a point is 0, and every day has its place.
    let days: Vec<Date> = first
        .series(jiff::Span::new().days(1))
        .take_while(|date| date <= last)
        .take(3_660)
        .collect();
    let of =
        |date: &Date| points.iter().find(|(day, _)| day == date).map_or(0.0, |(_, value)| *value);
    let values = days.iter().map(|date| Some(of(date))).collect();

    Chart {
        title: format!("{title} by day"),
        words: format!("{title} by day"),
        times: days.iter().map(|date| start_s(*date)).collect(),
        lines: vec![Line { name: title.to_owned(), values, kind: Kind::Bars }],
        from_s: start_s(first),
        to_s: start_s(last.tomorrow().unwrap_or(*last)),
        points: Points::Buckets,
        unit: Unit::Count,
        scale: Scale::Linear,
        zone: &zone,
        now_s: None,
        marks: Vec::new(),
    }
    .figure()
}

fn budgets(budgets: &[Json]) -> Markup {
    if budgets.is_empty() {
        return html! {};
    }
    html! {
        h3 #backtest-budgets { "Budgets" }
        (parts::table("backtest-budgets", &BUDGETS, &html! {
            @for budget in budgets {
                tr {
                    th scope="row" {
                        (text(&budget["name"]))
                        @if let Some(first) = budget["spendByDay"][0][0].as_str() {
                            " " span.quiet { "from " (first) }
                        }
                    }
                    td.number { (whole(&budget["reserved"])) }
                    td.number { (whole(&budget["max"])) }
                    td { @if let Some(at) = budget["exhausted"].as_str() { strong { (at) } } @else { "no" } }
                    td {
                        @if let Some(forecast) = budget["forecast"].as_object() {
                            @match forecast.get("p50").and_then(Json::as_str) {
                                Some(median) => {
                                    (median)
                                    span.quiet {
                                        " (" (forecast.get("p10").and_then(Json::as_str).unwrap_or("–")) " to "
                                        (forecast.get("p90").and_then(Json::as_str).unwrap_or("more than a year")) " in 8 of 10 cases)"
                                    }
                                }
                                None => "more than a year",
                            }
                        }
                    }
                }
            }
        }))
    }
}

fn divided(step: &Json) -> Markup {
    html! {
        @for (field, values) in step["by"].as_object().into_iter().flatten() {
            h3 { (text(&step["step"])) " by " code { (field) } }
            ul.plain {
                @for (value, count) in values.as_object().into_iter().flatten().take(20) {
                    li { (words::cut(value, 60)) ": " (whole(count)) }
                }
            }
        }
    }
}

fn top(step: &Json) -> Markup {
    let subjects = items(&step["topSubjects"]);
    html! {
        @if !subjects.is_empty() {
            details {
                summary { "Subjects with the most: " (text(&step["step"])) }
                ol.plain {
                    @for pair in subjects { li { code { (text(&pair[0])) } " " (whole(&pair[1])) } }
                }
            }
        }
    }
}

fn undecided(result: &Json) -> Markup {
    let open: i64 = result["undecided"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_i64())
        .sum();
    html! {
        @if open > 0 {
            (parts::notice(Mood::Wait, &html! { (words::number(open.into())) " evaluations stayed open: nothing is known of what a lookup would have answered. The API can assume answers (" code { "lookups" } ")." }))
        }
    }
}

/// What a comparison of two versions found.
pub fn comparison(result: &Json, shows_subjects: bool) -> Markup {
    let steps = items(&result["steps"]);
    html! {
        (covered(result))
        (parts::table("result-title", &COMPARED, &html! {
            @for step in steps {
                tr {
                    th scope="row" { (text(&step["step"])) }
                    td.number { (whole(&step["before"]["triggers"])) }
                    td.number.changed[step["before"] != step["after"]] { (whole(&step["after"]["triggers"])) }
                    td.number { (whole(&step["gain"]["subjects"])) }
                    td.number { (whole(&step["lose"]["subjects"])) }
                }
            }
        }))
        @if let Some(spend) = result["spend"].as_object() && !spend.is_empty() {
            h3 { "Spend" }
            ul.plain {
                @for (name, sums) in spend {
                    li { (name) ": " (whole(&sums["before"])) " before, " (whole(&sums["after"])) " after, " strong { (signed(&sums["difference"])) } }
                }
            }
        }
        @if shows_subjects {
            @for step in steps {
                (samples(step, "gain", "gain"))
                (samples(step, "lose", "lose"))
            }
        }
    }
}

fn signed(json: &Json) -> String {
    let number = json.as_i64().unwrap_or(0);
    format!("{}{}", if number > 0 { "+" } else { "" }, words::number(number.into()))
}

fn samples(step: &Json, side: &str, verb: &str) -> Markup {
    let found = items(&step[side]["samples"]);
    let id = format!("{side}-{}", text(&step["step"]));
    html! {
        @if !found.is_empty() {
            details {
                summary id=(id) { "Subjects who " (verb) ": " (text(&step["step"])) }
                (parts::table(&id, &CHANGED, &html! {
                    @for row in found {
                        tr {
                            td { code { (text(&row[0])) } }
                            td.number { (whole(&row[1])) }
                            td.number { (whole(&row[2])) }
                        }
                    }
                }))
            }
        }
    }
}

/// What an audit found: whether what was decided is what a replay decides.
pub fn audit(result: &Json, shows_subjects: bool) -> Markup {
    let different = result["different"].as_u64().unwrap_or(0);
    let compared = format!(
        "{} decisions on {} events of {} subjects",
        whole(&result["compared"]),
        whole(&result["events"]),
        whole(&result["subjects"])
    );
    html! {
        @if different == 0 {
            (parts::notice(Mood::Good, &html! { "A replay decides the same: " (compared) "." }))
        } @else {
            (parts::notice(Mood::Bad, &html! {
                strong { (whole(&result["different"])) } " differ, of " (compared) "."
            }))
        }
        @if shows_subjects && different > 0 {
            ul.plain {
                @for one in items(&result["differences"]) {
                    li {
                        code { (text(&one["subject"])) } " on "
                        code { (text(&one["event"]["source"])) "/" (text(&one["event"]["id"])) }
                        ": decided " (outcomes(&one["stored"])) ", replayed "
                        (outcomes(&one["replayed"]))
                    }
                }
            }
        }
    }
}

/// Outcomes by step and action.
fn outcomes(outcomes: &Json) -> String {
    let each = outcomes.as_object().into_iter().flatten();
    let each: Vec<String> = each.map(|(name, code)| format!("{name} {}", text(code))).collect();
    if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_backtest_is_shown() {
        let result = json!({
            "events": 1000, "late": 2, "covered": ["2010-12-01T08:26:00Z", "2011-12-09T12:50:00Z"], "sample": 1,
            "undecided": {"7": 3}, "budgets": [{"name": "vouchers", "reserved": 1000, "max": 1000,
                "exhausted": "2011-01-01T00:00:00Z", "forecast": null}],
            "steps": [{"step": "<reward>", "triggers": 641, "subjects": 214, "byDay": [["2010-12-06", 3], ["2010-12-08", 4]],
                "spend": {"vouchers": 320500}, "refused": {"limit_reached": 12, "budget_exhausted": 0},
                "by": {"var.country": {"United Kingdom": 588}}, "topSubjects": [["u-7", 9]]}]});
        let shown = backtest(&result, true).into_string();
        for words in [
            "641",
            "limit reached",
            "2011-01-01T00:00:00Z",
            "United Kingdom: 588",
            "u-7",
            "3 evaluations",
            "&lt;reward&gt;",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("budget exhausted") && !shown.contains("<reward>"));
        assert!(!backtest(&result, false).into_string().contains("u-7"));
    }

    #[test]
    fn a_comparison_is_shown() {
        let side = |triggers| json!({"triggers": triggers});
        let result = json!({"events": 10, "steps": [{"step": "s", "before": side(3), "after": side(5),
            "gain": {"subjects": 2, "samples": [["u-1", 1, 2]]}, "lose": {"subjects": 0, "samples": []}}],
            "spend": {"b": {"before": 1, "after": 3, "difference": 2}}});
        let shown = comparison(&result, true).into_string();
        assert!(
            shown.contains("+2") && shown.contains("u-1") && shown.contains("number changed"),
            "{shown}"
        );
        assert!(!comparison(&result, false).into_string().contains("u-1"));
    }

    #[test]
    fn an_audit_is_shown() {
        let fine =
            json!({"campaign": 7, "subjects": 50, "events": 900, "compared": 120, "different": 0});
        assert!(
            audit(&fine, true).into_string().contains("A replay decides the same: 120 decisions")
        );
        let differs = json!({"different": 1, "differences": [{"subject": "<u>", "event": {"source": "m", "id": "1"},
            "stored": {"s/a": "granted"}, "replayed": {}}]});
        let shown = audit(&differs, true).into_string();
        assert!(shown.contains("decided s/a granted, replayed nothing"), "{shown}");
        assert!(!audit(&differs, false).into_string().contains("granted"));
    }

    #[test]
    fn an_empty_result_is_shown() {
        assert!(backtest(&Json::Null, true).into_string().contains("0 events"));
        assert!(comparison(&Json::Null, true).into_string().contains("0 events"));
    }
}
