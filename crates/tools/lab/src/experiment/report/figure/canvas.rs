//! A picture as a list of strokes, fills and texts, rendered in this order as SVG or PNG.

use super::letters;
use super::palette::Paint;
use raingauge_figure::path::Point;

#[derive(Debug, Clone)]
pub struct Canvas {
    pub width: f64,
    pub height: f64,
    /// Title and description, for screen readers.
    pub title: String,
    pub description: String,
    pub shapes: Vec<Shape>,
}

#[derive(Debug, Clone)]
pub enum Shape {
    /// Polylines, one per run of points.
    Stroke {
        runs: Vec<Vec<Point>>,
        paint: Paint,
        width: f64,
        dash: Option<[f64; 2]>,
    },
    /// Closed surfaces.
    Fill {
        runs: Vec<Vec<Point>>,
        paint: Paint,
        opacity: f64,
    },
    Text {
        at: Point,
        text: String,
        font: Font,
        anchor: Anchor,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Font {
    pub size: f64,
    pub is_bold: bool,
    pub paint: Paint,
}

impl Font {
    pub const fn new(size: f64, paint: Paint) -> Self {
        Self { size, is_bold: false, paint }
    }

    pub const fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    pub fn width(&self, text: &str) -> f64 {
        letters::width(text, self.size, self.is_bold)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// The left edge of a text of the given width.
    pub fn start(self, x: f64, width: f64) -> f64 {
        match self {
            Self::Start => x,
            Self::Middle => x - width / 2.0,
            Self::End => x - width,
        }
    }
}

impl Shape {
    pub fn shift(&mut self, right: f64, down: f64) {
        match self {
            Self::Stroke { runs, .. } | Self::Fill { runs, .. } => {
                for point in runs.iter_mut().flatten() {
                    *point = (point.0 + right, point.1 + down);
                }
            }
            Self::Text { at, .. } => *at = (at.0 + right, at.1 + down),
        }
    }

    /// The points of its outline.
    fn edges(&self) -> Vec<Point> {
        match self {
            Self::Stroke { runs, .. } | Self::Fill { runs, .. } => runs.concat(),
            Self::Text { at, text, font, anchor } => {
                let width = font.width(text);
                let left = anchor.start(at.0, width);
                vec![(left, at.1 - font.size * 0.75), (left + width, at.1)]
            }
        }
    }
}

impl Canvas {
    /// The bounding box of everything drawn.
    pub fn bounds(&self) -> (Point, Point) {
        let points = self.shapes.iter().flat_map(Shape::edges);
        points.fold(((f64::INFINITY, f64::INFINITY), (0.0, 0.0)), |(low, high), (x, y)| {
            ((low.0.min(x), low.1.min(y)), (high.0.max(x), high.1.max(y)))
        })
    }

    pub fn new(width: f64, title: &str, description: &str) -> Self {
        let title = title.to_owned();
        let description = description.to_owned();
        Self { width, height: 0.0, title, description, shapes: Vec::new() }
    }

    pub fn line(&mut self, from: Point, to: Point, paint: Paint, width: f64) {
        self.shapes.push(Shape::Stroke { runs: vec![vec![from, to]], paint, width, dash: None });
    }

    pub fn dashed(&mut self, from: Point, to: Point, paint: Paint, dash: [f64; 2]) {
        self.shapes.push(Shape::Stroke {
            runs: vec![vec![from, to]],
            paint,
            width: 1.0,
            dash: Some(dash),
        });
    }

    pub fn curve(&mut self, runs: Vec<Vec<Point>>, paint: Paint, width: f64) {
        self.shapes.push(Shape::Stroke { runs, paint, width, dash: None });
    }

    pub fn surface(&mut self, runs: Vec<Vec<Point>>, paint: Paint, opacity: f64) {
        self.shapes.push(Shape::Fill { runs, paint, opacity });
    }

    pub fn rectangle(
        &mut self,
        (x, y): Point,
        width: f64,
        height: f64,
        paint: Paint,
        opacity: f64,
    ) {
        let corners = vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height)];
        self.surface(vec![corners], paint, opacity);
    }

    pub fn text(&mut self, at: Point, text: impl Into<String>, font: Font, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text: text.into(), font, anchor });
    }
}
