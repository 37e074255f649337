//! Curves of an experiment, one panel below the other.

use super::record::{Curve, Panel, Record};
use crate::experiment::report::figure::canvas::{Anchor, Canvas, Font};
use crate::experiment::report::figure::palette::{self, Paint};
use crate::experiment::report::figure::{framed, wrapped};
use raingauge_figure::{Axis, Scale, number};

const WIDTH: f64 = 860.0;
const AXIS_ROOM: f64 = 64.0;
const NAMES_ROOM: f64 = 190.0;
const PLOT_HEIGHT: f64 = 210.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 52.0;
const LINE: f64 = 17.0;
const TITLE: Font = Font::new(17.0, Paint::Ink).bold();
const WORDS: Font = Font::new(12.5, Paint::Soft);
const PANEL: Font = Font::new(12.5, Paint::Ink).bold();
const LABEL: Font = Font::new(12.0, Paint::Soft);

/// Draws the panels of a record.
pub fn draw(record: &Record) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, record.title, &record.words);
    canvas.text((0.0, 18.0), record.title, TITLE, Anchor::Start);
    let mut top = 38.0;
    for line in wrapped(&record.words, WORDS, WIDTH) {
        canvas.text((0.0, top), line, WORDS, Anchor::Start);
        top += LINE;
    }

    for panel in &record.panels {
        top = panel_at(&mut canvas, panel, top);
    }
    canvas.height = top;
    framed(canvas)
}

/// Draws a panel. Returns its bottom.
fn panel_at(canvas: &mut Canvas, panel: &Panel, top: f64) -> f64 {
    let points = || panel.curves.iter().flat_map(|curve| curve.points.iter());
    let scale = if panel.is_logarithmic { Scale::Logarithmic } else { Scale::Linear };
    let heights = Axis::new(points().map(|(_, y)| *y), scale, 0.0);
    let widths = Axis::new(points().map(|(x, _)| *x), Scale::Linear, 0.0);

    let (left, right) = (AXIS_ROOM, WIDTH - NAMES_ROOM);
    let (first, last) = (top + HEAD, top + HEAD + PLOT_HEIGHT);
    let x = |value: f64| left + widths.share(value) * (right - left);
    let y = |value: f64| last - heights.share(value) * (last - first);

    canvas.text((0.0, top + 20.0), panel.title.clone(), PANEL, Anchor::Start);
    for tick in &heights.ticks {
        canvas.line((left, y(*tick)), (right, y(*tick)), Paint::Grid, 1.0);
        canvas.text((left - 8.0, y(*tick) + 4.0), number::short(*tick), LABEL, Anchor::End);
    }
    for tick in &widths.ticks {
        canvas.text((x(*tick), last + 18.0), number::short(*tick), LABEL, Anchor::Middle);
    }
    canvas.text(((left + right) / 2.0, last + 36.0), panel.x, LABEL, Anchor::Middle);

    for (place, curve) in panel.curves.iter().enumerate() {
        let paint = palette::phase(place, panel.curves.len());
        let run: Vec<(f64, f64)> =
            curve.points.iter().map(|point| (x(point.0), y(point.1))).collect();
        canvas.curve(vec![run], paint, 2.0);
    }
    names(canvas, &panel.curves, (right + 14.0, first + 10.0));
    last + FOOT
}

/// The names of the curves, in their order.
fn names(canvas: &mut Canvas, curves: &[Curve], (left, top): (f64, f64)) {
    for (place, curve) in curves.iter().enumerate() {
        let y = top + place as f64 * LINE;
        let paint = palette::phase(place, curves.len());
        canvas.line((left, y - 4.0), (left + 16.0, y - 4.0), paint, 3.0);
        canvas.text((left + 22.0, y), curve.name.clone(), LABEL, Anchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::figure::svg;

    #[test]
    fn every_curve_lies_in_the_picture_and_is_named() {
        let mut record = Record::new("sample", "A sample", "Some words about it.");
        let curve = |name: &str, factor: f64| Curve {
            name: name.to_owned(),
            points: (0..5).map(|x| (f64::from(x), factor * f64::from(x + 1))).collect(),
        };
        for is_logarithmic in [false, true] {
            let curves = vec![curve("one by one", 100.0), curve("two batches", 3.0)];
            let title = "Milliseconds".to_owned();
            record.panels.push(Panel { title, x: "round trip, ms", is_logarithmic, curves });
        }
        record.panels.push(Panel {
            title: "Nothing".to_owned(),
            x: "x",
            is_logarithmic: true,
            curves: vec![],
        });

        let canvas = draw(&record);
        let (low, high) = canvas.bounds();
        assert!(low.0 >= 0.0 && high.0 <= canvas.width, "{low:?} {high:?}");
        assert!(low.1 >= 0.0 && high.1 <= canvas.height, "{low:?} {high:?}");
        let text = svg::document(&canvas);
        roxmltree::Document::parse(&text).unwrap();
        assert!(text.contains("one by one") && text.contains("two batches"));
    }
}
