//! The parts of the page.

use crate::history::Rates;
use maud::{Markup, html};
use raingauge_objects::Stats;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use raingauge_ports::objects::Status;
use raingauge_resp_door::{ClusterMode, HotKey, Settings};
use raingauge_values::doctor::Case;
use raingauge_values::sizes::Sizes;

/// Keys in the list of the most frequent.
pub const KEYS_SHOWN: usize = 20;
/// Cases in the list of the doctor.
const CASES_SHOWN: usize = 20;
/// Longest name of a key, in characters.
const NAME_LEN_MAX: usize = 80;

const KEYS: [Column<'_>; 4] = [
    Column::Text("Key"),
    Column::Number("Database"),
    Column::Number("Commands, about"),
    Column::Number("Too high by, at most"),
];
const SIZES: [Column<'_>; 4] = [
    Column::Text("Up to"),
    Column::Number("Values"),
    Column::Number("Bytes"),
    Column::Number("Share of bytes"),
];
const CASES: [Column<'_>; 7] = [
    Column::Text("Client"),
    Column::Text("Command"),
    Column::Number("Bursts"),
    Column::Number("Commands"),
    Column::Number("Took"),
    Column::Number("Server"),
    Column::Number("A pipeline would save"),
];
const NODES: [Column<'_>; 3] =
    [Column::Text("Node"), Column::Text("Slots"), Column::Text("This process")];

/// The figures of the last minute.
pub fn figures(present: Option<&Rates>, stats: &Stats) -> Markup {
    html! {
        section.card aria-labelledby="figures-title" {
            h2 #figures-title { "The last minute" }
            @match present {
                None => { p.quiet { "Figures appear once this process has run for a few seconds." } }
                Some(rates) => {
                    dl.figures {
                        (figure("Commands", rate(rates.commands), "over objects".to_owned()))
                        (figure("Found", found(rates), "of the keys that were read".to_owned()))
                        (figure("Read from disk", rate(rates.loads), "keys that were not in memory".to_owned()))
                        (figure("Groups", rate(rates.groups), format!("{} of the log", syncs(rates.syncs))))
                        (figure("Expired", rate(rates.expired), "keys".to_owned()))
                        (figure("Left memory", rate(rates.evicted), "objects that stay on the disk".to_owned()))
                        (figure("Not synced", unsynced(stats), "groups that a power cut could take back".to_owned()))
                    }
                }
            }
        }
    }
}

fn figure(label: &str, value: String, quiet: String) -> Markup {
    html! {
        div {
            dt { (label) }
            dd { b.figure { (value) } span.quiet { (quiet) } }
        }
    }
}

fn unsynced(stats: &Stats) -> String {
    words::number(stats.submitted.saturating_sub(stats.synced).into())
}

fn rate(per_s: f64) -> String {
    format!("{}/s", words::short_number(per_s))
}

fn syncs(per_s: f64) -> String {
    format!("{} syncs", rate(per_s))
}

fn found(rates: &Rates) -> String {
    let all = rates.hits + rates.misses;
    if all == 0.0 {
        return "–".to_owned();
    }
    words::share((rates.hits * rates.seconds) as u64, (all * rates.seconds) as u64)
}

/// What is in memory, and what on the disk.
pub fn places(stats: &Stats, status: &Status, memory_bytes: usize, now_s: i64) -> Markup {
    let size = |bytes: u64| words::bytes(bytes as f64);
    let number = |number: u64| words::number(number.into());
    let checkpoint = Some(status.checkpoint_s).filter(|at_s| *at_s > 0);
    html! {
        section.card aria-labelledby="places-title" {
            h2 #places-title { "Memory and disk" }
            dl.facts {
                dt { "Keys" }
                dd { (number(status.keys)) }
                dt { "Keys in memory" }
                dd { (number(stats.resident)) ", also those that are known to be absent" }
                dt { "Memory of objects" }
                dd { (size(stats.resident_bytes)) " of the " (size(memory_bytes as u64)) " of objects.memory_bytes, which the engine shares" }
                dt { "Waiting for a checkpoint" }
                dd { (size(status.pending_bytes)) }
                dt { "On disk" }
                dd { (size(status.disk_bytes)) " in tables, " (size(status.log_bytes)) " in the log" }
                dt { "Deleted, room not yet free" }
                dd { (words::count_of(status.dead_ids.into(), "collection", "collections")) }
                dt { "Last checkpoint" }
                dd {
                    (parts::last_time(checkpoint, now_s))
                    @if checkpoint.is_some() {
                        ", took " (words::duration(status.checkpoint_ms as f64 / 1e3))
                    }
                }
            }
        }
    }
}

/// Clients that send commands one by one.
pub fn doctor(cases: &[Case]) -> Markup {
    html! {
        section.card aria-labelledby="doctor-title" {
            h2 #doctor-title { "Clients that would gain from a pipeline" }
            p { "Bursts of 20 commands and more that were sent one by one, each within 2 ms of the last reply. A pipeline sends them together and waits once. What it would save is an upper bound: the client may have computed between its commands." }
            @if cases.is_empty() {
                p.quiet { "Nobody sent such a burst since this process began." }
            } @else {
                (parts::table("doctor-title", &CASES, &html! {
                    @for case in cases.iter().take(CASES_SHOWN) { (case_row(case)) }
                }))
            }
        }
    }
}

fn case_row(case: &Case) -> Markup {
    let time = |us: u64| words::duration(us as f64 / 1e6);
    html! {
        tr {
            th scope="row" {
                @if case.client.is_empty() {
                    span.quiet { "without a name (CLIENT SETNAME)" }
                } @else {
                    (words::cut(&case.client, NAME_LEN_MAX))
                }
            }
            td { code { (case.command) } }
            td.number { (words::number(case.bursts.into())) }
            td.number { (words::number(case.commands.into())) }
            td.number { (time(case.elapsed_us)) }
            td.number { (time(case.server_us)) }
            td.number { strong { (time(case.gain_us)) } }
        }
    }
}

/// The keys that most commands name. Names of keys are for people who may edit: they often carry
/// what identifies a person.
pub fn hot_keys(keys: &[HotKey], shows_names: bool) -> Markup {
    html! {
        section.card aria-labelledby="hot-title" {
            h2 #hot-title { "Hot keys" }
            p { "Estimated from one command in 64. Commands of a minute ago count half." }
            @if keys.is_empty() {
                p.quiet { "No command named a key lately." }
            } @else if !shows_names {
                p.quiet { "Names of keys are shown to editors." }
            } @else {
                (parts::table("hot-title", &KEYS, &html! {
                    @for key in keys {
                        tr {
                            th.wrap scope="row" { code { (shown(&key.name)) } }
                            td.number { (key.database) }
                            td.number { (words::number(key.commands.into())) }
                            td.number { (words::number(key.error.into())) }
                        }
                    }
                }))
            }
        }
    }
}

/// The name of a key as text: bytes that are no text are replaced.
fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let text: String =
        text.chars().map(|char| if char.is_control() { '\u{FFFD}' } else { char }).collect();
    words::cut(&text, NAME_LEN_MAX)
}

