//! The form that creates and edits a counter.
//!
//! Every button submits the whole form, and the response is the form as it was typed, changed by
//! that button. Without scripts the whole page is reloaded; with them, only the part that changes.

mod filter;

use crate::form::{Adds, Examples, Form, examples};
use crate::html::parts::{self, Field};
use crate::html::words;
use maud::{Markup, html};
use raingauge_core::counter::Problem;
use raingauge_counters::observed::{EventType, Kind, Observation};
use raingauge_people::Principal;

/// The form, as a page shows it.
pub struct Sheet<'a> {
    pub person: &'a Principal,
    pub form: &'a Form,
    /// The problems, shown beside the fields.
    pub problems: &'a [Problem],
    pub observed: &'a Observation,
}

impl Sheet<'_> {
    /// Renders the whole form, with the preview beside it.
    pub fn markup(&self, preview: &Markup) -> Markup {
        html! {
            form #draft-form .editor method="post" action="/drafts" novalidate {
                (parts::csrf(self.person))
                (hidden("id", &self.form.id.to_string()))
                (hidden("base", &self.form.base_version.to_string()))
                (hidden("draft", &self.form.draft.to_string()))
                (hidden("revision", &self.form.revision.to_string()))
                // Enter presses the first button of a form.
                button.visually-hidden type="submit" formaction="/drafts/form" name="do"
                    value="preview" tabindex="-1" aria-hidden="true" { "Preview" }
                div.editor-form hx-swap="outerHTML" {
                    (self.summary())
                    (self.events())
                    (self.template())
                    (self.value())
                    (self.retention())
                    (self.about())
                    (self.lists())
                    div.actions.form-foot {
                        button.button.primary type="submit" { "Save draft" }
                        button.button type="submit" formaction="/drafts/form" name="do"
                            value="preview" { "Preview" }
                        a.button href=(self.back()) { "Cancel" }
                        span.quiet { "A draft counts nothing yet: the next page applies it." }
                    }
                }
                (preview_place(preview))
            }
        }
    }

    fn back(&self) -> String {
        match (self.form.draft, self.form.id) {
            (0, 0) => "/".to_owned(),
            (0, id) => format!("/counters/{id}"),
            (draft, _) => format!("/drafts/{draft}"),
        }
    }

    fn kind(&self) -> Option<&EventType> {
        self.observed.of_type(&self.form.event_type)
    }

    /// All problems of a field of the configuration, as one text.
    fn problem(&self, field: &str) -> Option<String> {
        let details: Vec<&str> = self
            .problems
            .iter()
            .filter(|problem| problem.field == field)
            .map(|problem| &*problem.detail)
            .collect();
        if details.is_empty() { None } else { Some(details.join("; ")) }
    }

    /// The number of problems, at the top, where people look first after submitting.
    fn summary(&self) -> Markup {
        if self.problems.is_empty() {
            return html! {};
        }
        let known = [
            "id",
            "name",
            "eventType",
            "template",
            "filter",
            "activeFrom",
            "activeUntil",
            "owner",
            "description",
        ];

        let elsewhere = |problem: &&Problem| {
            let field = problem.field.as_str();
            !known.contains(&field)
                && !field.starts_with("value")
                && !field.starts_with("retentionDays")
        };

        parts::notice(
            parts::Mood::Bad,
            &html! {
                p { "Nothing was saved. Correct the marked fields below." }
                @for problem in self.problems.iter().filter(elsewhere) {
                    p { (problem) }
                }
            },
        )
    }

    fn events(&self) -> Markup {
        let problem = self.problem("eventType");
        let field = Field {
            name: "eventType",
            label: "Event type",
            hint: "The CloudEvents type. The field suggests types that arrived recently.",
            problem: problem.as_deref(),
        }
        .around(&html! {
            input type="text" id="eventType" name="eventType" value=(self.form.event_type)
                list="event-types" autocomplete="off" spellcheck="false"
                aria-invalid=[problem.as_ref().map(|_| "true")] aria-describedby="eventType-words"
                hx-post="/drafts/form" hx-trigger="change" hx-target="#lists" hx-select="#lists"
                hx-select-oob="#offered,#type-words";
        });

        html! {
            section.card aria-labelledby="events-head" {
                h2 #events-head { "Which events are counted" }
                div.form {
                    (field)
                    (self.type_words())
                    (self.filter())
                }
            }
        }
    }

    /// A description of the selected event type.
    fn type_words(&self) -> Markup {
        let all = self.observed.events;
        html! {
            p.quiet #type-words {
                @if let Some(kind) = self.kind() {
                    (words::part_of(kind.events, all, "event", "events"))
                    ", with " (kind.fields.len()) " fields. "
                    a href={ "/events/" (words::step_of_address(&kind.name)) } { "See examples" }
                } @else if self.form.event_type.is_empty() && !self.observed.types.is_empty() {
                    "Recent types: "
                    @for (place, kind) in self.observed.types.iter().take(8).enumerate() {
                        @if place > 0 { ", " }
                        code { (kind.name) }
                    }
                    "."
                } @else {
                    "None of the newest " (parts::number(all.into()))
                    " events has this type, so no fields can be suggested."
                }
            }
        }
    }

    fn template(&self) -> Markup {
        let problem = self.problem("template");
        let field = Field {
            name: "template",
            label: "Template",
            hint: "Text and fields in braces, separated by colons, such as rides:zone:{zone}. Each \
                   combination of values has its own count.",
            problem: problem.as_deref(),
        };

        html! {
            section.card #template-part aria-labelledby="template-head" {
                h2 #template-head { "Under which keys" }
                div.form {
                    (field.text(&self.form.template))
                    (self.offered())
                    (example_keys(self.form, self.observed, false))
                }
            }
        }
    }

    /// Fields that can be inserted into the template.
    fn offered(&self) -> Markup {
        html! {
            div.chips #offered role="group" aria-label="Fields for the template" {
                @for field in self.kind().into_iter().flat_map(|kind| &kind.fields) {
                    @let name = field.in_template();
                    @let share = presence(field.events, self.kind());
                    button.chip type="submit" formaction="/drafts/form" name="do"
                        value={ "field:" (name) }
                        title={ (share) " of the events, " (field.kind.name()) }
                        hx-post="/drafts/form" hx-target="#template-part"
                        hx-select="#template-part" {
                        "{" (name) "}"
                    }
                }
            }
        }
    }

    fn value(&self) -> Markup {
        let chosen = self.form.adds;
        let choice = |adds: Adds, words: &str| {
            html! {
                label.choice {
                    input type="radio" name="adds" value=(adds.name()) checked[chosen == adds];
                    span { (words) }
                }
            }
        };

        let problem = self.problem("value");
        let scale_problem = self.problem("value.scale");
        html! {
            section.card {
                fieldset.form aria-describedby="value-words" {
                    legend.card-legend { "What each event adds" }
                    div #value-words hidden[problem.is_none()] {
                        @if let Some(problem) = &problem { p.problem { (problem) } }
                    }
                    div.choices { (choice(Adds::One, "1: events are counted")) }
                    div.choices {
                        (choice(Adds::Number, "a number"))
                        input type="text" inputmode="numeric" name="number" value=(self.form.number)
                            aria-label="The number that each event adds" autocomplete="off";
                    }
                    div.choices {
                        (choice(Adds::Field, "a field"))
                        input type="text" name="valueField" value=(self.form.field)
                            list="number-fields" aria-label="The field that each event adds"
                            placeholder="data.amount" autocomplete="off" spellcheck="false";
                        span { "×" }
                        input.short type="text" inputmode="numeric" name="scale"
                            value=(self.form.scale) aria-label="The factor of the field"
                            autocomplete="off" aria-describedby="scale-words"
                            aria-invalid=[scale_problem.as_ref().map(|_| "true")];
                    }
                    p.quiet #scale-words {
                        @if let Some(problem) = &scale_problem { span.problem { (problem) } " " }
                        "Counts are whole numbers: × 100 counts an amount such as 12.50 exactly, \
                         in hundredths."
                    }
                }
            }
        }
    }

    fn retention(&self) -> Markup {
        let days = |name: &'static str, label: &'static str, value: &str| {
            let problem = self.problem(&format!("retentionDays.{name}"));
            let field = Field { name, label, hint: "", problem: problem.as_deref() };
            field.around(&html! {
                input type="text" inputmode="numeric" id=(name) name=(name) value=(value)
                    placeholder="forever" autocomplete="off" aria-describedby={ (name) "-words" }
                    aria-invalid=[problem.as_ref().map(|_| "true")];
            })
        };
        html! {
            section.card {
                fieldset.form {
                    legend.card-legend { "How many days counts are kept" }
                    @if let Some(problem) = self.problem("retentionDays") { p.problem { (problem) } }
                    div.row {
                        (days("quarter", "Quarter hours", &self.form.quarter))
                        (days("hour", "Hours", &self.form.hour))
                        (days("day", "Days", &self.form.day))
                    }
                    p.quiet {
                        "Leave a field empty to keep its counts forever. Older ranges are answered \
                         at the finest level that is still kept. The preview shows the storage \
                         cost."
                    }
                }
            }
        }
    }

    fn about(&self) -> Markup {
        let text = |name, label, hint, value: &str| {
            let problem = self.problem(name);
            Field { name, label, hint, problem: problem.as_deref() }.text(value)
        };
        let hint = "In UTC, by the time of the event. Empty: no limit.";
        let time = |name, label, value: &str| {
            let problem = self.problem(name);
            let problem = problem.as_deref();
            let input = parts::time_input(name, value, problem);
            Field { name, label, hint, problem }.around(&input)
        };

        html! {
            section.card aria-labelledby="about-head" {
                h2 #about-head { "About the counter" }
                div.form {
                    (text("name", "Name", "For people, such as count_rides.", &self.form.name))
                    div.row {
                        (text("owner", "Owner", "The team or person responsible.", &self.form.owner))
                        @if self.form.base_version == 0 { (self.chosen_id()) }
                    }
                    (self.description())
                    div.row {
                        (time("activeFrom", "Counts from", &self.form.active_from))
                        (time("activeUntil", "Counts until", &self.form.active_until))
                    }
                    (self.state())
                }
            }
        }
    }

    fn description(&self) -> Markup {
        let problem = self.problem("description");
        let hint = "What it is for, and what its readers should know.";
        let field =
            Field { name: "description", label: "Description", hint, problem: problem.as_deref() };
        field.around(&html! {
            textarea id="description" name="description" rows="3"
                aria-describedby="description-words" { (self.form.description) }
        })
    }

    /// The id of a new counter, which is optional.
    fn chosen_id(&self) -> Markup {
        let problem = self.problem("id");
        let hint = "Used in API paths. Leave empty to get the next free id.";
        let label = "Id (optional)";
        let field = Field { name: "chosenId", label, hint, problem: problem.as_deref() };
        field.around(&html! {
            input type="text" inputmode="numeric" id="chosenId" name="chosenId"
                value=(self.form.chosen_id) autocomplete="off" aria-describedby="chosenId-words"
                aria-invalid=[problem.as_ref().map(|_| "true")];
        })
    }

    fn state(&self) -> Markup {
        let states = [
            ("active", "active: counts and answers"),
            ("paused", "paused: answers, but does not count"),
            ("draft", "draft: neither counts nor answers"),
            ("archived", "archived: neither, and its template is free"),
        ];

        let problem = self.problem("state");
        let shown = |name: &str| name != "archived" || self.form.state == "archived";
        Field { name: "state", label: "State once applied", hint: "", problem: problem.as_deref() }
            .around(&html! {
                select id="state" name="state" {
                    @for (name, words) in states.into_iter().filter(|(name, _)| shown(name)) {
                        option value=(name) selected[self.form.state == name] { (words) }
                    }
                }
            })
    }

    /// Suggestions for the text fields.
    fn lists(&self) -> Markup {
        let fields = || self.kind().into_iter().flat_map(|kind| &kind.fields);
        html! {
            div #lists hidden {
                datalist #event-types {
                    @for kind in &self.observed.types {
                        option value=(kind.name) { (parts::number(kind.events.into())) " recently" }
                    }
                }
                datalist #fields {
                    @for field in fields() { option value=(field.path) { (field.kind.name()) } }
                }
                datalist #number-fields {
                    @for field in fields().filter(|field| is_number(field.kind)) {
                        option value=(field.path) {}
                    }
                }
                (self.value_lists())
            }
        }
    }
}

const fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::Mixed)
}

/// The keys that the template gives for recent events. `swaps` marks it for an out-of-band swap,
/// when it is sent along with another part.
pub fn example_keys(form: &Form, observed: &Observation, swaps: bool) -> Markup {
    let found: Option<Examples> = observed
        .of_type(&form.event_type)
        .and_then(|kind| examples(&form.template, kind))
        .filter(|_| !form.template.is_empty());
    html! {
        div.examples #example-keys aria-live="polite" hx-swap-oob=[swaps.then_some("true")] {
            @match &found {
                Some(found) if !found.keys.is_empty() => {
                    h3 { "Keys of recent events" }
                    ul { @for key in &found.keys { li { code { (key) } } } }
                }
                Some(found) if found.tried > 0 => { p.quiet { "No recent event gives a key." } }
                _ => p.quiet {
                    "Keys of recent events appear here once the form has an event type and a \
                     template."
                },
            }
            @if let Some(found) = found.as_ref().filter(|found| !found.missing.is_empty()) {
                p.problem {
                    "Some recent events have no " (found.missing.join(", "))
                    ": they would not be counted."
                }
            }
        }
    }
}

/// The place of the preview. Scripts load it with the form, and again while the person types.
fn preview_place(preview: &Markup) -> Markup {
    html! {
        aside.editor-preview tabindex="0" aria-labelledby="preview-head" {
            h2 #preview-head { "On recent events" }
            div #preview aria-live="polite" hx-post="/drafts/preview" hx-swap="innerHTML"
                hx-sync="this:replace" hx-trigger=(PREVIEW_TRIGGERS) {
                (preview)
            }
        }
    }
}

/// When a script loads the preview.
const PREVIEW_TRIGGERS: &str =
    "load, input from:#draft-form delay:400ms, counter-changed from:body delay:50ms";

pub(super) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A share of the events of a type, in words.
fn presence(events: u64, kind: Option<&EventType>) -> String {
    let all = kind.map_or(0, |kind| kind.events).max(1);
    if events >= all { "all".to_owned() } else { format!("{} %", (events * 100 / all).max(1)) }
}
