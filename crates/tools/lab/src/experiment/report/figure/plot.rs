//! A plot area with two axes: coordinates, grid, lines and areas.

use super::canvas::{Anchor, Canvas, Font};
use super::palette::Paint;
use crate::experiment::report::zone::Zone;
use raingauge_figure::path::Point;
use raingauge_figure::{Axis, Scale, Unit, clock};

pub const LABEL: Font = Font::new(12.0, Paint::Soft);
pub const STRONG: Font = Font::new(12.5, Paint::Ink).bold();
pub const LINE_WIDTH: f64 = 1.5;
const LABEL_GAP: f64 = 8.0;
const SWATCH: f64 = 14.0;
const LEGEND_GAP: f64 = 18.0;
pub const LEGEND_ROW: f64 = 18.0;
/// Width that a label of the time axis needs.
const TIME_ROOM: f64 = 72.0;

/// The axis of values, and their unit.
#[derive(Debug, Clone)]
pub struct Values {
    pub axis: Axis,
    pub unit: Unit,
}

impl Values {
    /// An axis that includes all the given values.
    pub fn new(values: impl Iterator<Item = f64>, unit: Unit) -> Self {
        let values: Vec<f64> = values.collect();
        Self { axis: Axis::new(values.into_iter(), Scale::Linear, 0.0), unit }
    }

    /// The values of the lines of a grid, each with its label.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        self.axis.ticks.iter().map(|tick| (*tick, self.unit.short(*tick)))
    }
}

/// The plot area, and the values at its edges.
#[derive(Debug, Clone)]
pub struct Plot {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub from: f64,
    pub to: f64,
    pub values: Values,
}

/// A value over an interval of the x axis: from, to, and the value if there is one.
pub type Stretch = (f64, f64, Option<f64>);

impl Plot {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub fn x(&self, at: f64) -> f64 {
        let share = (at - self.from) / (self.to - self.from).max(f64::MIN_POSITIVE);
        self.left + share.clamp(0.0, 1.0) * self.width
    }

    pub fn y(&self, value: f64) -> f64 {
        self.bottom() - self.values.axis.share(value) * self.height
    }

    /// Draws lines at round values, with labels to the left of the plot if there is room.
    pub fn grid(&self, canvas: &mut Canvas, has_labels: bool) {
        for (tick, words) in self.values.ticks() {
            let y = self.y(tick).round() + 0.5;
            let paint = if tick == 0.0 { Paint::Axis } else { Paint::Grid };
            canvas.line((self.left, y), (self.right(), y), paint, 1.0);
            if has_labels {
                canvas.text((self.left - LABEL_GAP, y + 4.0), words, LABEL, Anchor::End);
            }
        }
    }

    /// Describes the values above the highest line.
    pub fn caption(&self, canvas: &mut Canvas, words: &str) {
        canvas.text((self.left, self.top - 8.0), words, LABEL, Anchor::Start);
    }

    /// Draws an axis of milliseconds since 1970.
    pub fn time_axis(&self, canvas: &mut Canvas, zone: &Zone) {
        let len_max = (self.width / TIME_ROOM) as usize;
        let [from_s, to_s] = [self.from, self.to].map(|ms| (ms / 1e3) as i64);
        for tick in clock::ticks(from_s, to_s, zone.timezone(), len_max) {
            self.tick(canvas, tick.at_s as f64 * 1e3, &tick.text);
        }
    }

    /// Draws a tick of the x axis; its label stays within the picture.
    pub fn tick(&self, canvas: &mut Canvas, at: f64, words: &str) {
        let (x, y) = (self.x(at).round() + 0.5, self.bottom());
        canvas.line((x, y), (x, y + 5.0), Paint::Axis, 1.0);
        let half = LABEL.width(words) / 2.0;
        let middle = x.max(half).min(canvas.width - half);
        canvas.text((middle, y + 19.0), words, LABEL, Anchor::Middle);
    }

    /// The width needed for the labels to the left of the plot area.
    pub fn label_room(values: &Values) -> f64 {
        values.ticks().map(|(_, words)| LABEL.width(&words)).fold(0.0, f64::max) + LABEL_GAP
    }

    /// A line through the middles of the intervals, interrupted where a value is missing.
    pub fn curve(&self, stretches: &[Stretch]) -> Vec<Vec<Point>> {
        let run = |known: &[Stretch]| match known {
            // A single interval between two gaps becomes a short flat line, because a line through
            // one point would be invisible.
            [(from, to, Some(value))] => {
                vec![(self.x(*from), self.y(*value)), (self.x(*to), self.y(*value))]
            }
            _ => known
                .iter()
                .filter_map(|(from, to, value)| {
                    Some((self.x((from + to) / 2.0), self.y((*value)?)))
                })
                .collect(),
        };
        known_runs(stretches).map(run).collect()
    }

    /// A line that is flat over each interval.
    pub fn steps(&self, stretches: &[Stretch]) -> Vec<Vec<Point>> {
        let run = |known: &[Stretch]| {
            let flat =
                known.iter().filter_map(|(from, to, value)| Some((*from, *to, self.y((*value)?))));
            flat.flat_map(|(from, to, y)| [(self.x(from), y), (self.x(to), y)]).collect()
        };
        known_runs(stretches).map(run).collect()
    }

