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

    if let Some(share) = present.hit_share() {
        return Figure {
            label: "Cache hits",
            value: percent(share),
            words: format!("strategy {strategy}"),
        };
    }

    let hits = present.values.total(TILE_HITS);
    let misses = present.values.total(TILE_MISSES);
    if hits + misses > 0.0 {
        let words = format!("of the tiles in memory; strategy {strategy}");
        return Figure { label: "Cache hits", value: percent(hits / (hits + misses)), words };
    }

    Figure {
        label: "Cache hits",
        value: "–".to_owned(),
        words: format!("no lookups; strategy {strategy}"),
    }
}

fn reads(present: &Span) -> Figure {
    let number = |number: f64| words::short_number((number * 100.0).round() / 100.0);
    if let (Some(requests), Some(rows)) =
        (present.ratio(CQL_REQUESTS, CQL_COUNTS), present.ratio(CQL_ROWS, CQL_COUNTS))
    {
        let words = format!("requests and {} rows for each count read", number(rows));
        return Figure { label: "Store reads", value: number(requests), words };
    }

    match present.ratio(ROWS, RANGE_COUNTS) {
        Some(tiles) => {
            let words = format!(
                "tiles for each count, {} of them from disk",
                rate(present.rate(TILE_MISSES))
            );
            Figure { label: "Store reads", value: number(tiles), words }
        }
        None => {
            Figure { label: "Store reads", value: "–".to_owned(), words: "no reads".to_owned() }
        }
    }
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
