//! A plot over the whole run, with its steps.
//!
//! ```text
//!   0 %            5 %   25 %       75 %        100 %       share of the counters without cache
//!   ▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬▬
//!   600 ├──────────┊─────┊────▒▒▒▒─┊────▒▒▒▒───┊────▒▒▒▒      bands: the store compacts
//!     0 └──────────┴─────┴──────────┴──────────┴──────────      thin dots: a canary is out
//!        5 Nov         6 Nov         7 Nov
//! ```

use super::canvas::{Anchor, Canvas, Font};
use super::palette::{self, Paint};
use super::plot::{LABEL, LINE_WIDTH, Plot, STRONG, Stretch, Swatch, Values, end_labels, legend};
use crate::experiment::record::StepKind;
use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::words::{aligned, memory, percent, times};
use raingauge_figure::{Axis, Unit};

pub const STEP_DASH: [f64; 2] = [4.0, 3.0];
pub const CANARY_DASH: [f64; 2] = [1.0, 3.0];
pub const BAND_OPACITY: f64 = 0.6;
const COMPACTION: &str = "compaction";
const RIBBON_ROW: f64 = 15.0;
const RIBBON_BAR: f64 = 4.0;
const AXIS_ROOM: f64 = 30.0;

#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    pub paint: Paint,
    /// One value per bin of the run.
    pub values: Vec<Option<f64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Lines,
    /// Stacked areas, each as thick as its values.
    Stacked,
    Bars,
}

#[derive(Debug, Clone)]
pub struct OverRun {
    pub series: Vec<Series>,
    pub style: Style,
    pub unit: Unit,
    /// Describes the values.
    pub caption: String,
    /// One value per phase, drawn as a level across it.
    pub levels: Vec<Option<f64>>,
}

/// The position of the plot.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub top: f64,
    pub width: f64,
    pub height: f64,
    /// Labels stand beside the ends of the lines if there is room.
    pub is_wide: bool,
}

impl OverRun {
    /// Draws the plot. Returns its bottom.
    pub fn draw(&self, canvas: &mut Canvas, analysis: &Analysis, place: Place) -> f64 {
        let values = self.axis();
        let left = Plot::label_room(&values);
        let names_room = if self.names_at_ends(place) { self.names_width() + 14.0 } else { 8.0 };
        let width = place.width - left - names_room;
        let items = self.legend_items(analysis, place);
        let legend_height = legend(canvas, (0.0, place.top + 8.0), place.width, &items) + 4.0;

        let (from, to) = (analysis.record.from_ms as f64, analysis.record.to_ms as f64);
        let mut plot = Plot {
            left,
            top: place.top + legend_height,
            width,
            height: place.height,
            from,
            to,
            values,
        };

        plot.top = ribbon(canvas, analysis, &plot, plot.top) + 26.0;

        if self.shows_bands() {
            bands(canvas, analysis, &plot);
        }
        plot.grid(canvas, true);
        plot.caption(canvas, &self.caption);
        self.values(canvas, analysis, &plot);
        marks(canvas, analysis, &plot);
        self.draw_levels(canvas, analysis, &plot);

        if self.names_at_ends(place) {
            self.names(canvas, analysis, &plot);
        }
        plot.time_axis(canvas, &analysis.zone);
        plot.bottom() + AXIS_ROOM
    }

    fn axis(&self) -> Values {
        if self.style == Style::Stacked && self.unit == Unit::Share {
            return Values { axis: Axis::whole(), unit: self.unit };
        }
        let values = self.series.iter().flat_map(|series| &series.values).chain(&self.levels);
        Values::new(values.copied().flatten(), self.unit)
    }

    /// Areas that fill the plot would hide the bands behind them.
    fn shows_bands(&self) -> bool {
        self.style != Style::Stacked
    }

    fn names_at_ends(&self, place: Place) -> bool {
        place.is_wide && self.style == Style::Lines && self.series.len() > 1
    }

