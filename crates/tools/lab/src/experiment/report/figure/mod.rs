//! The figures of the reference, drawn from a record, and some additional ones.
//!
//! ```text
//!   Figure ──▶ draw: canvas (strokes, surfaces, texts) ──▶ svg: file │ page        png: file
//! ```

pub mod canvas;
pub mod letters;
pub mod over_run;
pub mod palette;
pub mod parts;
pub mod plot;
pub mod png;
pub mod spikes;
pub mod svg;

mod all;

pub use all::{all, length_words, proper};

use super::analysis::Analysis;
use canvas::{Anchor, Canvas, Font};
use over_run::{OverRun, Place};
use palette::Paint;
use spikes::Spikes;

const WIDE: f64 = 960.0;
const NARROW: f64 = 380.0;
const MARGIN: f64 = 16.0;
const PLOT_HEIGHT: f64 = 250.0;

pub struct Figure {
    /// The reference's number; additional figures follow.
    pub number: u8,
    pub name: &'static str,
    pub title: String,
    /// Describes the content and its unit.
    pub words: String,
    content: Content,
}

enum Content {
    OverRun(OverRun),
    Spikes(Spikes),
    Parts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// With its title, as a standalone file.
    File,
    /// In a page that shows the title.
    Page,
    Phone,
}

impl Figure {
    /// The base name of its files, without extension.
    pub fn stem(&self) -> String {
        format!("figure-{}-{}", self.number, self.name)
    }

    pub fn draw(&self, analysis: &Analysis, layout: Layout) -> Canvas {
        let width = if layout == Layout::Phone { NARROW } else { WIDE };
        let mut canvas = Canvas::new(width, &self.title, &self.words);
        let top = if layout == Layout::File { self.head(&mut canvas) } else { 0.0 };
        let is_wide = layout != Layout::Phone;
        canvas.height = match &self.content {
            Content::OverRun(plot) => {
                plot.draw(&mut canvas, analysis, Place { top, width, height: PLOT_HEIGHT, is_wide })
            }
            Content::Spikes(spikes) => spikes.draw(&mut canvas, analysis, top, is_wide),
            Content::Parts => parts::draw(&mut canvas, analysis, top, is_wide),
        };
        if layout == Layout::File { framed(canvas) } else { canvas }
    }

    fn head(&self, canvas: &mut Canvas) -> f64 {
        const TITLE: Font = Font::new(17.0, Paint::Ink).bold();
        const WORDS: Font = Font::new(12.5, Paint::Soft);
        canvas.text((0.0, 18.0), format!("{}. {}", self.number, self.title), TITLE, Anchor::Start);
        let mut y = 38.0;
        for line in wrapped(&self.words, WORDS, canvas.width) {
            canvas.text((0.0, y), line, WORDS, Anchor::Start);
            y += 17.0;
        }
        y
    }
}

/// Breaks a text into lines of whole words, each within the available width.
pub fn wrapped(words: &str, font: Font, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if font.width(&format!("{line} {word}")) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Adds a margin.
pub fn framed(mut canvas: Canvas) -> Canvas {
    for shape in &mut canvas.shapes {
        shape.shift(MARGIN, MARGIN);
    }
    canvas.width += 2.0 * MARGIN;
    canvas.height += 2.0 * MARGIN;
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::numbers::Numbers;
    use crate::experiment::report::tests::sample_run;

    #[test]
    fn words_are_wrapped_where_there_is_no_room() {
        let font = Font::new(12.0, Paint::Ink);
        assert_eq!(
            wrapped("one two three", font, font.width("one two") + 1.0),
            ["one two", "three"]
        );
        assert_eq!(wrapped("one two", font, 1.0), ["one", "two"]);
    }

    /// Every point of every layout lies within its picture.
    #[test]
    fn nothing_is_drawn_outside() {
        for record in [sample_run::small(), sample_run::empty()] {
            let analysis = Analysis::new(&record);
            let numbers = Numbers::new(&analysis);
            for figure in all(&analysis, &numbers) {
                for layout in [Layout::File, Layout::Page, Layout::Phone] {
                    let canvas = figure.draw(&analysis, layout);
                    let (low, high) = canvas.bounds();
                    let name = figure.stem();
                    assert!(
                        low.0 >= -0.5 && high.0 <= canvas.width + 0.5,
                        "{name} {layout:?}: {low:?} {high:?}"
                    );

                    assert!(
                        low.1 >= -0.5 && high.1 <= canvas.height + 0.5,
                        "{name} {layout:?}: {low:?} {high:?}"
                    );
                }
            }
        }
    }
}
