//! Limits of appraisals, named in one place. docs/limits.md lists each one.

/// Most members of one forecast.
pub const FORECAST_MEMBERS_MAX: usize = 4_000_000;
/// Commands that a fork decides in one turn.
pub const FORECAST_TURN_LEN_MAX: usize = 1_000;
/// Members that a forecast lists as those who gain and those who lose most, each.
pub const FORECAST_MEMBERS_SHOWN: usize = 20;
/// Most values of a field by which a forecast divides points; further ones are one sum.
pub const FORECAST_VALUES_MAX: usize = 1_000;
/// Most differences that an audit of points lists.
pub const APPRAISAL_DIFFERENCES_MAX: usize = 100;
