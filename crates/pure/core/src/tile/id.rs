//! Which tile a bucket lies in, and where.

use super::{Overflow, TILE_CELLS, Tile};
use crate::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use crate::plan::{DAY_CELLS, HOUR_CELL_FIRST, Plan, Run, Slice};
use crate::retention::Horizons;

const DAY_FLAG: u32 = 1 << 31;
/// All cells of a day tile, and its quarter hours.
pub const DAY_RUN: Run = Run { first: 0, end: DAY_CELLS };
pub const QUARTER_RUN: Run = Run { first: 0, end: HOUR_CELL_FIRST };

/// A tile of a key: the quarter hours and hours of one day, or the counts of 128 days.
/// Spans sort before days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId(u32);

impl TileId {
    /// The tile of the quarter hours and hours of a day, which is counted since 1970.
    pub const fn day(day: u32) -> Self {
        Self(day | DAY_FLAG)
    }

    pub const fn day_of(time_s: i64) -> Self {
        Self::day((time_s / DAY_S) as u32)
    }

    /// The tile of the counts of 128 days.
    pub const fn span(day: u32) -> Self {
        Self(day / TILE_CELLS)
    }

    pub const fn span_of(time_s: i64) -> Self {
        Self::span((time_s / DAY_S) as u32)
    }

    pub const fn is_span(self) -> bool {
        self.0 & DAY_FLAG == 0
    }

    /// The number of the day, or of the span.
    pub const fn period(self) -> u32 {
        self.0 & !DAY_FLAG
    }

    pub const fn of_period(is_span: bool, period: u32) -> Self {
        if is_span { Self(period) } else { Self::day(period) }
    }

    /// The bucket that a cell stands for.
    pub fn bucket_of(self, cell: u8) -> (Granularity, i64) {
        let period = i64::from(self.period());
        if self.is_span() {
            return (Granularity::Day, (period * i64::from(TILE_CELLS) + i64::from(cell)) * DAY_S);
        }
        match cell.checked_sub(HOUR_CELL_FIRST) {
            Some(hour) => (Granularity::Hour, period * DAY_S + i64::from(hour) * HOUR_S),
            None => (Granularity::Quarter, period * DAY_S + i64::from(cell) * QUARTER_S),
        }
    }

    /// The cells of a span that are whole days of `[from_s, to_s)`.
    pub fn days_within(self, from_s: i64, to_s: i64) -> Run {
        let first = i64::from(self.period()) * i64::from(TILE_CELLS);
        let clip = |day: i64| (day - first).clamp(0, i64::from(TILE_CELLS)) as u8;
        Run { first: clip((from_s + DAY_S - 1) / DAY_S), end: clip(to_s / DAY_S) }
    }

    /// The cells that lie before the horizons, which fall on the starts of days.
    pub fn expired(self, horizons: &Horizons) -> Run {
        if self.is_span() {
            return self.days_within(0, horizons.day_s);
        }
        let start_s = i64::from(self.period()) * DAY_S;
        if start_s < horizons.hour_s {
            DAY_RUN
        } else if start_s < horizons.quarter_s {
            QUARTER_RUN
        } else {
            Run::default()
        }
    }
}

/// The tile that holds a bucket.
pub const fn of_bucket(granularity: Granularity, time_s: i64) -> TileId {
    match granularity {
        Granularity::Day => TileId::span_of(time_s),
        Granularity::Quarter | Granularity::Hour => TileId::day_of(time_s),
    }
}

/// The cell of a bucket in its tile.
pub const fn cell_of(granularity: Granularity, time_s: i64) -> u8 {
    match granularity {
        Granularity::Quarter => (time_s % DAY_S / QUARTER_S) as u8,
        Granularity::Hour => HOUR_CELL_FIRST + (time_s % DAY_S / HOUR_S) as u8,
        Granularity::Day => (time_s / DAY_S % TILE_CELLS as i64) as u8,
    }
}

/// What a tile adds to a range.
pub fn sum_of(plan: &Plan, id: TileId, tile: &Tile) -> Result<i128, Overflow> {
    if id.is_span() {
        return tile.sum(
            id.days_within(i64::from(plan.day_first) * DAY_S, i64::from(plan.day_end) * DAY_S),
        );
    }
    let edges = plan.edges.iter().flatten().filter(|edge| edge.day == id.period());
    edges.flat_map(|edge| edge.runs).map(|run| tile.sum(run)).sum()
}

/// The tiles that a plan reads: those of its edges, and the spans of its days.
pub fn of_plan(plan: &Plan) -> Vec<TileId> {
    let edges = plan.edges.iter().flatten().map(|edge| TileId::day(edge.day));
    spans(plan).chain(edges).collect()
}

/// The spans of a plan's days.
pub fn spans(plan: &Plan) -> impl Iterator<Item = TileId> {
    let periods = if plan.has_days() {
        TileId::span(plan.day_first).period()..TileId::span(plan.day_end - 1).period() + 1
    } else {
        0..0
    };
    periods.map(|period| TileId::of_period(true, period))
}

/// The tiles that hold the buckets of a slice.
pub fn of_slice(slice: Slice) -> impl Iterator<Item = TileId> {
    let (first_day, last_day) = (slice.from_s / DAY_S, (slice.to_s - 1).max(0) / DAY_S);
    let is_span = slice.granularity == Granularity::Day;
    let width = if is_span { i64::from(TILE_CELLS) } else { 1 };
    let periods =
        if slice.from_s < slice.to_s { first_day / width..last_day / width + 1 } else { 0..0 };
    periods.map(move |period| TileId::of_period(is_span, period as u32))
}
