//! Parts of many pages: form fields, badges, empty states, formatted numbers and times.

use super::words;
use crate::times::{Ends, EnteredTime, FORMS, ZONES};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::counter::State;
pub use raingauge_core::number::grouped as number;
use raingauge_people::Principal;

/// The hidden field that every form carries.
pub fn csrf(person: &Principal) -> Markup {
    html! { input type="hidden" name="csrf" value=(person.csrf.as_deref().unwrap_or_default()); }
}

/// A form that is a single button: it submits what it names, and nothing else.
pub struct ButtonForm<'a> {
    pub address: &'a str,
    pub label: &'a str,
    /// Classes of the button, beside `button`.
    pub class: &'a str,
    /// What the button does and to what, for screen readers, where the label alone does not say.
    pub about: Option<&'a str>,
    /// Names and values of hidden fields.
    pub fields: &'a [(&'a str, &'a str)],
}

impl<'a> ButtonForm<'a> {
    pub const fn new(address: &'a str, label: &'a str) -> Self {
        Self { address, label, class: "", about: None, fields: &[] }
    }

    pub const fn class(self, class: &'a str) -> Self {
        Self { class, ..self }
    }

    pub const fn about(self, about: &'a str) -> Self {
        Self { about: Some(about), ..self }
    }

    pub const fn with(self, fields: &'a [(&'a str, &'a str)]) -> Self {
        Self { fields, ..self }
    }

    pub fn markup(&self, person: &Principal) -> Markup {
        html! {
            form.inline method="post" action=(self.address) {
                (csrf(person))
                @for (name, value) in self.fields {
                    input type="hidden" name=(name) value=(value);
                }
                button class={ "button " (self.class) } aria-label=[self.about] { (self.label) }
            }
        }
    }
}

raingauge_core::names! {
    /// The kind of a notice, by its class.
    pub enum Mood {
        Good = "good",
        Wait = "wait",
        Bad = "bad",
    }
}

/// A highlighted sentence. Screen readers announce an error at once.
pub fn notice(mood: Mood, words: &Markup) -> Markup {
    let role = if mood == Mood::Bad { "alert" } else { "status" };
    html! { div class={ "notice " (mood.name()) } role=(role) { (words) } }
}

/// The text in place of an empty list: what is missing, and what to do.
pub fn empty(title: &str, advice: &Markup) -> Markup {
    html! { div.empty { h2 { (title) } p { (advice) } } }
}

/// The state of a counter.
pub fn state(state: State) -> Markup {
    let word = state.name();
    html! { span.state data-state=(word) { (word) } }
}

/// A labelled form field, with a hint and a problem below it.
pub struct Field<'a> {
    pub name: &'a str,
    pub label: &'a str,
    pub hint: &'a str,
    pub problem: Option<&'a str>,
}

impl Field<'_> {
    /// A field of text.
    pub fn text(&self, value: &str) -> Markup {
        self.around(&html! {
            input type="text" id=(self.name) name=(self.name) value=(value) autocomplete="off"
                spellcheck="false" aria-invalid=[self.problem.map(|_| "true")]
                aria-describedby={ (self.name) "-words" };
        })
    }

    /// A field of several lines.
    pub fn text_area(&self, value: &str, len_max: usize) -> Markup {
        self.around(&html! {
            textarea id=(self.name) name=(self.name) rows="2" maxlength=(len_max)
                aria-invalid=[self.problem.map(|_| "true")]
                aria-describedby={ (self.name) "-words" } { (value) }
        })
    }

    /// The label and the texts around a control whose id is the field's name.
    pub fn around(&self, control: &Markup) -> Markup {
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                (control)
                div.field-words id={ (self.name) "-words" } {
                    @if let Some(problem) = self.problem { p.problem { (problem) } }
                    @if !self.hint.is_empty() { p.quiet { (self.hint) } }
                }
            }
        }
    }
}

/// The heading of a column: its label, and whether the column holds numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column<'a> {
    Text(&'a str),
    Number(&'a str),
    /// Only for screen readers.
    Silent(&'a str),
}

/// A table labelled by the heading with this id. It scrolls when it is wider than the page.
pub fn table(title_id: &str, columns: &[Column<'_>], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby=(title_id) {
            table { (head(columns)) tbody { (rows) } }
        }
    }
}

/// A table without a heading: its name is for screen readers. `classes` are those of the table.
pub fn named_table(name: &str, classes: &str, columns: &[Column<'_>], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table class=[(!classes.is_empty()).then_some(classes)] {
                (head(columns))
                tbody { (rows) }
            }
        }
    }
}

