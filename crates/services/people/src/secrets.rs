//! Secrets of 32 random bytes: ids of sessions, one-time links, API tokens. What is stored is their
//! SHA-256, which is enough for what nobody can guess.

use raingauge_ports::people::Hash;
use sha2::{Digest as _, Sha256};
use std::hint::black_box;

/// What every API token starts with, so that people and secret scanners recognise one.
pub const TOKEN_PREFIX: &str = "rg_";
/// Digits of a secret.
const SECRET_LEN: usize = 64;

/// 64 hexadecimal digits that nobody can guess.
pub fn new_secret() -> String {
    let secret: [u8; 32] = rand::random();
    hex::encode(secret)
}

/// A new API token, for its holder alone.
pub fn new_token() -> String {
    format!("{TOKEN_PREFIX}{}", new_secret())
}

/// What is stored of a secret.
pub fn hash_of(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}

/// What is stored of a secret that somebody sends; none when it does not even look like one.
pub fn hash_of_sent(secret: &str) -> Option<Hash> {
    let is_one = secret.len() == SECRET_LEN && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| hash_of(secret))
}

/// Compares in a time that does not depend on where they differ; `black_box` keeps the compiler
/// from leaving early.
pub fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences =
        one.iter().zip(other).fold(0, |found, (one, other)| black_box(found | (one ^ other)));
    one.len() == other.len() && differences == 0
}

/// What the forms of a session carry. It follows from the secret of the session, and that does not
/// follow from it.
pub fn csrf_of(session: &str) -> String {
    hex::encode(Sha256::digest(format!("raingauge form of {session}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_hash_alone() {
        let (one, other) = (new_secret(), new_secret());
        assert_ne!(one, other);
        assert_eq!(hash_of_sent(&one), Some(hash_of(&one)));
        assert_ne!(hash_of(&one), hash_of(&other));
        for wrong in ["", "abc", &one[1..], &format!("{one}0"), &"x".repeat(64), &"é".repeat(32)] {
            assert_eq!(hash_of_sent(wrong), None, "{wrong}");
        }
        assert_ne!(csrf_of(&one), csrf_of(&other));
        assert!(!csrf_of(&one).contains(&one));
    }
}
