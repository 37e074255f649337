//! The figures of the last minute.

use super::overview::Overview;
use crate::html::words;
use maud::{Markup, html};
use raingauge_operations::measures::Span;
use raingauge_operations::measures::values::{
    ACCEPTED, APPLIED, CQL_COUNTS, CQL_REQUESTS, CQL_ROWS, ERRORS, LAG_EVENTS, LAG_SECONDS,
    RANGE_COUNTS, ROWS, TILE_HITS, TILE_MISSES,
};

/// One figure with its caption.
struct Figure {
    label: &'static str,
    value: String,
    words: String,
}

pub fn section(overview: &Overview) -> Markup {
    let present = &overview.present;
    let figures = [
        events(present),
        counts(present),
        latency(present),
        caching(overview),
        reads(present),
        lag(overview),
        errors(present),
    ];

    html! {
        section.card aria-labelledby="figures-title" {
            h2 #figures-title { "The last minute" }
            @if present.seconds == 0.0 {
                p.quiet { "Figures appear once this process has run for a few seconds." }
            } @else {
                dl.figures {
                    @for figure in figures {
                        div {
                            dt { (figure.label) }
                            dd { b.figure { (figure.value) } span.quiet { (figure.words) } }
                        }
                    }
                }
            }
        }
    }
}

fn rate(per_s: f64) -> String {
    format!("{}/s", words::short_number(per_s))
}

fn events(present: &Span) -> Figure {
    Figure {
        label: "Events accepted",
        value: rate(present.rate(ACCEPTED)),
        words: format!("{} counted", rate(present.rate(APPLIED))),
    }
}

fn counts(present: &Span) -> Figure {
    Figure {
        label: "Range counts",
        value: rate(present.rate(RANGE_COUNTS)),
        words: "by HTTP, gRPC and the portal".to_owned(),
    }
}

fn latency(present: &Span) -> Figure {
    let quantile = |quantile| present.values.latency(quantile).map(words::duration);
    let (value, words) = match (quantile(0.5), quantile(0.99)) {
        (Some(median), Some(p99)) => {
            (p99, format!("99th percentile of /v1/counts; median {median}"))
        }
        _ => ("–".to_owned(), "no requests to /v1/counts".to_owned()),
    };
    Figure { label: "Latency", value, words }
}

/// The hit rate of the cache strategies; if none uses a cache, the share of tiles found in memory.
fn caching(overview: &Overview) -> Figure {
    let present = &overview.present;
    let strategy = overview.policy().policy.choice.strategy.name();
    let percent =
        |share: f64| format!("{} %", words::short_number((share * 1_000.0).round() / 10.0));
    let hits = present.values.total(TILE_HITS);
    let tiles = hits + present.values.total(TILE_MISSES);

    let (value, of) = match present.hit_share() {
        Some(share) => (percent(share), ""),
        None if tiles > 0.0 => (percent(hits / tiles), "of the tiles in memory; "),
        None => ("–".to_owned(), "no lookups; "),
    };
    Figure { label: "Cache hits", value, words: format!("{of}strategy {strategy}") }
}

fn reads(present: &Span) -> Figure {
    let number = |number: f64| words::short_number((number * 100.0).round() / 100.0);
    let per_count = |metric| present.ratio(metric, CQL_COUNTS);
    let (value, words) = match (per_count(CQL_REQUESTS), per_count(CQL_ROWS)) {
        (Some(requests), Some(rows)) => {
            (number(requests), format!("requests and {} rows for each count read", number(rows)))
        }
        _ => match present.ratio(ROWS, RANGE_COUNTS) {
            Some(tiles) => {
                let misses = rate(present.rate(TILE_MISSES));
                (number(tiles), format!("tiles for each count, {misses} of them from disk"))
            }
            None => ("–".to_owned(), "no reads".to_owned()),
        },
    };
    Figure { label: "Store reads", value, words }
}

fn lag(overview: &Overview) -> Figure {
    let events = overview.totals.total(LAG_EVENTS);
    Figure {
        label: "Log lag",
        value: words::duration(overview.totals.largest(LAG_SECONDS)),
        words: format!("{} waiting", words::count_of(events as i128, "event", "events")),
    }
}

fn errors(present: &Span) -> Figure {
    let most = present
        .values
        .by(ERRORS)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .filter(|(_, count)| *count > 0.0);
    let words = most.map_or_else(|| "no errors".to_owned(), |(code, _)| format!("mostly {code}"));
    Figure { label: "Errors", value: rate(present.rate(ERRORS)), words }
}
