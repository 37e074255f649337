//! API tokens: the principal of a request, and its scopes.
//!
//! A token is 32 random bytes, so its plain SHA-256 is enough to store: it cannot be inverted by
//! guessing. The configuration holds only the hash. The token of a request is hashed and compared
//! with every known hash in constant time.

mod issue;
mod made;
mod settings;

use crate::secrets::{self, hash_of, is_equal};
use crate::{Credential, Principal};
pub use issue::{NewToken, TokenRequest};
pub use made::MadeTokens;
use raingauge_core::access::{Scope, Scopes};
use raingauge_settings::settings;
use std::sync::Arc;

/// A token as the configuration holds it, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    pub sha256: [u8; 32],
    pub scopes: Scopes,
}

settings! {
    /// The tokens of a configuration, and whether one is required even without any.
    pub struct Auth in "auth" {
        /// API tokens, each with a name, the SHA-256 of the token and its scopes; without any, no
        /// token is asked for unless auth.required is set.
        tokens: Vec<Token> = tables();
        /// Whether a token is asked for while auth.tokens is empty, so that those made in the
        /// portal are the only ones.
        required: bool = switch(false);
    }
}

impl Auth {
    /// Whether callers need a token.
    pub fn is_asked(&self) -> bool {
        self.required || !self.tokens.is_empty()
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// 401.
    #[error("a token is needed; send it as `Authorization: Bearer rg_…`")]
    Missing,
    /// 401.
    #[error("the token is not known here; ask the operator of this server for one")]
    Unknown,
    /// 503.
    #[error(
        "the tokens of the portal cannot be checked, since its database is out of reach: try again later"
    )]
    Stale,
    /// 403.
    #[error("the token lacks the scope `{0}`; ask the operator of this server for one that has it")]
    Scope(Scope),
}

/// All known tokens.
pub struct Tokens {
    /// Those of the configuration.
    known: Vec<([u8; 32], Principal)>,
    /// Those made in the portal.
    made: Option<Arc<MadeTokens>>,
    is_required: bool,
    anonymous: Principal,
}

impl Tokens {
    /// Without any token every caller may do everything; the settings allow that on loopback only.
    pub fn new(auth: &Auth) -> Self {
        let principal =
            |token: &Token| Principal::of_token(token.name.as_str().into(), token.scopes);
        Self {
            known: auth.tokens.iter().map(|token| (token.sha256, principal(token))).collect(),
            made: None,
            is_required: auth.is_asked(),
            anonymous: Principal::anonymous(None),
        }
    }

    /// Adds the tokens made in the portal. They open what is closed, and close nothing that is
    /// open.
    pub fn with_made(self, made: Arc<MadeTokens>) -> Self {
        Self { made: Some(made), ..self }
    }

    /// Whether callers need a token. While they do not, only requests of this machine may be
    /// accepted.
    pub const fn is_asked(&self) -> bool {
        self.is_required
    }

    /// Returns the principal of the header `Authorization`, when it has the scope `needed`.
    pub fn check(&self, header: Option<&str>, needed: Scope) -> Result<Principal, Denial> {
        let hash = header.and_then(bearer).map(hash_of);
        if !self.is_required {
            // A token that is not required still identifies its holder, and restricts nothing.
            let holder = hash.and_then(|hash| self.made.as_ref()?.find(&hash));
            let everything = || [Scope::Admin].into_iter().collect();
            return Ok(match holder {
                Some(holder) => Principal { credential: Credential::Token(everything()), ..holder },
                None => self.anonymous.clone(),
            });
        }

        let principal = self.holder(hash.ok_or(Denial::Missing)?)?;
        if principal.allows(needed) { Ok(principal) } else { Err(Denial::Scope(needed)) }
    }

    /// Returns the principal of a token, whatever its scopes: for doors on which a caller proves
    /// who it is once, and asks for things later. Where no token is asked for, an unknown one is
    /// that of an anonymous caller.
    pub fn principal(&self, token: &str) -> Result<Principal, Denial> {
        if self.is_required {
            return self.holder(hash_of(token));
        }
        self.check(Some(&format!("Bearer {token}")), Scope::Admin)
    }

    fn holder(&self, hash: [u8; 32]) -> Result<Principal, Denial> {
        // Every hash is compared, so that the time reveals nothing about near matches.
        let mut found = None;
        for (known, principal) in &self.known {
            if is_equal(known, &hash) {
                found = Some(principal.clone());
            }
        }

        let made = self.made.as_ref().and_then(|made| made.find(&hash));
        let is_stale = || self.made.as_ref().is_some_and(|made| made.is_stale());
        let unknown = || if is_stale() { Denial::Stale } else { Denial::Unknown };
        found.or(made).ok_or_else(unknown)
    }
}

/// Makes a token. Returns the secret, for its holder, and its hash in hexadecimal, for the
/// configuration.
pub fn new_token() -> (String, String) {
    let token = secrets::new_token();
    let hash = hex::encode(hash_of(&token));
    (token, hash)
}

