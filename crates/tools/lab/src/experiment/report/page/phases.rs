//! The table of the phases: one column per phase, one row per figure.

use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::figure::palette::{PHASE_STEPS, Paint, phase as paint_of};
use crate::experiment::report::fold::Spike;
use crate::experiment::report::numbers::{Numbers, PhaseNumbers};
use crate::experiment::report::words::{aligned, fine_percent, memory, number, percent, times};
use maud::{Markup, html};

type Value = fn(&PhaseNumbers) -> Option<String>;

/// A label, and a function that reads the value.
struct Row(&'static str, Value);

struct Group {
    name: &'static str,
    rows: &'static [Row],
}

const GROUPS: [Group; 5] = [
    Group {
        name: "Load, per second of the machine's clock",
        rows: &[
            Row("batches", |phase| Some(number(phase.batches as f64))),
            Row("counts answered/s", |phase| phase.counts_per_s.map(aligned)),
            Row("of these by the store/s", |phase| phase.store_per_s.map(aligned)),
            Row("answered by the cache", |phase| phase.hit_share.map(percent)),
            Row("failed", |phase| phase.failed_share.map(fine_percent)),
            Row("circuit breakers opened", |phase| phase.breakers.map(number)),
        ],
    },
    Group {
        name: "Load of the store after the start of a quarter hour, relative to the mean of the phase",
        rows: &[
            Row("full hours, first 30 s · 5 min", |phase| spike(phase.load_full_hours)),
            Row("other quarters, first 30 s · 5 min", |phase| spike(phase.load_others)),
        ],
    },
    Group {
        name: "Latency of a batch, ms",
        rows: &[
            Row("mean", |phase| phase.mean_ms.map(aligned)),
            Row("median", |phase| phase.p50_ms.map(aligned)),
            Row("99th percentile", |phase| phase.p99_ms.map(aligned)),
            Row("full hours over mean, 30 s · 5 min", |phase| spike(phase.latency_full_hours)),
            Row("other quarters, 30 s · 5 min", |phase| spike(phase.latency_others)),
        ],
    },
    Group {
        name: "The store",
        rows: &[
            Row("hits of its own cache", |phase| phase.own_hit_share.map(percent)),
            Row("hits/s · misses/s", |phase| {
                let hits = phase.own_hits_per_s?;
                let misses = phase.own_misses_per_s?;
                Some(format!("{} · {}", aligned(hits), aligned(misses)))
            }),
            Row("cores, mean · busiest bin", |phase| {
                Some(format!(
                    "{} · {}",
                    aligned(phase.store_cores?),
                    aligned(phase.store_cores_peak?)
                ))
            }),
            Row("memory, greatest", |phase| phase.store_memory_bytes_peak.map(memory)),
        ],
    },
    Group {
        name: "For a million answered counts",
        rows: &[
            Row("processor time without the lab, s", |phase| {
                phase.per_million.cpu_s_all.map(aligned)
            }),
            Row("requests to the store", |phase| phase.per_million.store_requests.map(whole)),
            Row("rows from the store", |phase| phase.per_million.store_rows.map(whole)),
        ],
    },
];

fn whole(value: f64) -> String {
    number(value.round())
}

fn spike(spike: Spike) -> Option<String> {
    Some(format!("{} · {}", times(spike.first_30_s?), times(spike.first_5_min?)))
}

pub fn table(analysis: &Analysis, numbers: &Numbers) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Numbers of each phase" {
            table.phases {
                thead {
                    tr {
                        th scope="col" { "Share of counters without cache" }
                        @for (place, phase) in numbers.phases.iter().enumerate() {
                            th.number scope="col" {
                                (swatch(place, numbers.phases.len()))
                                b { (percent(phase.share)) }
                                span { (analysis.zone.words(phase.from_ms, "%a %-d %b %H:%M")) }
                                span { (hours(phase)) }
                            }
                        }
                    }
                }
                @for group in &GROUPS { (body(group, numbers)) }
            }
        }
    }
}

fn hours(phase: &PhaseNumbers) -> String {
    format!("{} h", number(((phase.to_ms - phase.from_ms) as f64 / 360_000.0).round() / 10.0))
}

/// The phase's colour in the figures.
fn swatch(place: usize, len: usize) -> Markup {
    let step = match paint_of(place, len) {
        Paint::Phase(step) => step,
        _ => PHASE_STEPS,
    };
    html! {
        svg.figure.swatch viewBox="0 0 10 4" preserveAspectRatio="none" aria-hidden="true" {
            rect class={ "f-" (Paint::Phase(step).class()) } width="10" height="4" {}
        }
    }
}

fn body(group: &Group, numbers: &Numbers) -> Markup {
    html! {
        tbody {
            tr.group { th scope="rowgroup" colspan=(numbers.phases.len() + 1) { span { (group.name) } } }
            @for Row(name, value) in group.rows {
                tr {
                    th scope="row" { (name) }
                    @for phase in &numbers.phases {
                        td.number { (value(phase).unwrap_or_else(|| "–".to_owned())) }
                    }
                }
            }
        }
    }
}
