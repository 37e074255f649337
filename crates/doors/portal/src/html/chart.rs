//! Charts over time, drawn on the server as SVG.
//!
//! ```text
//!   data ──▶ thin: at most COLUMNS_MAX columns ──▶ draw: axes of raingauge-figure, shapes
//!                                                    │
//!                                       figure of a page, or a file that stands alone
//! ```
//!
//! One picture fits every width: shapes lie in a part that is stretched, and texts are placed
//! beside it at percentages of the width. Colours come from the style sheet, or from attributes if
//! there is none. The table below a figure has the same numbers; `chart.js` reads them out under
//! the pointer and saves the picture.

mod data;
mod draw;
mod spark;
mod thin;

pub use data::{COLUMNS_MAX, Chart, Kind, LINES_MAX, Line, Mark, Points};
pub use raingauge_figure::{Scale, Unit};
pub use spark::sparkline;

use super::words;
use draw::Drawing;
use maud::{Markup, html};
use serde_json::json;

/// Largest number of rows in the table below a figure.
const ROWS_MAX: usize = 400;

impl Chart<'_> {
    /// Renders the picture for a page, with its legend and a table of the numbers.
    pub fn figure(&self) -> Markup {
        let thinned = thin::thin(&self.times, &self.lines, self.points, COLUMNS_MAX);
        let drawing = Drawing::new(self, &thinned);
        html! {
            figure.chart data-chart=(self.data(&thinned)) {
                div class={ "chart-plot labels-" (drawing.label_len()) } tabindex="0" role="group"
                    aria-label={ (self.title) ". Arrow keys read the values." } {
                    (drawing.picture())
                }
                @if self.lines.len() > 1 { (self.legend()) }
                @if thinned.merged > 1 {
                    p.quiet.chart-note { (self.merged_words(thinned.merged)) }
                }
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
        let points = words::number(self.times.len() as i128);
        match self.points {
            Points::Buckets => format!(
                "There are {points} points. The picture adds up {merged} at a time; the table and \
                 the download show each of them."
            ),
            Points::Moments => format!(
                "There are {points} points. The picture shows the mean of {merged} at a time."
            ),
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
            len if len > ROWS_MAX => format!(
                "The latest {ROWS_MAX} of {} rows that are not 0",
                words::number(len as i128)
            ),
            _ => "Rows that are not 0, latest first".to_owned(),
        };

        let value =
            |line: &Line, place: usize| self.unit.full(line.values.get(place).copied().flatten());
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
                                        td.number { (value(line, *place)) }
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
        let values = |line: &Line| line.values.iter().map(short_json).collect::<Vec<_>>();
        let lines: Vec<_> = thinned
            .lines
            .iter()
            .map(|line| json!({ "name": line.name, "values": values(line) }))
            .collect();
        json!({
            "title": self.title, "from": self.from_s, "to": self.to_s,
            "zone": words::zone(self.zone), "unit": self.unit.name(),
            "buckets": self.points == Points::Buckets, "times": thinned.times, "lines": lines,
        })
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
