//! What a counter costs, measured on the newest events of the log. `docs/portal.md` has the
//! formulas.

use crate::Portal;
use crate::caller::{Caller, Page};
use crate::fault::Fault;
use crate::html::{layout, words};
use crate::trials::CALLER;
use axum::extract::Path;
use axum::http::StatusCode;
use maud::{Markup, html};
use raingauge_core::counter::Counter;
use raingauge_core::plan::Plan;
use raingauge_core::retention::RetentionDays;
use raingauge_counters::preview::{EVENTS_MAX, Preview};
use raingauge_reader::tiles_of;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How long a measurement is cached: it reads up to a million events.
const REMEMBERED_MS: i64 = 60_000;
/// Number of cached measurements.
const REMEMBERED_MAX: usize = 256;
/// Bytes of a tile besides its values, and of its key besides the text; see
/// `docs/storage-format.md`.
const TILE_HEAD: f64 = 17.0;
const KEY_HEAD: f64 = 11.0;
/// Bytes of a value, assumed to be two: one byte holds counts up to 127, two hold up to 32,767.
const VALUE: f64 = 2.0;

/// A counter and its version.
type Version = (u32, u32);
/// When the measurement was made, in milliseconds since 1970, and its result.
type CachedPreview = (i64, Arc<Preview>);

/// The cache of measurements.
pub struct Memory {
    known: Mutex<HashMap<Version, CachedPreview>>,
    /// One measurement at a time: each keeps a thread and the disk busy.
    turn: Semaphore,
}

