//! Destinations: how fast they get what, whether they answer, and what waits for them.

use super::desk::DestinationView;
use super::visit::{Answer, Tab, Visit, done, reason_field};
use maud::{Markup, html};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};

const COLUMNS: [Column<'_>; 7] = [
    Column::Text("Destination"),
    Column::Text("State"),
    Column::Number("A second, now"),
    Column::Number("Requests at a time"),
    Column::Number("Waiting"),
    Column::Text("Oldest"),
    Column::Silent("Further"),
];

/// `GET /campaigns/destinations`
pub async fn list(visit: Visit) -> Answer {
    let all = visit.desk.destinations().await?;
    let now_ms = visit.now_ms();
    let body = html! {
        div.page-head {
            h1 { "Destinations" }
            @if visit.may_administer() { div.actions { a.button.primary href="/campaigns/documents/destination/new" { "New destination" } } }
        }
        p.lead { "Services that carry out actions. Each gets as much as its rate at this time of day allows, and is left alone while it fails." }
        @if all.is_empty() {
            (parts::empty("No destinations", &html! { "Campaigns deliver to destinations. An administrator adds them." }))
        } @else {
            section.card.table-card aria-labelledby="destinations-title" {
                h2.visually-hidden #destinations-title { "Destinations" }
                (parts::table("destinations-title", &COLUMNS, &html! { @for one in &all { (row(one, now_ms)) } }))
            }
        }
    };
    Ok(visit.show(Tab::Destinations, "Destinations", &body))
}

fn row(one: &DestinationView, now_ms: i64) -> Markup {
    let address = format!("/campaigns/destinations/{}", words::step_of_address(&one.name));
    let (mood, word) = condition(one);
    html! {
        tr {
            th.wrap scope="row" {
                a href=(address) { (one.name) }
                br;
                span.quiet { (words::cut(&one.url, 60)) }
            }
            td { span.state data-state=(mood) { (word) } }
            td.number { (pace(one)) }
            td.number { (one.in_flight) " of " (one.concurrency) }
            td.number {
                a href={ "/campaigns/actions?status=pending&destination=" (super::visit::encoded(&one.name)) } {
                    (words::number(one.pending as i128))
                }
            }
            td {
                @match one.oldest_ms.filter(|oldest_ms| *oldest_ms <= now_ms) {
                    Some(oldest_ms) => { (parts::ago((now_ms - oldest_ms) / 1_000)) }
                    None => "–",
                }
            }
            td { a href={ "/campaigns/actions?status=dead&destination=" (super::visit::encoded(&one.name)) } { "Dead letters" } }
        }
    }
}

/// The state of a destination, and how it is felt.
fn condition(one: &DestinationView) -> (&'static str, &'static str) {
    match one.breaker {
        _ if one.obstacle.is_some() => ("bad", "stopped"),
        "open" => ("bad", "fails: left alone"),
        "half_open" => ("wait", "being tried again"),
        _ if is_slowed(one) => ("wait", "slowed down"),
        _ => ("good", "answers"),
    }
}

fn is_slowed(one: &DestinationView) -> bool {
    matches!((one.per_second, one.scheduled_per_second), (Some(now), Some(then)) if now < then)
}

/// Requests a second, and those of the schedule where it is slowed down.
fn pace(one: &DestinationView) -> Markup {
    html! {
        @match one.per_second { Some(now) => (now), None => "no bound" }
        @if is_slowed(one) { span.quiet { " of " (one.scheduled_per_second.unwrap_or_default()) } }
    }
}

