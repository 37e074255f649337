//! Keys and values of queues. Numbers in keys are big-endian, those in values little-endian.
//!
//! ```text
//! 0x01 queue u8 │ visible_ms u64 │ number u64 → 1 u8, receives u32: a letter that waits
//! 0x02 queue u8 │ number u64                  → 1 u8, death in JSON: a letter that died
//! 0x03 number u64                             → 1 u8, letter in JSON
//! ```
//!
//! A receive moves a small key and leaves the letter where it is. The number begins with the time
//! at which the letter was sent, in milliseconds, so that keys alone say how old a queue is.

use raingauge_ports::points::{Death, Letter, QueueName};
use serde_json::{Value as Json, json};

const WAITING: u8 = 1;
const DEAD: u8 = 2;
const LETTER: u8 = 3;
/// The version of the values.
const VALUE: u8 = 1;
/// Bits of a number behind its time: a million letters a millisecond.
const COUNT_BITS: u32 = 20;

/// The number of a letter, unique in the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

/// The place of a waiting letter in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub visible_ms: u64,
    pub number: Number,
}

impl Number {
    /// The number behind `newest` for a letter that is sent now.
    pub fn after(newest: Self, now_ms: i64) -> Self {
        let now = now_ms.max(0).unsigned_abs() << COUNT_BITS;
        Self(now.max(newest.0 + 1))
    }

    /// When the letter was sent, in milliseconds since 1970.
    pub fn sent_ms(self) -> i64 {
        (self.0 >> COUNT_BITS) as i64
    }
}

impl Place {
    pub const FIRST: Self = Self { visible_ms: 0, number: Number(0) };
    pub const LAST: Self = Self { visible_ms: u64::MAX, number: Number(u64::MAX) };

    /// The place behind all letters that are visible by now.
    pub const fn behind(now_ms: u64) -> Self {
        Self { visible_ms: now_ms.saturating_add(1), number: Number(0) }
    }
}

pub fn waiting(queue: QueueName, place: Place) -> Vec<u8> {
    let Place { visible_ms, number } = place;
    [&[WAITING, queue as u8], &visible_ms.to_be_bytes()[..], &number.0.to_be_bytes()].concat()
}

/// The prefix of the waiting letters of a queue.
pub const fn all_waiting(queue: QueueName) -> [u8; 2] {
    [WAITING, queue as u8]
}

pub fn place_of(key: &[u8]) -> Option<Place> {
    let ([visible_ms, number], []) = key.get(2..)?.as_chunks::<8>() else {
        return None;
    };
    let number = Number(u64::from_be_bytes(*number));
    Some(Place { visible_ms: u64::from_be_bytes(*visible_ms), number })
}

pub fn receives_bytes(receives: u32) -> Vec<u8> {
    [&[VALUE], &receives.to_le_bytes()[..]].concat()
}

pub fn receives_of(value: &[u8]) -> Option<u32> {
    let receives = value.strip_prefix(&[VALUE])?.try_into().ok()?;
    Some(u32::from_le_bytes(receives))
}

pub fn dead(queue: QueueName, number: Number) -> Vec<u8> {
    [&[DEAD, queue as u8], &number.0.to_be_bytes()[..]].concat()
}

/// The prefix of the dead letters of a queue.
pub const fn all_dead(queue: QueueName) -> [u8; 2] {
    [DEAD, queue as u8]
}

pub fn dead_number_of(key: &[u8]) -> Option<Number> {
    let number = key.get(2..)?.try_into().ok()?;
    Some(Number(u64::from_be_bytes(number)))
}

pub fn letter(number: Number) -> Vec<u8> {
    [&[LETTER], &number.0.to_be_bytes()[..]].concat()
}

pub fn letter_bytes(letter: &Letter) -> Vec<u8> {
    let Letter { id, body, first_error } = letter;
    versioned(&json!([id, body, first_error]))
}

pub fn letter_of(value: &[u8]) -> Option<Letter> {
    let (id, body, first_error) = serde_json::from_slice(value.strip_prefix(&[VALUE])?).ok()?;
    Some(Letter { id, body, first_error })
}

pub fn death_bytes(death: &Death) -> Vec<u8> {
    let Death { reason, last_error, attempts, died_ms } = death;
    versioned(&json!([reason, last_error, attempts, died_ms]))
}

pub fn death_of(value: &[u8]) -> Option<Death> {
    let fields = serde_json::from_slice(value.strip_prefix(&[VALUE])?).ok()?;
    let (reason, last_error, attempts, died_ms) = fields;
    Some(Death { reason, last_error, attempts, died_ms })
}

fn versioned(value: &Json) -> Vec<u8> {
    let mut bytes = vec![VALUE];
    serde_json::to_writer(&mut bytes, value).expect("texts and numbers have a form in JSON");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn death() -> Death {
        let reason = "too_old".to_owned();
        Death { reason, last_error: "e".to_owned(), attempts: 3, died_ms: 258 }
    }

    /// Every later version must be able to read existing folders.
    #[test]
    fn keys_and_values_are_laid_out_as_they_were_in_version_1() {
        let place = Place { visible_ms: 258, number: Number(5) };
        let sent = Letter::new("i", "b").because("e");
        for (bytes, expected) in [
            (waiting(QueueName::Retry, place), "010200000000000001020000000000000005"),
            (receives_bytes(3), "0103000000"),
            (dead(QueueName::Notify, Number(5)), "02040000000000000005"),
            (letter(Number(5)), "030000000000000005"),
            (letter_bytes(&sent), "015b2269222c2262222c2265225d"),
            (death_bytes(&death()), "015b22746f6f5f6f6c64222c2265222c332c3235385d"),
        ] {
            assert_eq!(hex(&bytes), expected);
        }

        assert_eq!(place_of(&waiting(QueueName::Award, place)), Some(place));
        assert_eq!(dead_number_of(&dead(QueueName::Award, Number(5))), Some(Number(5)));
        assert_eq!(receives_of(&receives_bytes(3)), Some(3));
        assert_eq!(letter_of(&letter_bytes(&sent)), Some(sent));
        assert_eq!(death_of(&death_bytes(&death())), Some(death()));
    }

    #[test]
    fn what_is_cut_short_or_newer_is_refused() {
        let sent = letter_bytes(&Letter::new("i", "b"));
        assert!((0..sent.len()).all(|len| letter_of(&sent[..len]).is_none()));
        let died = death_bytes(&death());
        assert!((0..died.len()).all(|len| death_of(&died[..len]).is_none()));
        assert_eq!(letter_of(&[&[2], &sent[1..]].concat()), None);
        assert_eq!(receives_of(&[2, 0, 0, 0, 0]), None);
        assert_eq!(place_of(&[WAITING, 1, 0]), None);
        assert_eq!(dead_number_of(&[]), None);
    }

    #[test]
    fn numbers_grow_and_tell_the_time() {
        let first = Number::after(Number(0), 1_727_136_000_000);
        assert_eq!(first.sent_ms(), 1_727_136_000_000);
        let second = Number::after(first, 1_727_136_000_000);
        assert!(second > first && second.sent_ms() == first.sent_ms());
        // A clock that goes back does not make a number twice.
        assert!(Number::after(second, 0) > second);
    }
}
