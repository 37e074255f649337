//! Parts that many pages have: fields of forms, badges, empty states, numbers and times in words.

use super::words;
use crate::times::ZONES;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::counter::State;
pub use raingauge_core::number::spaced as number;
use raingauge_people::Principal;

/// The hidden field that every form carries.
pub fn csrf(person: &Principal) -> Markup {
    html! { input type="hidden" name="csrf" value=(person.csrf.as_deref().unwrap_or_default()); }
}

/// How a notice is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    Wait,
    Bad,
}

impl Mood {
    const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Wait => "wait",
            Self::Bad => "bad",
        }
    }
}

/// A sentence that stands out. What is wrong is told to screen readers at once.
pub fn notice(mood: Mood, words: &Markup) -> Markup {
    let role = if mood == Mood::Bad { "alert" } else { "status" };
    html! { div class={ "notice " (mood.class()) } role=(role) { (words) } }
}

/// What stands where a list would, while there is nothing in it: what is missing, and what to do.
pub fn empty(title: &str, advice: &Markup) -> Markup {
    html! { div.empty { h2 { (title) } p { (advice) } } }
}

/// The state of a counter.
pub fn state(state: State) -> Markup {
    let word = state.name();
    html! { span.state data-state=(word) { (word) } }
}

/// One labelled field of a form, with a hint below it and what is wrong with it.
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
            input type="text" id=(self.name) name=(self.name) value=(value) autocomplete="off" spellcheck="false"
                aria-invalid=[self.problem.map(|_| "true")] aria-describedby={ (self.name) "-words" };
        })
    }

    /// The label and the words around a control that carries the field's name as its id.
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

/// The head of a column: its words, and whether numbers stand below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column<'a> {
    Text(&'a str),
    Number(&'a str),
    /// Told by those who read aloud alone.
    Silent(&'a str),
}

/// A table below the heading with this id. It scrolls by itself where there is no room for it.
pub fn table(title_id: &str, columns: &[Column<'_>], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby=(title_id) {
            table {
                thead { tr { @for column in columns { (head_of(*column)) } } }
                tbody { (rows) }
            }
        }
    }
}

fn head_of(column: Column<'_>) -> Markup {
    match column {
        Column::Text(words) => html! { th scope="col" { (words) } },
        Column::Number(words) => html! { th.number scope="col" { (words) } },
        Column::Silent(words) => html! { th scope="col" { span.visually-hidden { (words) } } },
    }
}

/// The choice of a time zone: some are offered, any other one of the IANA database may be written.
pub fn zone_field(chosen: &TimeZone) -> Markup {
    html! {
        div.field.zone-field {
            label for="zone" { "Time zone" }
            input type="text" id="zone" name="zone" value=(words::zone(chosen)) list="zones" autocomplete="off" spellcheck="false";
            datalist id="zones" { @for zone in ZONES { option value=(zone) {} } }
        }
    }
}

/// A text to copy, with a button for it where scripts run.
pub fn command(text: &str) -> Markup {
    html! { div.command { pre tabindex="0" { code { (text) } } button.button.copy type="button" data-copy hidden { "Copy" } } }
}

/// A moment in a time zone, with its exact form for machines: `24 Sep 2024, 22:15`.
pub fn moment(seconds: i64, zone: &TimeZone) -> Markup {
    let Some(local) = words::local(seconds, zone) else {
        return html! { "–" };
    };
    html! { time datetime=(local.timestamp()) { (local.strftime("%-d %b %Y, %H:%M").to_string()) } }
}

/// The same with the name of the zone, where nothing around it says which one it is.
pub fn zoned(seconds: i64, zone: &TimeZone) -> Markup {
    html! { (moment(seconds, zone)) " " (words::zone(zone)) }
}

/// How long ago something was, in the largest unit that fits: `3 min ago`.
pub fn ago(seconds: i64) -> String {
    match seconds {
        ..=0 => "now".to_owned(),
        1..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
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
