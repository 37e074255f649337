//! Signatures of control entries, and which entries are obeyed.
//!
//! ```text
//! raingauge-signature: v1 <sent, ms since 1970> <nonce> <HMAC-SHA256>
//!
//! HMAC over ┌──────────────────────┬───────┬───────────┬─────────┬───────┬─────────┐
//!           │ raingauge-control-v1 │ epoch │ partition │ sent ms │ nonce │ payload │
//!           └──────────────────────┴───────┴───────────┴─────────┴───────┴─────────┘
//! ```
//!
//! Nonce and HMAC are hexadecimal digits, numbers little-endian.
//!
//! The decision on a message is a function of the message, its append time and the options. A
//! signed entry has an identity and a time limit, so a copy of it in the same partition is either a
//! repetition or too old.

use crate::options::Options;
use hmac::{Hmac, KeyInit, Mac};
use raingauge_core::code::{Code, Refusal};
use raingauge_ports::clock::{Clock, SystemClock};
use raingauge_ports::record::Identity;
use sha2::Sha256;

/// The header with a control entry's signature.
pub const SIGNATURE: &str = "raingauge-signature";

const VERSION: &str = "v1";
const DOMAIN: &[u8] = b"raingauge-control-v1";
const NONCE_LEN: usize = 16;
/// Longest time between the signing of an entry and its append.
const SIGNED_FOR_MS: i64 = 3_600_000;

/// Which control entries are obeyed. All processes that read the topic must share these rules.
#[derive(Clone, Default)]
pub struct ControlRules {
    /// The cluster's secrets. The first one signs, and each of them verifies. Empty: entries need
    /// no signature.
    pub keys: Vec<Vec<u8>>,
    /// Entries appended before this time, in milliseconds since 1970, need no signature.
    pub unsigned_until_ms: i64,
    /// Checks a payload. `None` accepts every payload.
    pub check: Option<ControlCheck>,
}

pub type ControlCheck = fn(&[u8]) -> Result<(), ControlFault>;

impl std::fmt::Debug for ControlRules {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "ControlRules({} keys, unsigned until {} ms)",
            self.keys.len(),
            self.unsigned_until_ms
        )
    }
}

/// What is wrong with a control entry's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlFault {
    /// It is no control entry.
    Malformed(String),
    /// This version does not know the kind.
    UnknownKind(String),
}

/// The place in the log that a signature is valid for.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub epoch: u16,
    pub partition: u16,
}

/// Signs an entry that is sent now; `None` if entries are not signed.
pub fn signature(options: &Options, partition: u16, payload: &[u8]) -> Option<String> {
    let key = options.controls.keys.first()?;
    let place = Place { epoch: options.epoch, partition };
    Some(sign(key, place, SystemClock.now_ms(), rand::random(), payload))
}

/// Signs an entry that is sent at a given time.
pub fn sign(
    key: &[u8],
    place: Place,
    sent_ms: i64,
    nonce: [u8; NONCE_LEN],
    payload: &[u8],
) -> String {
    let mac = mac_of(key, place, sent_ms, &nonce, payload).finalize().into_bytes();
    format!("{VERSION} {sent_ms} {} {}", hex::encode(nonce), hex::encode(mac))
}

/// Decides on a control entry: returns the identity of a signed one, or why the entry is refused. A
/// signed entry of an unknown kind comes from a newer version. It is left to the reader, which must
/// not skip it.
pub fn judge(
    options: &Options,
    partition: u16,
    appended_ms: i64,
    signature: Option<&[u8]>,
    payload: &[u8],
) -> Result<Option<Identity>, Refusal> {
    let rules = &options.controls;
    let may_be_unsigned = rules.keys.is_empty() || appended_ms < rules.unsigned_until_ms;
    let identity = match signature {
        Some(signature) if !rules.keys.is_empty() => {
            let place = Place { epoch: options.epoch, partition };
            Some(verify(options, place, appended_ms, signature, payload)?)
        }
        _ if may_be_unsigned => None,
        _ => {
            return Err(Refusal::new(
                Code::ControlUnsigned,
                "a control entry must be signed with kafka.control_key",
            ));
        }
    };

    match rules.check.map_or(Ok(()), |check| check(payload)) {
        Ok(()) => Ok(identity),
        Err(ControlFault::UnknownKind(_)) if identity.is_some() => Ok(identity),
        Err(ControlFault::UnknownKind(kind)) => Err(Refusal::new(
            Code::ControlKindUnknown,
            format!("{kind:?} is not a kind of control entry"),
        )),
        Err(ControlFault::Malformed(detail)) => Err(Refusal::new(Code::ControlMalformed, detail)),
    }
}

