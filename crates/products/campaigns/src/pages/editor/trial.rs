//! What the text of a campaign would do: its words, and its decisions on the newest events.

use super::{cannot, checked};
use crate::pages::decisions::trace;
use crate::pages::reasons;
use crate::pages::summary::summary;
use crate::pages::visit::Visit;
use maud::{Markup, html};
use raingauge_campaigns::campaign::Campaign;
use raingauge_core::access::Role;
use raingauge_core::time::format_rfc3339;
use raingauge_counters::observed::Observation;
use raingauge_portal::document::{self, SaveError};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Decisions that are shown.
const SHOWN: usize = 20;

/// The trial of a text, or what is wrong with it.
pub async fn trial(visit: &Visit, text: &str) -> Markup {
    let json = match checked(visit, text).await {
        Ok(json) => json,
        Err(SaveError::Invalid(problems)) => return document::problems(&problems, text),
        Err(SaveError::Other(fault)) => return cannot(&fault.advice),
    };
    let Ok(campaign) = Campaign::from_json(&json) else {
        return cannot("The text is no campaign.");
    };
    html! {
        (summary(&campaign))
        h3 { "On the newest events" }
        (tested(visit, &json, &campaign).await)
    }
}

async fn tested(visit: &Visit, json: &Json, campaign: &Campaign) -> Markup {
    if !visit.person.may(Role::Editor) {
        return cannot("Values of events are not shown to you.");
    }
    let observed = match visit.portal.observed().await {
        Ok(observed) => observed,
        Err(fault) => return cannot(&fault.advice),
    };
    let events = samples(&observed, campaign);
    if events.is_empty() {
        return cannot(
            "None of the newest events has one of its types. Try it with a file: raingauge campaigns test.",
        );
    }

    match visit.desk.test(&json!({"campaigns": [json], "events": events})).await {
        Ok(result) => decided(&result, events.len()),
        Err(fault) => cannot(&fault.advice),
    }
}

/// The newest events of the campaign's types, oldest first.
fn samples(observed: &Observation, campaign: &Campaign) -> Vec<Json> {
    let types = observed.types.iter().filter(|kind| campaign.event_types.contains(&kind.name));
    let mut samples: Vec<(i64, Json)> = types
        .flat_map(|kind| {
            kind.samples.iter().map(|sample| {
                let data: Json = serde_json::from_str(&sample.data).unwrap_or_default();
                let mut event = json!({
                    "specversion": "1.0", "type": kind.name, "source": sample.source,
                    "id": sample.id, "time": format_rfc3339(sample.time_ms.div_euclid(1_000)), "data": data});
                if let Some(subject) = &sample.subject {
                    event["subject"] = json!(subject);
                }
                (sample.time_ms, event)
            })
        })
        .collect();
    samples.sort_by_key(|(time_ms, _)| *time_ms);
    samples.into_iter().map(|(_, event)| event).collect()
}

/// The decisions of a test, each with its conditions; and for events without one, the reasons.
fn decided(result: &Json, events: usize) -> Markup {
    let decisions = result["decisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        p {
            (words::count_of(events as i128, "event", "events"))
            " of its types, counted from zero: "
            strong { (words::count_of(decisions.len() as i128, "decision", "decisions")) }
            "."
        }
        (reasons_of(result))
        @if decisions.is_empty() { p.quiet { "A backtest looks at more events." } }
        ul.plain {
            @for decision in decisions.iter().take(SHOWN) {
                li {
                    details {
                        summary {
                            (reasons::badge(decision["outcome"].as_str().unwrap_or_default())) " "
                            (decision["step"].as_str().unwrap_or_default()) "/"
                            (decision["name"].as_str().unwrap_or_default())
                            " for " code { (words::cut(decision["subject"].as_str().unwrap_or_default(), 40)) }
                        }
                        @if let Some(body) = decision["body"].as_object() {
                            pre.data { (serde_json::to_string_pretty(body).unwrap_or_default()) }
                        }
                        (trace(&decision["evidence"]["trace"]))
                    }
                }
            }
        }
        @if decisions.len() > SHOWN { p.quiet { "The first " (SHOWN) " are shown." } }
    }
}

/// How often each code was the first reason, over all events.
fn reasons_of(result: &Json) -> Markup {
    let events = result["events"].as_array().into_iter().flatten();
    let campaigns = events.flat_map(|event| event["explanations"].as_array().into_iter().flatten());
    let mut codes: BTreeMap<&str, i128> = BTreeMap::new();
    for campaign in campaigns {
        *codes.entry(campaign["code"].as_str().unwrap_or_default()).or_default() += 1;
    }
    html! {
        @if !codes.is_empty() {
            ul.reasons {
                @for (code, events) in &codes {
                    li { strong { (words::number(*events)) } " " (reasons::explained(code)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_says_why_events_decided_nothing() {
        let result = json!({"decisions": [{"outcome": "granted", "step": "s", "name": "a", "subject": "<u>",
                "evidence": {"trace": []}}],
            "events": [{"explanations": [{"code": "step_false"}]}, {"explanations": [{"code": "step_false"}]},
                {"explanations": [{"code": "granted"}]}]});
        let shown = decided(&result, 3).into_string();
        assert!(shown.contains("1 decision") && shown.contains("&lt;u&gt;"), "{shown}");
        assert!(shown.contains("<strong>2</strong>") && shown.contains("step false"), "{shown}");
        assert!(decided(&Json::Null, 1).into_string().contains("0 decisions"));
    }
}
