//! What a tally keeps, and its bytes.
//!
//! ```text
//!   campaign   10 sum
//!   calendar   11                               no event yet
//!              11 newest period, its sum, the sum before, the sum before that
//!   last       12 length, oldest time, milliseconds from each time to the next
//! ```
//!
//! Times and periods are signed numbers, as are sums; the rest is unsigned.

use super::Window;
use crate::encoding::{self, DecodeError, Reader, put_signed, put_unsigned};
use crate::limits::KEPT_TIMES_MAX;

/// Bytes of most times, which are less than three days behind the one before.
const BYTES_PER_TIME: usize = 4;

/// Periods of the calendar that a tally keeps. An event that is 24 hours late may belong to the
/// day before yesterday where yesterday had 23 hours.
pub(super) const PERIODS_KEPT: usize = 3;

const CAMPAIGN: u8 = 0;
const CALENDAR: u8 = 1;
const LAST: u8 = 2;

/// What is kept of the events of one subject. See [`Window`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tally {
    Campaign(i128),
    /// Nothing before the first event.
    Calendar(Option<Calendar>),
    /// The newest times in the window, in order.
    Last(Vec<i64>),
}

/// Sums of the newest period that an event lay in, and of those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub(super) newest: i32,
    pub(super) sums: [i128; PERIODS_KEPT],
}

impl Tally {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Campaign(sum) => {
                let mut out = encoding::begin(CAMPAIGN);
                put_signed(&mut out, *sum);
                out
            }
            Self::Calendar(calendar) => {
                let mut out = encoding::begin(CALENDAR);
                if let Some(Calendar { newest, sums }) = calendar {
                    put_signed(&mut out, i128::from(*newest));
                    sums.iter().for_each(|sum| put_signed(&mut out, *sum));
                }
                out
            }
            Self::Last(times) => {
                let mut out = encoding::begin(LAST);
                out.reserve(BYTES_PER_TIME * times.len());
                put_unsigned(&mut out, times.len() as u128);
                if let Some(oldest) = times.first() {
                    put_signed(&mut out, i128::from(*oldest));
                }

                for pair in times.windows(2) {
                    put_unsigned(&mut out, u128::from(pair[1].abs_diff(pair[0])));
                }
                out
            }
        }
    }

    /// Reads the tally of a window.
    pub fn decode(window: &Window, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (kind, mut reader) = Reader::begin(bytes)?;
        let tally = match (window, kind) {
            (Window::Campaign { .. }, CAMPAIGN) => Self::Campaign(reader.signed()?),
            (Window::Calendar { .. }, CALENDAR) if reader.is_empty() => Self::Calendar(None),
            (Window::Calendar { .. }, CALENDAR) => {
                let newest = i32::try_from(reader.signed()?).map_err(|_| DecodeError)?;
                let mut sums = [0; PERIODS_KEPT];
                for sum in &mut sums {
                    *sum = reader.signed()?;
                }
                Self::Calendar(Some(Calendar { newest, sums }))
            }
            (Window::Last { .. }, LAST) => Self::Last(times(&mut reader)?),
            _ => return Err(DecodeError),
        };
        reader.end()?;
        Ok(tally)
    }
}

fn times(reader: &mut Reader<'_>) -> Result<Vec<i64>, DecodeError> {
    let len: usize = reader.small()?;
    if len > KEPT_TIMES_MAX {
        return Err(DecodeError);
    }

    let mut times: Vec<i64> = Vec::with_capacity(len);
    for place in 0..len {
        let time = match place.checked_sub(1) {
            None => i64::try_from(reader.signed()?).map_err(|_| DecodeError)?,
            Some(last) => times[last].checked_add_unsigned(reader.small()?).ok_or(DecodeError)?,
        };
        times.push(time);
    }
    Ok(times)
}
