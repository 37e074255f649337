//! Sparklines: charts of the size of a word.

use maud::{Markup, html};
use std::fmt::Write as _;

/// Recent values as a small area chart, as wide as the style sheet says. Hidden from screen
/// readers: put a number beside it.
pub fn sparkline(values: &[f64]) -> Markup {
    let high = values.iter().copied().fold(0.0, f64::max);
    if high <= 0.0 {
        return html! {
            svg.spark viewBox="0 0 10 10" preserveAspectRatio="none" aria-hidden="true" {
                path d="M0 10H10" {}
            }
        };
    }

    let mut path = String::from("M0 20");
    for (place, value) in values.iter().enumerate() {
        // Writing to a `String` cannot fail. A value other than 0 is always visible.
        let height = if *value > 0.0 { (value / high * 19.0).max(1.5) } else { 0.0 };
        let _ = write!(path, "V{:.0}H{}", 20.0 - height, place + 1);
    }

    path.push_str("V20");
    html! {
        svg.spark viewBox={ "0 0 " (values.len().max(1)) " 20" } preserveAspectRatio="none"
            aria-hidden="true" { path d=(path) {} }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_reaches_the_top_and_a_small_one_is_seen() {
        let markup = sparkline(&[0.0, 1_000.0, 1.0]).into_string();
        assert!(markup.contains("M0 20V20H1V1H2V18H3V20"), "{markup}");
        assert!(sparkline(&[]).into_string().contains("M0 10H10"));
    }
}
