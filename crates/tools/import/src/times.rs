//! Parses the times in files.
//!
//! A fast path reads the common formats; everything that it does not accept goes to jiff, which
//! decides. A local time is resolved in its IANA time zone: a skipped time is rejected, and an
//! ambiguous one resolves to the earlier instant.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use raingauge_core::time::{is_countable_s, parse_rfc3339_ms};

/// Parses the time column of one mapping.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    shape: Shape,
    /// `None` is UTC, which needs no time zone data.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug)]
enum Shape {
    Rfc3339,
    EpochSeconds,
    EpochMillis,
    Strftime {
        format: String,
        /// The format as steps, if all its parts have fixed widths.
        steps: Option<Box<[Step]>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Literal(u8),
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// A decimal point and digits, or nothing.
    Fraction,
}

/// Why a time was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not match the format.
    Unreadable,
    /// It falls into a gap of the time zone.
    Skipped,
    /// It is before 1970 or after the year 9999.
    OutOfSpan,
}

impl Times {
    /// `format` is `rfc3339`, `epoch_seconds`, `epoch_millis` or a strftime format; problems are
    /// appended to `problems`.
    pub(crate) fn new(
        format: &str,
        timezone: Option<&str>,
        problems: &mut Vec<String>,
    ) -> Option<Self> {
        let before = problems.len();
        let zone = timezone.and_then(|name| match TimeZone::get(name) {
            Ok(zone) => Some(zone),
            Err(_) => {
                problems.push(format!(
                    "time.timezone: \"{name}\" is not an IANA time zone, such as \"Europe/Berlin\""
                ));
                None
            }
        });

        let zone = zone.filter(|zone| zone.iana_name() != Some("UTC"));
        let shape = match format {
            "rfc3339" => Shape::Rfc3339,
            "epoch_seconds" => Shape::EpochSeconds,
            "epoch_millis" => Shape::EpochMillis,
            _ => Shape::Strftime { format: format.to_owned(), steps: compile(format) },
        };

        let placed = match &shape {
            Shape::Strftime { format, .. } => names_offset(format).unwrap_or_else(|reason| {
                problems.push(format!(
                    "time.format: \"{format}\" {reason}; give a strftime format, rfc3339, epoch_seconds or epoch_millis"
                ));
                false
            }),
            _ => true,
        };

        if placed && zone.is_some() {
            problems.push(format!(
                "time.timezone: times in \"{format}\" already carry an offset or zone; leave it out"
            ));
        }

        (problems.len() == before).then_some(Self { shape, zone })
    }

    /// Milliseconds since 1970; finer fractions are truncated.
    pub(crate) fn read_ms(&self, text: &str) -> Result<i64, Fault> {
        let time_ms = match &self.shape {
            Shape::Rfc3339 => parse_rfc3339_ms(text.as_bytes()).ok_or(Fault::Unreadable)?,
            Shape::EpochSeconds => epoch(text, 3)?,
            Shape::EpochMillis => epoch(text, 0)?,
            Shape::Strftime { format, steps } => {
                match steps.as_deref().and_then(|steps| Civil::read(steps, text)) {
                    Some(local) => self.place(local)?,
                    None => self.read_by_jiff(format, text)?,
                }
            }
        };
        if is_countable_s(time_ms.div_euclid(1_000)) { Ok(time_ms) } else { Err(Fault::OutOfSpan) }
    }

    fn place(&self, local: DateTime) -> Result<i64, Fault> {
        placed_ms(self.zone.as_ref().unwrap_or(&TimeZone::UTC), local)
    }

    #[cold]
    fn read_by_jiff(&self, format: &str, text: &str) -> Result<i64, Fault> {
        let parts = BrokenDownTime::parse(format, text).map_err(|_| Fault::Unreadable)?;
        if parts.timestamp().is_some() || parts.offset().is_some() {
            return parts.to_timestamp().map(floor_ms).map_err(|_| Fault::Unreadable);
        }
        let local = parts.to_datetime().map_err(|_| Fault::Unreadable)?;
        if let Some(name) = parts.iana_time_zone() {
            return placed_ms(&TimeZone::get(name).map_err(|_| Fault::Unreadable)?, local);
        }
        self.place(local)
    }
}

/// Resolves a local time in a zone; of an ambiguous time, the earlier instant.
fn placed_ms(zone: &TimeZone, local: DateTime) -> Result<i64, Fault> {
    let offset = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Fold { before, .. } => before,
        AmbiguousOffset::Gap { .. } => return Err(Fault::Skipped),
    };
    offset.to_timestamp(local).map(floor_ms).map_err(|_| Fault::OutOfSpan)
}

