//! The way to an OpenID provider and back, as the browser carries it.
//!
//! ```text
//!   cookie   SECRET . BEGUN . NEXT
//!               │
//!               ├─ SHA-256 ─▶ state      goes to the provider and back: the browser is the same
//!               ├─ SHA-256 ─▶ nonce      comes back signed: the token was made for this trip
//!               └─ SHA-256 ─▶ verifier   goes to the provider with the code of this trip
//! ```
//!
//! All three follow from the cookie, and it does not follow from them. So nothing is kept on the
//! server, any portal can take the browser back, and nobody fills a memory with trips that never
//! end.

use super::secrets::{hash_of_sent, new_secret};
use raingauge_ports::identity::Ticket;
use sha2::{Digest as _, Sha256};

/// Time limit of a sign-in at the provider.
pub const TRIP_S: i64 = 600;
/// Longest encoded path to continue at; a longer one is replaced by the first page. Browsers keep 4
/// KiB.
const NEXT_LEN_MAX: usize = 3_000;

/// A sign-in at the provider that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trip {
    cookie: String,
    /// The path to continue at. It has been with the browser, and is checked again before use.
    pub next: String,
}

impl Trip {
    pub fn begin(next: &str, now_s: i64) -> Self {
        let encoded: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let (next, encoded) =
            if encoded.len() <= NEXT_LEN_MAX { (next, encoded) } else { ("/", "%2F".to_owned()) };
        Self { cookie: format!("{}.{now_s}.{encoded}", new_secret()), next: next.to_owned() }
    }

    /// The trip of a returning browser, when its cookie belongs to this state and is still valid.
    pub fn resume(cookie: &str, state: &str, now_s: i64) -> Option<Self> {
        Self::read(cookie, now_s).filter(|trip| trip.ticket().state == state)
    }

    /// The trip of a cookie; `None` when it is malformed or expired.
    fn read(cookie: &str, now_s: i64) -> Option<Self> {
        let mut parts = cookie.splitn(3, '.');
        let secret = parts.next()?;
        let begun = parts.next()?;
        let encoded = parts.next()?;
        hash_of_sent(secret)?;
        let begun_s: i64 = begun.parse().ok()?;
        let pair = format!("next={encoded}");
        let next =
            form_urlencoded::parse(pair.as_bytes()).next().map(|(_, next)| next.into_owned())?;
        let is_under_way = (begun_s..begun_s.saturating_add(TRIP_S)).contains(&now_s);
        is_under_way.then(|| Self { cookie: cookie.to_owned(), next })
    }

    /// The cookie that the browser keeps.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    pub fn ticket(&self) -> Ticket {
        let of = |what: &str| {
            hex::encode(Sha256::digest(format!("raingauge {what} of {}", self.cookie)))
        };
        Ticket { state: of("state"), nonce: of("nonce"), verifier: of("verifier") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_727_215_200;

    #[test]
    fn a_trip_comes_back_within_its_time() {
        for next in ["/", "/audit?who=zo%C3%AB&x=a;b,c.d#\"'", "/query?key=a b"] {
            let trip = Trip::begin(next, NOW_S);
            assert!(
                trip.cookie()
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".%+-_*".contains(&byte))
            );

            for now_s in [NOW_S, NOW_S + TRIP_S - 1] {
                assert_eq!(Trip::read(trip.cookie(), now_s), Some(trip.clone()));
            }

            for now_s in [NOW_S - 1, NOW_S + TRIP_S] {
                assert_eq!(Trip::read(trip.cookie(), now_s), None);
            }
        }

        let long = format!("/query?key={}", "é".repeat(1_000));
        assert_eq!(Trip::begin(&long, NOW_S).next, "/");
    }

    #[test]
    fn what_is_changed_has_another_ticket() {
        let trip = Trip::begin("/", NOW_S);
        let Ticket { state, nonce, verifier } = trip.ticket();
        assert!([&nonce, &verifier].iter().all(|other| **other != state) && nonce != verifier);
        assert!(!trip.cookie().contains(&state) && state.len() == 64);
        let longer = trip.cookie().replace(&format!(".{NOW_S}."), &format!(".{}.", NOW_S + 1));
        let elsewhere = format!("{}%2Fevil", trip.cookie());
        for changed in [longer, elsewhere] {
            assert!(Trip::read(&changed, NOW_S + 1).unwrap().ticket() != trip.ticket());
        }
    }

    #[test]
    fn what_is_no_trip_is_not_read() {
        let secret = new_secret();
        let far = i64::MAX;

        for wrong in [
            "",
            ".",
            "a.1.b",
            &secret,
            &format!("{secret}.1"),
            &format!("{secret}.x.%2F"),
            &format!("{secret}.{far}."),
        ] {
            assert_eq!(Trip::read(wrong, 1), None, "{wrong}");
        }
    }
}
