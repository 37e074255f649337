//! Bits of strings.

use std::ops::RangeInclusive;

use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::bits::{self, Combination};
use raingauge_values::limits::BITS_BYTES_MAX;
use raingauge_values::text::TextBytes;
use raingauge_values::{Text, Value};

use super::ranges::{clamped, is_reversed};
use super::strings::check_len;
use crate::notify::Class;
use crate::turn::{Expiry, Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Setbit, setbit),
    (Id::Getbit, getbit),
    (Id::Bitcount, bitcount),
    (Id::Bitpos, bitpos),
    (Id::Bitop, bitop),
];

/// Offsets from here on lie in no string that clients know of.
const OFFSET_END: i64 = 1 << 32;
const BAD_OFFSET: Failure = Failure::text("ERR bit offset is not an integer or out of range");
const BAD_BIT: Failure = Failure::text("ERR bit is not an integer or out of range");
const TOO_LONG: Failure = Failure::text(
    "ERR bits are written to strings of up to 8388608 bytes: each change writes the whole string",
);

/// An offset of bits, within the largest string that clients know of.
pub(super) fn offset(number: Option<i64>) -> Result<u64, Failure> {
    let number = number.filter(|number| (0..OFFSET_END).contains(number));
    number.map(|number| number as u64).ok_or(BAD_OFFSET)
}

/// Refuses to write bits to a string that is, or would become, too long for it.
pub(super) fn check_bits_len(
    turn: &Turn<'_>,
    key: &[u8],
    held: usize,
    last_bit: u64,
) -> Result<(), Failure> {
    let len = held.max((last_bit / 8) as usize + 1);
    if len > BITS_BYTES_MAX {
        return Err(TOO_LONG);
    }
    turn.check_bytes(key, len)
}

fn setbit(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let offset = offset(arguments.integer(2).ok())?;
    let bit = match arguments.integer(3) {
        Ok(0) => false,
        Ok(1) => true,
        _ => return Err(BAD_BIT),
    };
    let held = turn.text(key)?;
    let held_len = held.map_or(0, |text| text.len());
    check_bits_len(turn, key, held_len, offset)?;

    // A bit that is what it was is no change, unless the string grows for it.
    if (offset / 8) < held_len as u64
        && held.is_some_and(|text| bits::get(&text.bytes(), offset) == bit)
    {
        replies.integer(i64::from(bit));
        return Ok(());
    }
    let former = bits::set(turn.text_or_new(key)?.edit(), offset, bit);
    turn.notify(Class::Text, "setbit", key);
    replies.integer(i64::from(former));
    Ok(())
}

fn getbit(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let offset = offset(arguments.integer(2).ok())?;
    let text = turn.text(arguments.at(1))?;
    let bit = text.is_some_and(|text| bits::get(&text.bytes(), offset));
    replies.integer(i64::from(bit));
    Ok(())
}

/// Whether a range counts bits, by the last argument of a command.
fn counts_bits(arguments: Arguments<'_>, index: usize) -> Result<bool, Failure> {
    if index >= arguments.len() || arguments.is(index, "byte") {
        Ok(false)
    } else if arguments.is(index, "bit") {
        Ok(true)
    } else {
        Err(Failure::Syntax)
    }
}

/// The bits of a range of bits or bytes whose ends may be negative. Empty if it holds none.
fn bits_between(start: i64, end: i64, len: usize, by_bits: bool) -> RangeInclusive<u64> {
    let bits = if by_bits {
        clamped(start, end, len * 8)
    } else {
        let bytes = clamped(start, end, len);
        bytes.start * 8..bytes.end * 8
    };

    if bits.is_empty() {
        RangeInclusive::new(1, 0)
    } else {
        bits.start as u64..=bits.end as u64 - 1
    }
}

fn bitcount(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let Some(text) = turn.text(arguments.at(1))? else {
        replies.integer(0);
        return Ok(());
    };
    let bytes = text.bytes();

    let count = match arguments.len() {
        2 => bits::count(&bytes),
        4 | 5 => {
            let start = arguments.integer(2)?;
            let end = arguments.integer(3)?;
            // Before the unit is looked at, as clients' tests know it.
            if is_reversed(start, end) {
                replies.integer(0);
                return Ok(());
            }
            let range = bits_between(start, end, bytes.len(), counts_bits(arguments, 4)?);
            if range.is_empty() {
                0
            } else {
                bits::count_range(&bytes, *range.start(), *range.end())
            }
        }
        _ => return Err(Failure::Syntax),
    };
    replies.integer(count as i64);
    Ok(())
}

fn bitpos(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let bit = match arguments.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Failure::text("ERR The bit argument must be 1 or 0.")),
    };
    // A string that is not there is an endless row of zeros.
    let Some(text) = turn.text(arguments.at(1))? else {
        replies.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    if arguments.len() > 6 {
        return Err(Failure::Syntax);
    }

    let bytes = text.bytes();
    let start = if arguments.len() > 3 { arguments.integer(3)? } else { 0 };
    let by_bits = counts_bits(arguments, 5)?;
    let end = if arguments.len() > 4 { Some(arguments.integer(4)?) } else { None };
    let range = bits_between(start, end.unwrap_or(-1), bytes.len(), by_bits);

    replies.integer(if range.is_empty() {
        -1
    } else {
        match bits::position(&bytes, bit, *range.start(), *range.end()) {
            Some(position) => position as i64,
            // Behind the end of the string are zeros, if the caller did not set an end.
            None if !bit && end.is_none() => bytes.len() as i64 * 8,
            None => -1,
        }
    });
    Ok(())
}

fn bitop(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let words = [
        ("and", Combination::And),
        ("or", Combination::Or),
        ("xor", Combination::Xor),
        ("not", Combination::Not),
    ];
    let word = words.into_iter().find(|(word, _)| arguments.is(1, word));
    let (_, combination) = word.ok_or(Failure::Syntax)?;
    if combination == Combination::Not && arguments.len() != 4 {
        return Err(Failure::text("ERR BITOP NOT must be called with a single source key."));
    }

    let destination = arguments.at(2);
    let mut sources = Vec::with_capacity(arguments.len() - 3);
    for key in arguments.from(3).iter() {
        let text = turn.text(key)?;
        sources.push(text.map_or(TextBytes::Borrowed(b""), |text| text.bytes()));
    }
    let sources: Vec<&[u8]> = sources.iter().map(|source| &**source).collect();
    let combined = bits::combine(combination, &sources);

    let len = combined.len();
    check_len(turn, len)?;
    if len > 0 {
        turn.put(destination, Value::Text(Text::edited(combined)), Expiry::Clear);
        turn.notify(Class::Text, "set", destination);
    } else if turn.remove(destination) {
        turn.notify(Class::Generic, "del", destination);
    }
    replies.integer(len as i64);
    Ok(())
}
