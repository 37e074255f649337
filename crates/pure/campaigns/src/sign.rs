//! Signatures of webhooks, as Standard Webhooks defines them
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
//!
//! ```text
//!   webhook-id: act_3607…          webhook-timestamp: 1727146800
//!   webhook-signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body"> v1,<by the old secret>
//! ```

use crate::limits::{SECRET_LEN_MAX, SECRET_LEN_MIN, WEBHOOK_AGE_S_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The key of a destination. It is written `whsec_` and base64, and shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

/// A text that is no secret. It does not repeat the text, which may be most of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is `whsec_` and the base64 of {SECRET_LEN_MIN} to {SECRET_LEN_MAX} random bytes")]
pub struct Malformed;

impl Secret {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let text = text.trim_end();
        let encoded = text.strip_prefix("whsec_").ok_or(Malformed)?;
        // Longest encoding of as many bytes.
        if encoded.len() > SECRET_LEN_MAX.div_ceil(3) * 4 {
            return Err(Malformed);
        }

        let key = STANDARD.decode(encoded).map_err(|_| Malformed)?;
        let is_bounded = (SECRET_LEN_MIN..=SECRET_LEN_MAX).contains(&key.len());
        if is_bounded { Ok(Self(key.into())) } else { Err(Malformed) }
    }

    fn sign(&self, id: &str, timestamp_s: i64, body: &[u8]) -> String {
        let mac = self.mac(id, timestamp_s, body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }

    fn mac(&self, id: &str, timestamp_s: i64, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0)
            .expect("a key of any length is taken");
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// The header `webhook-signature` of a body: a signature by each secret, of which there are two
/// while one replaces the other. A receiver accepts any of them.
pub fn signature(secrets: &[Secret], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let signatures = secrets.iter().map(|secret| secret.sign(id, timestamp_s, body));
    signatures.collect::<Vec<_>>().join(" ")
}

/// The headers of a request that is verified; empty where they are missing.
#[derive(Clone, Copy, Debug)]
pub struct SignedHeaders<'h> {
    pub id: &'h str,
    pub timestamp: &'h str,
    pub signature: &'h str,
}

/// Why a request is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    #[error("it has no webhook-id, webhook-timestamp or webhook-signature")]
    Unsigned,
    #[error("it was signed {0} s away from now, and {WEBHOOK_AGE_S_MAX} s are allowed")]
    Stale(u64),
    #[error("no signature fits the secret and the body")]
    Forged,
}

/// Verifies a request as a receiver does: one of its signatures has to be by one of the secrets,
/// and its time within five minutes of `now_s`.
pub fn verify(
    secrets: &[Secret],
    headers: SignedHeaders<'_>,
    body: &[u8],
    now_s: i64,
) -> Result<(), Unverified> {
    let SignedHeaders { id, timestamp, signature } = headers;
    let timestamp_s: i64 = timestamp.parse().map_err(|_| Unverified::Unsigned)?;
    if id.is_empty() || signature.is_empty() {
        return Err(Unverified::Unsigned);
    }

    let signatures = signature.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    let signatures: Vec<Vec<u8>> =
        signatures.filter_map(|encoded| STANDARD.decode(encoded).ok()).collect();
    // The comparison takes the same time wherever they differ.
    let is_by = |secret: &Secret| {
        let mac = secret.mac(id, timestamp_s, body);
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    };
    if !secrets.iter().any(is_by) {
        return Err(Unverified::Forged);
    }
    match now_s.abs_diff(timestamp_s) {
        0..=WEBHOOK_AGE_S_MAX => Ok(()),
        away_s => Err(Unverified::Stale(away_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The vector of Standard Webhooks.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let secret = Secret::parse(SECRET).unwrap();
        let sign = |secrets: &[Secret]| {
            let body = br#"{"test": 2432232314}"#;
            signature(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
        };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(std::slice::from_ref(&secret)), expected);

        let other = Secret::parse(&format!("whsec_{}", STANDARD.encode([7; 32]))).unwrap();
        let both = sign(&[other.clone(), secret]);
        assert_eq!(both, format!("{} {expected}", sign(&[other])));
    }

    #[test]
    fn a_request_is_verified_by_either_secret() {
        let old = Secret::parse(SECRET).unwrap();
        let new = Secret::parse(&format!("whsec_{}", STANDARD.encode([7; 32]))).unwrap();
        let signed = signature(&[new.clone(), old.clone()], "act_1", 1_000, b"{}");
        let headers = SignedHeaders { id: "act_1", timestamp: "1000", signature: &signed };
        for secret in [&old, &new] {
            let secret = std::slice::from_ref(secret);
            assert_eq!(verify(secret, headers, b"{}", 1_300), Ok(()));
            assert_eq!(verify(secret, headers, b"{}", 1_301), Err(Unverified::Stale(301)));
            assert_eq!(verify(secret, headers, b"{ }", 1_000), Err(Unverified::Forged));
            let other = SignedHeaders { id: "act_2", ..headers };
            assert_eq!(verify(secret, other, b"{}", 1_000), Err(Unverified::Forged));
            let later = SignedHeaders { timestamp: "1001", ..headers };
            assert_eq!(verify(secret, later, b"{}", 1_001), Err(Unverified::Forged));
        }

        let other = Secret::parse(&format!("whsec_{}", STANDARD.encode([8; 32]))).unwrap();
        assert_eq!(verify(&[other], headers, b"{}", 1_000), Err(Unverified::Forged));
        assert_eq!(verify(&[], headers, b"{}", 1_000), Err(Unverified::Forged));
        for without in [
            SignedHeaders { id: "", ..headers },
            SignedHeaders { timestamp: "", ..headers },
            SignedHeaders { signature: "", ..headers },
        ] {
            let verified = verify(std::slice::from_ref(&old), without, b"{}", 1_000);
            assert_eq!(verified, Err(Unverified::Unsigned));
        }
        for wrong in ["v1,", "v1,*", "v2,AAAA", " ", "v1"] {
            let headers = SignedHeaders { signature: wrong, ..headers };
            let verified = verify(std::slice::from_ref(&old), headers, b"{}", 1_000);
            assert_eq!(verified, Err(Unverified::Forged), "{wrong:?}");
        }
    }

    #[test]
    fn a_secret_is_neither_short_nor_shown() {
        let of_len = |len| Secret::parse(&format!("whsec_{}", STANDARD.encode(vec![7; len])));
        assert!(of_len(SECRET_LEN_MIN).is_ok());
        assert!(of_len(SECRET_LEN_MAX).is_ok());
        for len in [0, SECRET_LEN_MIN - 1, SECRET_LEN_MAX + 1, 100_000] {
            assert_eq!(of_len(len), Err(Malformed), "{len} bytes");
        }
        assert_eq!(Secret::parse(&SECRET[6..]), Err(Malformed), "without whsec_");
        assert_eq!(Secret::parse("whsec_MfKQ*"), Err(Malformed));

        // A file ends in a newline.
        let secret = Secret::parse(&format!("{SECRET}\n")).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
