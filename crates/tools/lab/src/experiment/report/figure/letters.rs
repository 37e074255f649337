//! Text widths and glyph outlines, from the embedded font.

use raingauge_figure::path::Point;
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};
use std::sync::LazyLock;

static REGULAR: LazyLock<FontRef<'static>> = LazyLock::new(|| parsed(notosans::REGULAR_TTF));
static BOLD: LazyLock<FontRef<'static>> = LazyLock::new(|| parsed(notosans::BOLD_TTF));
/// Replaces characters for which the font has no glyph.
const UNKNOWN: char = '?';

fn parsed(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::new(bytes).expect("the font that comes with the program can be read")
}

fn font(is_bold: bool) -> &'static FontRef<'static> {
    if is_bold { &BOLD } else { &REGULAR }
}

fn units_per_em(font: &FontRef<'static>) -> f64 {
    f64::from(font.metrics(Size::unscaled(), LocationRef::default()).units_per_em)
}

/// The glyphs of a text, each with its start and advance in font units.
fn glyphs<'a>(
    font: &'a FontRef<'static>,
    text: &'a str,
) -> impl Iterator<Item = (f64, f64, GlyphId)> + 'a {
    let letters = font.charmap();
    let metrics = font.glyph_metrics(Size::unscaled(), LocationRef::default());
    let mut x = 0.0;

    text.chars().map(move |letter| {
        let glyph = letters.map(letter).or_else(|| letters.map(UNKNOWN)).unwrap_or_default();
        let advance = f64::from(metrics.advance_width(glyph).unwrap_or_default());
        let start = x;
        x += advance;
        (start, advance, glyph)
    })
}

pub fn width(text: &str, size: f64, is_bold: bool) -> f64 {
    let font = font(is_bold);
    let units = glyphs(font, text).last().map_or(0.0, |(start, advance, _)| start + advance);
    units * size / units_per_em(font)
}

/// Draws the outlines of a text whose baseline starts at the given point.
pub fn outline(
    text: &str,
    size: f64,
    is_bold: bool,
    start: Point,
    path: &mut tiny_skia::PathBuilder,
) {
    let font = font(is_bold);
    let scale = size / units_per_em(font);
    let outlines = font.outline_glyphs();

    for (x, _, glyph) in glyphs(font, text) {
        let mut pen =
            Pen { path, scale: scale as f32, x: (start.0 + x * scale) as f32, y: start.1 as f32 };
        if let Some(outline) = outlines.get(glyph) {
            let settings = DrawSettings::unhinted(Size::unscaled(), LocationRef::default());
            outline.draw(settings, &mut pen).expect("the glyphs of our font can be drawn");
        }
    }
}

/// Converts font units, whose y axis points up, into units of the picture.
struct Pen<'a> {
    path: &'a mut tiny_skia::PathBuilder,
    scale: f32,
    x: f32,
    y: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlinePen for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (x1, y1) = self.at(x1, y1);
        let (x, y) = self.at(x, y);
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (x1, y1) = self.at(x1, y1);
        let (x2, y2) = self.at(x2, y2);
        let (x, y) = self.at(x, y);
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_add_up_and_grow_with_the_size() {
        assert_eq!(width("", 12.0, false), 0.0);
        let one = width("8", 12.0, false);
        assert!((width("888", 12.0, false) - 3.0 * one).abs() < 1e-9);
        assert!((width("8", 24.0, false) - 2.0 * one).abs() < 1e-9);
        assert!(width("8", 12.0, true) >= one);
    }

    #[test]
    fn the_font_has_every_letter_that_figures_use() {
        for letter in "0123456789–—·×%,.-µ≥≤".chars() {
            assert!(font(false).charmap().map(letter).is_some(), "{letter:?}");
        }
    }
}
