//! Why a command was refused, in the words that clients compare with.

use std::borrow::Cow;
use std::fmt;

/// Why a command was refused. Displayed, it is the line of the reply without its leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The key holds another type.
    WrongType,
    Syntax,
    NotInteger,
    NotFloat,
    /// An increment or decrement would leave 64 bits.
    Overflow,
    /// A number has no place in the value that it is for.
    OutOfRange,
    NotPositive,
    /// The index of a list lies outside of it.
    IndexOutOfRange,
    NoSuchKey,
    InvalidCursor,
    /// The lifetime given to this command is not a valid one.
    InvalidExpire(&'static str),
    /// A score would be not a number.
    ScoreNotNumber,
    /// A decimal sum would be infinite or not a number.
    SumNotFinite,
    /// Wrong number of arguments for this command or subcommand.
    Arity(&'static str),
    /// The whole line, with its code word.
    Text(Cow<'static, str>),
}

impl Failure {
    /// A failure with a line of its own, which begins with a code word such as `ERR`.
    pub const fn text(line: &'static str) -> Failure {
        Failure::Text(Cow::Borrowed(line))
    }

    /// As [`Failure::text`], for a line that was put together.
    pub fn owned(line: String) -> Failure {
        Failure::Text(Cow::Owned(line))
    }

    /// The first word of the line, which clients and statistics tell failures apart by.
    pub fn code(&self) -> &str {
        match self {
            Failure::WrongType => "WRONGTYPE",
            Failure::Text(line) => line.split(' ').next().unwrap_or("ERR"),
            _ => "ERR",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = match self {
            Failure::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            Failure::Syntax => "ERR syntax error",
            Failure::NotInteger => "ERR value is not an integer or out of range",
            Failure::NotFloat => "ERR value is not a valid float",
            Failure::Overflow => "ERR increment or decrement would overflow",
            Failure::OutOfRange => "ERR value is out of range",
            Failure::NotPositive => "ERR value is out of range, must be positive",
            Failure::IndexOutOfRange => "ERR index out of range",
            Failure::NoSuchKey => "ERR no such key",
            Failure::InvalidCursor => "ERR invalid cursor",
            Failure::ScoreNotNumber => "ERR resulting score is not a number (NaN)",
            Failure::SumNotFinite => "ERR increment would produce NaN or Infinity",
            Failure::Text(line) => line,

            Failure::InvalidExpire(name) => {
                return write!(f, "ERR invalid expire time in '{name}' command");
            }
            Failure::Arity(name) => {
                return write!(f, "ERR wrong number of arguments for '{name}' command");
            }
        };

        f.write_str(line)
    }
}

impl std::error::Error for Failure {}
