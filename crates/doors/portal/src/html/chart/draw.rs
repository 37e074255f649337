//! Draws points as shapes.
//!
//! ```text
//!        ┌──────────────────────────────────┐ 0
//!   600 ─┤                                  │ TOP
//!        │  ▄   █                           │
//!     0 ─┤  █   █ ▄                         │ TOP + PLOT
//!        │  24 Sep          25 Sep          │ HEIGHT
//! ```
//!
//! Shapes lie in a part of WIDE x TALL units that is stretched to the width of the page; texts are
//! placed at shares of it.

use super::data::{Chart, Kind, LINES_MAX, Mark, Points};
use super::thin::Thinned;
use crate::html::words;
use maud::{Markup, html};
use raingauge_figure::clock::{self, Tick};
use raingauge_figure::path::{self, extent};
use raingauge_figure::{Axis, Unit};
use std::fmt::Write as _;

const HEIGHT: f64 = 264.0;
const TOP: f64 = 14.0;
const PLOT: f64 = 220.0;
/// Units of the stretched part.
const WIDE: f64 = 10_000.0;
const TALL: f64 = 2_200.0;
/// Approximate widths of a picture on a desktop screen and on a phone, in pixels.
const DESK: f64 = 900.0;
const PHONE: f64 = 290.0;
/// Width that a time label needs, in pixels.
const LABEL: f64 = 66.0;
/// Longest name of a mark, in characters.
const NAME_CHARS: usize = 24;
/// Bars narrower than this, in pixels, would only flicker. They become one area.
const BAR_MIN: f64 = 2.0;
/// Size of the file: its width, and the rows above the picture.
const FILE_WIDTH: f64 = 960.0;
const FILE_HEAD: f64 = 48.0;

/// Colours for use without a style sheet: those of the light theme.
const INK: &str = "#12262c";
const INK_SOFT: &str = "#52676e";
const GRID: &str = "#e7edee";
const COLOURS: [&str; LINES_MAX] =
    ["#14788c", "#b4541a", "#5b4bb7", "#2c8a57", "#a62a6a", "#6f6200"];

/// The class of the line with this index in the chart.
pub fn line_class(kind: Kind, place: usize) -> String {
    match kind {
        Kind::Bars => "chart-surface-line series-0".to_owned(),
        Kind::Line => format!("chart-line series-{}", place % LINES_MAX),
        Kind::Pale => "chart-pale".to_owned(),
    }
}

pub struct Drawing<'a> {
    chart: &'a Chart<'a>,
    thinned: &'a Thinned,
    values: Axis,
}

impl<'a> Drawing<'a> {
    pub fn new(chart: &'a Chart<'a>, thinned: &'a Thinned) -> Self {
        let all = thinned.lines.iter().flat_map(|line| line.values.iter().copied().flatten());
        let step_min = if chart.unit == Unit::Count { 1.0 } else { 0.0 };
        let values = Axis::new(all, chart.scale, step_min);
        Self { chart, thinned, values }
    }

    /// Length of the longest value label, for the room to the left of the picture.
    pub fn label_len(&self) -> usize {
        let lens =
            self.values.ticks.iter().map(|tick| self.chart.unit.short(*tick).chars().count());
        lens.max().unwrap_or(1).clamp(1, 9)
    }

    pub fn picture(&self) -> Markup {
        html! {
            svg.chart-picture role="img" width="100%" height=(HEIGHT) overflow="visible"
                aria-label={ (self.chart.title) ". " (self.chart.words) } {
                (self.contents())
            }
        }
    }