    fn names_width(&self) -> f64 {
        self.series.iter().map(|series| STRONG.width(&series.name)).fold(0.0, f64::max)
    }

    fn names(&self, canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
        let end = |series: &Series| {
            let last =
                series.values.iter().take(analysis.bins.bins.len()).rev().flatten().next()?;
            Some((plot.y(*last), series.name.clone(), series.paint))
        };
        let ends = self.series.iter().filter_map(end).collect();
        end_labels(canvas, plot.right() + 8.0, (plot.top, plot.bottom()), ends);
    }

    fn legend_items(&self, analysis: &Analysis, place: Place) -> Vec<(String, Swatch)> {
        let swatch = |paint| {
            if self.style == Style::Stacked { Swatch::Surface(paint) } else { Swatch::Line(paint) }
        };
        let named =
            self.series.iter().filter(|_| self.series.len() > 1 && !self.names_at_ends(place));
        let mut items: Vec<_> =
            named.map(|series| (series.name.clone(), swatch(series.paint))).collect();

        if self.levels.iter().any(Option::is_some) {
            items.push(("of a whole phase".to_owned(), Swatch::Line(Paint::Ink)));
        }
        items.extend(
            mark_items(analysis, true)
                .into_iter()
                .filter(|(name, _)| self.shows_bands() || name != COMPACTION),
        );
        items
    }

    fn values(&self, canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
        match self.style {
            Style::Lines => {
                for series in &self.series {
                    let curve = plot.curve(&stretches(analysis, &series.values));
                    canvas.curve(curve, series.paint, LINE_WIDTH);
                }
            }
            Style::Bars => {
                for series in &self.series {
                    let high = stretches(analysis, &series.values);
                    let low: Vec<Stretch> =
                        high.iter().map(|(from, to, _)| (*from, *to, Some(0.0))).collect();
                    canvas.surface(plot.between(&low, &high), series.paint, 1.0);
                }
            }
            Style::Stacked => self.stacked(canvas, analysis, plot),
        }
    }

    fn stacked(&self, canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
        let mut low: Vec<Option<f64>> = vec![Some(0.0); analysis.bins.bins.len()];
        for series in &self.series {
            let sum = |(low, value): (&Option<f64>, &Option<f64>)| Some((*low)? + (*value)?);
            let high: Vec<Option<f64>> = low.iter().zip(&series.values).map(sum).collect();
            let surface = plot.between(&stretches(analysis, &low), &stretches(analysis, &high));
            canvas.surface(surface, series.paint, 0.85);
            low = high;
        }
    }

    /// Draws the values of whole phases: a level across each, and its value below the ribbon if
    /// there is room.
    fn draw_levels(&self, canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
        const VALUE: Font = Font::new(12.0, Paint::Ink);

        // The first value follows the caption.
        let mut taken = plot.left + LABEL.width(&self.caption) + 8.0;
        for (phase, level) in analysis.phases.iter().zip(&self.levels) {
            let Some(level) = level else { continue };
            let from = plot.x(phase.from_ms as f64);
            let to = plot.x(phase.to_ms as f64);
            let y = plot.y(*level);

            canvas.line((from, y), (to, y), Paint::Ink, 1.0);
            let words = level_words(*level, self.unit);
            let start = (from + 4.0).max(taken);
            let end = start + VALUE.width(&words);
            if end <= to {
                canvas.text((start, plot.top - 8.0), words, VALUE, Anchor::Start);
                taken = end + 6.0;
            }
        }
    }
}

/// The value of a phase is shown with more digits than a tick.
fn level_words(level: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => memory(level),
        Unit::Share => percent(level),
        Unit::Times => times(level),
        _ => aligned(level),
    }
}

/// Pairs values with the intervals of their bins.
pub fn stretches(analysis: &Analysis, values: &[Option<f64>]) -> Vec<Stretch> {
    let bins = analysis.bins.bins.iter().zip(values);
    bins.map(|(bin, value)| (bin.from_ms as f64, analysis.bin_end_ms(bin.from_ms) as f64, *value))
        .collect()
}

