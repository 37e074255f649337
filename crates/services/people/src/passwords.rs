//! Hashing passwords with Argon2id and verifying them.

mod weak;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::OnceLock;
use tokio::sync::Semaphore;

/// Shortest password, in characters.
pub const PASSWORD_CHARS_MIN: usize = 10;
/// Longest password, in bytes.
pub const PASSWORD_LEN_MAX: usize = 256;

/// Concurrent hashes: each takes a core and the memory below.
const HASHES_AT_ONCE_MAX: usize = 2;
/// Callers that may wait for a hash; further ones are refused.
const HASHES_WAITING_MAX: usize = 64;

/// The recommendation of OWASP for Argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Hashes passwords, a few at a time, off the threads that serve requests.
#[derive(Debug)]
pub struct Passwords {
    admitted: Semaphore,
    at_work: Semaphore,
}

/// More sign-ins are in progress than this process accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl Default for Passwords {
    fn default() -> Self {
        Self {
            admitted: Semaphore::new(HASHES_AT_ONCE_MAX + HASHES_WAITING_MAX),
            at_work: Semaphore::new(HASHES_AT_ONCE_MAX),
        }
    }
}

impl Passwords {
    /// The hash that is stored of a password, with its own salt.
    pub async fn hash(&self, password: &str) -> Result<String, Busy> {
        let password = password.to_owned();
        self.work(move || hash_now(&password)).await
    }

    /// Whether the password matches the stored hash. Without one, the same work is done, so that
    /// the time does not reveal whether the account exists.
    pub async fn is_right(&self, password: &str, stored: Option<&str>) -> Result<bool, Busy> {
        let password = password.to_owned();
        let stored = stored.filter(|stored| !stored.is_empty()).map(str::to_owned);
        self.work(move || {
            let is_right = verify_now(&password, stored.as_deref().unwrap_or_else(|| nobodys()));
            is_right && stored.is_some()
        })
        .await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let _admitted = self.admitted.try_acquire().map_err(|_| Busy)?;
        let _at_work = self.at_work.acquire().await.map_err(|_| Busy)?;
        tokio::task::spawn_blocking(work).await.map_err(|_| Busy)
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
        .expect("the parameters are within their bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash_now(password: &str) -> String {
    argon2()
        .hash_password(password.as_bytes())
        .expect("a password of bounded length can be hashed")
        .to_string()
}

/// The parameters are those stored with the hash.
fn verify_now(password: &str, stored: &str) -> bool {
    PasswordHash::new(stored)
        .is_ok_and(|stored| argon2().verify_password(password.as_bytes(), &stored).is_ok())
}

/// The hash of a password that no user has.
fn nobodys() -> &'static str {
    static NOBODYS: OnceLock<String> = OnceLock::new();
    NOBODYS.get_or_init(|| hash_now(&super::secrets::new_secret()))
}

/// What is wrong with a new password; `None` when it may be used.
pub fn problem_of(password: &str, name: &str) -> Option<String> {
    if password.chars().count() < PASSWORD_CHARS_MIN {
        return Some(format!(
            "Choose at least {PASSWORD_CHARS_MIN} characters; a few words in a row do well."
        ));
    }

    if password.len() > PASSWORD_LEN_MAX {
        return Some(format!("It has more than {PASSWORD_LEN_MAX} bytes. Choose a shorter one."));
    }

    if weak::has_name(password, name) {
        return Some("It contains your name. Choose words that nobody would guess.".to_owned());
    }
    let weakness = weak::weakness_of(password)?;
    Some(format!(
        "It is among the first that are tried: {weakness}. Choose words that nobody would guess."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_right_or_it_is_not() {
        let passwords = Passwords::default();
        let stored = passwords.hash("four words of rain").await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert_ne!(stored, passwords.hash("four words of rain").await.unwrap());
        assert_eq!(passwords.is_right("four words of rain", Some(&stored)).await, Ok(true));

        for (password, stored) in [
            ("four words of rai", Some(&*stored)),
            ("", Some(&*stored)),
            ("four words of rain", None),
            ("", Some("")),
            ("x", Some("no hash")),
        ] {
            assert_eq!(passwords.is_right(password, stored).await, Ok(false), "{password}");
        }
    }

    #[tokio::test]
    async fn too_many_at_once_are_asked_to_come_back() {
        let passwords = Passwords::default();
        let _all = passwords
            .admitted
            .acquire_many((HASHES_AT_ONCE_MAX + HASHES_WAITING_MAX) as u32)
            .await
            .unwrap();
        assert_eq!(passwords.hash("four words of rain").await, Err(Busy));
    }

    #[test]
    fn weak_passwords_are_refused() {
        let long = "ä ".repeat(PASSWORD_LEN_MAX);
        for weak in
            ["", "short", "aaaaaaaaaaaaaa", "xx ZOE xx rain", "1234567890", "password12", &long]
        {
            assert!(problem_of(weak, "Zoe").is_some(), "{weak}");
        }
        for fine in ["four words of rain", "ÄÖÜäöüßéè☔"] {
            assert_eq!(problem_of(fine, "Zoe"), None, "{fine}");
        }
    }
}
