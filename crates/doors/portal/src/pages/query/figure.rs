//! A picture of what a count reads, in the style of the published description: quarter hours, hours
//! and days that add up.
//!
//! ```text
//!            24 Sep 22:00      25 Sep            27 Sep    01:00   01:15
//!   days                       │ 210 │ 214 │
//!   hours      │ 18 │ 22 │                       │ 11 │
//!   quarters                                              │ 2 │
//!                  40      +      424         +    11    +   2   =  477
//! ```
//!
//! It is not to scale: a quarter hour beside a year would be too narrow to see.

use crate::Portal;
use crate::html::parts;
use crate::html::parts::Column::{Number, Text};
use crate::html::words::{self, extent};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_core::plan::Slice;
use raingauge_reader::{Explanation, Point, Range};

/// Largest number of cells in a slice that are drawn one by one.
const CELLS_DRAWN_MAX: i64 = 31;
/// Heights within the picture, in pixels.
const HEAD: f64 = 28.0;
const LANE: f64 = 40.0;
const BOX: f64 = 30.0;
const HEIGHT: f64 = HEAD + 3.0 * LANE + 34.0;
/// Widths of the picture on a desktop screen and of a digit in a cell, in pixels.
const DESK: f64 = 860.0;
const DIGIT: f64 = 8.0;

/// A slice with its sum, and with its cells if they are few.
pub struct Sliced {
    pub slice: Slice,
    pub cells: i64,
    pub sum: Option<i64>,
    points: Vec<Point>,
}

/// The slices that a count adds up, in time order.
pub async fn slices(portal: &Portal, key: &str, explained: &Explanation) -> Vec<Sliced> {
    let mut slices: Vec<Slice> =
        explained.plans.iter().flat_map(|(_, plan)| plan.slices().collect::<Vec<_>>()).collect();
    slices.sort_by_key(|slice| slice.from_s);

    let mut found = Vec::with_capacity(slices.len());
    for slice in slices {
        let cells = (slice.to_s - slice.from_s) / slice.granularity.width_s();
        let range = Range { key, from_s: slice.from_s, to_s: slice.to_s, fresh: false };
        let points = if cells <= CELLS_DRAWN_MAX {
            portal
                .reader
                .series(&range, slice.granularity.into(), "UTC")
                .await
                .map(|series| series.points)
                .unwrap_or_default()
        } else {
            Vec::new()
        };

        let sum = if points.is_empty() {
            portal
                .reader
                .counts(std::slice::from_ref(&range))
                .await
                .remove(0)
                .ok()
                .map(|answer| answer.count)
        } else {
            Some(points.iter().map(|point| point.count).sum())
        };
        found.push(Sliced { slice, cells, sum, points });
    }

    found
}

/// Where each slice begins and ends, from 0 to 1. A slice with many cells is wider, but never so
/// wide that others vanish.
fn places(slices: &[Sliced]) -> Vec<(f64, f64)> {
    let weight = |sliced: &Sliced| 1.0 + (sliced.cells.max(1) as f64).ln().min(4.0) / 4.0;
    let whole: f64 = slices.iter().map(weight).sum();
    let mut at = 0.0;
    let place = |sliced: &Sliced| {
        let from = at;
        at += weight(sliced) / whole;
        (from, at)
    };
    slices.iter().map(place).collect()
}

pub fn drawn(slices: &[Sliced], total: i64) -> Markup {
    if slices.is_empty() {
        return html! { p.quiet { "Both ends are in the same quarter hour: nothing is read." } };
    }
    let places = places(slices);
    let sums: Vec<String> = slices.iter().map(|sliced| sum_words(sliced.sum)).collect();
    let label = format!("{} = {}", sums.join(" + "), words::number(total.into()));

    html! {
        figure.plan {
            div.plan-plot {
                svg role="img" width="100%" height=(HEIGHT) overflow="visible"
                    aria-label={ "What the count reads: " (label) } {
                    g aria-hidden="true" {
                        (lanes())
                        @for (sliced, place) in slices.iter().zip(&places) {
                            (slice(sliced, *place))
                        }
                        (ends(slices, &places))
                        (additions(&sums, &places))
                    }
                }
            }
            figcaption.plan-total {
                "The slices add up to " strong { (words::number(total.into())) }
                ". Times are UTC; widths are not to scale."
            }
        }
    }
}

fn sum_words(sum: Option<i64>) -> String {
    sum.map_or_else(|| "?".to_owned(), |sum| words::number(sum.into()))
}

const LANES: [(Granularity, &str); 3] =
    [(Granularity::Day, "days"), (Granularity::Hour, "hours"), (Granularity::Quarter, "¼ hours")];

const fn lane_of(granularity: Granularity) -> f64 {
    match granularity {
        Granularity::Day => HEAD,
        Granularity::Hour => HEAD + LANE,
        Granularity::Quarter => HEAD + 2.0 * LANE,
    }
}

fn lanes() -> Markup {
    html! {
        @for (granularity, name) in LANES {
            @let y = lane_of(granularity) + BOX / 2.0;
            text.chart-label x="-8" y=(y + 4.0) text-anchor="end" { (name) }
            line.chart-grid x1="0" x2="100%" y1=(y) y2=(y) {}
        }
    }
}

