//! Charts of the last hour.

use super::overview::{CHART_S, Overview};
use crate::html::chart::{Chart, Kind, Line, Mark, Points, Scale, Unit};
use maud::{Markup, html};
use raingauge_operations::measures::Span;
use raingauge_operations::measures::values::{
    ACCEPTED, APPLIED, CACHE_HITS, CQL_REQUESTS, ERRORS, LAG_SECONDS, RANGE_COUNTS, REJECTED,
    TILE_HITS, TILE_MISSES,
};
use raingauge_ports::catalog::VersionedPolicy;

pub fn section(overview: &Overview) -> Markup {
    if overview.spans.is_empty() {
        return html! {};
    }
    html! {
        section.stack aria-labelledby="charts-title" {
            h2 #charts-title { "The last hour" }
            div.pairs {
                (card("Events", &draw(overview, "Events each second", Unit::PerSecond, vec![
                    line(overview, "accepted", |span| Some(span.rate(ACCEPTED))),
                    line(overview, "counted", |span| Some(span.rate(APPLIED))),
                    line(overview, "refused", |span| Some(span.rate(REJECTED))),
                ])))
                (card("Range counts", &draw(overview, "Range counts each second", Unit::PerSecond, vec![
                    line(overview, "range counts", |span| Some(span.rate(RANGE_COUNTS))),
                    line(overview, "errors", |span| Some(span.rate(ERRORS))),
                ])))
                (card("Latency of /v1/counts", &draw(overview, "Latency of batches of counts", Unit::Seconds, vec![
                    line(overview, "median", |span| span.values.latency(0.5)),
                    line(overview, "99th percentile", |span| span.values.latency(0.99)),
                ])))
                (card("Log lag", &draw(overview, "Age of the oldest uncounted event", Unit::Seconds, lag_lines(overview))))
            }
            (effect(overview, &html! { a href="/system/cache" { "Policy and rollouts" } }))
        }
    }
}

fn card(title: &str, chart: &Markup) -> Markup {
    html! { div.card { h3 { (title) } (chart) } }
}

/// The load of the store and the cache hits over time, with a mark at each policy change.
pub fn effect(overview: &Overview, link: &Markup) -> Markup {
    let uses_cql = overview.totals.has(CQL_REQUESTS) && overview.totals.total(CQL_REQUESTS) > 0.0;
    let lines = if uses_cql {
        vec![
            line(overview, "requests to the store", |span| Some(span.rate(CQL_REQUESTS))),
            line(overview, "cache hits", |span| Some(span.rate(CACHE_HITS))),
        ]
    } else {
        vec![
            line(overview, "tiles read from disk", |span| Some(span.rate(TILE_MISSES))),
            line(overview, "tiles from memory", |span| Some(span.rate(TILE_HITS))),
            line(overview, "cache hits", |span| Some(span.rate(CACHE_HITS))),
        ]
    };

    let policy = overview.policy();
    let changes = changes(overview);
    html! {
        div.card #effect {
            div.card-head {
                h3 { "Cache: store load and hits" }
                p.quiet {
                    "Strategy " b { (policy.policy.choice.strategy.name()) }
                    @if policy.version > 0 { ", version " (policy.version) }
                    ". " (link)
                }
            }
            (marked(overview, "Store load and cache hits each second", Unit::PerSecond, lines, changes))
        }
    }
}

fn lag_lines(overview: &Overview) -> Vec<Line> {
    let mut partitions: Vec<&str> =
        overview.totals.by(LAG_SECONDS).map(|(partition, _)| partition).collect();
    partitions.sort_by_key(|partition| partition.parse::<u32>().unwrap_or(u32::MAX));
    match partitions[..] {
        [] | [_] => vec![line(overview, "lag", |span| Some(span.values.largest(LAG_SECONDS)))],
        // Many lines would add nothing to the worst one; the table has each of them.
        _ => vec![line(overview, "the worst partition", |span| {
            Some(span.values.largest(LAG_SECONDS))
        })],
    }
}

fn line(overview: &Overview, name: &str, value: impl Fn(&Span) -> Option<f64>) -> Line {
    Line {
        name: name.to_owned(),
        values: overview.spans.iter().map(value).collect(),
        kind: Kind::Line,
    }
}

fn draw(overview: &Overview, title: &str, unit: Unit, lines: Vec<Line>) -> Markup {
    marked(overview, title, unit, lines, Vec::new())
}

/// The policy changes within the hour.
fn changes(overview: &Overview) -> Vec<Mark> {
    let mark = |version: &VersionedPolicy| Mark {
        at_s: version.changed_at,
        name: format!("version {}: {}", version.version, version.policy.choice.strategy.name()),
    };
    let within = |version: &&VersionedPolicy| version.changed_at >= overview.now_s - CHART_S;
    overview.policies.iter().rev().filter(within).map(mark).collect()
}

fn marked(
    overview: &Overview,
    title: &str,
    unit: Unit,
    lines: Vec<Line>,
    marks: Vec<Mark>,
) -> Markup {
    let from_s = overview.now_s - CHART_S;
    let newest = lines.first().and_then(|line| line.values.last().copied().flatten());
    let words = newest.map_or_else(String::new, |value| {
        format!("Now {} ({}).", unit.short(value), lines[0].name)
    });
    let chart = Chart {
        title: title.to_owned(),
        words,
        times: overview.spans.iter().map(|span| span.to_s.min(overview.now_s)).collect(),
        lines,
        from_s,
        to_s: overview.now_s,
        points: Points::Moments,
        unit,
        scale: Scale::Linear,
        zone: &overview.zone,
        now_s: None,
        marks,
    };

    chart.figure()
}
