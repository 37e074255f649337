//! Files for spreadsheets: the series of a query, and the largest keys of its range.

use super::chart_query::{ChartQuery, Window};
use super::{look, nothing_to};
use crate::download;
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::words;
use crate::largest;
use crate::times::{bucket_end, next_bucket};
use crate::{Answer, Portal};
use axum::extract::{Path, State};
use jiff::tz::TimeZone;
use raingauge_app::csv::cell;
use raingauge_app::largest::to_csv;
use raingauge_core::bucket::Granularity;
use raingauge_core::limits::SERIES_POINTS_MAX;
use raingauge_reader::{Point, Range};
use std::fmt::Write as _;

/// Largest number of rows in a file: a little more than a year of quarter hours.
pub const CSV_ROWS_MAX: usize = 40_000;

/// `GET /counters/{id}/series.csv`: the buckets of the chart one by one, even where the picture
/// merges them.
pub async fn series(
    State(portal): State<Portal>,
    Path(id): Path<u32>,
    Query(fields): Query,
) -> Answer {
    let mut view = look(&portal, id, &fields, false).await?;
    let shown = view.shown.take().ok_or_else(|| nothing_to("download"))?;
    if let Some((_, failure)) = shown.failures.into_iter().next() {
        return Err(failure.into());
    }

    // The file can hold finer buckets than the picture.
    let granularity = match view.asked.granularity {
        Some(finer)
            if finer < shown.window.granularity && rows_of(shown.window, finer) <= CSV_ROWS_MAX =>
        {
            finer
        }
        _ => shown.window.granularity,
    };

    let window = Window { granularity, ..shown.window };
    let columns = match columns(&portal, &view.asked, window).await {
        Err(_) if granularity != shown.window.granularity => {
            columns(&portal, &view.asked, shown.window).await?
        }
        columns => columns?,
    };

    let text = file(&view.asked, window.to_s, &columns);
    Ok(download::file(download::CSV, &format!("counter-{id}.csv"), text))
}

/// `GET /counters/{id}/keys.csv`: the largest keys over the range of the chart, more of them than
/// the page has room for.
pub async fn keys(
    State(portal): State<Portal>,
    Path(id): Path<u32>,
    Query(fields): Query,
) -> Answer {
    let shown = look(&portal, id, &fields, false).await?.shown;
    let window = shown.ok_or_else(|| nothing_to("download"))?.window;

    let found = largest::all(&portal, id, window.from_s, window.to_s).await?;
    let name = format!("counter-{id}-keys.csv");
    Ok(download::part(download::CSV, &name, to_csv(&found.keys), found.is_complete))
}

fn rows_of(window: Window, granularity: Granularity) -> usize {
    usize::try_from((window.to_s - window.from_s) / granularity.width_s()).unwrap_or(usize::MAX)
}

/// The series of each key, read in parts of the longest allowed series.
async fn columns(
    portal: &Portal,
    asked: &ChartQuery,
    window: Window,
) -> Result<Vec<Vec<Point>>, Fault> {
    let mut columns = Vec::with_capacity(asked.keys.len());
    for key in &asked.keys {
        let mut points = Vec::new();
        let mut from_s = window.from_s;
        while from_s < window.to_s {
            let to_s = part_end(from_s, window, &asked.zone);
            let range = Range { key, from_s, to_s, fresh: false };
            points.extend(
                portal
                    .reader
                    .series(&range, window.granularity.into(), words::zone(&asked.zone))
                    .await?
                    .points,
            );
            from_s = to_s;
        }

        columns.push(points);
    }

    Ok(columns)
}

/// The end of a part that begins here. It falls on a bucket boundary, so that no bucket is split.
fn part_end(from_s: i64, window: Window, zone: &TimeZone) -> i64 {
    let most_s = (SERIES_POINTS_MAX as i64 - 50) * window.granularity.width_s();
    let end_s = bucket_end(from_s + most_s, Granularity::Day, zone);
    end_s.max(next_bucket(from_s, window.granularity, zone)).min(window.to_s)
}

fn file(asked: &ChartQuery, end_s: i64, columns: &[Vec<Point>]) -> String {
    let zone = words::zone(&asked.zone);
    let mut text = format!("from ({zone}),to ({zone}),from (epoch seconds)");
    for key in &asked.keys {
        text.push(',');
        text.push_str(&cell(key));
    }

    text.push_str("\r\n");
    let times: Vec<i64> = columns.first().into_iter().flatten().map(|point| point.time).collect();
    for (place, time_s) in times.iter().enumerate() {
        let next_s = times.get(place + 1).copied().unwrap_or(end_s);

        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{},{},{time_s}",
            instant(*time_s, &asked.zone),
            instant(next_s, &asked.zone)
        );

        for column in columns {
            let _ = write!(text, ",{}", column.get(place).map_or(0, |point| point.count));
        }
        text.push_str("\r\n");
    }

    text
}

/// `2024-09-24T22:00:00+02:00`
fn instant(at_s: i64, zone: &TimeZone) -> String {
    words::local(at_s, zone)
        .map(|local| local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_a_day_and_the_last_with_the_window() {
        let window = Window { from_s: 0, to_s: 400 * 86_400, granularity: Granularity::Quarter };
        let end_s = part_end(0, window, &TimeZone::UTC);
        assert!(end_s % 86_400 == 0 && end_s / 900 <= SERIES_POINTS_MAX as i64, "{end_s}");
        assert_eq!(part_end(399 * 86_400, window, &TimeZone::UTC), window.to_s);
    }
}
