//! API tokens: who asks, and what they may do.
//!
//! A token is 32 random bytes, so its plain SHA-256 is enough to keep: nobody can guess their way back from it. Only
//! the hash is in the configuration; what a request carries is hashed and compared with every known hash in a time
//! that does not depend on where they differ.

use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

/// What every token starts with, so that people and secret scanners recognise one.
pub const TOKEN_PREFIX: &str = "rg_";

/// What a token may be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Send events and load buckets.
    EventsWrite,
    /// Ask for counts, series and keys, and read counters.
    CountsRead,
    /// Create, change and archive counters.
    CountersWrite,
    /// Everything, now and later.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::EventsWrite, Self::CountsRead, Self::CountersWrite, Self::Admin];

    pub const fn name(self) -> &'static str {
        match self {
            Self::EventsWrite => "events:write",
            Self::CountsRead => "counts:read",
            Self::CountersWrite => "counters:write",
            Self::Admin => "admin",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    pub fn insert(&mut self, scope: Scope) {
        self.0 |= 1 << scope as u8;
    }

    /// Whether these scopes are enough for that one; `admin` is enough for all.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8 | 1 << Scope::Admin as u8) != 0
    }
}

/// A token as the configuration knows it: without the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    pub sha256: [u8; 32],
    pub scopes: Scopes,
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The name of the token, or `anonymous`; logs and the versions of a counter carry it.
    pub name: Arc<str>,
    pub scopes: Scopes,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// 401.
    #[error("a token is needed; send it as `Authorization: Bearer rg_…`")]
    Missing,
    /// 401.
    #[error("the token is not known here; ask the operator of this server for one")]
    Unknown,
    /// 403.
    #[error("the token lacks the scope `{0}`; ask the operator of this server for one that has it")]
    Scope(Scope),
}

/// Every token that is known.
#[derive(Clone, Debug)]
pub struct Tokens {
    known: Vec<([u8; 32], Who)>,
    anonymous: Who,
}

impl Tokens {
    /// Without any token everybody may do everything; the settings allow that on loopback only.
    pub fn new(tokens: &[Token]) -> Self {
        let who = |token: &Token| Who { name: token.name.as_str().into(), scopes: token.scopes };
        let mut scopes = Scopes::default();
        scopes.insert(Scope::Admin);
        Self {
            known: tokens.iter().map(|token| (token.sha256, who(token))).collect(),
            anonymous: Who { name: "anonymous".into(), scopes },
        }
    }

    /// Answers who sent the header `Authorization`, where they may do what `needed` says.
    pub fn check(&self, header: Option<&str>, needed: Scope) -> Result<Who, Denied> {
        if self.known.is_empty() {
            return Ok(self.anonymous.clone());
        }
        let token = header.and_then(bearer).ok_or(Denied::Missing)?;
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Every hash is compared, to the end, so that the time tells nothing about which one was near.
        let mut found = None;
        for (known, who) in &self.known {
            if is_equal(known, &hash) {
                found = Some(who);
            }
        }
        let who = found.ok_or(Denied::Unknown)?;
        match who.scopes.allow(needed) {
            true => Ok(who.clone()),
            false => Err(Denied::Scope(needed)),
        }
    }
}

/// Makes a token. The first text is the secret, for its holder; the second its hash in hexadecimal, for the
/// configuration.
pub fn new_token() -> (String, String) {
    let mut secret = [0; 32];
    rand::rng().fill_bytes(&mut secret);
    let token = format!("{TOKEN_PREFIX}{}", hex::encode(secret));
    let hash = hex::encode(Sha256::digest(token.as_bytes()));
    (token, hash)
}

