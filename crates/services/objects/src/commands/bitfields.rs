//! `BITFIELD`: integers of any width within strings.

use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::bitfield::{Overflow, Width};
use raingauge_values::number::parse_i64;
use raingauge_values::text::Buffer;

use super::bits::{check_bits_len, offset};
use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] =
    &[(Id::Bitfield, bitfield), (Id::BitfieldRo, bitfield_ro)];

/// One operation of the command.
struct Operation {
    width: Width,
    offset: u64,
    action: Action,
}

enum Action {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

impl Operation {
    /// The last bit that the operation may write.
    fn last_written(&self) -> Option<u64> {
        let last = self.offset + u64::from(self.width.bits) - 1;
        if matches!(self.action, Action::Get) { None } else { Some(last) }
    }
}

/// Parses all operations before the first is run.
fn operations(arguments: Arguments<'_>) -> Result<Vec<Operation>, Failure> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut index = 2;

    while index < arguments.len() {
        let rest = arguments.len() - index - 1;
        if arguments.is(index, "overflow") && rest >= 1 {
            overflow = parse_overflow(arguments, index + 1)?;
            index += 2;
            continue;
        }

        let get = arguments.is(index, "get") && rest >= 2;
        let set = arguments.is(index, "set") && rest >= 3;
        let add = arguments.is(index, "incrby") && rest >= 3;
        if !(get || set || add) {
            return Err(Failure::Syntax);
        }
        let width = Width::parse(arguments.at(index + 1)).ok_or(Failure::text(
            "ERR Invalid bitfield type. Use something like i16 u8. \
             Note that u64 is not supported but i64 is.",
        ))?;
        let offset = parse_offset(arguments.at(index + 2), width)?;

        let action = if get {
            Action::Get
        } else if set {
            Action::Set(arguments.integer(index + 3)?, overflow)
        } else {
            Action::Add(arguments.integer(index + 3)?, overflow)
        };
        operations.push(Operation { width, offset, action });
        index += if get { 3 } else { 4 };
    }
    Ok(operations)
}

fn parse_overflow(arguments: Arguments<'_>, index: usize) -> Result<Overflow, Failure> {
    let words = [("wrap", Overflow::Wrap), ("sat", Overflow::Saturate), ("fail", Overflow::Fail)];
    let word = words.into_iter().find(|(word, _)| arguments.is(index, word));
    word.map(|(_, overflow)| overflow).ok_or(Failure::text("ERR Invalid OVERFLOW type specified"))
}

/// An offset of bits, or with `#` before it a multiple of the width.
fn parse_offset(text: &[u8], width: Width) -> Result<u64, Failure> {
    match text.strip_prefix(b"#") {
        Some(number) => {
            offset(parse_i64(number).and_then(|number| number.checked_mul(i64::from(width.bits))))
        }
        None => offset(parse_i64(text)),
    }
}

fn bitfield(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let operations = operations(arguments)?;
    match operations.iter().filter_map(Operation::last_written).max() {
        Some(last_bit) => write(turn, arguments.at(1), &operations, last_bit, replies),
        None => read(turn, arguments.at(1), &operations, replies),
    }
}

fn bitfield_ro(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let operations = operations(arguments)?;
    if operations.iter().any(|operation| operation.last_written().is_some()) {
        return Err(Failure::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(turn, arguments.at(1), &operations, replies)
}

fn read(
    turn: &Turn<'_>,
    key: &[u8],
    operations: &[Operation],
    replies: &mut Replies,
) -> Result<(), Failure> {
    let text = turn.text(key)?.map(|text| text.bytes());
    let bytes = text.as_deref().unwrap_or_default();
    replies.array(operations.len());
    for operation in operations {
        replies.integer(operation.width.get(bytes, operation.offset));
    }
    Ok(())
}

fn write(
    turn: &mut Turn<'_>,
    key: &[u8],
    operations: &[Operation],
    last_bit: u64,
    replies: &mut Replies,
) -> Outcome {
    let held = turn.text(key)?.map_or(0, |text| text.len());
    check_bits_len(turn, key, held, last_bit)?;

    // The string grows for all operations, those that overflow included.
    let buffer = turn.text_or_new(key)?.edit();
    let len = buffer.len().max((last_bit / 8) as usize + 1);
    let grown = len > buffer.len();
    buffer.resize(len, 0);

    replies.array(operations.len());
    let mut changes = 0;
    for operation in operations {
        match run(operation, buffer) {
            Some(outcome) => {
                replies.integer(outcome.reply);
                changes += usize::from(outcome.written && (grown || outcome.changed));
            }
            None => replies.null(),
        }
    }

    if changes > 0 {
        turn.notify(Class::Text, "setbit", key);
    } else if !grown {
        turn.unchanged(key);
    }
    Ok(())
}

struct FieldResult {
    reply: i64,
    written: bool,
    changed: bool,
}

/// Runs an operation. `None` if its number overflows, which its caller does not want.
fn run(operation: &Operation, buffer: &mut Buffer) -> Option<FieldResult> {
    let width = operation.width;
    let held = width.get(buffer, operation.offset);
    let (number, reply) = match operation.action {
        Action::Get => return Some(FieldResult { reply: held, written: false, changed: false }),
        Action::Set(number, overflow) => (width.fit_set(number, overflow)?, held),
        Action::Add(increment, overflow) => {
            let sum = width.fit_sum(held, increment, overflow)?;
            (sum, sum)
        }
    };
    width.set(buffer, operation.offset, number);
    Some(FieldResult { reply, written: true, changed: number != held })
}
