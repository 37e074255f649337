//! What a request for counts may ask, over whichever door.

use crate::problem::Problem;
use raingauge_core::code::Code;
use raingauge_core::limits::COUNTS_PER_REQUEST_MAX;

/// Refuses a batch of too many ranges.
pub fn check_len(ranges: usize) -> Result<(), Problem> {
    if ranges <= COUNTS_PER_REQUEST_MAX {
        return Ok(());
    }
    let detail =
        format!("a batch takes at most {COUNTS_PER_REQUEST_MAX} ranges: send them in parts");
    Err(Problem::new(Code::TooManyRanges, detail))
}

pub fn granularity_unknown() -> Problem {
    Problem::new(Code::GranularityUnknown, "granularity must be quarter, hour, day, week or month")
}
