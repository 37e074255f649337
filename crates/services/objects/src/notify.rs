//! Keyspace notifications: which events are published, as `notify-keyspace-events` says.

use std::sync::atomic::{AtomicU32, Ordering};

/// The kind of an event, by which a server chooses those that it publishes. Each is a bit of the
/// flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Class {
    Generic = 1 << 2,
    Text = 1 << 3,
    List = 1 << 4,
    Set = 1 << 5,
    Hash = 1 << 6,
    Sorted = 1 << 7,
    Expired = 1 << 8,
    Missed = 1 << 11,
    New = 1 << 14,
}

/// Letters in the order in which Redis prints them, each with its bit.
const LETTERS: &[(char, u32)] = &[
    ('g', Class::Generic as u32),
    ('$', Class::Text as u32),
    ('l', Class::List as u32),
    ('s', Class::Set as u32),
    ('h', Class::Hash as u32),
    ('z', Class::Sorted as u32),
    ('x', Class::Expired as u32),
    // Of evictions, streams and modules there are no events here.
    ('e', 1 << 9),
    ('t', 1 << 10),
    ('d', 1 << 13),
];
const INVALID: &str = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
const KEYSPACE: u32 = 1;
const KEYEVENT: u32 = 1 << 1;
const MISSED: u32 = Class::Missed as u32;
const NEW: u32 = Class::New as u32;

/// The classes that are published, readable without a lock.
#[derive(Debug, Default)]
pub(crate) struct Flags(AtomicU32);

impl Flags {
    /// Whether an event goes to `__keyspace@…__` and `__keyevent@…__`.
    pub(crate) fn channels(&self, class: Class) -> (bool, bool) {
        let flags = self.0.load(Ordering::Relaxed);
        let is_wanted = flags & class as u32 != 0;
        (is_wanted && flags & KEYSPACE != 0, is_wanted && flags & KEYEVENT != 0)
    }

    /// Whether any channel gets events of a class.
    pub(crate) fn has(&self, class: Class) -> bool {
        let (keyspace, keyevent) = self.channels(class);
        keyspace || keyevent
    }

    /// Publishes the classes of these letters. An error says what is wrong with them.
    pub(crate) fn set(&self, letters: &str) -> Result<(), &'static str> {
        let mut flags = 0;
        for letter in letters.chars() {
            let known = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
            flags |= match letter {
                'A' => all(),
                'K' => KEYSPACE,
                'E' => KEYEVENT,
                'm' => MISSED,
                'n' => NEW,
                _ => known.ok_or(INVALID)?,
            };
        }

        self.0.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// The flags as Redis prints them.
    pub(crate) fn letters(&self) -> String {
        let flags = self.0.load(Ordering::Relaxed);
        let mut letters = String::new();
        if flags & all() == all() {
            letters.push('A');
        } else {
            letters.extend(
                LETTERS.iter().filter(|(_, bit)| flags & bit != 0).map(|(letter, _)| *letter),
            );
            if flags & NEW != 0 {
                letters.push('n');
            }
        }

        let rest = [('K', KEYSPACE), ('E', KEYEVENT), ('m', MISSED)];
        letters.extend(rest.iter().filter(|(_, bit)| flags & bit != 0).map(|(letter, _)| *letter));
        letters
    }
}

fn all() -> u32 {
    LETTERS.iter().fold(0, |all, (_, bit)| all | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_as_they_were_set() {
        let flags = Flags::default();
        for (set, printed) in
            [("KEA", "AKE"), ("Kg$", "g$K"), ("", ""), ("Elm", "lEm"), ("KEn", "nKE")]
        {
            flags.set(set).expect("known letters");
            assert_eq!(flags.letters(), printed);
        }

        flags.set("KEl").expect("known letters");
        assert_eq!(flags.set("Q"), Err(INVALID));
        assert!(flags.has(Class::List) && !flags.has(Class::Hash));
    }
}
