//! The data of a chart.

use jiff::tz::TimeZone;
use raingauge_figure::{Scale, Unit};

/// Largest number of columns in a picture: more than two for each point of a wide screen would only
/// flicker.
pub const COLUMNS_MAX: usize = 1_200;
/// Number of lines with a colour of their own.
pub const LINES_MAX: usize = 6;

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
