//! The turn of a quarter hour: two intervals of the run as measured, and all quarter hours of each
//! phase superimposed.

use super::canvas::{Anchor, Canvas};
use super::palette::{self, Paint};
use super::plot::{LABEL, LEGEND_ROW, LINE_WIDTH, Plot, STRONG, Stretch, Swatch, Values, legend};
use super::wrapped;
use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::bins::{Bin, Bins, MINUTE_MS, QUARTER_MS};
use crate::experiment::report::fold::{Fold, FoldedQuarters, Measure, SLOT_MS};
use crate::experiment::report::phase::Phase;
use crate::experiment::report::window::Windows;
use crate::experiment::report::words::percent;
use raingauge_figure::Unit;

const PANEL: f64 = 170.0;
const HEAD: f64 = 52.0;
const FOOT: f64 = 46.0;
const COLUMN_GAP: f64 = 28.0;

pub struct Spikes {
    pub measure: Measure,
    /// Describes the values of a window's minutes.
    pub caption: String,
}

/// Selects the full hours or the other quarter hours of a phase.
type Side = fn(&Fold) -> &FoldedQuarters;

/// Two panels side by side, or stacked if there is not enough width.
struct Grid {
    left: f64,
    width: f64,
    columns: usize,
}

impl Grid {
    fn new(width: f64, left: f64, is_wide: bool) -> Self {
        if is_wide {
            Self { left, width: (width - COLUMN_GAP) / 2.0 - left, columns: 2 }
        } else {
            Self { left, width: width - left - 6.0, columns: 1 }
        }
    }

    fn plot(&self, place: usize, top: f64, values: &Values, (from, to): (f64, f64)) -> Plot {
        let row = place / self.columns;
        let column = place % self.columns;
        let left = self.left + column as f64 * (self.left + self.width + COLUMN_GAP);
        let top = top + row as f64 * (HEAD + PANEL + FOOT) + HEAD;
        Plot { left, top, width: self.width, height: PANEL, from, to, values: values.clone() }
    }

    fn height(&self) -> f64 {
        (2 / self.columns) as f64 * (HEAD + PANEL + FOOT)
    }
}

impl Spikes {
    /// Draws all panels. Returns their bottom.
    pub fn draw(&self, canvas: &mut Canvas, analysis: &Analysis, top: f64, is_wide: bool) -> f64 {
        let below = match &analysis.windows {
            Some(windows) => self.draw_windows(canvas, analysis, windows, top, is_wide),
            None => {
                let words = "The run has no two hours at the same time of the day before its first step and after its last.";
                let lines = wrapped(words, LABEL, canvas.width);
                let below = top + 18.0 * (lines.len() + 1) as f64;

                for (place, line) in lines.into_iter().enumerate() {
                    canvas.text(
                        (0.0, top + 16.0 + 18.0 * place as f64),
                        line,
                        LABEL,
                        Anchor::Start,
                    );
                }

                below
            }
        };
        self.draw_folds(canvas, analysis, below, is_wide)
    }

    fn draw_windows(
        &self,
        canvas: &mut Canvas,
        analysis: &Analysis,
        windows: &Windows,
        top: f64,
        is_wide: bool,
    ) -> f64 {
        let both = [("Before any step", &windows.before), ("After the last step", &windows.after)];
        let values = |bins: &Bins| bins.values(|bin| self.of_minute(analysis, bin));
        let axis =
            Values::new(both.iter().flat_map(|(_, bins)| values(bins)).flatten(), Unit::Number);
        let grid = Grid::new(canvas.width, Plot::label_room(&axis), is_wide);

        for (place, (name, bins)) in both.into_iter().enumerate() {
            let to_ms = bins.from_ms + bins.bins.len() as i64 * MINUTE_MS;
            let plot = grid.plot(place, top, &axis, (bins.from_ms as f64, to_ms as f64));
            let share = share_at(analysis, bins.from_ms);
            let head = format!("{name}: {}{share}", analysis.zone.words(bins.from_ms, "%a %-d %b"));

            canvas.text((plot.left, plot.top - 28.0), head, STRONG, Anchor::Start);
            quarter_marks(canvas, analysis, &plot, (bins.from_ms, to_ms));
            plot.grid(canvas, true);
            plot.caption(canvas, &self.caption);

            let minutes: Vec<Stretch> = bins
                .bins
                .iter()
                .zip(values(bins))
                .map(|(bin, value)| (bin.from_ms as f64, (bin.from_ms + MINUTE_MS) as f64, value))
                .collect();
            canvas.curve(plot.steps(&minutes), Paint::Store, LINE_WIDTH);
        }

        top + grid.height()
    }

