//! Pictures of a run: bars on logarithmic axes, one panel per metric.

use super::question::Kind;
use super::report::{Report, System, short};
use crate::experiment::report::figure::canvas::{Anchor, Canvas, Font};
use crate::experiment::report::figure::palette::Paint;
use crate::experiment::report::figure::{framed, png, proper, svg, wrapped};
use crate::report::{RAINGAUGE, grouped, milliseconds};
use anyhow::{Context, Result};
use raingauge_figure::{Axis, Scale, number};
use std::path::Path;

const WIDTH: f64 = 960.0;
const NAMES_ROOM: f64 = 120.0;
const WORDS_ROOM: f64 = 118.0;
const GAP: f64 = 28.0;
const ROW: f64 = 22.0;
const BAR: f64 = 13.0;
const HEAD: f64 = 44.0;
const FOOT: f64 = 26.0;
const TITLE: Font = Font::new(17.0, Paint::Ink).bold();
const WORDS: Font = Font::new(12.5, Paint::Soft);
const PANEL: Font = Font::new(12.5, Paint::Ink).bold();
const LABEL: Font = Font::new(12.0, Paint::Soft);

struct Picture {
    stem: &'static str,
    title: &'static str,
    words: &'static str,
    panels: Vec<Panel>,
}

struct Panel {
    title: String,
    rows: Vec<Row>,
}

/// A bar up to `high`; if there is a `low`, the part between the two is highlighted.
struct Row {
    name: String,
    is_own: bool,
    low: Option<f64>,
    high: f64,
    words: String,
}

/// A logarithmic axis, from left to right.
struct Decades {
    left: f64,
    width: f64,
    axis: Axis,
}

impl Decades {
    fn new(rows: &[Row], left: f64, width: f64) -> Self {
        let values = rows.iter().flat_map(|row| [row.low.unwrap_or(row.high), row.high]);
        Self { left, width, axis: Axis::new(values, Scale::Logarithmic, 0.0) }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.axis.share(value) * self.width
    }
}

/// Writes every picture of the report to a folder, as SVG and as PNG.
pub fn write(report: &Report, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for picture in pictures(report) {
        let canvas = picture.draw();
        let path = folder.join(picture.stem);
        std::fs::write(path.with_extension("svg"), svg::document(&canvas))
            .context("a picture as SVG")?;
        std::fs::write(path.with_extension("png"), png::image(&canvas)?)
            .context("a picture as PNG")?;
    }
    Ok(())
}

fn pictures(report: &Report) -> Vec<Picture> {
    vec![rates(report), latencies(report), costs(report)]
}

fn row(system: &System, high: f64, words: String) -> Row {
    Row {
        name: system.title().to_owned(),
        is_own: system.name == RAINGAUGE,
        low: None,
        high,
        words,
    }
}

fn rates(report: &Report) -> Picture {
    let of = |system: &System, value: f64| row(system, value, grouped(value));
    let counts = report.systems.iter().map(|system| of(system, system.counts_per_s())).collect();
    let event = |system: &System| {
        let written = system.best_written()?;
        let mut row = of(system, written.events_per_s);
        row.words += match (written.mode.durable, written.mode.exactly_once) {
            (true, true) => " d, o",
            (true, false) => " d",
            (false, true) => " o",
            (false, false) => "",
        };

        Some(row)
    };

    Picture {
        stem: "peers-rates",
        title: "Counts and events per second",
        words: "One core for the system, one for its client; logarithmic. Counts in batches of ten ranges of up to 90 days. \
                Events in the way with the strongest guarantees: d survives a power failure, o counts a duplicate once.",
        panels: vec![
            Panel { title: "Counts per second".to_owned(), rows: counts },
            Panel {
                title: "Events per second".to_owned(),
                rows: report.systems.iter().filter_map(event).collect(),
            },
        ],
    }
}

fn latencies(report: &Report) -> Picture {
    let panel = |kind: Kind| {
        let rows = report.systems.iter().filter_map(|system| {
            let latency = system.read(kind)?.half.latency;
            let words =
                format!("{}, {}", milliseconds(latency.p50_us), milliseconds(latency.p99_us));
            let row = row(system, latency.p99_us / 1_000.0, words);

            Some(Row { low: Some(latency.p50_us / 1_000.0), ..row })
        });
        Panel { title: format!("{}: p50 to p99 in ms", proper(kind.name())), rows: rows.collect() }
    };
    Picture {
        stem: "peers-latency",
        title: "Latency of questions",
        words: "Milliseconds, logarithmic: a bar begins at p50 and ends at p99. Each system is queried at half of its own maximum \
                rate, and latency runs from the moment at which a question was due.",
        panels: Kind::ALL.map(panel).into(),
    }
}

