//! Series: the counts of one key, step by step, cut in a time zone. Each point is the sum over the
//! UTC buckets that make it up.

use crate::range::Range;
use crate::refusal::key_unknown;
use crate::step::{Step, cuts};
use crate::storage::Storage;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::code::Refusal;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets::Cell;
use raingauge_ports::published::{Timeline, View};
use serde::Serialize;

/// Most points that are summed on the thread of the request, at about 0.1 µs each. Longer series go
/// to a thread that may block.
const POINTS_IN_MEMORY_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    pub key: String,
    pub granularity: Step,
    pub points: Vec<Point>,
}

/// The count from `time` up to the time of the next point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Seconds since 1970.
    pub time: i64,
    pub count: i64,
}

/// Reads the series of a key over `[from_s, to_s)`, with points of a step in a time zone.
pub async fn read(
    storage: &Storage,
    view: &View,
    range: &Range<'_>,
    (step, zone): (Step, &str),
    now_s: i64,
) -> Result<Series, Refusal> {
    let whole = Plan::new(range.from_s, range.to_s)?;
    let cuts = cuts(whole.from_s, whole.to_s, step, zone)?;
    let index = view.ruleset.index_of_key(range.key).ok_or_else(|| key_unknown(range.key))?;
    let horizons = view.horizons(index, now_s);

    let mut plans = Vec::with_capacity(cuts.len());
    for pair in cuts.windows(2) {
        let plan = Plan::new(pair[0], pair[1])?;
        horizons.check(&plan)?;
        plans.push(plan);
    }

    let timeline = &view.timelines[index];
    let points = match points_in_memory(storage, timeline, range.key, &plans) {
        Some(points) => points?,
        None => points_in_storage(storage, timeline, range.key, &plans).await?,
    };
    Ok(Series { key: range.key.to_owned(), granularity: step, points })
}

/// Every point, when the tiles of all of them are in memory. Never waits.
fn points_in_memory(
    storage: &Storage,
    timeline: &Timeline,
    key: &str,
    plans: &[Plan],
) -> Option<Result<Vec<Point>, Overflow>> {
    let generation = timeline.only().filter(|_| plans.len() <= POINTS_IN_MEMORY_MAX)?;
    let sums = storage.buckets.sums_cached(generation, key, plans)?;
    let points =
        |sums: Vec<i128>| plans.iter().zip(sums).map(|(plan, sum)| point(plan, sum)).collect();
    Some(sums.and_then(points))
}

async fn points_in_storage(
    storage: &Storage,
    timeline: &Timeline,
    key: &str,
    plans: &[Plan],
) -> Result<Vec<Point>, Refusal> {
    let mut cells = Cells::default();
    plans.iter().flat_map(Plan::slices).for_each(|slice| cells.want(slice));
    cells.load(storage, timeline, key).await?;
    Ok(plans.iter().map(|plan| point(plan, cells.sum(plan))).collect::<Result<_, _>>()?)
}

fn point(plan: &Plan, sum: i128) -> Result<Point, Overflow> {
    let count = i64::try_from(sum).map_err(|_| Overflow)?;
    Ok(Point { time: plan.from_s, count })
}

/// The cells of a series, by granularity.
#[derive(Default)]
struct Cells {
    by_granularity: [Column; 3],
}

/// Cells of one granularity, in the order of time.
#[derive(Default)]
struct Column {
    /// The ranges of time that are needed.
    ranges: Vec<(i64, i64)>,
    /// What was found there.
    cells: Vec<Cell>,
}

impl Cells {
    /// Adds a slice to what is loaded, in the order of time within each granularity. Neighbours are
    /// read together: a few cells more cost less than another read.
    fn want(&mut self, slice: Slice) {
        let ranges = &mut self.by_granularity[slice.granularity as usize].ranges;
        match ranges.last_mut() {
            Some((_, to_s)) if slice.from_s - *to_s <= DAY_S => *to_s = slice.to_s,
            _ => ranges.push((slice.from_s, slice.to_s)),
        }
    }

    async fn load(
        &mut self,
        storage: &Storage,
        timeline: &Timeline,
        key: &str,
    ) -> Result<(), Refusal> {
        for (granularity, Column { ranges, cells }) in
            Granularity::ALL.into_iter().zip(&mut self.by_granularity)
        {
            let parts = ranges.iter().flat_map(|(from_s, to_s)| timeline.split(*from_s, *to_s));
            for (generation, from_s, to_s) in parts {
                let slice = Slice { granularity, from_s, to_s };
                let read = storage.buckets.cells(generation, key.to_owned(), slice);
                cells.extend(storage.alone(read).await?);
            }
        }
        Ok(())
    }

    fn sum(&self, plan: &Plan) -> i128 {
        let mut sum = 0;
        for slice in plan.slices() {
            let cells = &self.by_granularity[slice.granularity as usize].cells;
            let from = cells.partition_point(|cell| cell.time_s < slice.from_s);
            let inside = cells[from..].iter().take_while(|cell| cell.time_s < slice.to_s);
            sum += inside.map(|cell| i128::from(cell.count)).sum::<i128>();
        }
        sum
    }
}
