//! Series: the counts of one key, bucket by bucket, cut in a time zone.
//!
//! Days and hours begin where the clocks of the zone say so: a day may have 23 or 25 hours, and
//! begins at half past an hour of UTC in some places. Each is the sum over the UTC buckets that
//! make it up.

use crate::range::Range;
use crate::refusal::key_unknown;
use crate::storage::Storage;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::SERIES_POINTS_MAX;
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets::Cell;
use raingauge_ports::published::{Timeline, View};
use serde::Serialize;

/// Most points that are summed on the thread of the request, at about 0.1 µs each. Longer series go
/// to a thread that may block.
const POINTS_IN_MEMORY_MAX: usize = 400;
/// Points that the first allocation has room for.
const POINTS_EXPECTED: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    pub key: String,
    pub granularity: Granularity,
    pub points: Vec<Point>,
}

/// The count from `time` up to the time of the next point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Seconds since 1970.
    pub time: i64,
    pub count: i64,
}

/// Reads the series of a key over `[from_s, to_s)`, with points of a granularity in a time zone.
pub async fn read(
    storage: &Storage,
    view: &View,
    range: &Range<'_>,
    (granularity, zone): (Granularity, &str),
    now_s: i64,
) -> Result<Series, Refusal> {
    let whole = Plan::new(range.from_s, range.to_s)?;
    let cuts = cuts(whole.from_s, whole.to_s, granularity, zone)?;
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
    Ok(Series { key: range.key.to_owned(), granularity, points })
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

/// Where the points of a series begin, and where the last one ends.
fn cuts(from_s: i64, to_s: i64, granularity: Granularity, zone: &str) -> Result<Vec<i64>, Refusal> {
    let zone = zone_of(zone)?;
    let mut cuts = Vec::with_capacity(POINTS_EXPECTED);
    cuts.push(from_s);

    let mut at = from_s;
    while at < to_s {
        at = next_cut(at, granularity, &zone)?.min(to_s);

        if !Granularity::Quarter.starts_at(at) {
            return Err(Refusal {
                code: Code::TimezoneUnaligned,
                detail:
                    "in this zone and time, days or hours do not begin with a UTC quarter hour: ask for quarter hours"
                        .to_owned(),
            });
        }

        cuts.push(at);

        if cuts.len() > SERIES_POINTS_MAX + 1 {
            return Err(Refusal {
                code: Code::SeriesTooLong,
                detail: format!(
                    "a series has at most {SERIES_POINTS_MAX} points: ask for a shorter range or a coarser granularity"
                ),
            });
        }
    }

    Ok(cuts)
}

fn zone_of(name: &str) -> Result<TimeZone, Refusal> {
    TimeZone::get(name).map_err(|_| Refusal {
        code: Code::TimezoneUnknown,
        detail: format!("`{name}` is not an IANA time zone such as UTC or America/New_York"),
    })
}

/// The first second after `at` where a bucket of the zone begins.
fn next_cut(at: i64, granularity: Granularity, zone: &TimeZone) -> Result<i64, Refusal> {
    if granularity == Granularity::Quarter || *zone == TimeZone::UTC {
        return Ok(granularity.floor(at) + granularity.width_s());
    }
    let local = local(at, zone)?;
    let next = match granularity {
        Granularity::Day => next_day(&local),
        _ => next_hour(&local),
    };
    next.map(|next| next.as_second()).ok_or_else(|| plan_error().into())
}

fn local(at: i64, zone: &TimeZone) -> Result<Zoned, Refusal> {
    Ok(Timestamp::from_second(at).map_err(|_| plan_error())?.to_zoned(zone.clone()))
}

fn plan_error() -> raingauge_core::plan::Error {
    raingauge_core::plan::Error::OutOfRange
}

/// The first instant of the next date that exists in the zone. Where midnight is skipped, it is the
/// first one after it.
fn next_day(local: &Zoned) -> Option<Timestamp> {
    let mut date = local.date();
    loop {
        date = date.tomorrow().ok()?;
        let start = local
            .time_zone()
            .to_ambiguous_zoned(date.to_datetime(Time::midnight()))
            .compatible()
            .ok()?;

        // A zone that jumps over a whole date, as Samoa did, begins the one after it at the same
        // instant.
        if start.timestamp() > local.timestamp() {
            return Some(start.timestamp());
        }
    }
}

/// The next instant at which the zone's clocks show a whole hour, or jump.
fn next_hour(local: &Zoned) -> Option<Timestamp> {
    let whole =
        local.timestamp().as_second() - i64::from(local.minute()) * 60 - i64::from(local.second());
    let next = Timestamp::from_second(whole + 3_600).ok()?;
    let jump = local
        .time_zone()
        .following(local.timestamp())
        .next()
        .map(|transition| transition.timestamp());
    let next = jump.filter(|jump| *jump < next).unwrap_or(next);
    (next > local.timestamp()).then_some(next)
}