fn slice(sliced: &Sliced, (from, to): (f64, f64)) -> Markup {
    let y = lane_of(sliced.slice.granularity);

    // A small gap between neighbours.
    let (from, to) = (from + 0.004, to - 0.004);
    let width = (to - from) / sliced.points.len().max(1) as f64;
    let cell = |x: f64, width: f64| {
        html! { rect.plan-cell x=(extent(x)) width=(extent(width)) y=(y) height=(BOX) rx="3" {} }
    };
    let label = |x: f64, text: &str| {
        let y = y + BOX / 2.0 + 4.0;
        html! { text.plan-value x=(extent(x)) y=(y) text-anchor="middle" { (text) } }
    };

    html! {
        @if sliced.points.is_empty() {
            @let cells = words::short_number(sliced.cells as f64);
            (cell(from, to - from))
            (label((from + to) / 2.0, &format!("{cells} {}", words_of(sliced))))
        }
        @for (place, point) in sliced.points.iter().enumerate() {
            @let x = from + width * place as f64;
            @let text = words::short_number(point.count as f64);
            (cell(x, width))
            @if text.chars().count() as f64 * DIGIT + 4.0 <= width * DESK {
                (label(x + width / 2.0, &text))
            }
        }
    }
}

fn words_of(sliced: &Sliced) -> &'static str {
    words::plural(sliced.slice.granularity)
}

/// The times at which slices begin and end. They also stand below the picture, so that a phone may
/// omit them.
fn ends(slices: &[Sliced], places: &[(f64, f64)]) -> Markup {
    let mark = |x: f64, anchor: &str, at_s: i64| {
        let x = extent(x);
        html! {
            line.chart-mark x1=(x) x2=(x) y1="18" y2=(HEIGHT - 34.0) {}
            text.chart-label x=(x) y="12" text-anchor=(anchor) { (time_words(at_s)) }
        }
    };

    html! {
        g.ticks-wide {
            @for (sliced, (from, _)) in slices.iter().zip(places) {
                @let anchor = if *from == 0.0 { "start" } else { "middle" };
                (mark(*from, anchor, sliced.slice.from_s))
            }
            @if let Some(last) = slices.last() { (mark(1.0, "end", last.slice.to_s)) }
        }
    }
}

/// `25 Sep` at midnight, `25 Sep, 22:00` otherwise.
fn time_words(at_s: i64) -> String {
    let format = if at_s % 86_400 == 0 { "%-d %b" } else { "%-d %b, %H:%M" };
    words::local(at_s, &TimeZone::UTC)
        .map(|local| local.strftime(format).to_string())
        .unwrap_or_default()
}

fn additions(sums: &[String], places: &[(f64, f64)]) -> Markup {
    html! {
        @for (place, (sum, (from, to))) in sums.iter().zip(places).enumerate() {
            @let y = HEIGHT - 8.0;
            @let middle = extent((from + to) / 2.0);
            @if place > 0 {
                text.plan-plus x=(extent(*from)) y=(y) text-anchor="middle" { "+" }
            }
            text.plan-sum x=(middle) y=(y) text-anchor="middle" { (sum) }
        }
    }
}

/// The same as a table. Like the count, each slice ends just before its end.
pub fn table(slices: &[Sliced], zone: &TimeZone) -> Markup {
    let range = format!("From – to, {}", words::zone(zone));
    let columns = [Text("Read"), Text(&range), Number("Cells"), Number("Sum")];
    parts::named_table(
        "What was read",
        "",
        &columns,
        &html! {
            @for sliced in slices {
                tr {
                    th scope="row" { (words_of(sliced)) }
                    td { (words::span(sliced.slice.from_s, sliced.slice.to_s, zone)) }
                    td.number { (words::number(sliced.cells.into())) }
                    td.number { (sum_words(sliced.sum)) }
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliced(granularity: Granularity, cells: i64) -> Sliced {
        let slice = Slice { granularity, from_s: 0, to_s: cells * granularity.width_s() };
        let points = (0..cells.min(5))
            .map(|place| Point { time: place * granularity.width_s(), count: 7 })
            .collect();
        Sliced { slice, cells, sum: Some(cells * 7), points }
    }

    #[test]
    fn every_slice_has_room() {
        let slices = [
            sliced(Granularity::Quarter, 1),
            sliced(Granularity::Day, 3_000),
            sliced(Granularity::Hour, 23),
        ];

        let places = places(&slices);
        assert!(places.iter().all(|(from, to)| to - from > 0.12), "{places:?}");
        assert!((places[2].1 - 1.0).abs() < 1e-9);

        let picture = drawn(&slices, 21_168).into_string();
        assert!(picture.contains("What the count reads: 7 + 21,000 + 161 = 21,168"), "{picture}");
        assert!(!picture.contains("style="));
    }

    #[test]
    fn nothing_to_read_is_reported() {
        assert!(drawn(&[], 0).into_string().contains("nothing is read"));
    }
}