/// The token of a header in the form of RFC 6750; the scheme's case does not matter (RFC 9110, section 11.1).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Compares all 32 bytes whatever they are; `black_box` keeps the compiler from leaving early.
fn is_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (one, other)| black_box(difference | (one ^ other)));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, scopes: &[Scope]) -> (String, Token) {
        let (secret, hash) = new_token();
        let mut sha256 = [0; 32];
        hex::decode_to_slice(hash, &mut sha256).unwrap();
        let mut set = Scopes::default();
        scopes.iter().for_each(|scope| set.insert(*scope));
        (secret, Token { name: name.to_owned(), sha256, scopes: set })
    }

    #[test]
    fn without_tokens_everybody_may_do_everything() {
        let tokens = Tokens::new(&[]);
        for scope in Scope::ALL {
            assert_eq!(&*tokens.check(None, scope).unwrap().name, "anonymous");
            assert_eq!(&*tokens.check(Some("Bearer whatever"), scope).unwrap().name, "anonymous");
        }
    }

    #[test]
    fn a_token_is_good_for_its_scopes_alone() {
        let (writer_secret, writer) = token("writer", &[Scope::EventsWrite]);
        let (reader_secret, reader) = token("reader", &[Scope::CountsRead, Scope::CountersWrite]);
        let tokens = Tokens::new(&[writer, reader]);
        let check = |secret: &str, scope| tokens.check(Some(&format!("Bearer {secret}")), scope);

        assert_eq!(&*check(&writer_secret, Scope::EventsWrite).unwrap().name, "writer");
        assert_eq!(check(&writer_secret, Scope::CountsRead), Err(Denied::Scope(Scope::CountsRead)));
        assert_eq!(check(&writer_secret, Scope::Admin), Err(Denied::Scope(Scope::Admin)));
        assert_eq!(&*check(&reader_secret, Scope::CountsRead).unwrap().name, "reader");
        assert_eq!(&*check(&reader_secret, Scope::CountersWrite).unwrap().name, "reader");
        assert_eq!(check(&reader_secret, Scope::EventsWrite), Err(Denied::Scope(Scope::EventsWrite)));
    }

    #[test]
    fn admin_is_enough_for_every_scope() {
        let (secret, admin) = token("root", &[Scope::Admin]);
        let tokens = Tokens::new(&[admin]);
        for scope in Scope::ALL {
            assert_eq!(&*tokens.check(Some(&format!("bearer  {secret} ")), scope).unwrap().name, "root");
        }
    }

    #[test]
    fn a_missing_token_is_told_from_an_unknown_one() {
        let (secret, one) = token("one", &[Scope::Admin]);
        let hash = hex::encode(one.sha256);
        let tokens = Tokens::new(&[one]);
        let check = |header: Option<&str>| tokens.check(header, Scope::CountsRead);
        for header in [None, Some(""), Some("Bearer"), Some("Bearer "), Some("Basic cm9vdDpyb290"), Some(&*secret)] {
            assert_eq!(check(header), Err(Denied::Missing), "{header:?}");
        }
        let (other, _) = new_token();
        // The hash in the configuration opens nothing: whoever reads the file has no token.
        for unknown in [other.as_str(), &hash, &secret[..secret.len() - 1], &secret.to_uppercase()] {
            assert_eq!(check(Some(&format!("Bearer {unknown}"))), Err(Denied::Unknown));
        }
    }

    #[test]
    fn a_new_token_is_recognisable_and_its_hash_is_plain_sha_256() {
        let (token, hash) = new_token();
        assert!(token.starts_with(TOKEN_PREFIX));
        assert_eq!(token.len(), 67);
        assert_eq!(hash, hex::encode(Sha256::digest(&token)));
        assert_ne!(token, new_token().0);
        let known = hex::encode(Sha256::digest("abc"));
        assert_eq!(known, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn every_byte_of_a_hash_is_compared() {
        let hash = [7; 32];
        assert!(is_equal(&hash, &hash));
        for byte in 0..32 {
            let mut other = hash;
            other[byte] ^= 1;
            assert!(!is_equal(&hash, &other), "byte {byte}");
        }
    }
}