    fn of_minute(&self, analysis: &Analysis, bin: &Bin) -> Option<f64> {
        match self.measure {
            Measure::StoreLoad => Some(analysis.per_s(bin.tally.store, MINUTE_MS)),
            Measure::Latency => bin.tally.mean_ms(),
        }
    }

    fn draw_folds(&self, canvas: &mut Canvas, analysis: &Analysis, top: f64, is_wide: bool) -> f64 {
        let items: Vec<(String, Swatch)> = analysis
            .phases
            .iter()
            .enumerate()
            .map(|(place, phase)| {
                (name(phase, place), Swatch::Line(palette::phase(place, analysis.phases.len())))
            })
            .collect();

        let top =
            top + legend(canvas, (0.0, top + 8.0), canvas.width, &items).max(LEGEND_ROW) - 6.0;
        let sides: [(&str, Side); 2] = [
            ("Quarter hours that start an hour", |fold| &fold.full_hours),
            ("The other quarter hours", |fold| &fold.others),
        ];
        let all = |side: Side| {
            analysis
                .folds
                .iter()
                .flat_map(move |fold| fold.relative(side(fold), self.measure))
                .flatten()
        };

        let axis = Values::new(sides.iter().flat_map(|(_, side)| all(*side)), Unit::Times);
        let grid = Grid::new(canvas.width, Plot::label_room(&axis), is_wide);
        for (place, (head, side)) in sides.into_iter().enumerate() {
            let plot = grid.plot(place, top, &axis, (0.0, QUARTER_MS as f64));
            canvas.text((plot.left, plot.top - 28.0), head, STRONG, Anchor::Start);
            plot.grid(canvas, true);
            plot.caption(canvas, "over the mean of the phase");
            minutes_axis(canvas, &plot);
            self.draw_fold(canvas, analysis, &plot, side);
        }

        top + grid.height()
    }

    fn draw_fold(&self, canvas: &mut Canvas, analysis: &Analysis, plot: &Plot, side: Side) {
        let mean = plot.y(1.0).round() + 0.5;
        canvas.line((plot.left, mean), (plot.right(), mean), Paint::Axis, 1.0);

        let len = analysis.folds.len();
        for (place, fold) in analysis.folds.iter().enumerate() {
            let slots: Vec<Stretch> = fold
                .relative(side(fold), self.measure)
                .into_iter()
                .enumerate()
                .map(|(slot, value)| {
                    ((slot as i64 * SLOT_MS) as f64, ((slot as i64 + 1) * SLOT_MS) as f64, value)
                })
                .collect();

            // The first and the last phase are compared, so their lines are thicker.
            let width = if place == 0 || place + 1 == len { 2.25 } else { 1.25 };
            canvas.curve(plot.steps(&slots), palette::phase(place, len), width);
        }
    }
}

fn name(phase: &Phase, place: usize) -> String {
    let share = percent(phase.share);
    if place == 0 { format!("{share} without cache") } else { share }
}

/// The share of counters without cache at a point in time, if it is within a phase.
fn share_at(analysis: &Analysis, at_ms: i64) -> String {
    let phase = analysis.phases.iter().find(|phase| phase.contains(at_ms));
    phase.map(|phase| format!(" ({})", percent(phase.share))).unwrap_or_default()
}

/// A line at every quarter hour, and the time below half hours.
fn quarter_marks(
    canvas: &mut Canvas,
    analysis: &Analysis,
    plot: &Plot,
    (from_ms, to_ms): (i64, i64),
) {
    for at_ms in (from_ms..=to_ms).step_by(QUARTER_MS as usize) {
        let x = plot.x(at_ms as f64).round() + 0.5;
        canvas.line((x, plot.top), (x, plot.bottom()), Paint::Grid, 1.0);
    }
    plot.time_axis(canvas, &analysis.zone);
}

fn minutes_axis(canvas: &mut Canvas, plot: &Plot) {
    for minute in [0, 5, 10, 15] {
        plot.tick(canvas, (minute * MINUTE_MS) as f64, &minute.to_string());
    }
    let middle = (plot.left + plot.right()) / 2.0;
    canvas.text(
        (middle, plot.bottom() + 36.0),
        "minutes since the quarter hour began",
        LABEL,
        Anchor::Middle,
    );
}