/// Draws the phases as a ribbon with their shares above. Returns its bottom.
fn ribbon(canvas: &mut Canvas, analysis: &Analysis, plot: &Plot, top: f64) -> f64 {
    const SHARE: Font = Font::new(12.0, Paint::Ink).bold();

    let bar = top + 2.0 * RIBBON_ROW;
    let mut taken = f64::NEG_INFINITY;
    for (place, phase) in analysis.phases.iter().enumerate() {
        let (from, to) = (plot.x(phase.from_ms as f64), plot.x(phase.to_ms as f64));
        canvas.rectangle(
            (from, bar),
            (to - from).max(1.0),
            RIBBON_BAR,
            palette::phase(place, analysis.phases.len()),
            1.0,
        );

        let share = percent(phase.share);
        let explained = format!("{share} without cache");
        let words =
            if place == 0 && SHARE.width(&explained) <= to - from { explained } else { share };

        // A label that would overlap the previous one is raised.
        let is_raised = from < taken + 5.0;
        let y = if is_raised { bar - 5.0 - RIBBON_ROW } else { bar - 5.0 };
        let width = SHARE.width(&words);
        let is_outside = from + width > canvas.width;
        let (x, anchor) =
            if is_outside { (plot.right(), Anchor::End) } else { (from, Anchor::Start) };

        canvas.text((x, y), words, SHARE, anchor);
        taken = if is_raised { f64::NEG_INFINITY } else { from + width };
    }

    bar + RIBBON_BAR
}

/// Marks the times of compactions.
pub fn bands(canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
    for compaction in &analysis.compactions {
        let (from, to) = (plot.x(compaction.from_ms as f64), plot.x(compaction.to_ms as f64));
        canvas.rectangle(
            (from, plot.top),
            (to - from).max(1.0),
            plot.height,
            Paint::Band,
            BAND_OPACITY,
        );
    }
}

/// Draws a line at every step of the rollout, and one at every canary.
pub fn marks(canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
    step_marks(
        canvas,
        analysis,
        &Plot { top: plot.top - 24.0, height: plot.height + 24.0, ..plot.clone() },
    );
    for step in &analysis.record.steps {
        if let StepKind::Canary { .. } = step.kind {
            let x = plot.x(step.at_ms as f64).round() + 0.5;
            canvas.dashed((x, plot.top - 24.0), (x, plot.bottom()), Paint::Soft, CANARY_DASH);
        }
    }
}

/// Draws a line at every step of the rollout, as high as the plot.
pub fn step_marks(canvas: &mut Canvas, analysis: &Analysis, plot: &Plot) {
    for step in &analysis.record.steps {
        if let StepKind::Share { .. } | StepKind::RolledBack = step.kind {
            let x = plot.x(step.at_ms as f64).round() + 0.5;
            canvas.dashed((x, plot.top), (x, plot.bottom()), Paint::Soft, STEP_DASH);
        }
    }
}

/// Legend entries for the marks that occur.
pub fn mark_items(analysis: &Analysis, has_canaries: bool) -> Vec<(String, Swatch)> {
    let kinds = || analysis.record.steps.iter().map(|step| step.kind);
    let mut items = Vec::new();
    if kinds().any(|kind| matches!(kind, StepKind::Share { .. })) {
        items.push(("step".to_owned(), Swatch::Dashed(Paint::Soft, STEP_DASH)));
    }
    if has_canaries && kinds().any(|kind| matches!(kind, StepKind::Canary { .. })) {
        items.push(("canary".to_owned(), Swatch::Dashed(Paint::Soft, CANARY_DASH)));
    }
    if !analysis.compactions.is_empty() {
        items.push((COMPACTION.to_owned(), Swatch::Surface(Paint::Band)));
    }
    items
}