    /// The picture with its title and the names of its lines, in a fixed size.
    pub fn document(&self) -> Markup {
        let left = self.label_len() as f64 * 7.0 + 22.0;
        let height = HEIGHT + FILE_HEAD + 8.0;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" width=(FILE_WIDTH) height=(height)
                viewBox={ "0 0 " (FILE_WIDTH) " " (height) } font-family="system-ui, sans-serif"
                font-size="12" {
                title { (self.chart.title) }
                desc { (self.chart.words) }
                rect width="100%" height="100%" fill="#ffffff" {}
                text x="16" y="22" font-size="14" font-weight="600" fill=(INK) {
                    (self.chart.title)
                }
                (self.names())
                svg x=(left) y=(FILE_HEAD) width=(FILE_WIDTH - left - 16.0) height=(HEIGHT)
                    overflow="visible" { (self.contents()) }
            }
        }
    }

    /// The names of the lines in a file, in a row.
    fn names(&self) -> Markup {
        let room = (FILE_WIDTH - 32.0) / self.chart.lines.len().max(1) as f64;
        html! {
            @if self.chart.lines.len() > 1 {
                @for (place, line) in self.chart.lines.iter().enumerate() {
                    @let x = 16.0 + room * place as f64;
                    @let name = words::cut(&line.name, (room / 7.0) as usize);
                    rect x=(x) y="33" width="12" height="4" fill=(colour(line.kind, place)) {}
                    text x=(x + 18.0) y="39" fill=(INK_SOFT) { (name) }
                }
            }
        }
    }

    fn contents(&self) -> Markup {
        let lines = &self.thinned.lines;
        let has_data = lines.iter().any(|line| line.values.iter().any(Option::is_some));
        html! {
            (self.grid())
            svg y=(TOP) width="100%" height=(PLOT) viewBox={ "0 0 " (WIDE) " " (TALL) }
                preserveAspectRatio="none" overflow="visible" {
                @for (place, line) in lines.iter().enumerate() {
                    (self.line(place, &line.values, line.kind))
                }
            }
            @if !has_data {
                text.chart-label x="50%" y=(TOP + PLOT / 2.0) text-anchor="middle" fill=(INK_SOFT) {
                    "No data yet"
                }
            }
            (self.time_axis())
        }
    }

    fn grid(&self) -> Markup {
        html! {
            g aria-hidden="true" {
                @for tick in &self.values.ticks {
                    @let y = (TOP + (1.0 - self.values.share(*tick)) * PLOT).round() + 0.5;
                    line.chart-grid x2="100%" y1=(y) y2=(y) stroke=(GRID) {}
                    (label("-8", y + 4.0, 0.0, "end", &self.chart.unit.short(*tick)))
                }
            }
        }
    }

    fn time_axis(&self) -> Markup {
        let base = (TOP + (1.0 - self.values.base()) * PLOT).round() + 0.5;
        let now_s =
            self.chart.now_s.filter(|now_s| (self.chart.from_s..self.chart.to_s).contains(now_s));
        html! {
            g aria-hidden="true" {
                line.chart-base x2="100%" y1=(base) y2=(base) stroke=(INK_SOFT) {}
                @if let Some(now_s) = now_s {
                    @let x = extent(self.share(now_s));
                    line.chart-now x1=(x) x2=(x) y1="0" y2=(TOP + PLOT) stroke=(INK_SOFT)
                        stroke-dasharray="2 3" {}
                    (label(&x, 9.0, -4.0, "end", "now"))
                }
                (self.marks())
                g.ticks-wide { (self.time_labels(DESK)) }
                g.ticks-narrow display="none" { (self.time_labels(PHONE)) }
            }
        }
    }

    /// The marks of events. A name is drawn if the next mark is far enough away; the text of the
    /// page has all names.
    fn marks(&self) -> Markup {
        let on_axis = |mark: &&Mark| (self.chart.from_s..=self.chart.to_s).contains(&mark.at_s);
        let marks: Vec<&Mark> = self.chart.marks.iter().filter(on_axis).collect();
        html! {
            @for (place, mark) in marks.iter().enumerate() {
                @let share = self.share(mark.at_s);
                @let next = marks.get(place + 1).map_or(1.0, |next| self.share(next.at_s));
                @let x = extent(share);
                @let name = words::cut(&mark.name, NAME_CHARS);
                line.chart-event x1=(x) x2=(x) y1="0" y2=(TOP + PLOT) stroke=(INK)
                    stroke-dasharray="4 3" {
                    title { (mark.name) }
                }
                @if (next - share) * PHONE >= LABEL {
                    (label(&x, 9.0, 4.0, "start", &name))
                } @else if next >= 1.0 {
                    (label(&x, 9.0, -4.0, "end", &name))
                }
            }
        }
    }

    /// The time labels that fit a picture of this width.
    fn time_labels(&self, width: f64) -> Markup {
        let ticks = clock::ticks(
            self.chart.from_s,
            self.chart.to_s,
            self.chart.zone,
            (width / LABEL) as usize,
        );

        let foot = TOP + PLOT + 0.5;
        html! {
            @for tick in &ticks {
                @let start = self.share(tick.at_s);
                @let y = foot + 18.0;
                @if let Some(middle) = self.middle_of_wide(tick, width) {
                    (label(&extent(middle), y, 0.0, "middle", &tick.text))
                } @else {
                    @let x = extent(start);
                    line.chart-mark x1=(x) x2=(x) y1=(foot) y2=(foot + 6.0) stroke=(INK_SOFT) {}
                    // A label that would stick out is omitted; its tick stays.
                    @if start * width + LABEL * 0.7 <= width {
                        (label(&x, y, 4.0, "start", &tick.text))
                    }
                }
            }
        }
    }

    /// The middle of the bucket that begins at a label, if the bucket is wide enough for the label
    /// below it.
    fn middle_of_wide(&self, tick: &Tick, width: f64) -> Option<f64> {
        let place = self.thinned.times.binary_search(&tick.at_s).ok()?;
        let (from, to) = self.bucket(place);
        let is_wide = self.chart.points == Points::Buckets && (to - from) * width >= LABEL / 2.0;
        is_wide.then_some((from + to) / 2.0)
    }

    /// The position of a time on the axis, from 0 to 1.
    fn share(&self, at_s: i64) -> f64 {
        let length_s = (self.chart.to_s - self.chart.from_s).max(1);
        ((at_s - self.chart.from_s) as f64 / length_s as f64).clamp(0.0, 1.0)
    }

    /// The positions where a bucket begins and ends.
    fn bucket(&self, place: usize) -> (f64, f64) {
        let end_s = self.end_s(place);
        (self.share(self.thinned.times[place]), self.share(end_s))
    }

    fn end_s(&self, place: usize) -> i64 {
        self.thinned.times.get(place + 1).copied().unwrap_or(self.chart.to_s)
    }

    fn y(&self, value: f64) -> f64 {
        ((1.0 - self.values.share(value)) * TALL).round()
    }

    fn line(&self, place: usize, values: &[Option<f64>], kind: Kind) -> Markup {
        let step = DESK / self.thinned.times.len().max(1) as f64;
        match kind {
            Kind::Bars if step >= BAR_MIN => self.bars(values),
            Kind::Bars => self.surface(values),
            Kind::Line | Kind::Pale => self.curve(place, values, kind),
        }
    }

    /// Draws bars; those of buckets that are still open are paler.
    fn bars(&self, values: &[Option<f64>]) -> Markup {
        let mut closed = String::new();
        let mut open = String::new();
        let base = self.y(0.0);

        for (place, value) in
            values.iter().enumerate().filter_map(|(place, value)| Some((place, (*value)?)))
        {
            if value == 0.0 {
                continue;
            }
            let (from, to) = self.bucket(place);
            let gap = (to - from) * if (to - from) * DESK >= 5.0 { 0.2 } else { 0.1 };

            // A value other than 0 is always visible.
            let height = (base - self.y(value)).abs().max(10.0) * value.signum();
            let is_open = self.chart.now_s.is_some_and(|now_s| self.end_s(place) > now_s);
            let path = if is_open { &mut open } else { &mut closed };
            let (from, to) = ((from + gap / 2.0) * WIDE, (to - gap / 2.0) * WIDE);

            // Writing to a `String` cannot fail.
            let _ = write!(path, "M{from:.0} {base}V{:.0}H{to:.0}V{base}z", base - height);
        }

        html! {
            @if !closed.is_empty() { path.chart-bar fill=(COLOURS[0]) d=(closed) {} }
            @if !open.is_empty() { path.chart-bar.open fill=(COLOURS[0]) fill-opacity="0.55" d=(open) {} }
        }
    }

    /// Draws the stepped outline of all bars, and the area below it.
    fn surface(&self, values: &[Option<f64>]) -> Markup {
        let base = self.y(0.0);
        let mut steps = String::new();
        for (place, value) in values.iter().enumerate() {
            let _ = write!(
                steps,
                "V{:.0}H{:.0}",
                self.y(value.unwrap_or(0.0)),
                self.bucket(place).1 * WIDE
            );
        }

        let start = self.thinned.times.first().map_or(0.0, |first| self.share(*first) * WIDE);
        let outline = format!("M{} {base}{steps}V{base}", start.round());
        html! {
            path.chart-surface fill=(COLOURS[0]) fill-opacity="0.22" d={ (outline) "z" } {}
            path class=(line_class(Kind::Bars, 0)) fill="none" stroke=(COLOURS[0])
                stroke-width="1.25" vector-effect="non-scaling-stroke" d=(outline) {}
        }
    }

    /// Draws a line through the middles of buckets, or through points in time, with gaps where the
    /// value is unknown.
    fn curve(&self, place: usize, values: &[Option<f64>], kind: Kind) -> Markup {
        let point = |(place, value): (usize, &Option<f64>)| {
            let (from, to) = self.bucket(place);
            let is_bucket = self.chart.points == Points::Buckets;
            let x = if is_bucket { (from + to) / 2.0 } else { from };
            Some(((x * WIDE).round(), self.y((*value)?)))
        };
        let path = path::data(&path::runs(values.iter().enumerate().map(point)), false);
        let dashes = (kind == Kind::Pale).then_some("4 3");
        html! {
            path class=(line_class(kind, place)) fill="none" stroke=(colour(kind, place))
                stroke-width="1.75" stroke-linejoin="round" stroke-linecap="round"
                stroke-dasharray=[dashes] vector-effect="non-scaling-stroke" d=(path) {}
        }
    }
}

/// A text of the picture, moved by `dx` pixels from its place.
fn label(x: &str, y: f64, dx: f64, anchor: &str, text: &str) -> Markup {
    html! {
        text.chart-label x=(x) y=(y) dx=(dx) text-anchor=(anchor) fill=(INK_SOFT) { (text) }
    }
}

fn colour(kind: Kind, place: usize) -> &'static str {
    match kind {
        Kind::Bars => COLOURS[0],
        Kind::Line => COLOURS[place % LINES_MAX],
        Kind::Pale => INK_SOFT,
    }
}
