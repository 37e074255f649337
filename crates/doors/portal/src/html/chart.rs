//! Charts over time, drawn on the server as SVG.
//!
//! ```text
//!   lines ──▶ thin: at most COLUMNS_MAX columns ──▶ draw, by the axes of raingauge-figure ──▶ figure │ document
//! ```
//!
//! One picture fits every width: shapes lie in a part that is stretched, and texts are placed beside
//! it at percentages of the width. Colours come from the style sheet, or from attributes if there is
//! none. The table below a figure has the same numbers; `chart.js` reads them out under
//! the pointer and saves the picture.

mod draw;
mod spark;
mod thin;

pub use raingauge_figure::{Scale, Unit};
pub use spark::sparkline;

use super::words;
use draw::Drawing;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::json;

/// Largest number of columns in a picture: more than two for each point of a wide screen would only
/// flicker.
pub const COLUMNS_MAX: usize = 1_200;
/// Number of lines with a colour of their own.
pub const LINES_MAX: usize = 6;
/// Largest number of rows in the table below a figure.
const ROWS_MAX: usize = 400;

/// The data of a chart, and its time axis.
pub struct Chart<'a> {
    /// The title, which a screen reader announces first.
    pub title: String,
    /// A description of what the chart shows.
    pub words: String,
    /// Seconds since 1970, ascending.
    pub times: Vec<i64>,
    pub lines: Vec<Line>,
    /// Start and end of the time axis, which covers all times.
    pub from_s: i64,
    pub to_s: i64,
    pub points: Points,
    pub unit: Unit,
    pub scale: Scale,
    pub zone: &'a TimeZone,
    /// Draws a mark at this time if it lies on the axis.
    pub now_s: Option<i64>,
    /// Events within the range, in time order.
    pub marks: Vec<Mark>,
}

/// An event at a point in time, shown beside its effect.
#[derive(Clone, Debug)]
pub struct Mark {
    pub at_s: i64,
    /// A short label.
    pub name: String,
}

/// One series of values, one for each entry of `times`; `None` where the value is unknown.
#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    pub values: Vec<Option<f64>>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bars from the baseline; a single area when there are too many to tell apart.
    Bars,
    Line,
    /// A pale line for comparison.
    Pale,
}

/// What the values stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// The time up to the next point: sums that can be added up.
    Buckets,
    /// A point in time.
    Moments,
}

impl Chart<'_> {
    /// Renders the picture for a page, with its legend and a table of the numbers.
    pub fn figure(&self) -> Markup {
        let thinned = thin::thin(&self.times, &self.lines, self.points, COLUMNS_MAX);
        let drawing = Drawing::new(self, &thinned);
        html! {
            figure.chart data-chart=(self.data(&thinned)) {
                div class={ "chart-plot labels-" (drawing.label_len()) } tabindex="0" role="group" aria-label={ (self.title) ". Arrow keys read the values." } {
                    (drawing.picture())
                }
                @if self.lines.len() > 1 { (self.legend()) }
                @if thinned.merged > 1 { p.quiet.chart-note { (self.merged_words(thinned.merged)) } }
                (self.table())
            }
        }
    }

    /// Renders only the picture, as a file that needs no style sheet.
    pub fn document(&self) -> Markup {
        let thinned = thin::thin(&self.times, &self.lines, self.points, COLUMNS_MAX);
        Drawing::new(self, &thinned).document()
    }

    fn legend(&self) -> Markup {
        html! {
            ul.legend {
                @for (place, line) in self.lines.iter().enumerate() {
                    li {
                        svg.swatch viewBox="0 0 16 10" width="16" height="10" aria-hidden="true" {
                            path class=(draw::line_class(line.kind, place)) d="M0 5H16" {}
                        }
                        span { (line.name) }
                    }
                }
            }
        }
    }

    fn merged_words(&self, merged: usize) -> String {
        match self.points {
            Points::Buckets => format!(
                "There are {} points. The picture adds up {merged} at a time; the table and the download have each by itself.",
                words::number(self.times.len() as i128)
            ),
            Points::Moments => {
                format!(
                    "There are {} points. The picture shows the mean of {merged} at a time.",
                    self.times.len()
                )
            }
        }
    }

    /// The end of the bucket at this index.
    fn end_s(&self, place: usize) -> i64 {
        self.times.get(place + 1).copied().unwrap_or(self.to_s)
    }

    fn when(&self, place: usize) -> String {
        match self.points {
            Points::Buckets => words::bucket(self.times[place], self.end_s(place), self.zone),
            Points::Moments => words::weekday_moment(self.times[place], self.zone),
        }
    }

    /// The same numbers as a table: values other than 0, latest first.
    fn table(&self) -> Markup {
        let says_something = |place: &usize| {
            self.lines.iter().any(|line| {
                line.values.get(*place).copied().flatten().is_some_and(|value| value != 0.0)
            })
        };

        let places: Vec<usize> = (0..self.times.len()).rev().filter(says_something).collect();
        let caption = match places.len() {
            0 => "Every value is 0.".to_owned(),
            len if len > ROWS_MAX => format!("The latest {ROWS_MAX} of {len} rows that are not 0"),
            _ => "Rows that are not 0, latest first".to_owned(),
        };

        html! {
            details.chart-table {
                summary { "Show as a table" }
                div.scroll tabindex="0" role="region" aria-label={ "Table of " (self.title) } {
                    table {
                        caption { (caption) }
                        thead {
                            tr {
                                th scope="col" { "Time, " (words::zone(self.zone)) }
                                @for line in &self.lines { th.number scope="col" { (line.name) } }
                            }
                        }
                        tbody {
                            @for place in places.iter().take(ROWS_MAX) {
                                tr {
                                    th scope="row" { (self.when(*place)) }
                                    @for line in &self.lines {
                                        td.number { (self.unit.full(line.values.get(*place).copied().flatten())) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The data that the script reads out.
    fn data(&self, thinned: &thin::Thinned) -> String {
        let lines: Vec<_> = thinned
            .lines
            .iter()
            .map(|line| json!({ "name": line.name, "values": line.values.iter().map(short_json).collect::<Vec<_>>() }))
            .collect();
        let from = self.from_s;
        let to = self.to_s;
        let times = &thinned.times;
        let is_buckets = self.points == Points::Buckets;
        json!({ "title": self.title, "from": from, "to": to, "zone": words::zone(self.zone), "unit": self.unit.name(),
            "buckets": is_buckets, "times": times, "lines": lines })
        .to_string()
    }
}

/// Writes whole numbers without a fraction, which keeps a year of them small.
fn short_json(value: &Option<f64>) -> serde_json::Value {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => json!(*value as i64),
        value => json!(value),
    }
}

#[cfg(test)]
mod tests;
