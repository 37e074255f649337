//! Operations on one key, and what they do to its value.

use serde::Serialize;

/// An operation with its reply. A key holds a number or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Operation {
    /// GET, with what it found.
    Read { found: Option<i64> },
    /// SET.
    Write { value: i64 },
    /// INCRBY, with the sum that it returned; `None` when the outcome is unknown.
    Add { amount: i64, sum: Option<i64> },
    /// WATCH, GET, MULTI, SET, EXEC: writes if the value is still the one that was read.
    /// `written` is `None` when the outcome is unknown.
    Exchange { read: Option<i64>, value: i64, written: Option<bool> },
    /// DEL, with whether there was something; `None` when the outcome is unknown.
    Remove { existed: Option<bool> },
}

/// An operation in time, by the clock of the clients in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Event {
    pub client: usize,
    pub key: usize,
    pub operation: Operation,
    pub called_ns: u64,
    /// `None` for an operation without a reply: it may have happened at any time since the call,
    /// or never.
    pub returned_ns: Option<u64>,
}

impl Operation {
    /// The value after the operation; `None` if it cannot have had this reply then.
    pub fn apply(self, value: Option<i64>) -> Option<Option<i64>> {
        match self {
            Self::Read { found } => (found == value).then_some(value),
            Self::Write { value } => Some(Some(value)),
            Self::Add { amount, sum } => {
                let next = value.unwrap_or(0).checked_add(amount)?;
                sum.is_none_or(|sum| sum == next).then_some(Some(next))
            }
            Self::Exchange { read, value: next, written } => {
                let is_unchanged = value == read;
                match written {
                    // Another client may have written the same value again, which EXEC notices too:
                    // a refusal is possible at any value.
                    Some(false) => Some(value),
                    Some(true) => is_unchanged.then_some(Some(next)),
                    None => Some(if is_unchanged { Some(next) } else { value }),
                }
            }
            Self::Remove { existed } => {
                existed.is_none_or(|existed| existed == value.is_some()).then_some(None)
            }
        }
    }
}