/// How large values are.
pub fn sizes(sizes: &Sizes) -> Markup {
    let all = sizes.bytes();
    html! {
        section.card aria-labelledby="sizes-title" {
            h2 #sizes-title { "Sizes of values" }
            @if sizes.values() == 0 {
                p.quiet { "No value was written or read since this process began." }
            } @else {
                p {
                    "The largest 1 % of values are "
                    strong { (format!("{:.0} %", sizes.share_of_largest(0.01) * 100.0)) }
                    " of the bytes. Measured on one command in 64: values as they are written, and replies of reads that came alone."
                }
                (parts::table("sizes-title", &SIZES, &html! {
                    @for class in sizes.classes() {
                        tr {
                            th scope="row" { (words::bytes(class.bytes_max as f64)) }
                            td.number { (words::number(class.values.into())) }
                            td.number { (words::bytes(class.bytes as f64)) }
                            td.number { (words::share(class.bytes, all)) }
                        }
                    }
                }))
            }
        }
    }
}

/// The nodes of a static cluster.
pub fn slots(settings: &Settings) -> Markup {
    let own = settings.own_address();
    match settings.cluster {
        ClusterMode::No => html! {},
        ClusterMode::Single => html! {
            section.card aria-labelledby="slots-title" {
                h2 #slots-title { "Slots" }
                p { "This process has all 16,384 slots, and clients find it as " code { (own) } "." }
            }
        },
        ClusterMode::Static => html! {
            section.card aria-labelledby="slots-title" {
                h2 #slots-title { "Slots" }
                p { "Each node has a disk of its own, and none takes over for another." }
                (parts::table("slots-title", &NODES, &html! {
                    @for node in &settings.nodes {
                        tr {
                            th scope="row" { code { (node.address()) } }
                            td { (ranges(&node.slots)) }
                            td { @if node.address() == own { "yes" } }
                        }
                    }
                }))
            }
        },
    }
}

fn ranges(slots: &[(u16, u16)]) -> String {
    let range = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    slots.iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_are_for_editors_and_harmless() {
        let name = b"<b>user:7\x00\xff".to_vec();
        let keys = [HotKey { database: 0, name, commands: 640, error: 0 }];
        let seen = hot_keys(&keys, true).into_string();
        assert!(seen.contains("&lt;b&gt;user:7\u{FFFD}\u{FFFD}") && seen.contains("640"), "{seen}");
        assert!(!hot_keys(&keys, false).into_string().contains("user:7"));
    }

    #[test]
    fn few_values_may_be_most_of_the_bytes() {
        let mut found = Sizes::default();
        (0..99).for_each(|_| found.note(1_000));
        found.note(1_000_000);
        let seen = sizes(&found).into_string();
        assert!(seen.contains("<strong>91 %</strong>"), "{seen}");
    }

    #[test]
    fn a_case_without_a_client_says_how_to_name_it() {
        let case = Case {
            client: String::new(),
            command: "hget",
            bursts: 1,
            commands: 1_512,
            elapsed_us: 350_000,
            server_us: 5_000,
            gain_us: 344_772,
        };
        let seen = doctor(&[case]).into_string();
        assert!(seen.contains("CLIENT SETNAME") && seen.contains("1,512"), "{seen}");
    }
}