/// `GET /campaigns/destinations/{name}`
pub async fn one(visit: Visit) -> Answer {
    let name = visit.at("name").to_owned();
    let all = visit.desk.destinations().await?;
    let found = all.iter().find(|one| one.name == name);
    let found = found.ok_or_else(|| Fault::not_found("such destination"))?;
    let document = visit.desk.document("destination", &name);
    let rate = document.as_ref().map(|document| &document.configuration["rate"]);
    let zone = document.as_ref().and_then(|document| document.configuration["zone"].as_str());

    let (mood, word) = condition(found);
    let body = html! {
        div.page-head {
            h1 { (name) }
            span.state data-state=(mood) { (word) }
            // One that raingauge brings with it has no document.
            @if visit.may_administer() && document.is_some() {
                div.actions { a.button.primary href={ "/campaigns/documents/destination/" (words::step_of_address(&name)) } { "Edit" } }
            }
        }
        (probe_note(&visit))
        @if let Some(obstacle) = &found.obstacle {
            (parts::notice(Mood::Bad, &html! { "Nothing is sent: " (obstacle) }))
        }
        @if let Some(document) = document.as_ref().filter(|_| visit.may_edit()) {
            (switch(&visit, &name, document.configuration["disabled"].is_string()))
        }
        section.card aria-labelledby="now-title" {
            h2 #now-title { "Now" }
            dl.facts {
                dt { "Address" } dd { code { (found.url) } }
                dt { "Requests a second" } dd { (pace(found)) @if is_slowed(found) { ", because it had too much to do" } }
                dt { "Requests at a time" } dd { (found.in_flight) " of at most " (found.concurrency) }
                dt { "Waiting" }
                dd {
                    (words::count_of(found.pending as i128, "action", "actions"))
                    @if let Some(oldest_ms) = found.oldest_ms {
                        ", the first one due "
                        (parts::ago((visit.now_ms() - oldest_ms) / 1_000))
                    }
                }
                @if let Some((at_ms, note)) = &found.last_failure {
                    dt { "Last failure" }
                    dd { (note) ", " (parts::ago((visit.now_ms() - at_ms) / 1_000)) }
                }
                dt { "Dead letters" } dd { a href={ "/campaigns/actions?status=dead&destination=" (super::visit::encoded(&name)) } { "Show" } }
            }
            @if visit.may_edit() {
                form.row method="post" action={ "/campaigns/destinations/" (words::step_of_address(&name)) "/probe" } {
                    (parts::csrf(&visit.person))
                    button.button type="submit" { "Try it" }
                    span.quiet { "Sends a signed request that asks for nothing (" code { "raingauge.probe" } ")." }
                }
            }
        }
        @if let Some(rate) = rate {
            (schedule(rate, zone))
        }
    };
    Ok(visit.show(Tab::Destinations, &name, &body))
}

/// A form that disables a destination, or enables one that is disabled.
fn switch(visit: &Visit, name: &str, is_disabled: bool) -> Markup {
    let verb = if is_disabled { "enable" } else { "disable" };
    html! {
        section.card aria-labelledby="switch-title" {
            h2 #switch-title { @if is_disabled { "Disabled" } @else { "Kill switch" } }
            p {
                @if is_disabled { "Its deliveries wait. When it is enabled, they are sent at its rate." }
                @else { "A disabled destination is sent nothing, also after a restart, until it is enabled. Its deliveries wait." }
            }
            form.form method="post" action={ "/campaigns/destinations/" (words::step_of_address(name)) "/" (verb) } {
                (parts::csrf(&visit.person))
                (reason_field("destination", ""))
                div.actions { button.button type="submit" { @if is_disabled { "Enable" } @else { "Disable" } } }
            }
        }
    }
}

/// `POST /campaigns/destinations/{name}/disable`
pub async fn disable(visit: Visit) -> Answer {
    let reason = match visit.form.text("reason") {
        "" => format!("disabled by {}", visit.person.name),
        reason => reason.to_owned(),
    };
    change(visit, Some(&reason), "destination.disable").await
}

/// `POST /campaigns/destinations/{name}/enable`
pub async fn enable(visit: Visit) -> Answer {
    change(visit, None, "destination.enable").await
}

