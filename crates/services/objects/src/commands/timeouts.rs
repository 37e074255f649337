//! How long a command waits for its keys.

use raingauge_resp::{Arguments, Failure};

/// Reads a timeout in seconds, and returns it in milliseconds, rounded up; 0 is for ever.
pub(super) fn parse(arguments: Arguments<'_>, index: usize, now_ms: i64) -> Result<i64, Failure> {
    let refused = |_| Failure::text("ERR timeout is not a float or out of range");
    let ms = (arguments.float(index).map_err(refused)? * 1_000.0).ceil();

    if ms > (i64::MAX - now_ms) as f64 {
        return Err(Failure::text("ERR timeout is out of range"));
    }
    if ms < 0.0 {
        return Err(Failure::text("ERR timeout is negative"));
    }
    Ok(ms as i64)
}

#[cfg(test)]
mod tests {
    use raingauge_resp::Drain;

    use super::parse;

    fn timeout(text: &str) -> Result<i64, String> {
        let drain = Drain::of(&[&[b"blpop", text.as_bytes()]]);
        let arguments = drain.get(0).arguments;

        parse(arguments, 1, 1_700_000_000_000).map_err(|refused| refused.to_string())
    }

    #[test]
    fn seconds_may_have_decimals() {
        assert_eq!(timeout("0"), Ok(0));
        assert_eq!(timeout("1.5"), Ok(1_500));
        assert_eq!(timeout("0.00001"), Ok(1));
        assert_eq!(timeout("-1").unwrap_err(), "ERR timeout is negative");
        assert_eq!(timeout("inf").unwrap_err(), "ERR timeout is out of range");
        assert_eq!(timeout("x").unwrap_err(), "ERR timeout is not a float or out of range");
    }
}
