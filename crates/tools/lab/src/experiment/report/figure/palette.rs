//! Colours by role, light and dark. Series differ in lightness as well as in hue, so they can be
//! distinguished without colour vision; phases range from the colour of the cache to that of the
//! store.

use std::fmt::Write;

/// Number of steps from no counter on the new strategy to all of them.
pub const PHASE_STEPS: usize = 10;
/// From orange through a violet grey to blue-green.
const PHASES_LIGHT: [[f64; 3]; 3] =
    [[200.0, 84.0, 20.0], [138.0, 122.0, 158.0], [12.0, 104.0, 124.0]];
const PHASES_DARK: [[f64; 3]; 3] =
    [[244.0, 150.0, 88.0], [150.0, 138.0, 176.0], [88.0, 200.0, 218.0]];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Paper,
    Ink,
    Soft,
    Grid,
    Axis,
    /// A time during which the store compacted.
    Band,
    Store,
    Cache,
    Memory,
    Failed,
    /// From 0 to [`PHASE_STEPS`].
    Phase(usize),
}

type Colour = [u8; 3];

/// Class and colours (red, green and blue) on light and on dark backgrounds.
const NAMED: [(Paint, &str, Colour, Colour); 10] = [
    (Paint::Paper, "paper", [255, 255, 255], [21, 34, 38]),
    (Paint::Ink, "ink", [18, 38, 44], [228, 238, 240]),
    (Paint::Soft, "soft", [82, 103, 110], [150, 171, 177]),
    (Paint::Grid, "grid", [228, 235, 237], [38, 54, 60]),
    (Paint::Axis, "axis", [140, 157, 163], [96, 118, 125]),
    (Paint::Band, "band", [219, 211, 236], [62, 56, 96]),
    (Paint::Store, "store", [20, 120, 140], [77, 182, 200]),
    (Paint::Cache, "cache", [200, 100, 30], [240, 149, 90]),
    (Paint::Memory, "memory", [91, 75, 183], [167, 155, 245]),
    (Paint::Failed, "failed", [166, 42, 106], [236, 127, 180]),
];

impl Paint {
    pub fn class(self) -> String {
        self.look().0
    }

    pub fn light(self) -> Colour {
        self.look().1
    }

    fn dark(self) -> Colour {
        self.look().2
    }

    /// Class and colours on light and on dark backgrounds.
    fn look(self) -> (String, Colour, Colour) {
        if let Self::Phase(step) = self {
            let class = format!("phase-{step}");
            return (class, between(PHASES_LIGHT, step), between(PHASES_DARK, step));
        }
        let (_, class, light, dark) = NAMED
            .iter()
            .find(|(paint, ..)| *paint == self)
            .expect("every paint but the phases is in the table");
        ((*class).to_owned(), *light, *dark)
    }
}

/// Interpolates between three colours.
fn between(stops: [[f64; 3]; 3], step: usize) -> [u8; 3] {
    let way = step.min(PHASE_STEPS) as f64 / PHASE_STEPS as f64 * 2.0;
    let (from, to, share) =
        if way < 1.0 { (stops[0], stops[1], way) } else { (stops[1], stops[2], way - 1.0) };
    [0, 1, 2].map(|part| (from[part] + (to[part] - from[part]) * share).round() as u8)
}

/// The colour of a phase, by its position among all phases.
pub fn phase(place: usize, len: usize) -> Paint {
    Paint::Phase((place * PHASE_STEPS).checked_div(len.saturating_sub(1)).unwrap_or(0))
}

fn all() -> impl Iterator<Item = Paint> {
    NAMED.iter().map(|(paint, ..)| *paint).chain((0..=PHASE_STEPS).map(Paint::Phase))
}

pub fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The style sheet for all pictures inside an element of the class `figure`, light and dark.
pub fn style_sheet() -> String {
    let mut text = rules(Paint::light);
    // Writing to memory cannot fail.
    let _ = write!(text, "@media screen and (prefers-color-scheme:dark){{{}}}", rules(Paint::dark));
    text
}

fn rules(colour: impl Fn(Paint) -> [u8; 3]) -> String {
    let rule = |paint: Paint| {
        let class = paint.class();
        let colour = hex(colour(paint));
        format!(".figure .s-{class}{{stroke:{colour}}}.figure .f-{class}{{fill:{colour}}}")
    };
    all().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_go_from_one_end_to_the_other() {
        assert_eq!([phase(0, 6), phase(5, 6)], [Paint::Phase(0), Paint::Phase(PHASE_STEPS)]);
        assert_eq!(phase(0, 1), Paint::Phase(0));
        assert_eq!(Paint::Phase(0).light(), [200, 84, 20]);
        assert_eq!(Paint::Phase(PHASE_STEPS).light(), [12, 104, 124]);
    }

    #[test]
    fn every_colour_has_a_light_and_a_dark_rule() {
        let sheet = style_sheet();
        assert_eq!(sheet.matches(".s-store{").count(), 2);
        assert_eq!(sheet.matches(".f-phase-10{").count(), 2);
    }
}
