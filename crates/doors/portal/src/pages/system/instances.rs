//! The running processes: roles, versions, and the activity of each.

use super::overview::Overview;
use crate::html::parts::Column::{self, Text};
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
    Text("Runs since"),
    Text("Strategy"),
    Text("Partitions"),
];

pub fn section(overview: &Overview) -> Markup {
    html! {
        section.card aria-labelledby="instances-title" {
            h2 #instances-title { "Instances" }
            @if overview.seen.is_empty() {
                p.quiet { "Processes announce themselves every few seconds." }
            } @else {
                (parts::table("instances-title", &COLUMNS, &html! { @for seen in &overview.seen { (row(overview, seen)) } }))
            }
        }
    }
}

fn row(overview: &Overview, seen: &KnownInstance) -> Markup {
    let instance = &seen.instance;
    html! {
        tr {
            th scope="row" { (seen.title()) @if seen.is_own { span.quiet { " this one" } } }
            td {
                @if seen.is_gone {
                    span.state data-state="bad" { "gone" } " " span.quiet { (parts::ago(overview.now_s - instance.seen_s)) }
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
            td { @if let Some(choice) = &seen.announcement.choice { (choice.strategy.name()) @if !choice.rollout.is_empty() { " and others" } } }
            td {
                @if seen.announcement.values.has(PARTITIONS_COUNTED) { (words::number(seen.announcement.values.total(PARTITIONS_COUNTED) as i128)) }
                @else if instance.roles.iter().any(|role| role == "writer") { (overview.partitions) }
            }
        }
    }
}
