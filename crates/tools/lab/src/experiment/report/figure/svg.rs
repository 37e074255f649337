//! Renders a picture as SVG: inline for a page, which has the style sheet, or as a file that
//! includes it.

use super::canvas::{Anchor, Canvas, Font, Shape};
use super::palette::{Paint, hex, style_sheet};
use raingauge_figure::path::{self, Point, length};
use std::fmt::Write;

const FONTS: &str = "'Noto Sans', system-ui, -apple-system, 'Segoe UI', sans-serif";

/// A standalone file.
pub fn document(canvas: &Canvas) -> String {
    let (width, height) = (length(canvas.width), length(canvas.height));
    let mut text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONTS}">"#
    );

    // Writing to memory cannot fail.
    let _ = write!(
        text,
        "<title>{}</title><desc>{}</desc>",
        escaped(&canvas.title),
        escaped(&canvas.description)
    );

    let _ = write!(text, "<style>{}</style>", style_sheet());
    let _ = write!(
        text,
        r##"<rect class="f-paper" fill="{}" width="100%" height="100%"/>"##,
        hex(Paint::Paper.light())
    );

    body(canvas, &mut text);
    text.push_str("</svg>\n");
    text
}

/// A part of a page, at most as wide as the available space.
pub fn inline(canvas: &Canvas, class: &str) -> String {
    let label = escaped(&format!("{}. {}", canvas.title, canvas.description));
    let mut text = format!(
        r#"<svg class="figure {class}" role="img" viewBox="0 0 {} {}" aria-label="{label}">"#,
        length(canvas.width),
        length(canvas.height)
    );
    body(canvas, &mut text);
    text.push_str("</svg>");
    text
}

fn body(canvas: &Canvas, text: &mut String) {
    for shape in &canvas.shapes {
        match shape {
            Shape::Stroke { runs, paint, width, dash } => {
                let dash = dash
                    .map(|[on, off]| format!(r#" stroke-dasharray="{on} {off}""#))
                    .unwrap_or_default();
                let _ = write!(
                    text,
                    r#"<path class="s-{}" fill="none" stroke="{}" stroke-width="{width}" stroke-linejoin="round"{dash} d="{}"/>"#,
                    paint.class(),
                    hex(paint.light()),
                    path::data(runs, false)
                );
            }
            Shape::Fill { runs, paint, opacity } => {
                let _ = write!(
                    text,
                    r#"<path class="f-{}" fill="{}" fill-opacity="{opacity}" d="{}"/>"#,
                    paint.class(),
                    hex(paint.light()),
                    path::data(runs, true)
                );
            }
            Shape::Text { at, text: words, font, anchor } => {
                write_text(text, *at, words, *font, *anchor)
            }
        }
    }
}

fn write_text(text: &mut String, (x, y): Point, words: &str, font: Font, anchor: Anchor) {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => r#" text-anchor="middle""#,
        Anchor::End => r#" text-anchor="end""#,
    };

    let weight = if font.is_bold { r#" font-weight="650""# } else { "" };
    let _ = write!(
        text,
        r#"<text class="f-{}" x="{}" y="{}" font-size="{}" fill="{}"{weight}{anchor}>{}</text>"#,
        font.paint.class(),
        length(x),
        length(y),
        font.size,
        hex(font.paint.light()),
        escaped(words)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_runs_are_broken() {
        let mut canvas = Canvas::new(10.0, "a < b", "\"c\" & d");
        canvas.text((1.0, 2.0), "<&>", Font::new(12.0, Paint::Ink), Anchor::End);
        canvas.curve(vec![vec![(0.0, 1.04), (2.0, 3.0)], vec![(4.0, 5.0)]], Paint::Store, 1.5);
        let text = document(&canvas);
        let parsed = roxmltree::Document::parse(&text).unwrap();
        assert!(parsed.descendants().any(|node| node.text() == Some("<&>")));
        assert!(
            parsed.descendants().any(|node| node.attribute("d") == Some("M0 1L2 3M4 5")),
            "{text}"
        );
        assert!(roxmltree::Document::parse(&inline(&canvas, "wide")).is_ok());
    }
}
