//! Lifetimes that commands on strings give to their key.

use raingauge_resp::{Arguments, Failure};
use raingauge_values::number::parse_i64;

use crate::turn::Expiry;

/// The unit of a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// What becomes of the lifetime of a key. Numbers are checked when they are needed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lifetime<'a> {
    /// The command said nothing about it.
    Unchanged,
    Keep,
    Persist,
    /// From now on.
    In(Unit, &'a [u8]),
    /// Since 1970.
    At(Unit, &'a [u8]),
}

impl<'a> Lifetime<'a> {
    /// Parses `EX`, `PX`, `EXAT` or `PXAT` at an index, with the number behind it.
    pub(super) fn parse(arguments: Arguments<'a>, index: usize) -> Option<Lifetime<'a>> {
        let number = arguments.get(index + 1)?;
        let words = [
            ("ex", Lifetime::In(Unit::Seconds, number)),
            ("px", Lifetime::In(Unit::Milliseconds, number)),
            ("exat", Lifetime::At(Unit::Seconds, number)),
            ("pxat", Lifetime::At(Unit::Milliseconds, number)),
        ];
        let word = words.into_iter().find(|(word, _)| arguments.is(index, word));
        word.map(|(_, lifetime)| lifetime)
    }

    /// Takes over what an option says. Options may repeat, but not contradict each other.
    pub(super) fn demand(&mut self, lifetime: Lifetime<'a>) -> Result<(), Failure> {
        let compatible = match (&*self, &lifetime) {
            (Lifetime::Unchanged, _)
            | (Lifetime::Keep, Lifetime::Keep)
            | (Lifetime::Persist, Lifetime::Persist) => true,
            (Lifetime::In(held, _), Lifetime::In(unit, _))
            | (Lifetime::At(held, _), Lifetime::At(unit, _)) => held == unit,
            _ => false,
        };
        if !compatible {
            return Err(Failure::Syntax);
        }
        *self = lifetime;
        Ok(())
    }

    /// The expiry of a value that replaces another.
    pub(super) fn expiry(self, command: &'static str, now_ms: i64) -> Result<Expiry, Failure> {
        Ok(match self {
            Lifetime::Unchanged | Lifetime::Persist => Expiry::Clear,
            Lifetime::Keep => Expiry::Keep,
            Lifetime::In(..) | Lifetime::At(..) => Expiry::At(self.at_ms(command, now_ms)?),
        })
    }

    /// The millisecond at which a lifetime with a number ends, which may be in the past.
    pub(super) fn at_ms(self, command: &'static str, now_ms: i64) -> Result<i64, Failure> {
        let (number, unit, start_ms) = match self {
            Lifetime::In(unit, number) => (number, unit, now_ms),
            Lifetime::At(unit, number) => (number, unit, 0),
            _ => return Ok(now_ms),
        };
        let number = parse_i64(number).ok_or(Failure::NotInteger)?;
        let factor = if unit == Unit::Seconds { 1_000 } else { 1 };

        let span_ms = Some(number).filter(|number| *number > 0);
        let span_ms = span_ms.and_then(|number| number.checked_mul(factor));
        let at_ms = span_ms.and_then(|span_ms| span_ms.checked_add(start_ms));
        at_ms.ok_or(Failure::InvalidExpire(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lifetime: Lifetime<'_>) -> Result<i64, Failure> {
        lifetime.at_ms("set", 1_000)
    }

    #[test]
    fn lifetimes_end_where_they_say() {
        assert_eq!(at(Lifetime::In(Unit::Seconds, b"2")), Ok(3_000));
        assert_eq!(at(Lifetime::In(Unit::Milliseconds, b"2")), Ok(1_002));
        assert_eq!(at(Lifetime::At(Unit::Seconds, b"2")), Ok(2_000));
        assert_eq!(at(Lifetime::At(Unit::Milliseconds, b"2")), Ok(2));
    }

    #[test]
    fn lifetimes_beyond_all_times_are_refused() {
        let invalid = Err(Failure::InvalidExpire("set"));
        for number in ["0", "-1", "9223372036854775", "9223372036854775807"] {
            let lifetime = Lifetime::In(Unit::Seconds, number.as_bytes());
            assert_eq!(at(lifetime), invalid.clone(), "{number}");
        }
        assert_eq!(at(Lifetime::In(Unit::Milliseconds, b"9223372036854775807")), invalid);
        assert_eq!(at(Lifetime::In(Unit::Seconds, b"x")), Err(Failure::NotInteger));
    }
}