/// Verifies a signature. Two entries share an identity only if one is a copy of the other.
fn verify(
    options: &Options,
    place: Place,
    appended_ms: i64,
    signature: &[u8],
    payload: &[u8],
) -> Result<Identity, Refusal> {
    let invalid =
        || Refusal::new(Code::ControlSignatureInvalid, "the signature is not one of this cluster");
    let Signature { sent_ms, nonce, mac } = Signature::parse(signature).ok_or_else(invalid)?;
    let verifies =
        |key: &Vec<u8>| mac_of(key, place, sent_ms, &nonce, payload).verify_slice(&mac).is_ok();
    if !options.controls.keys.iter().any(verifies) {
        return Err(invalid());
    }

    // Within this time a copy finds the original's identity in the dedupe window.
    let signed_for_ms = SIGNED_FOR_MS.min(options.dedupe_window_ms / 2);
    if (appended_ms - sent_ms).abs() > signed_for_ms {
        let detail = format!(
            "it was signed at {sent_ms} ms and appended at {appended_ms} ms: look at the clocks"
        );
        return Err(Refusal::new(Code::ControlExpired, detail));
    }

    let half: [u8; 16] = mac[..16].try_into().expect("half of 32 bytes");
    Ok(Identity::from_le_bytes(half))
}

struct Signature {
    sent_ms: i64,
    nonce: [u8; NONCE_LEN],
    mac: [u8; 32],
}

impl Signature {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let version = words.next()?;
        let sent_ms = words.next()?;
        let nonce = words.next()?;
        let mac = words.next()?;

        if version != VERSION || words.next().is_some() {
            return None;
        }
        let mut signature =
            Self { sent_ms: sent_ms.parse().ok()?, nonce: [0; NONCE_LEN], mac: [0; 32] };
        hex::decode_to_slice(nonce, &mut signature.nonce).ok()?;
        hex::decode_to_slice(mac, &mut signature.mac).ok()?;

        // Bounded far away from any real time, so that ages cannot overflow.
        (0..1 << 50).contains(&signature.sent_ms).then_some(signature)
    }
}