impl Default for Memory {
    fn default() -> Self {
        Self { known: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl Memory {
    fn get(&self, which: Version, now_ms: i64) -> Option<Arc<Preview>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&which)
            .filter(|(at_ms, _)| now_ms - at_ms < REMEMBERED_MS)
            .map(|(_, preview)| Arc::clone(preview))
    }

    fn put(&self, which: Version, now_ms: i64, preview: &Arc<Preview>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(which, (now_ms, Arc::clone(preview)));
    }
}

/// The placeholder of the measurement on a counter's page. It loads when the person scrolls to it,
/// or on request.
pub fn panel(id: u32) -> Markup {
    let address = format!("/counters/{id}/cost");
    html! {
        section.card aria-labelledby="cost-title" {
            h2 id="cost-title" { "Cost" }
            div #cost hx-get=(address) hx-trigger="revealed" hx-target="this" hx-select="#cost"
                hx-swap="outerHTML" {
                p { a href=(address) { "Measure it on the newest events" } }
            }
        }
    }
}

/// `GET /counters/{id}/cost`
pub async fn cost(caller: Caller, Path(id): Path<u32>) -> Page {
    let found = caller.portal.counters.get(id).await?;
    let preview = measured(&caller.portal, (id, found.version), &found.counter).await?;
    let body = html! {
        div.page-head { h1 { "Cost of " a href={ "/counters/" (id) } { (found.counter.name) } } }
        section.card { div #cost { (sentences(&preview, &found.counter)) } }
    };
    Ok(caller.page(layout::Place::Counters, &format!("Cost of {}", found.counter.name), &body))
}

async fn measured(
    portal: &Portal,
    which: Version,
    counter: &Counter,
) -> Result<Arc<Preview>, Fault> {
    if let Some(known) = portal.costs.get(which, portal.clock.now_ms()) {
        return Ok(known);
    }
    let unavailable = |reason: String| {
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, "The cost could not be measured", reason)
    };
    let _turn =
        portal.costs.turn.acquire().await.map_err(|error| unavailable(error.to_string()))?;

    // Another request may have measured it while this one waited.
    if let Some(known) = portal.costs.get(which, portal.clock.now_ms()) {
        return Ok(known);
    }

    let measured = portal.counted.recent.preview(CALLER, counter.clone(), EVENTS_MAX).await;
    let preview =
        measured.map_err(|error| unavailable(format!("{error}. Try again in a minute.")))?;
    let preview = Arc::new(preview);
    portal.costs.put(which, portal.clock.now_ms(), &preview);

    Ok(preview)
}

fn sentences(preview: &Preview, counter: &Counter) -> Markup {
    html! {
        @if preview.counted == 0 {
            p {
                "The counter would count none of the newest "
                (words::count_of(preview.events.into(), "event", "events"))
                " in the log: there is nothing to measure yet."
            }
        }
        dl.facts {
            @if preview.counted > 0 { (amounts(preview, counter)) }
            dt { "Reads of a count" }
            dd {
                "one tile of up to 120 cells for each end that is not midnight UTC, and one for \
                 each 128 days: " (tiles(1)) " for a day, up to " (tiles(30)) " for 30 days, up to "
                (tiles(365)) " for a year"
            }
        }
    }
}

fn amounts(preview: &Preview, counter: &Counter) -> Markup {
    let whole = |number: f64| words::number(number.round() as i128);
    let events = words::count_of(preview.events.into(), "event", "events");
    let keys = words::count_of(preview.keys as i128, "key", "keys");
    html! {
        dt { "Measured on" }
        dd {
            "the newest " (events) " of the log, of which " (words::number(preview.counted.into()))
            " were counted under " (keys)
        }
        dt { "Cells a day" }
        dd {
            (whole(preview.cells_per_day))
            ": a cell is the count of one key in one quarter hour, hour or day"
        }
        dt { "Storage a day" }
        dd { "about " (words::bytes(bytes_a_day(preview))) " before compression" }
        @if let Some(cells) = cells_kept(&counter.retention_days) {
            dt { "Kept" }
            dd {
                "at most " (whole(cells * preview.keys as f64))
                " cells for these keys, once the retention is reached"
            }
        }
    }
}

/// Bytes of a day's cells: the values, plus a tile head and a name for each key.
fn bytes_a_day(preview: &Preview) -> f64 {
    let key_len = preview.hottest.iter().map(|hot| hot.key.len()).sum::<usize>() as f64
        / preview.hottest.len().max(1) as f64;
    // A key that was seen on a day has at least one cell of the day, one of an hour and one of a
    // quarter hour.
    let keys_a_day = (preview.cells_per_day / 3.0).min(preview.keys as f64);
    preview.cells_per_day * VALUE + keys_a_day * (TILE_HEAD + KEY_HEAD + key_len)
}

/// Largest number of cells of one key; `None` when some are kept forever.
fn cells_kept(days: &RetentionDays) -> Option<f64> {
    let quarter = days.quarter?;
    let hour = days.hour?;
    let day = days.day?;
    Some(f64::from(quarter) * 96.0 + f64::from(hour) * 24.0 + f64::from(day))
}

/// Largest number of tiles that a range of `days` days reads: one for each end, and one for each
/// period of 128 days that it touches.
fn tiles(days: i64) -> u64 {
    // Starts a quarter hour before the last midnight of a 128-day period, and so touches as many
    // periods as possible.
    let from_s = (128 * 100 - 1) * 86_400 - 900;
    Plan::new(from_s, from_s + days * 86_400).map_or(0, |plan| tiles_of(&plan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_counters::preview::Hot;

    #[test]
    fn a_count_reads_few_tiles() {
        assert_eq!([1, 30, 365].map(tiles), [2, 4, 6]);
        assert_eq!(
            cells_kept(&RetentionDays { quarter: Some(1), hour: Some(2), day: Some(3) }),
            Some(147.0)
        );
        assert_eq!(cells_kept(&RetentionDays::default()), None);
    }

    #[test]
    fn storage_follows_from_cells_and_keys() {
        let hot = Hot { key: "a".repeat(22), events: 1, count: 1 };
        let preview =
            Preview { keys: 10, cells_per_day: 100.0, hottest: vec![hot], ..Preview::default() };
        assert_eq!(bytes_a_day(&preview), 100.0 * 2.0 + 10.0 * 50.0);
    }
}
