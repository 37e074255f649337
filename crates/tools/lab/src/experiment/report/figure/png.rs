//! Renders a picture as PNG in the light theme, at two pixels per unit so that it is sharp on every
//! screen.

use super::canvas::{Canvas, Shape};
use super::letters;
use super::palette::Paint;
use anyhow::Context;
use raingauge_figure::path::Point;
use tiny_skia::{
    FillRule, LineCap, LineJoin, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

const PIXELS_PER_UNIT: f32 = 2.0;

pub fn image(canvas: &Canvas) -> anyhow::Result<Vec<u8>> {
    let pixels = |length: f64| (length as f32 * PIXELS_PER_UNIT).ceil() as u32;
    let mut pixmap =
        Pixmap::new(pixels(canvas.width), pixels(canvas.height)).context("a picture has a size")?;
    let [red, green, blue] = Paint::Paper.light();
    pixmap.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    for shape in &canvas.shapes {
        paint_shape(&mut pixmap, shape);
    }
    pixmap.encode_png().context("a picture becomes a PNG")
}

fn paint_shape(pixmap: &mut Pixmap, shape: &Shape) {
    let transform = Transform::from_scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT);
    match shape {
        Shape::Stroke { runs, paint, width, dash } => {
            let dash = dash.and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0));
            let width = *width as f32;
            let stroke = Stroke {
                width,
                dash,
                line_join: LineJoin::Round,
                line_cap: LineCap::Butt,
                ..Stroke::default()
            };

            if let Some(path) = path(runs, false) {
                pixmap.stroke_path(&path, &colour(*paint, 1.0), &stroke, transform, None);
            }
        }
        Shape::Fill { runs, paint, opacity } => {
            if let Some(path) = path(runs, true) {
                pixmap.fill_path(
                    &path,
                    &colour(*paint, *opacity),
                    FillRule::Winding,
                    transform,
                    None,
                );
            }
        }
        Shape::Text { at, text, font, anchor } => {
            let start = (anchor.start(at.0, font.width(text)), at.1);
            let mut builder = PathBuilder::new();
            letters::outline(text, font.size, font.is_bold, start, &mut builder);

            if let Some(path) = builder.finish() {
                pixmap.fill_path(
                    &path,
                    &colour(font.paint, 1.0),
                    FillRule::Winding,
                    transform,
                    None,
                );
            }
        }
    }
}

fn colour(paint: Paint, opacity: f64) -> tiny_skia::Paint<'static> {
    let [red, green, blue] = paint.light();
    let mut colour = tiny_skia::Paint { anti_alias: true, ..tiny_skia::Paint::default() };
    colour.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    colour
}

/// `None` if there is nothing to paint.
fn path(runs: &[Vec<Point>], is_closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for run in runs {
        for (place, (x, y)) in run.iter().enumerate() {
            let (x, y) = (*x as f32, *y as f32);
            if place == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
        }
        if is_closed && !run.is_empty() {
            builder.close();
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::figure::canvas::{Anchor, Font};

    #[test]
    fn a_picture_is_painted_with_letters() {
        let mut canvas = Canvas { height: 20.0, ..Canvas::new(40.0, "", "") };
        let plain = image(&canvas).unwrap();
        canvas.text((2.0, 15.0), "8", Font::new(12.0, Paint::Ink), Anchor::Start);
        canvas.curve(vec![Vec::new(), vec![(0.0, 0.0)]], Paint::Store, 1.0);
        let lettered = image(&canvas).unwrap();
        assert!(lettered.starts_with(b"\x89PNG") && lettered != plain);
        assert!(
            Pixmap::decode_png(&lettered).unwrap().pixels().iter().any(|pixel| pixel.red() < 40)
        );
    }
}
