//! What wallets, keys, references and budgets are known by.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A member of a programme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WalletId {
    pub programme: Arc<str>,
    pub member: Arc<str>,
}

impl WalletId {
    pub fn new(programme: &str, member: &str) -> Self {
        Self { programme: programme.into(), member: member.into() }
    }

    /// The book, of `books`, that the wallet belongs to for ever.
    pub fn book(&self, books: u16) -> u16 {
        assert!(books > 0, "there is a book");
        if books == 1 {
            return 0;
        }
        let hash = xxh3_64(joined(&self.programme, &self.member).as_bytes());
        (hash % u64::from(books)) as u16
    }
}

impl fmt::Display for WalletId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.programme, self.member)
    }
}

fn joined(first: &str, second: &str) -> String {
    let mut text = String::with_capacity(first.len() + 1 + second.len());
    text.push_str(first);
    text.push('\0');
    text.push_str(second);
    text
}

/// The hash of a command's key: the first 16 bytes of the SHA-256 of programme, source and text,
/// joined by zero bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u128);

impl Key {
    pub fn of(programme: &str, source: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(programme.as_bytes());
        hash.update([0]);
        hash.update(source.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());

        let digest = hash.finalize();
        let (first, _) = digest.split_first_chunk::<16>().expect("a digest has 32 bytes");
        Self::from_bytes(*first)
    }

    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A reference of a member's awards, by which they can be reversed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReferenceId {
    pub programme: Arc<str>,
    /// The member, a zero byte, and the reference.
    pub text: Arc<str>,
}

impl ReferenceId {
    pub fn of(programme: &Arc<str>, member: &str, reference: &str) -> Self {
        Self { programme: programme.clone(), text: joined(member, reference).into() }
    }

    /// What stands for the reference of an award without one: its key. No member begins with a
    /// zero byte.
    pub fn of_key(programme: &Arc<str>, key: Key) -> Self {
        Self { programme: programme.clone(), text: format!("\0{key}").into() }
    }
}

/// A budget of a programme, whose use is bounded over all books.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetId {
    pub programme: Arc<str>,
    pub name: Arc<str>,
}

impl BudgetId {
    pub fn new(programme: &Arc<str>, name: &Arc<str>) -> Self {
        Self { programme: programme.clone(), name: name.clone() }
    }

    /// Whether it counts what this member redeems, so that no entries of others use it. No name of
    /// a reward has a colon.
    pub fn is_of_member(&self, member: &str) -> bool {
        let rest = self.name.strip_prefix("reward:");
        let rest = rest.and_then(|rest| rest.strip_suffix(member)?.strip_suffix(':'));
        rest.is_some_and(|reward| !reward.contains(':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_books_stay_what_they_are() {
        // Stored in every ledger: a change of these would break all of them.
        assert_eq!(
            Key::of("grab-sg", "", "order-1").to_string(),
            "4fa3e1a64c06ad3065db22539b6aca65"
        );
        assert_eq!(WalletId::new("grab-sg", "bob").book(16), 9);
        assert_eq!(WalletId::new("grab-sg", "bob").book(1), 0);
    }

    #[test]
    fn budgets_of_a_member_differ_from_all_others() {
        let is_of = |name: &str, member: &str| {
            BudgetId::new(&"p".into(), &name.into()).is_of_member(member)
        };
        assert!(is_of("reward:coffee:bob", "bob") && is_of("reward:coffee:a:bob", "a:bob"));
        for (name, member) in [
            ("reward:coffee:a:bob", "bob"),
            ("reward:coffee", "coffee"),
            ("reward:coffee:bob", "ob"),
            ("partner:coffee:bob", "bob"),
        ] {
            assert!(!is_of(name, member), "{name} of {member}");
        }
    }

    #[test]
    fn a_key_depends_on_each_part() {
        let keys = [("a", "b", "c"), ("ab", "", "c"), ("a", "", "bc"), ("a", "bc", "")]
            .map(|(programme, source, text)| Key::of(programme, source, text));
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(number));
            assert_eq!(Key::from_bytes(key.to_bytes()), *key);
        }
    }
}
