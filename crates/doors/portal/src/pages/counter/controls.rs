//! The form above a chart: keys, range, granularity, time zone. It uses GET, so that every answer
//! has an address.

use super::chart_query::{ChartQuery, SPANS, Span, Window};
use crate::html::chart::{LINES_MAX, Scale};
use crate::html::parts;
use crate::times::EnteredTime;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_reader::Key;

/// The widths of bars to choose from.
const BARS: [(Granularity, &str); 3] =
    [(Granularity::Quarter, "15 min"), (Granularity::Hour, "Hours"), (Granularity::Day, "Days")];

/// Renders the form. `part` is the element of the page that the answer replaces.
pub fn form(
    address: &str,
    part: &str,
    template: &str,
    asked: &ChartQuery,
    window: Option<Window>,
    choices: &[Key],
) -> Markup {
    let is_bars = |granularity| asked.granularity == Some(granularity);
    let is_log = asked.scale == Scale::Logarithmic;
    html! {
        form.question id="question" method="get" action=(address) hx-get=(address)
            hx-trigger="change" hx-target=(part) hx-select=(part) hx-select-oob="#examples"
            hx-swap="outerHTML" hx-push-url="true" hx-indicator=(part) hx-sync="this:replace" {
            (keys(template, asked, choices))
            div.row {
                fieldset {
                    legend { "Range" }
                    div.segments {
                        @for (span, name, text) in SPANS {
                            (parts::segment("range", name, text, asked.span == span))
                        }
                    }
                }
                fieldset {
                    legend { "Bars" }
                    div.segments {
                        (parts::segment("granularity", "auto", "Auto", asked.granularity.is_none()))
                        @for (granularity, text) in BARS {
                            (parts::segment("granularity", granularity.name(), text, is_bars(granularity)))
                        }
                    }
                }
                (parts::zone_field(&asked.zone))
            }
            (custom(asked, window))
            div.row.question-foot {
                (parts::check("compare", "1", asked.compare, "Compare with the preceding period"))
                (parts::check("scale", "log", is_log, "Logarithmic"))
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
                    label for=(id) { @if place == 0 { "Key" } @else { "Another key" } }
                    input.mono type="text" id=(id) name="key" value=[asked.keys.get(place)]
                        list="key-choices" autocomplete="off" spellcheck="false"
                        placeholder=(if place == 0 { template } else { "to compare with" });
                }
            }
            datalist id="key-choices" { @for choice in choices { option value=(choice.key) {} } }
        }
    }
}

/// The two ends of a custom range, filled from the range on the screen, so that they only need
/// correcting.
fn custom(asked: &ChartQuery, window: Option<Window>) -> Markup {
    let on_screen =
        window.map(|window| (EnteredTime::fixed(window.from_s), EnteredTime::fixed(window.to_s)));
    let ends = asked.ends.clone().or(on_screen);
    html! {
        div.row.custom {
            (parts::range_fields(ends.as_ref(), &asked.zone))
            @if asked.span != Span::Custom { p.quiet { "Used when the range is Custom." } }
        }
    }
}
