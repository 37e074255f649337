//! Paths in SVG notation.

use crate::number::trimmed;
use std::fmt::Write as _;

/// Distance from the left and from the top.
pub type Point = (f64, f64);

/// Groups points into runs, interrupted where a value is missing.
pub fn runs(points: impl IntoIterator<Item = Option<Point>>) -> Vec<Vec<Point>> {
    let points: Vec<Option<Point>> = points.into_iter().collect();
    let known = points.split(Option::is_none).filter(|run| !run.is_empty());
    known.map(|run| run.iter().copied().flatten().collect()).collect()
}

/// The data of a path with one polyline for each run.
pub fn data(runs: &[Vec<Point>], is_closed: bool) -> String {
    let mut text = String::new();
    for run in runs {
        for (place, (x, y)) in run.iter().enumerate() {
            // Writing to a `String` cannot fail.
            let command = if place == 0 { 'M' } else { 'L' };
            let _ = write!(text, "{command}{} {}", length(*x), length(*y));
        }
        if is_closed && !run.is_empty() {
            text.push('Z');
        }
    }
    text
}

/// Rounds to a tenth of a unit; finer differences are invisible.
pub fn length(value: f64) -> String {
    trimmed(&format!("{value:.1}")).to_owned()
}

/// A share of the width or the height of a picture.
pub fn extent(share: f64) -> String {
    format!("{}%", trimmed(&format!("{:.2}", share * 100.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_broken_where_a_value_is_missing() {
        let points = [Some((0.0, 1.04)), Some((2.0, 3.0)), None, None, Some((4.0, 5.25)), None];
        let runs = runs(points);
        assert_eq!(data(&runs, false), "M0 1L2 3M4 5.2");
        assert_eq!(data(&runs[1..], true), "M4 5.2Z");
        assert_eq!(extent(0.125), "12.5%");
    }
}
