//! How wide a text is, and the outlines of its letters. The font comes with the program.

use super::canvas::Point;
use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static REGULAR: LazyLock<Face<'static>> = LazyLock::new(|| parsed(notosans::REGULAR_TTF));
static BOLD: LazyLock<Face<'static>> = LazyLock::new(|| parsed(notosans::BOLD_TTF));
/// What stands where the font has no letter.
const UNKNOWN: char = '?';

fn parsed(bytes: &'static [u8]) -> Face<'static> {
    Face::parse(bytes, 0).expect("the font that comes with the program can be read")
}

fn face(is_bold: bool) -> &'static Face<'static> {
    if is_bold { &BOLD } else { &REGULAR }
}

/// Letters of a text with the places at which they begin, in units of the font.
fn glyphs<'a>(face: &'a Face<'static>, text: &'a str) -> impl Iterator<Item = (f64, f64, GlyphId)> + 'a {
    let mut x = 0.0;
    text.chars().map(move |letter| {
        let glyph = face.glyph_index(letter).or_else(|| face.glyph_index(UNKNOWN)).unwrap_or_default();
        let advance = f64::from(face.glyph_hor_advance(glyph).unwrap_or_default());
        let start = x;
        x += advance;
        (start, advance, glyph)
    })
}

pub fn width(text: &str, size: f64, is_bold: bool) -> f64 {
    let face = face(is_bold);
    let units = glyphs(face, text).last().map_or(0.0, |(start, advance, _)| start + advance);
    units * size / f64::from(face.units_per_em())
}

/// Draws the outlines of a text that begins at this point of its base line.
pub fn outline(text: &str, size: f64, is_bold: bool, start: Point, path: &mut tiny_skia::PathBuilder) {
    let face = face(is_bold);
    let scale = size / f64::from(face.units_per_em());
    for (x, _, glyph) in glyphs(face, text) {
        let mut pen = Pen { path, scale: scale as f32, x: (start.0 + x * scale) as f32, y: start.1 as f32 };
        face.outline_glyph(glyph, &mut pen);
    }
}

/// Turns the units of the font, whose y axis points up, into those of a picture.
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

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
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
        for letter in "0123456789–—·×%,.\u{2009}≥≤".chars() {
            assert!(face(false).glyph_index(letter).is_some(), "{letter:?}");
        }
    }
}
