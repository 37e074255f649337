//! Merges neighbouring points until a picture has room for all.

use super::data::{Line, Points};

/// The points that a picture shows.
pub struct Thinned {
    pub times: Vec<i64>,
    pub lines: Vec<Line>,
    /// How many points were merged into one.
    pub merged: usize,
}

/// Returns at most `len_max` points of each line. Sums are added up; values at points in time are
/// averaged.
pub fn thin(times: &[i64], lines: &[Line], points: Points, len_max: usize) -> Thinned {
    let merged = merged_of(times.len(), len_max);
    let merge = |values: &[Option<f64>]| {
        values.chunks(merged).map(|chunk| together(chunk, points)).collect()
    };
    let lines =
        lines.iter().map(|line| Line { values: merge(&line.values), ..line.clone() }).collect();
    Thinned { times: times.iter().copied().step_by(merged).collect(), lines, merged }
}

/// How many points to merge: a number that fits the clock, so that hours become a quarter of a day
/// rather than a seventh.
fn merged_of(len: usize, len_max: usize) -> usize {
    let least = len.div_ceil(len_max).max(1);
    [1, 2, 4, 8, 12, 24, 48, 96].into_iter().find(|count| *count >= least).unwrap_or(least)
}

fn together(chunk: &[Option<f64>], points: Points) -> Option<f64> {
    let known = chunk.iter().flatten().count();
    let sum: f64 = chunk.iter().flatten().sum();
    match points {
        _ if known == 0 => None,
        Points::Buckets => Some(sum),
        Points::Moments => Some(sum / known as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::data::Kind;

    fn line(values: Vec<Option<f64>>) -> Line {
        Line { name: String::new(), values, kind: Kind::Bars }
    }

    #[test]
    fn a_year_of_quarter_hours_fits_a_picture_and_adds_up_to_the_same() {
        let len = 35_040;
        let times: Vec<i64> = (0..len).map(|place| place * 900).collect();
        let thinned = thin(&times, &[line(vec![Some(1.0); len as usize])], Points::Buckets, 1_200);
        assert_eq!((thinned.merged, thinned.times.len()), (48, 730));
        assert_eq!(thinned.lines[0].values.iter().flatten().sum::<f64>(), 35_040.0);
    }

    #[test]
    fn moments_give_their_mean_and_nothing_stays_nothing() {
        let values = vec![Some(1.0), Some(3.0), None, None, Some(5.0)];
        let thinned = thin(&[0, 1, 2, 3, 4], &[line(values)], Points::Moments, 3);
        assert_eq!(thinned.lines[0].values, [Some(2.0), None, Some(5.0)]);
        assert_eq!(thinned.times, [0, 2, 4]);
    }
}
