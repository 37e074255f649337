//! Keyspace notifications: which events are published, as `notify-keyspace-events` says.

use raingauge_resp::Failure;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kind of an event, by which a server chooses those that it publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Generic,
    Text,
    List,
    Set,
    Hash,
    Sorted,
    Expired,
    Evicted,
    New,
    Missed,
}

/// Letters in the order in which Redis prints them, each with its bit.
const LETTERS: &[(char, u32)] = &[
    ('g', 1 << 2),
    ('$', 1 << 3),
    ('l', 1 << 4),
    ('s', 1 << 5),
    ('h', 1 << 6),
    ('z', 1 << 7),
    ('x', 1 << 8),
    ('e', 1 << 9),
    ('t', 1 << 10),
    ('d', 1 << 13),
];
const KEYSPACE: u32 = 1;
const KEYEVENT: u32 = 1 << 1;
const MISSED: u32 = 1 << 11;
const NEW: u32 = 1 << 14;

impl Class {
    fn bit(self) -> u32 {
        match self {
            Class::Generic => 1 << 2,
            Class::Text => 1 << 3,
            Class::List => 1 << 4,
            Class::Set => 1 << 5,
            Class::Hash => 1 << 6,
            Class::Sorted => 1 << 7,
            Class::Expired => 1 << 8,
            Class::Evicted => 1 << 9,
            Class::Missed => MISSED,
            Class::New => NEW,
        }
    }
}

/// The classes that are published, readable without a lock.
#[derive(Debug, Default)]
pub(crate) struct Flags(AtomicU32);

impl Flags {
    /// Whether an event goes to `__keyspace@…__` and `__keyevent@…__`.
    pub(crate) fn channels(&self, class: Class) -> (bool, bool) {
        let flags = self.0.load(Ordering::Relaxed);
        let is_wanted = flags & class.bit() != 0;
        (is_wanted && flags & KEYSPACE != 0, is_wanted && flags & KEYEVENT != 0)
    }

    /// Whether any channel gets events of a class.
    pub(crate) fn has(&self, class: Class) -> bool {
        let (keyspace, keyevent) = self.channels(class);
        keyspace || keyevent
    }

    pub(crate) fn set(&self, letters: &str) -> Result<(), Failure> {
        let mut flags = 0;
        for letter in letters.chars() {
            let known = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
            flags |= match letter {
                'A' => all(),
                'K' => KEYSPACE,
                'E' => KEYEVENT,
                'm' => MISSED,
                'n' => NEW,
                _ => known.ok_or_else(invalid)?,
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

fn invalid() -> Failure {
    Failure::text("ERR Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
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
        assert!(flags.set("Q").is_err());
        assert!(flags.has(Class::List) && !flags.has(Class::Hash));
    }
}