fn mac_of(key: &[u8], place: Place, sent_ms: i64, nonce: &[u8], payload: &[u8]) -> Hmac<Sha256> {
    let mut mac =
        <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("a key of any length is taken");
    mac.update(DOMAIN);
    mac.update(&place.epoch.to_le_bytes());
    mac.update(&place.partition.to_le_bytes());
    mac.update(&sent_ms.to_le_bytes());
    mac.update(nonce);
    mac.update(payload);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_727_215_430_250;
    const HERE: Place = Place { epoch: 2, partition: 3 };

    fn options(keys: &[&str]) -> Options {
        let check = |payload: &[u8]| match payload {
            b"garbage" => Err(ControlFault::Malformed("garbage".to_owned())),
            b"newer" => Err(ControlFault::UnknownKind("newer".to_owned())),
            _ => Ok(()),
        };
        let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        let controls = ControlRules { keys, unsigned_until_ms: NOW_MS, check: Some(check) };
        Options { epoch: HERE.epoch, controls, ..Options::default() }
    }

    fn code(
        options: &Options,
        appended_ms: i64,
        signature: Option<&str>,
        payload: &[u8],
    ) -> &'static str {
        let judged =
            judge(options, HERE.partition, appended_ms, signature.map(str::as_bytes), payload);
        judged.map_or_else(
            |refusal| refusal.code.as_str(),
            |identity| {
                if identity.is_some() { "signed" } else { "taken" }
            },
        )
    }

    fn signed(key: &str, place: Place, payload: &[u8]) -> String {
        sign(key.as_bytes(), place, NOW_MS, [7; NONCE_LEN], payload)
    }

    #[test]
    fn without_a_key_only_what_is_malformed_or_unknown_is_refused() {
        let open = options(&[]);
        assert_eq!(code(&open, NOW_MS, None, b"note"), "taken");
        assert_eq!(code(&open, NOW_MS, Some("whatever"), b"note"), "taken");
        assert_eq!(code(&open, NOW_MS, None, b"garbage"), "control_malformed");
        assert_eq!(code(&open, NOW_MS, None, b"newer"), "control_kind_unknown");
    }

    #[test]
    fn with_a_key_what_is_not_signed_for_its_place_is_refused() {
        let keyed = options(&["new", "old"]);
        assert_eq!(code(&keyed, NOW_MS, None, b"note"), "control_unsigned");
        assert_eq!(
            code(&keyed, NOW_MS - 1, None, b"note"),
            "taken",
            "it was appended before the key was needed"
        );

        for key in ["new", "old"] {
            assert_eq!(code(&keyed, NOW_MS, Some(&signed(key, HERE, b"note")), b"note"), "signed");
        }
        let good = signed("new", HERE, b"note");
        assert_eq!(code(&keyed, NOW_MS, Some(&good), b"other"), "control_signature_invalid");

        let elsewhere = [Place { partition: 4, ..HERE }, Place { epoch: 1, ..HERE }];
        for place in elsewhere {
            assert_eq!(
                code(&keyed, NOW_MS, Some(&signed("new", place, b"note")), b"note"),
                "control_signature_invalid"
            );
        }

        assert_eq!(
            code(&keyed, NOW_MS, Some(&signed("stolen", HERE, b"note")), b"note"),
            "control_signature_invalid"
        );
        assert_eq!(
            code(&keyed, NOW_MS, Some(&format!("{good} more")), b"note"),
            "control_signature_invalid"
        );
        (0..good.len()).for_each(|len| {
            assert_eq!(
                code(&keyed, NOW_MS, Some(&good[..len]), b"note"),
                "control_signature_invalid"
            );
        });
    }

    #[test]
    fn a_signed_entry_is_too_old_before_its_identity_is_forgotten() {
        let keyed = options(&["key"]);
        let good = signed("key", HERE, b"note");
        assert_eq!(code(&keyed, NOW_MS + SIGNED_FOR_MS, Some(&good), b"note"), "signed");
        assert_eq!(
            code(&keyed, NOW_MS + SIGNED_FOR_MS + 1, Some(&good), b"note"),
            "control_expired"
        );
        assert_eq!(
            code(&keyed, NOW_MS - SIGNED_FOR_MS - 1, Some(&good), b"note"),
            "control_expired"
        );

        let brief = Options { dedupe_window_ms: 2_000, ..keyed };
        assert_eq!(code(&brief, NOW_MS + 1_001, Some(&good), b"note"), "control_expired");
    }

    /// It comes from a newer process in a rolling upgrade. Skipping it could miscount, so the
    /// reader decides.
    #[test]
    fn a_signed_entry_of_an_unknown_kind_is_not_passed_over() {
        let keyed = options(&["key"]);
        assert_eq!(code(&keyed, NOW_MS, Some(&signed("key", HERE, b"newer")), b"newer"), "signed");
        assert_eq!(
            code(&keyed, NOW_MS, Some(&signed("key", HERE, b"garbage")), b"garbage"),
            "control_malformed"
        );
    }

    /// An entry signed by version 1 still verifies.
    #[test]
    fn a_signature_of_version_1_still_verifies() {
        let signature = signed("key", HERE, b"note");
        assert_eq!(signature, FIXTURE);
        assert_eq!(code(&options(&["key"]), NOW_MS, Some(FIXTURE), b"note"), "signed");
    }

    const FIXTURE: &str = "v1 1727215430250 07070707070707070707070707070707 \
         9e181cdb99db9c3ab080d4c4dfb79a91919cf8ed2007e7701eefcd5bca638075";
}
