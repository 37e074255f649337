//! Secrets of 32 random bytes: session ids, one-time links, API tokens. Their SHA-256 is stored,
//! which suffices for values that cannot be guessed.

use raingauge_ports::people::Hash;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Prefix of every API token, by which people and secret scanners recognize one.
pub const TOKEN_PREFIX: &str = "rg_";
/// Length of a secret, in digits.
const SECRET_LEN: usize = 64;

/// 64 random hexadecimal digits.
pub fn new_secret() -> String {
    let secret: [u8; 32] = rand::random();
    hex::encode(secret)
}

/// A new API token.
pub fn new_token() -> String {
    format!("{TOKEN_PREFIX}{}", new_secret())
}

/// The hash that is stored of a secret.
pub fn hash_of(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}

/// The hash of a secret from a request; `None` when the text cannot be a secret.
pub fn hash_of_sent(secret: &str) -> Option<Hash> {
    let is_one = secret.len() == SECRET_LEN && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| hash_of(secret))
}

/// Compares in constant time; only a different length is seen earlier.
pub fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// The token in the forms of a session. It is derived from the session's secret, which cannot be
/// derived from it.
pub fn csrf_of(session: &str) -> String {
    hex::encode(Sha256::digest(format!("raingauge form of {session}")))
}

/// The token of forms as one page shows it, under a salt of its own. A compressed page would
/// otherwise give the token away by its length to someone who chooses a part of its text, since
/// the token would stay the same from page to page (BREACH, <https://breachattack.com>).
pub fn masked(token: &str) -> String {
    let salt: Hash = rand::random();
    let token = bytes_of(token).expect("a token of forms has 64 hexadecimal digits");
    hex::encode(salt) + &hex::encode(combined(&token, &salt))
}

/// Whether a text is a masked form of this token.
pub fn is_masked(sent: &str, token: &str) -> bool {
    let Some((salt, masked)) = sent.split_at_checked(SECRET_LEN) else {
        return false;
    };
    let [Some(token), Some(salt), Some(masked)] = [token, salt, masked].map(bytes_of) else {
        return false;
    };
    is_equal(&combined(&masked, &salt), &token)
}

fn bytes_of(digits: &str) -> Option<Hash> {
    let mut bytes = Hash::default();
    hex::decode_to_slice(digits, &mut bytes).ok().map(|()| bytes)
}

fn combined(one: &Hash, other: &Hash) -> Hash {
    std::array::from_fn(|place| one[place] ^ other[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_token_is_another_text_each_time() {
        let token = csrf_of("one");
        let (first, second) = (masked(&token), masked(&token));
        assert_ne!(first, second);
        assert!(is_masked(&first, &token) && is_masked(&second, &token));
        assert!(!first.contains(&token) && !is_masked(&first, &csrf_of("other")));

        let spoiled = format!("{}{}", &first[..SECRET_LEN], &second[SECRET_LEN..]);
        for wrong in ["", "abc", &token, &first[1..], &format!("{first}0"), &spoiled, "é"] {
            assert!(!is_masked(wrong, &token), "{wrong}");
        }
    }

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
