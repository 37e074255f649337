//! The running processes: roles, versions, and the activity of each.

use super::overview::Overview;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{parts, words};
use maud::{Markup, html};
use raingauge_operations::measures::values::PARTITIONS_COUNTED;
use raingauge_operations::watch::KnownInstance;

const COLUMNS: [Column<'_>; 8] = [
    Text("Instance"),
    Text("State"),
    Text("Roles"),
    Text("Version"),
    Text("Address"),
    Text("Started"),
    Text("Strategy"),
    Number("Partitions"),
];

pub fn section(overview: &Overview) -> Markup {
    html! {
        section.card aria-labelledby="instances-title" {
            h2 #instances-title { "Instances" }
            @if overview.seen.is_empty() {
                p.quiet { "Processes announce themselves every few seconds." }
            } @else {
                (parts::table("instances-title", &COLUMNS, &html! {
                    @for seen in &overview.seen { (row(overview, seen)) }
                }))
            }
        }
    }
}

fn row(overview: &Overview, seen: &KnownInstance) -> Markup {
    let instance = &seen.instance;
    let values = &seen.announcement.values;
    let is_writer = instance.roles.iter().any(|role| role == "writer");
    html! {
        tr {
            th scope="row" {
                (seen.title())
                @if seen.is_own { " " span.state { "this process" } }
            }
            td {
                @if seen.is_gone {
                    span.state data-state="bad" { "gone" } " "
                    span.quiet { (parts::ago(overview.now_s - instance.seen_s)) }
                } @else if seen.announcement.failure.is_some() {
                    span.state data-state="bad" { "stopped" }
                } @else {
                    span.state data-state="good" { "runs" }
                }
            }
            td { (instance.roles.join(", ")) }
            td { (instance.version) }
            td { code { (instance.address) } }
            td { (parts::moment(instance.started_s, &overview.zone)) }
            td {
                @if let Some(choice) = &seen.announcement.choice {
                    (choice.strategy.name())
                    @if !choice.rollout.is_empty() { " and others" }
                }
            }
            td.number {
                @if values.has(PARTITIONS_COUNTED) {
                    (words::number(values.total(PARTITIONS_COUNTED) as i128))
                } @else if is_writer {
                    (overview.partitions)
                }
            }
        }
    }
}