    /// The area between two lines of equal length, where both have values.
    pub fn between(&self, low: &[Stretch], high: &[Stretch]) -> Vec<Vec<Point>> {
        let both: Vec<(Stretch, f64)> = low
            .iter()
            .zip(high)
            .map(|((from, to, low), (_, _, high))| {
                ((*from, *to, high.filter(|_| low.is_some())), low.unwrap_or(0.0))
            })
            .collect();

        let runs = both.split(|((_, _, value), _)| value.is_none()).filter(|run| !run.is_empty());
        runs.map(|run| {
            let top: Vec<Stretch> = run.iter().map(|(stretch, _)| *stretch).collect();
            let bottom: Vec<Stretch> =
                run.iter().map(|((from, to, _), low)| (*from, *to, Some(*low))).collect();
            let back = self.steps(&bottom).concat();

            self.steps(&top).concat().into_iter().chain(back.into_iter().rev()).collect()
        })
        .collect()
    }
}

fn known_runs(stretches: &[Stretch]) -> impl Iterator<Item = &[Stretch]> {
    stretches.split(|(_, _, value)| value.is_none()).filter(|run| !run.is_empty())
}

/// The symbol of a legend entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Swatch {
    Line(Paint),
    Surface(Paint),
    Dashed(Paint, [f64; 2]),
}

/// Draws legend entries in rows of limited width. Returns their height.
pub fn legend(
    canvas: &mut Canvas,
    (left, top): Point,
    room: f64,
    items: &[(String, Swatch)],
) -> f64 {
    let mut x = left;
    let mut row = 0.0;
    for (name, swatch) in items {
        let width = SWATCH + 6.0 + LABEL.width(name);
        if x > left && x + width > left + room {
            (x, row) = (left, row + 1.0);
        }

        let y = top + row * LEGEND_ROW;
        draw_swatch(canvas, (x, y), *swatch);
        canvas.text((x + SWATCH + 6.0, y + 4.0), name.clone(), LABEL, Anchor::Start);
        x += width + LEGEND_GAP;
    }

    if items.is_empty() { 0.0 } else { (row + 1.0) * LEGEND_ROW }
}

fn draw_swatch(canvas: &mut Canvas, (x, y): Point, swatch: Swatch) {
    match swatch {
        Swatch::Line(paint) => canvas.line((x, y), (x + SWATCH, y), paint, 2.5),
        Swatch::Surface(paint) => canvas.rectangle((x, y - 5.0), SWATCH, 10.0, paint, 0.85),
        Swatch::Dashed(paint, dash) => {
            canvas.dashed((x + SWATCH / 2.0, y - 7.0), (x + SWATCH / 2.0, y + 7.0), paint, dash)
        }
    }
}

/// Places labels beside the ends of lines, moved apart where they would overlap.
pub fn end_labels(
    canvas: &mut Canvas,
    x: f64,
    (top, bottom): (f64, f64),
    mut ends: Vec<(f64, String, Paint)>,
) {
    const ROW: f64 = 15.0;
    ends.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut lowest = top - ROW;
    for (y, _, _) in &mut ends {
        *y = y.max(lowest + ROW);
        lowest = *y;
    }
    let over = (lowest - bottom).max(0.0);
    for (y, name, paint) in ends {
        canvas.text((x, y - over + 4.0), name, Font::new(12.5, paint).bold(), Anchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let values = Values::new([10.0].into_iter(), Unit::Number);
        Plot { left: 0.0, top: 0.0, width: 100.0, height: 50.0, from: 0.0, to: 10.0, values }
    }

    #[test]
    fn a_line_is_broken_where_nothing_is_known() {
        let values = [Some(0.0), Some(10.0), None, Some(5.0), None];
        let stretches: Vec<Stretch> = values
            .iter()
            .enumerate()
            .map(|(place, value)| (place as f64, place as f64 + 1.0, *value))
            .collect();

        let curve = plot().curve(&stretches);
        assert_eq!(curve, [vec![(5.0, 50.0), (15.0, 0.0)], vec![(30.0, 25.0), (40.0, 25.0)]]);
        assert_eq!(
            plot().steps(&stretches)[0],
            [(0.0, 50.0), (10.0, 50.0), (10.0, 0.0), (20.0, 0.0)]
        );

        let zero: Vec<Stretch> =
            stretches.iter().map(|(from, to, _)| (*from, *to, Some(0.0))).collect();
        assert_eq!(plot().between(&zero, &stretches).len(), 2);
    }

    #[test]
    fn names_at_ends_do_not_lie_on_each_other() {
        let mut canvas = Canvas::new(100.0, "", "");
        let end = |y: f64| (y, "name".to_owned(), Paint::Store);
        end_labels(&mut canvas, 0.0, (0.0, 50.0), vec![end(50.0), end(48.0), end(10.0)]);

        let heights: Vec<f64> = canvas
            .shapes
            .iter()
            .map(|shape| match shape {
                crate::experiment::report::figure::canvas::Shape::Text { at, .. } => at.1,
                _ => unreachable!("only texts are written"),
            })
            .collect();

        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 14.9), "{heights:?}");
        assert!(heights[2] <= 54.0);
    }

    #[test]
    fn a_legend_breaks_where_there_is_no_room() {
        let items: Vec<(String, Swatch)> =
            (0..3).map(|place| (format!("name {place}"), Swatch::Line(Paint::Store))).collect();
        let mut canvas = Canvas::new(100.0, "", "");
        assert_eq!(legend(&mut canvas, (0.0, 0.0), 1_000.0, &items), LEGEND_ROW);
        assert_eq!(legend(&mut canvas, (0.0, 0.0), 50.0, &items), 3.0 * LEGEND_ROW);
    }
}
