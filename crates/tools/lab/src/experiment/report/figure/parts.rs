//! One small plot per part of the system, all with the same axes.

use super::canvas::{Anchor, Canvas};
use super::over_run::{bands, mark_items, step_marks, stretches};
use super::palette::Paint;
use super::plot::{LABEL, LINE_WIDTH, Plot, STRONG, Values, legend};
use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::usage::cpu_of;
use crate::experiment::report::words::aligned;
use raingauge_figure::Unit;

const PANEL: f64 = 110.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 32.0;
const GAP: f64 = 22.0;

/// Draws the cores used by each part. Returns the bottom of the plots.
pub fn draw(canvas: &mut Canvas, analysis: &Analysis, top: f64, is_wide: bool) -> f64 {
    let columns = if is_wide { 4 } else { 2 };
    let rates: Vec<(&str, Vec<Option<f64>>)> =
        analysis.parts.iter().map(|part| (*part, analysis.rates(cpu_of(part)))).collect();
    let axis =
        Values::new(rates.iter().flat_map(|(_, values)| values).copied().flatten(), Unit::Number);
    let left = Plot::label_room(&axis);
    let width = (canvas.width - left - GAP * (columns - 1) as f64 - 4.0) / columns as f64;
    let top = top + legend(canvas, (0.0, top + 8.0), canvas.width, &mark_items(analysis, false));

    for (place, (part, values)) in rates.iter().enumerate() {
        let row = place / columns;
        let column = place % columns;
        let plot = Plot {
            left: left + column as f64 * (width + GAP),
            top: top + row as f64 * (HEAD + PANEL + FOOT) + HEAD,
            width,
            height: PANEL,
            from: analysis.record.from_ms as f64,
            to: analysis.record.to_ms as f64,
            values: axis.clone(),
        };
        panel(canvas, analysis, &plot, part, values, column == 0);
    }

    top + rates.len().div_ceil(columns) as f64 * (HEAD + PANEL + FOOT)
}

fn panel(
    canvas: &mut Canvas,
    analysis: &Analysis,
    plot: &Plot,
    part: &str,
    values: &[Option<f64>],
    has_labels: bool,
) {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    canvas.text((plot.left, plot.top - 10.0), part, STRONG, Anchor::Start);

    if !known.is_empty() {
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        canvas.text(
            (plot.right(), plot.top - 10.0),
            format!("mean {}", aligned(mean)),
            LABEL,
            Anchor::End,
        );
    }

    bands(canvas, analysis, plot);

    plot.grid(canvas, has_labels);
    step_marks(canvas, analysis, plot);
    canvas.curve(plot.curve(&stretches(analysis, values)), Paint::Store, LINE_WIDTH);

    plot.time_axis(canvas, &analysis.zone);
}