fn costs(report: &Report) -> Picture {
    let panel = |title: &str, value: &dyn Fn(&System) -> Option<f64>| {
        let rows = report
            .systems
            .iter()
            .filter_map(|system| value(system).map(|value| row(system, value, short(value))));
        Panel { title: title.to_owned(), rows: rows.collect() }
    };

    let megabytes = |bytes: f64| bytes / 1_000_000.0;
    Picture {
        stem: "peers-cost",
        title: "Cost of counts and events",
        words: "Logarithmic. Processor time is the system's own. Events are written in the way with the strongest guarantees; disk is what \
                grew with them, after merging, with the ids or events themselves where a system keeps them.",
        panels: vec![
            panel("CPU s per million counts", &|system| {
                Some(system.read(Kind::Batch)?.cpu_s_per_million)
            }),
            panel("CPU s per million events", &|system| {
                Some(system.best_written()?.cpu_s_per_million)
            }),
            panel("Memory, MB", &|system| Some(megabytes(system.memory_bytes as f64))),
            panel("Disk, MB per million events of history", &|system| {
                Some(megabytes(system.history_bytes_per_million))
            }),
            panel("Disk, MB per million new events", &|system| {
                Some(megabytes(system.best_written()?.disk_bytes_per_million))
            }),
        ],
    }
}

impl Picture {
    fn draw(&self) -> Canvas {
        let mut canvas = Canvas::new(WIDTH, self.title, self.words);
        canvas.text((0.0, 18.0), self.title, TITLE, Anchor::Start);

        let mut top = 38.0;
        for line in wrapped(self.words, WORDS, WIDTH) {
            canvas.text((0.0, top), line, WORDS, Anchor::Start);
            top += 17.0;
        }

        let width = (WIDTH - GAP) / 2.0;
        for pair in self.panels.chunks(2) {
            let mut below = top;
            for (column, panel) in pair.iter().enumerate() {
                below =
                    panel.draw(&mut canvas, (column as f64 * (width + GAP), top), width).max(below);
            }

            top = below;
        }

        canvas.height = top;
        framed(canvas)
    }
}

impl Panel {
    /// Draws the panel. Returns its bottom.
    fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), width: f64) -> f64 {
        let axis = Decades::new(&self.rows, left + NAMES_ROOM, width - NAMES_ROOM - WORDS_ROOM);
        canvas.text((left, top + 24.0), self.title.clone(), PANEL, Anchor::Start);

        let first = top + HEAD;
        let bottom = top + HEAD + self.rows.len() as f64 * ROW;
        for decade in &axis.axis.ticks {
            let x = axis.x(*decade).round() + 0.5;
            canvas.line((x, first - 4.0), (x, bottom), Paint::Grid, 1.0);
            canvas.text((x, bottom + 14.0), number::short(*decade), LABEL, Anchor::Middle);
        }

        for (place, row) in self.rows.iter().enumerate() {
            row.draw(canvas, &axis, left, first + place as f64 * ROW);
        }
        bottom + FOOT
    }
}

impl Row {
    fn draw(&self, canvas: &mut Canvas, axis: &Decades, left: f64, top: f64) {
        let name = if self.is_own { PANEL } else { LABEL };
        let paint = if self.is_own { Paint::Store } else { Paint::Axis };
        let baseline = top + 11.0;
        canvas.text((left, baseline), self.name.clone(), name, Anchor::Start);

        let end = axis.x(self.high).max(axis.left + 1.0);
        match self.low.map(|low| axis.x(low)) {
            Some(begin) => canvas.rectangle((begin, top), (end - begin).max(2.0), BAR, paint, 1.0),
            None => canvas.rectangle((axis.left, top), end - axis.left, BAR, paint, 1.0),
        }

        let words = Font::new(12.0, if self.is_own { Paint::Ink } else { Paint::Soft });
        canvas.text(
            (axis.left + axis.width + 8.0, baseline),
            self.words.clone(),
            words,
            Anchor::Start,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::report::tests::sample;

    #[test]
    fn pictures_show_every_system_and_nothing_lies_outside() {
        let mut empty = sample();
        empty.systems.clear();

        for report in [sample(), empty] {
            for picture in pictures(&report) {
                let canvas = picture.draw();
                let (low, high) = canvas.bounds();
                assert!(
                    low.0 >= -0.5 && high.0 <= canvas.width + 0.5,
                    "{}: {low:?} {high:?}",
                    picture.stem
                );
                assert!(
                    low.1 >= -0.5 && high.1 <= canvas.height + 0.5,
                    "{}: {low:?} {high:?}",
                    picture.stem
                );

                let text = svg::document(&canvas);
                roxmltree::Document::parse(&text).unwrap();
                assert!(report.systems.iter().all(|system| text.contains(system.title())));
            }
        }
    }
}
