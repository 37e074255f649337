//! The answer to a query about keys: totals, series, and their chart.

use super::chart_query::{ChartQuery, Window, before, latest_stretch};
use crate::Portal;
use crate::html::chart::{Chart, Kind, Line, Points, Unit};
use crate::html::words::{self, singular};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::code::Refusal;
use raingauge_core::limits::SERIES_POINTS_MAX;
use raingauge_core::retention::Horizons;
use raingauge_reader::{Point, Range, Step};

/// How many days back the latest data are searched.
const LATEST_DAYS: i64 = SERIES_POINTS_MAX as i64 - 2;

/// The result for one key in the window.
pub struct Row {
    pub key: String,
    pub total: i64,
    pub points: Vec<Point>,
}

/// The data that the page shows.
pub struct ChartData {
    pub window: Window,
    /// The keys that could be counted.
    pub rows: Vec<Row>,
    /// The same key in the preceding window; only for a query of one key.
    pub before: Option<Row>,
    /// The keys that could not be counted, and why.
    pub failures: Vec<(String, Refusal)>,
    /// Notes on how the result differs from the query.
    pub notes: Vec<String>,
}

/// Answers a query.
pub async fn answer(portal: &Portal, asked: &ChartQuery, horizons: &Horizons) -> ChartData {
    let now_s = portal.clock.now_s();
    let mut notes = Vec::new();
    let latest = match asked.span {
        super::chart_query::Span::Latest => latest_of(portal, asked, horizons, now_s).await,
        _ => None,
    };
    let window = asked.window(now_s, horizons, latest, &mut notes);
    let mut rows = Vec::new();

    let mut failures = Vec::new();
    for key in &asked.keys {
        match row(portal, key, window, asked).await {
            Ok(row) => rows.push(row),
            Err(failure) => failures.push((key.clone(), failure)),
        }
    }

    let before = match (asked.compare, rows.len()) {
        (true, 1) => earlier(portal, &rows[0].key, window, asked, &mut notes).await,
        (true, 2..) => {
            notes.push("The preceding period is shown for one key at a time.".to_owned());
            None
        }
        _ => None,
    };
    ChartData { window, rows, before, failures, notes }
}

async fn row(
    portal: &Portal,
    key: &str,
    window: Window,
    asked: &ChartQuery,
) -> Result<Row, Refusal> {
    let range = Range { key, from_s: window.from_s, to_s: window.to_s, fresh: false };
    let zone = words::zone(&asked.zone);
    let ranges = std::slice::from_ref(&range);
    let (mut counts, series) = tokio::join!(
        portal.reader.counts(ranges),
        portal.reader.series(&range, window.granularity.into(), zone)
    );
    let total = counts.remove(0)?.count;
    Ok(Row { key: key.to_owned(), total, points: series?.points })
}

async fn earlier(
    portal: &Portal,
    key: &str,
    window: Window,
    asked: &ChartQuery,
    notes: &mut Vec<String>,
) -> Option<Row> {
    let Some(earlier) = before(window, &asked.zone) else {
        notes.push("This range has no preceding period.".to_owned());
        return None;
    };
    match row(portal, key, earlier, asked).await {
        Ok(row) => Some(row),
        Err(failure) => {
            notes.push(format!("The preceding period cannot be shown: {}", failure.detail));
            None
        }
    }
}

/// The latest stretch of time in which a key has data.
async fn latest_of(
    portal: &Portal,
    asked: &ChartQuery,
    horizons: &Horizons,
    now_s: i64,
) -> Option<(i64, i64)> {
    let mut days: Vec<(i64, i64)> = Vec::new();
    for key in &asked.keys {
        let to_s = Granularity::Day.ceil(now_s + 1);
        let from_s = horizons.day_s.max(to_s - LATEST_DAYS * DAY_S).max(0);
        let range = Range { key, from_s, to_s, fresh: false };
        let Ok(series) = portal.reader.series(&range, Step::Day, "UTC").await else {
            continue;
        };

        if days.is_empty() {
            days = series.points.iter().map(|point| (point.time, point.count)).collect()
        } else {
            days.iter_mut().zip(&series.points).for_each(|((_, count), point)| {
                *count = count.saturating_abs().saturating_add(point.count.saturating_abs());
            })
        }
    }

    latest_stretch(&days)
}

impl ChartData {
    /// Whether every count is zero.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.points).all(|point| point.count == 0)
    }

    /// `2018-11-01 – 2018-11-30`
    pub fn when(&self, asked: &ChartQuery) -> String {
        words::range(self.window.from_s, self.window.to_s, &asked.zone)
    }

    /// `Most in one hour: 41, Mon 2018-11-05 18:00 – 19:00.`
    pub fn peak(&self, asked: &ChartQuery) -> Option<String> {
        let [row] = &self.rows[..] else { return None };
        let place = (0..row.points.len())
            .max_by_key(|place| (row.points[*place].count, std::cmp::Reverse(*place)))?;
        let most = row.points[place];
        let end_s = row.points.get(place + 1).map_or(self.window.to_s, |next| next.time);
        let bucket = words::bucket(most.time, end_s, &asked.zone);
        let width = singular(self.window.granularity);
        (most.count > 0).then(|| {
            format!("Most in one {width}: {}, {bucket}.", words::number(most.count.into()))
        })
    }

    /// The total beside that of the preceding period: `+12.0 % compared with …`.
    pub fn change(&self) -> Option<String> {
        let row = self.rows.first()?;
        let before = self.before.as_ref()?;
        let known = words::number(before.total.into());
        if before.total == 0 {
            return Some(format!("The preceding period: {known}"));
        }
        let percent =
            (row.total as f64 - before.total as f64) / before.total.unsigned_abs() as f64 * 100.0;
        Some(format!("{percent:+.1} % compared with the preceding period ({known})"))
    }

    pub fn chart<'a>(&self, asked: &'a ChartQuery, now_s: i64) -> Chart<'a> {
        let values =
            |row: &Row| row.points.iter().map(|point| Some(point.count as f64)).collect::<Vec<_>>();
        let is_alone = self.rows.len() == 1;
        let kind = if is_alone { Kind::Bars } else { Kind::Line };
        let mut lines: Vec<Line> = self
            .rows
            .iter()
            .map(|row| Line { name: row.key.clone(), values: values(row), kind })
            .collect();

        let times: Vec<i64> = self
            .rows
            .first()
            .map(|row| row.points.iter().map(|point| point.time).collect())
            .unwrap_or_default();

        if let Some(before) = &self.before {
            let mut values = values(before);
            values.resize(times.len(), None);
            lines.push(Line { name: "preceding period".to_owned(), values, kind: Kind::Pale });
        }

        let keys: Vec<&str> = self.rows.iter().map(|row| row.key.as_str()).collect();
        let title = format!(
            "{} by {}, {}",
            keys.join(", "),
            singular(self.window.granularity),
            self.when(asked)
        );

        let totals: Vec<String> =
            self.rows.iter().map(|row| words::number(row.total.into())).collect();
        Chart {
            title,
            words: format!(
                "{} in total. {}",
                totals.join(", "),
                self.peak(asked).unwrap_or_default()
            ),
            times,
            lines,
            from_s: self.window.from_s,
            to_s: self.window.to_s,
            points: Points::Buckets,
            unit: Unit::Count,
            scale: asked.scale,
            zone: &asked.zone,
            now_s: Some(now_s),
            marks: Vec::new(),
        }
    }
}