fn floor_ms(timestamp: Timestamp) -> i64 {
    timestamp.as_nanosecond().div_euclid(1_000_000) as i64
}

/// Parses a number since 1970, shifted by `scale` decimal places and truncated.
fn epoch(text: &str, scale: usize) -> Result<i64, Fault> {
    let number = crate::number::Plain::of(text).ok_or(Fault::Unreadable)?;
    if number.negative || number.integer_trimmed().len() > 15 {
        return Err(Fault::OutOfSpan);
    }
    let fraction =
        number.fraction.unwrap_or_default().bytes().chain(std::iter::repeat(b'0')).take(scale);
    Ok(number
        .integer_trimmed()
        .bytes()
        .chain(fraction)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Compiles a format whose parts all have fixed widths; `None` for any other.
fn compile(format: &str) -> Option<Box<[Step]>> {
    let spelled = format.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("%R", "%H:%M");
    let mut steps = Vec::new();
    let mut bytes = spelled.bytes();
    while let Some(byte) = bytes.next() {
        let step = match byte {
            b'%' => match bytes.next()? {
                b'Y' => Step::Year,
                b'm' => Step::Month,
                b'd' => Step::Day,
                b'H' => Step::Hour,
                b'M' => Step::Minute,
                b'S' => Step::Second,
                b'.' if bytes.next()? == b'f' => Step::Fraction,
                _ => return None,
            },
            b' ' => Step::Literal(b' '),
            _ if byte.is_ascii_graphic() => Step::Literal(byte),
            _ => return None,
        };

        if !matches!(step, Step::Literal(_)) && steps.contains(&step) {
            return None;
        }
        steps.push(step);
    }

    let has = |step: Step| steps.contains(&step);
    let whole = has(Step::Year) && has(Step::Month) && has(Step::Day);
    let no_hole = (has(Step::Hour) || !has(Step::Minute))
        && (has(Step::Minute) || !has(Step::Second))
        && (has(Step::Second) || !has(Step::Fraction));

    (whole && no_hole).then(|| steps.into())
}

/// Whether times in this format carry their own offset or zone. The error says why the format is
/// invalid.
fn names_offset(format: &str) -> Result<bool, String> {
    let sample = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let text = strtime::format(format, &sample).map_err(|error| format!("is invalid ({error})"))?;
    let parts = BrokenDownTime::parse(format, &text)
        .map_err(|error| format!("cannot be read ({error})"))?;
    if parts.timestamp().is_some() {
        return Ok(true);
    }
    parts.to_datetime().map_err(|_| {
        "does not contain year, month and day, or has minutes without hours".to_owned()
    })?;
    Ok(parts.offset().is_some() || parts.iana_time_zone().is_some())
}

/// The parts of a local time.
#[derive(Default)]
struct Civil {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    millisecond: i32,
}

impl Civil {
    /// Parses a text in which every part has its full width; jiff handles any other.
    fn read(steps: &[Step], text: &str) -> Option<DateTime> {
        let mut civil = Self::default();
        let mut rest = text.as_bytes();
        for step in steps {
            match step {
                Step::Literal(literal) => {
                    rest = rest.strip_prefix(std::slice::from_ref(literal))?
                }
                Step::Year => civil.year = take_digits::<4>(&mut rest)?,
                Step::Month => civil.month = take_digits::<2>(&mut rest)? as i8,
                Step::Day => civil.day = take_digits::<2>(&mut rest)? as i8,
                Step::Hour => civil.hour = take_digits::<2>(&mut rest)? as i8,
                Step::Minute => civil.minute = take_digits::<2>(&mut rest)? as i8,
                Step::Second => civil.second = take_digits::<2>(&mut rest)? as i8,
                Step::Fraction => civil.millisecond = take_fraction_ms(&mut rest)?,
            }
        }

        let Self { year, month, day, hour, minute, second, millisecond } = civil;
        let local =
            DateTime::new(year, month, day, hour, minute, second, millisecond * 1_000_000).ok();
        local.filter(|_| rest.is_empty())
    }
}

/// The number of up to four digits.
fn take_digits<const WIDTH: usize>(rest: &mut &[u8]) -> Option<i16> {
    let (digits, after) = rest.split_first_chunk::<WIDTH>()?;
    let mut number = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number = number * 10 + i16::from(value);
    }
    *rest = after;
    Some(number)
}

fn take_fraction_ms(rest: &mut &[u8]) -> Option<i32> {
    let Some(digits) = rest.strip_prefix(b".") else {
        return Some(0);
    };
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&len) {
        return None;
    }
    *rest = &digits[len..];

    Some(
        digits[..len]
            .iter()
            .chain(b"00")
            .take(3)
            .fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0')),
    )
}

#[cfg(test)]
mod tests;
