//! Limits of appraisals, named in one place. docs/limits.md lists each one.

/// Most members of one forecast.
pub const FORECAST_MEMBERS_MAX: usize = 4_000_000;
/// Most bytes of keys and references of a programme in a forecast: 150 or so for each award.
pub const FORECAST_BYTES_MAX: usize = 2 * 1024 * 1024 * 1024;
/// Wallets that a fork settles in one turn.
pub const FORECAST_TURN_LEN_MAX: usize = 1_000;
/// Bytes of the events that the programmes of a forecast get at a time.
pub const FORECAST_BATCH_BYTES: usize = 256 * 1024;
/// Most such batches that wait for a programme.
pub const FORECAST_BATCHES_MAX: usize = 4;
/// Members that a forecast lists as those who gain and those who lose most, each.
pub const FORECAST_MEMBERS_SHOWN: usize = 20;
/// Most values of a field by which a forecast divides points; further ones are one sum.
pub const FORECAST_VALUES_MAX: usize = 1_000;
/// Most differences that an audit of points lists.
pub const APPRAISAL_DIFFERENCES_MAX: usize = 100;
