//! The form above a chart: keys, range, granularity, time zone. It uses GET, so that every answer
//! has an address.

use super::asked::{ChartQuery, SPANS, Span, Window};
use crate::html::chart::{LINES_MAX, Scale};
use crate::html::{parts, words};
use crate::times::field_of;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_reader::Key;

/// Renders the form. `part` is the element of the page that the answer replaces.
pub fn form(
    address: &str,
    part: &str,
    template: &str,
    asked: &ChartQuery,
    window: Option<Window>,
    choices: &[Key],
) -> Markup {
    html! {
        form.question id="question" method="get" action=(address) hx-get=(address) hx-trigger="change" hx-target=(part)
            hx-select=(part) hx-select-oob="#examples" hx-swap="outerHTML" hx-push-url="true" hx-indicator=(part) hx-sync="this:replace" {
            (keys(template, asked, choices))
            div.row {
                fieldset {
                    legend { "Range" }
                    div.segments {
                        @for (span, name, text) in SPANS { (segment("range", name, text, asked.span == span)) }
                    }
                }
                fieldset {
                    legend { "Bars" }
                    div.segments {
                        (segment("granularity", "auto", "Auto", asked.granularity.is_none()))
                        @for (granularity, text) in [(Granularity::Quarter, "15 min"), (Granularity::Hour, "Hours"), (Granularity::Day, "Days")] {
                            (segment("granularity", granularity.name(), text, asked.granularity == Some(granularity)))
                        }
                    }
                }
                (parts::zone_field(&asked.zone))
            }
            (custom(asked, window))
            div.row.question-foot {
                label.check { input type="checkbox" id="compare" name="compare" value="1" checked[asked.compare]; " Compare with the period before" }
                label.check { input type="checkbox" id="scale" name="scale" value="log" checked[asked.scale == Scale::Logarithmic]; " Logarithmic" }
                button.button type="submit" { "Show" }
            }
        }
    }
}

/// A field for each key, and an empty one for another.
fn keys(template: &str, asked: &ChartQuery, choices: &[Key]) -> Markup {
    let fields = (asked.keys.len() + 1).clamp(2, LINES_MAX);
    html! {
        div.keys-fields {
            @for place in 0..fields {
                @let id = format!("key-{place}");
                div.field {
                    label for=(id) { @if place == 0 { "Key" } @else { "and key" } }
                    input.mono type="text" id=(id) name="key" value=[asked.keys.get(place)] list="key-choices" autocomplete="off"
                        spellcheck="false" placeholder=(if place == 0 { template } else { "to compare with" });
                }
            }
            datalist id="key-choices" { @for choice in choices { option value=(choice.key) {} } }
        }
    }
}

fn segment(name: &str, value: &str, text: &str, is_chosen: bool) -> Markup {
    html! {
        label { input type="radio" id={ (name) "-" (value) } name=(name) value=(value) checked[is_chosen]; span { (text) } }
    }
}

/// The two ends of a custom range, filled from the range on the screen, so that they only need
/// correcting.
fn custom(asked: &ChartQuery, window: Option<Window>) -> Markup {
    let (from_s, to_s) =
        asked.ends.or(window.map(|window| (window.from_s, window.to_s))).unwrap_or_default();
    html! {
        div.row.custom {
            @for (name, text, at_s) in [("from", "From", from_s), ("to", "To", to_s)] {
                div.field {
                    label for=(name) { (text) ", " (words::zone(&asked.zone)) }
                    input type="datetime-local" id=(name) name=(name) step="60" value=(field_of(at_s, &asked.zone));
                }
            }
            @if asked.span != Span::Custom { p.quiet { "These count once Custom is chosen." } }
        }
    }
}