async fn change(visit: Visit, disabled: Option<&str>, verb: &'static str) -> Answer {
    let name = visit.at("name").to_owned();
    let reason = visit.form.text("reason");
    visit.desk.switch_destination(&name, disabled, &visit.person, reason).await?;
    let address = format!("/campaigns/destinations/{}?note=saved", words::step_of_address(&name));
    Ok(done(&address, verb, format!("destination {name}"), json!({"reason": reason})))
}

/// The rates of a destination by time of day. The last one that applies holds.
fn schedule(rate: &Json, zone: Option<&str>) -> Markup {
    let entries = rate.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    html! {
        section.card aria-labelledby="schedule-title" {
            h2 #schedule-title { "Schedule, " (zone.unwrap_or("UTC")) }
            (parts::table("schedule-title", &[Column::Text("When"), Column::Number("A second"), Column::Number("At once, after a pause")], &html! {
                @for entry in entries {
                    @let days = entry["days"].as_array().into_iter().flatten();
                    @let days: Vec<String> = days.map(text).collect();
                    tr {
                        td {
                            @if entry["from"].is_string() {
                                (text(&entry["from"]))
                                " to "
                                (text(&entry["to"]))
                            } @else if days.is_empty() {
                                "otherwise"
                            } @else {
                                "all day"
                            }
                            @if !days.is_empty() { ", " (days.join(", ")) }
                        }
                        td.number { (entry["perSecond"]) }
                        td.number { (entry["burst"]) }
                    }
                }
            }))
        }
    }
}

/// The answer to a probe. It stands in the address as its status, 0 without an answer.
fn probe_note(visit: &Visit) -> Markup {
    let Some(status) = visit.query.given("probed").and_then(|text| text.parse::<u16>().ok()) else {
        return html! {};
    };
    match status {
        0 => {
            parts::notice(Mood::Bad, &html! { "It did not answer. The log of raingauge says why." })
        }
        200..300 => parts::notice(Mood::Good, &html! { "It answered " (status) "." }),
        _ => parts::notice(Mood::Bad, &html! { "It answered " (status) ", and so refused." }),
    }
}

/// `POST /campaigns/destinations/{name}/probe`
pub async fn probe(visit: Visit) -> Answer {
    let name = visit.at("name").to_owned();
    let status = visit.desk.probe(&name).await?;
    let address =
        format!("/campaigns/destinations/{}?probed={status}", words::step_of_address(&name));
    Ok(done(
        &address,
        "destination.probe",
        format!("destination {name}"),
        json!({"status": status}),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> DestinationView {
        DestinationView {
            name: "rewards".to_owned(),
            url: "https://r".to_owned(),
            obstacle: None,
            breaker: "closed",
            per_second: Some(50),
            scheduled_per_second: Some(50),
            concurrency: 2,
            in_flight: 0,
            pending: 0,
            oldest_ms: None,
            last_failure: None,
        }
    }

    #[test]
    fn the_worst_comes_first() {
        assert_eq!(condition(&view()).1, "answers");
        assert_eq!(condition(&DestinationView { per_second: Some(25), ..view() }).1, "slowed down");
        let open = DestinationView { breaker: "open", per_second: Some(25), ..view() };
        assert_eq!(condition(&open).1, "fails: left alone");
        let stopped = DestinationView { obstacle: Some("it answered 410".to_owned()), ..open };
        assert_eq!(condition(&stopped).1, "stopped");
    }

    #[test]
    fn a_schedule_is_a_table() {
        let rate = json!([{"perSecond": 500, "burst": 500},
            {"from": "07:00", "to": "10:00", "days": ["mon", "<b>"], "perSecond": 50, "burst": 10}]);
        let shown = schedule(&rate, None).into_string();
        assert!(
            shown.contains("otherwise") && shown.contains("07:00 to 10:00, mon, &lt;b&gt;"),
            "{shown}"
        );
    }
}