/// The token of a header as in RFC 6750; the case of the scheme does not matter (RFC 9110, section
/// 11.1).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::TOKEN_PREFIX;
    use raingauge_memory as memory;
    use raingauge_ports::clock::ManualClock;
    use raingauge_ports::contract::people as contract;
    use raingauge_ports::people::{ApiToken, Tokens as _};
    use sha2::{Digest as _, Sha256};

    fn token(name: &str, scopes: &[Scope]) -> (String, Token) {
        let (secret, hash) = new_token();
        let mut sha256 = [0; 32];
        hex::decode_to_slice(hash, &mut sha256).unwrap();
        let mut set = Scopes::default();
        scopes.iter().for_each(|scope| set.insert(*scope));
        (secret, Token { name: name.to_owned(), sha256, scopes: set })
    }

    fn known(tokens: &[Token]) -> Tokens {
        Tokens::new(&Auth { tokens: tokens.to_vec(), required: false })
    }

    #[tokio::test]
    async fn tokens_of_the_portal_open_what_is_closed() {
        let people = Arc::new(memory::People::default());
        let made =
            Arc::new(MadeTokens::new(Arc::clone(&people) as _, Arc::new(ManualClock::at_s(7))));
        let tokens = |required| {
            Tokens::new(&Auth { tokens: Vec::new(), required }).with_made(Arc::clone(&made))
        };
        let open = tokens(false);
        let closed = tokens(true);

        let (secret, shop) = token("shop", &[Scope::CountsRead]);
        let header = format!("Bearer {secret}");
        let ask = |tokens: &Tokens| {
            tokens
                .check(Some(&header), Scope::CountsRead)
                .map(|principal| principal.name.to_string())
        };

        assert_eq!((ask(&open), ask(&closed)), (Ok("anonymous".to_owned()), Err(Denial::Unknown)));
        let api_token =
            ApiToken { hash: shop.sha256, scopes: shop.scopes, ..contract::token(1, "shop") };
        people.add_token(api_token).await.unwrap();
        made.refresh().await.unwrap();
        assert_eq!((ask(&open), ask(&closed)), (Ok("shop".to_owned()), Ok("shop".to_owned())));

        // The open door stays open, to every caller and for everything.
        assert_eq!(&*open.check(None, Scope::Admin).unwrap().name, "anonymous");
        assert!(open.check(Some(&header), Scope::Admin).is_ok());
        assert_eq!(closed.check(Some(&header), Scope::Admin), Err(Denial::Scope(Scope::Admin)));
        assert_eq!(closed.check(None, Scope::CountsRead), Err(Denial::Missing));
    }

    #[test]
    fn without_tokens_everybody_may_do_everything() {
        let tokens = known(&[]);
        for scope in Scope::ALL {
            assert_eq!(&*tokens.check(None, scope).unwrap().name, "anonymous");
            assert_eq!(&*tokens.check(Some("Bearer whatever"), scope).unwrap().name, "anonymous");
        }
    }

    #[test]
    fn a_token_is_good_for_its_scopes_alone() {
        let (writer_secret, writer) = token("writer", &[Scope::EventsWrite]);
        let (reader_secret, reader) = token("reader", &[Scope::CountsRead, Scope::CountersWrite]);
        let tokens = known(&[writer, reader]);
        let check = |secret: &str, scope| tokens.check(Some(&format!("Bearer {secret}")), scope);

        assert_eq!(&*check(&writer_secret, Scope::EventsWrite).unwrap().name, "writer");
        assert_eq!(check(&writer_secret, Scope::CountsRead), Err(Denial::Scope(Scope::CountsRead)));
        assert_eq!(check(&writer_secret, Scope::Admin), Err(Denial::Scope(Scope::Admin)));
        assert_eq!(&*check(&reader_secret, Scope::CountsRead).unwrap().name, "reader");
        assert_eq!(&*check(&reader_secret, Scope::CountersWrite).unwrap().name, "reader");

        assert_eq!(
            check(&reader_secret, Scope::EventsWrite),
            Err(Denial::Scope(Scope::EventsWrite))
        );
    }

    #[test]
    fn a_holder_is_known_whatever_its_scopes() {
        let (secret, writer) = token("writer", &[Scope::EventsWrite]);
        let tokens = known(&[writer]);
        let principal = tokens.principal(&secret).unwrap();
        assert_eq!(&*principal.name, "writer");
        assert!(principal.allows(Scope::EventsWrite) && !principal.allows(Scope::ObjectsRead));
        assert_eq!(tokens.principal("rg_other"), Err(Denial::Unknown));

        let open = known(&[]).principal("rg_other").unwrap();
        assert!(open.allows(Scope::ObjectsWrite));
    }

    #[test]
    fn admin_is_enough_for_every_scope() {
        let (secret, admin) = token("root", &[Scope::Admin]);
        let tokens = known(&[admin]);
        for scope in Scope::ALL {
            assert_eq!(
                &*tokens.check(Some(&format!("bearer  {secret} ")), scope).unwrap().name,
                "root"
            );
        }
    }

    #[test]
    fn a_missing_token_is_distinguished_from_an_unknown_one() {
        let (secret, one) = token("one", &[Scope::Admin]);
        let hash = hex::encode(one.sha256);
        let tokens = known(&[one]);
        let check = |header: Option<&str>| tokens.check(header, Scope::CountsRead);

        for header in [
            None,
            Some(""),
            Some("Bearer"),
            Some("Bearer "),
            Some("Basic cm9vdDpyb290"),
            Some(&*secret),
        ] {
            assert_eq!(check(header), Err(Denial::Missing), "{header:?}");
        }

        let (other, _) = new_token();

        // The hash in the configuration opens nothing: reading the file yields no token.
        for unknown in [other.as_str(), &hash, &secret[..secret.len() - 1], &secret.to_uppercase()]
        {
            assert_eq!(check(Some(&format!("Bearer {unknown}"))), Err(Denial::Unknown));
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