/// The head of a table.
pub fn head(columns: &[Column<'_>]) -> Markup {
    html! { thead { tr { @for column in columns { (head_of(*column)) } } } }
}

fn head_of(column: Column<'_>) -> Markup {
    match column {
        Column::Text(words) => html! { th scope="col" { (words) } },
        Column::Number(words) => html! { th.number scope="col" { (words) } },
        Column::Silent(words) => html! { th scope="col" { span.visually-hidden { (words) } } },
    }
}

/// The fields for the two ends of a range, as times of the zone.
pub fn range_fields(ends: Option<&Ends>, zone: &TimeZone) -> Markup {
    let text = |end: Option<&EnteredTime>| end.map(|end| end.in_field(zone)).unwrap_or_default();
    let zone_name = words::zone(zone);
    html! {
        @for (name, label, end) in [
            ("from", "From", ends.map(|(from, _)| from)),
            ("to", "To", ends.map(|(_, to)| to)),
        ] {
            div.field {
                label for=(name) { (label) ", " (zone_name) }
                (time_input(name, &text(end), None))
            }
        }
    }
}

/// The control of a field for a time. It takes every form of a time, and suggests relative ones.
pub fn time_input(name: &str, value: &str, problem: Option<&str>) -> Markup {
    let choices = format!("{name}-times");
    html! {
        input type="text" id=(name) name=(name) value=(value) list=(choices) autocomplete="off"
            spellcheck="false" placeholder="2024-09-24 22:00 or -7d" title={ "For example " (FORMS) }
            aria-invalid=[problem.map(|_| "true")] aria-describedby={ (name) "-words" };
        datalist id=(choices) { @for time in RELATIVE_TIMES { option value=(time) {} } }
    }
}

/// The relative times that fields suggest.
const RELATIVE_TIMES: [&str; 7] = ["now", "today", "yesterday", "-1h", "-24h", "-7d", "-30d"];

/// A part of a page that refreshes itself from an address, as often as its trigger says, until it
/// is rendered without one.
pub fn live(id: &str, refresh: Option<(&str, &str)>, part: &Markup) -> Markup {
    let own = format!("#{id}");
    let target = refresh.map(|_| own.as_str());
    html! {
        div.stack id=(id) hx-get=[refresh.map(|(address, _)| address)]
            hx-trigger=[refresh.map(|(_, trigger)| trigger)] hx-select=[target]
            hx-target=[target] hx-swap=[target.map(|_| "outerHTML")] data-live[refresh.is_some()] {
            (part)
        }
    }
}

/// A choice in a row of exclusive ones.
pub fn segment(name: &str, value: &str, label: &str, is_chosen: bool) -> Markup {
    html! {
        label {
            input type="radio" id={ (name) "-" (value) } name=(name) value=(value)
                checked[is_chosen];
            span { (label) }
        }
    }
}

/// A choice of its own.
pub fn check(name: &str, value: &str, is_chosen: bool, label: &str) -> Markup {
    html! {
        label.check {
            input type="checkbox" id=(name) name=(name) value=(value) checked[is_chosen];
            span { (label) }
        }
    }
}

/// The field for a time zone: it suggests some, and accepts any of the IANA database.
pub fn zone_field(chosen: &TimeZone) -> Markup {
    html! {
        div.field.zone-field {
            label for="zone" { "Time zone" }
            input type="text" id="zone" name="zone" value=(words::zone(chosen)) list="zones"
                autocomplete="off" spellcheck="false";
            datalist id="zones" { @for zone in ZONES { option value=(zone) {} } }
        }
    }
}

/// A text to copy, with a button for it where scripts run.
pub fn command(text: &str) -> Markup {
    html! {
        div.command {
            pre tabindex="0" { code { (text) } }
            button.button.copy type="button" data-copy hidden { "Copy" }
        }
    }
}

/// A time in a time zone, with its exact form for machines: `2024-09-24 22:15`.
pub fn moment(seconds: i64, zone: &TimeZone) -> Markup {
    let Some(local) = words::local(seconds, zone) else {
        return html! { "–" };
    };
    html! { time datetime=(local.timestamp()) { (local.strftime(words::MINUTE).to_string()) } }
}

/// The same with the name of the zone, for places where the context does not name it.
pub fn zoned(seconds: i64, zone: &TimeZone) -> Markup {
    html! { (moment(seconds, zone)) " " (words::zone(zone)) }
}

/// When something happened last, or that it never did.
pub fn last_time(at_s: Option<i64>, now_s: i64) -> Markup {
    match at_s {
        Some(at_s) => html! { (ago(now_s - at_s)) },
        None => html! { span.quiet { "never" } },
    }
}

/// The time since an event, in the largest unit that fits: `3 min ago`.
pub fn ago(seconds: i64) -> String {
    match seconds {
        ..=0 => "now".to_owned(),
        1..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", number((seconds / 86_400).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_value_stays_text() {
        let field = Field { name: "n", label: "<b>", hint: "", problem: Some("\"><script>") };
        let markup = field.text("\"><script>alert(1)</script>").into_string();
        assert!(!markup.contains("<script>") && !markup.contains("<b>"), "{markup}");
    }
}
