//! What a programme owes its members: by the month in which it expires, and what it is worth.

use super::rules;
use super::view::{ProgrammeView, day_start_s};
use super::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_points::{Liability, Month};
use raingauge_portal::html::chart::{Chart, Kind, Line, Points, Scale, Unit};
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;

/// Fewest months of the chart.
const MONTHS_MIN: i32 = 12;
/// Most months of the chart; the table has all of them.
const MONTHS_MAX: i32 = 120;

const MONTHS: [Column<'_>; 3] =
    [Column::Text("Expire in"), Column::Number("Points"), Column::Number("Share")];
const GONE: [Column<'_>; 4] = [
    Column::Text("Due in"),
    Column::Number("Spent before"),
    Column::Number("Expired"),
    Column::Number("Breakage"),
];
const ACCOUNTS: [Column<'_>; 2] = [Column::Text("Account"), Column::Number("Points")];

/// `GET /points/{programme}/liability`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let liability = visit.desk.liability(&programme.name).await?;
    let title = format!("Liability of {}", programme.name);
    let body = html! {
        (programme_head(&programme, Part::Liability, "Liability", &html! {}))
        (figures(&programme, &liability))
        @if liability.outstanding.is_empty() {
            (parts::empty("Nothing is owed", &html! { "No member has points to spend. Here will stand how many points expire in each month." }))
        } @else {
            section.card aria-labelledby="months-title" {
                h2 #months-title { "Points that can be spent, by the month in which they expire" }
                (chart(&programme, &liability))
                (months(&programme, &liability))
            }
        }
        @if !liability.gone.is_empty() { (gone(&programme, &liability)) }
        (accounts(&programme, &liability))
        p.quiet { "Points expire " (rules::expiry(&programme.configuration["expiry"])) ". What has expired stays in these sums until a sweep has written it down." }
    };
    Ok(visit.show(Tab::Programmes, &title, &body))
}

fn figures(programme: &ProgrammeView, liability: &Liability) -> Markup {
    let figure = |label: &str, points: i128| {
        html! { div { dt { (label) } dd { span.figure { (programme.amount(points)) } } } }
    };
    let can_spend: i128 = liability.outstanding.iter().map(|(_, points)| points).sum();
    html! {
        section.card aria-label="Owed to members" {
            dl.figures {
                (figure("Owed in all", liability.total()))
                (figure("Can be spent", can_spend))
                (figure("Pending", liability.pending))
                (figure("Set aside", liability.held))
                @if liability.arrears != 0 { (figure("Owed by members", liability.arrears)) }
                div {
                    dt { "Breakage" }
                    dd {
                        span.figure { (breakage(liability.breakage_ppm())) }
                        span.quiet { "of what was spent or expired, expired" }
                    }
                }
                @if let Some(value) = value(programme, liability) {
                    div { dt { "Worth" } dd { span.figure { (value) } span.quiet { "at the cost of a point (" code { "unitCost" } ")" } } }
                }
            }
        }
    }
}

/// The share of points that expired: `12.50 %`.
fn breakage(ppm: Option<i128>) -> String {
    match ppm {
        Some(ppm) => words::share(u64::try_from(ppm).unwrap_or(0), 1_000_000),
        None => "–".to_owned(),
    }
}

/// What is owed, at the cost of a point that the programme names.
fn value(programme: &ProgrammeView, liability: &Liability) -> Option<String> {
    let cost = &programme.configuration["unitCost"];
    let cost: f64 = match cost.as_str() {
        Some(text) => text.parse().ok()?,
        None => cost.as_f64()?,
    };
    Some(words::short_number(programme.charted(liability.total()) * cost))
}

fn chart(programme: &ProgrammeView, liability: &Liability) -> Markup {
    let dated =
        || liability.outstanding.iter().filter_map(|(month, points)| Some(((*month)?, *points)));
    let Some(first) = dated().map(|(month, _)| month.0).min() else {
        return html! { p { "They never expire." } };
    };
    let last = dated().map(|(month, _)| month.0).max().unwrap_or(first);
    let last = last.max(first + MONTHS_MIN - 1).min(first + MONTHS_MAX - 1);

    let months = first..=last;
    let of =
        |month: i32| dated().filter(|(other, _)| other.0 == month).map(|(_, points)| points).sum();
    let values = months.clone().map(|month| Some(programme.charted(of(month)))).collect();
    let start_s = |month: i32| day_start_s(Month(month).first_day());
    Chart {
        title: "Points by the month in which they expire".to_owned(),
        words: format!("Points of {} that can be spent, by month", programme.name),
        times: months.map(start_s).collect(),
        lines: vec![Line { name: programme.unit.clone(), values, kind: Kind::Bars }],
        from_s: start_s(first),
        to_s: start_s(last + 1),
        points: Points::Buckets,
        unit: Unit::Count,
        scale: Scale::Linear,
        zone: &TimeZone::UTC,
        now_s: None,
        marks: Vec::new(),
    }
    .figure()
}

fn months(programme: &ProgrammeView, liability: &Liability) -> Markup {
    let all: i128 = liability.outstanding.iter().map(|(_, points)| points).sum();
    let share = |points: i128| {
        words::share(u64::try_from(points).unwrap_or(0), u64::try_from(all).unwrap_or(0))
    };
    html! {
        (parts::table("months-title", &MONTHS, &html! {
            @for (month, points) in &liability.outstanding {
                tr {
                    th scope="row" { @match month { Some(month) => (month), None => "never" } }
                    td.number { (programme.amount(*points)) }
                    td.number { (share(*points)) }
                }
            }
        }))
    }
}

/// What became of the points of a month.
fn gone(programme: &ProgrammeView, liability: &Liability) -> Markup {
    html! {
        section.card aria-labelledby="gone-title" {
            h2 #gone-title { "Breakage, by the month in which points were due" }
            (parts::table("gone-title", &GONE, &html! {
                @for gone in &liability.gone {
                    tr {
                        th scope="row" { (gone.month) }
                        td.number { (programme.amount(gone.burned)) }
                        td.number { (programme.amount(gone.expired)) }
                        td.number { (breakage(gone.breakage_ppm())) }
                    }
                }
            }))
            p.quiet { "Points count in the month in which they would have expired when they were spent, or did expire. The share of a month that is not over covers what has left so far." }
        }
    }
}

/// Where all points are that were ever issued.
fn accounts(programme: &ProgrammeView, liability: &Liability) -> Markup {
    let rows = [
        ("Issued, less what was taken back", liability.issued),
        ("Adjusted by hand", liability.adjusted),
        ("Spent", -liability.burned),
        ("Expired", -liability.expired),
        ("Moved to partners, less what came from them", -liability.partners),
        ("Written off after refunds", liability.written_off),
    ];
    html! {
        section.card aria-labelledby="accounts-title" {
            h2 #accounts-title { "How it came about" }
            (parts::table("accounts-title", &ACCOUNTS, &html! {
                @for (label, points) in rows {
                    tr { th scope="row" { (label) } td.number { (programme.change(points)) } }
                }
                tr {
                    th scope="row" { strong { "Owed to members" } }
                    td.number { strong { (programme.change(liability.total())) } }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::view::tests::programme;
    use raingauge_points::Gone;
    use serde_json::json;

    fn month(text: &str) -> Month {
        text.parse().unwrap()
    }

    fn liability() -> Liability {
        Liability {
            outstanding: vec![
                (Some(month("2026-07")), 900),
                (Some(month("2026-09")), 50),
                (None, 50),
            ],
            pending: 100,
            issued: 2_000,
            burned: 600,
            expired: 200,
            partners: 100,
            ..Liability::default()
        }
    }

    #[test]
    fn what_is_owed_is_the_sum_of_where_it_came_from() {
        let shown = accounts(&programme(json!({})), &liability()).into_string();
        assert!(shown.contains("+2,000") && shown.contains("-600"), "{shown}");
        assert!(shown.contains("<strong>+1,100</strong>"), "{shown}");
        assert_eq!(breakage(liability().breakage_ppm()), "25 %");
        assert_eq!(breakage(None), "–");
    }

    #[test]
    fn what_left_is_shown_by_the_month_in_which_it_was_due() {
        let mut liability = liability();
        liability.gone = vec![Gone { month: month("2026-05"), burned: 300, expired: 100 }];
        let shown = gone(&programme(json!({})), &liability).into_string();
        assert!(shown.contains("2026-05") && shown.contains("25 %"), "{shown}");
    }

    #[test]
    fn each_month_has_a_bar_and_a_row() {
        let programme = programme(json!({"unit": "GRP"}));
        let drawn = chart(&programme, &liability()).into_string();
        assert!(drawn.contains("2026-08") || drawn.contains("Aug"), "{drawn}");
        let listed = months(&programme, &liability()).into_string();
        assert!(listed.contains("2026-07") && listed.contains("90 %") && listed.contains("never"));
    }

    #[test]
    fn the_worth_follows_from_the_cost_of_a_point() {
        let with = |cost| value(&programme(json!({"unitCost": cost})), &liability());
        assert_eq!(with(json!(0.5)), Some("550".to_owned()));
        assert_eq!(with(json!("0.01")), Some("11".to_owned()));
        assert_eq!(with(json!(null)), None);
    }
}
