//! Known browsers: a mark that a browser keeps after its user signed in.
//!
//! The mark opens nothing. It separates the attempts of a user from those of strangers, so that
//! guessing a password does not keep its owner out. It consists of a nonce and an authentication
//! code of the nonce, keyed by the stored password hash: every portal can check it, nothing is
//! stored, and a new password invalidates all marks.

use super::secrets::is_equal;
use raingauge_ports::people::User;
use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of a nonce and of a mark.
const NONCE_LEN: usize = 32;
const MARK_LEN: usize = NONCE_LEN + 64;

/// A new mark for a browser of this user; `None` without a password to guess.
pub fn mark_of(user: &User) -> Option<String> {
    let nonce = hex::encode(rand::random::<[u8; NONCE_LEN / 2]>());
    (!user.password.is_empty()).then(|| format!("{nonce}{}", code(&nonce, user)))
}

/// The nonce of a mark, when the mark belongs to this user.
pub fn nonce_of<'a>(mark: &'a str, user: &User) -> Option<&'a str> {
    let is_mark = mark.len() == MARK_LEN && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (nonce, sent) = is_mark.then(|| mark.split_at(NONCE_LEN))?;
    let is_own =
        !user.password.is_empty() && is_equal(code(nonce, user).as_bytes(), sent.as_bytes());
    is_own.then_some(nonce)
}

/// Both digests have a fixed length, so that nothing can be appended to the hashed text.
fn code(nonce: &str, user: &User) -> String {
    let key = Sha256::digest(format!("raingauge browser of {} {}", user.id, user.password));
    let inner = Sha256::new().chain_update(key).chain_update(nonce).finalize();
    hex::encode(Sha256::new().chain_update(key).chain_update(inner).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::access::Role;

    fn user(id: i64, password: &str) -> User {
        let [name, email, openid] = ["zoe", "", ""].map(str::to_owned);
        let role = Role::Admin;
        let password = password.to_owned();

        User {
            id,
            name,
            email,
            role,
            password,
            openid,
            created_at: 0,
            signed_in_at: None,
            disabled_at: None,
        }
    }

    #[test]
    fn a_mark_is_good_for_one_person_and_one_password() {
        let zoe = user(1, "$argon2id$one");
        let mark = mark_of(&zoe).unwrap();
        assert_eq!(nonce_of(&mark, &zoe), Some(&mark[..NONCE_LEN]));
        assert_ne!(mark_of(&zoe), Some(mark.clone()));

        for other in [user(2, "$argon2id$one"), user(1, "$argon2id$two"), user(1, "")] {
            assert_eq!(nonce_of(&mark, &other), None);
        }
        let swapped = format!("{}{}", "0".repeat(NONCE_LEN), &mark[NONCE_LEN..]);
        for wrong in ["", &mark[1..], &swapped, &"é".repeat(MARK_LEN / 2)] {
            assert_eq!(nonce_of(wrong, &zoe), None, "{wrong}");
        }
        assert_eq!(mark_of(&user(1, "")), None);
    }
}
