//! What the answer to a delivery means, and when the next try is.

use crate::calendar::DAY_MS;
use sha2::{Digest, Sha256};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Pauses after the first try, the second and so on: the schedule that Standard Webhooks
/// recommends.
const PAUSES_MS: [i64; 9] = [
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
];
/// Pauses vary by up to this many percent, so that deliveries that failed together do not return
/// together.
const JITTER_PERCENT: i64 = 20;
/// Longest pause that a destination may ask for.
const ASKED_MAX_MS: i64 = DAY_MS;

/// The pause after a number of tries that failed, of which there is at least one. `None` if there
/// is no further try: the delivery is dead.
///
/// It follows from the id of the delivery, and is no shorter than what the destination asked for
/// with `Retry-After`, within a day.
pub fn pause_ms(id: &str, tries: u32, asked_ms: Option<i64>) -> Option<i64> {
    let place = tries.checked_sub(1).expect("a try has failed");
    let pause_ms = *PAUSES_MS.get(usize::try_from(place).ok()?)?;

    // Evenly between -20 % and +20 %, in thousandths of it.
    let hash = Sha256::digest(format!("{id}.{tries}"));
    let random = i64::from(u16::from_le_bytes([hash[0], hash[1]]));
    let jitter = random * 2 * 1_000 / i64::from(u16::MAX) - 1_000;
    let varied_ms = pause_ms + pause_ms * JITTER_PERCENT / 100 * jitter / 1_000;

    Some(varied_ms.max(asked_ms.unwrap_or_default().min(ASKED_MAX_MS)))
}

/// What follows from the status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// The destination will never take this delivery.
    Refused,
    /// The destination will take nothing any more, and is disabled.
    Gone,
    /// The destination cannot take it now.
    Retry,
    /// As before, and it is to be sent less: the rate is halved.
    SlowDown,
}

impl Verdict {
    pub const fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Delivered,
            410 => Self::Gone,
            429 | 502 | 503 | 504 => Self::SlowDown,
            408 | 409 | 425 => Self::Retry,
            400..=499 => Self::Refused,
            // Redirects are not followed: they would lead past the check of the address.
            _ => Self::Retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        for (place, pause) in PAUSES_MS.into_iter().enumerate() {
            let tries = place as u32 + 1;
            let found: Vec<i64> = (0..1_000)
                .map(|number| pause_ms(&format!("act_{number}"), tries, None).unwrap())
                .collect();
            let least = found.iter().min().unwrap();
            let most = found.iter().max().unwrap();
            let percent = pause / 100;
            assert!((80 * percent..=82 * percent).contains(least), "{least} of {pause}");
            assert!((118 * percent..=120 * percent).contains(most), "{most} of {pause}");
            assert_eq!(pause_ms("act_7", tries, None), Some(found[7]), "it follows from the id");
        }

        assert_eq!(pause_ms("act_7", 10, None), None);
        assert_eq!(pause_ms("act_7", u32::MAX, Some(1)), None);
    }

    #[test]
    fn a_destination_may_ask_for_a_longer_pause() {
        assert_eq!(pause_ms("act_7", 1, Some(HOUR_MS)), Some(HOUR_MS));
        assert_eq!(pause_ms("act_7", 1, Some(i64::MAX)), Some(DAY_MS));
        let unasked = pause_ms("act_7", 2, None);
        for shorter in [1, 0, -1, i64::MIN] {
            assert_eq!(pause_ms("act_7", 2, Some(shorter)), unasked, "{shorter}");
        }
    }

    #[test]
    fn each_status_has_a_verdict() {
        let of = |statuses: &[u16]| {
            let verdicts: Vec<Verdict> =
                statuses.iter().map(|status| Verdict::of_status(*status)).collect();
            assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:?}");
            verdicts[0]
        };
        assert_eq!(of(&[200, 202, 204, 299]), Verdict::Delivered);
        assert_eq!(of(&[400, 401, 403, 404, 413, 422, 499]), Verdict::Refused);
        assert_eq!(of(&[410]), Verdict::Gone);
        assert_eq!(of(&[429, 502, 503, 504]), Verdict::SlowDown);
        assert_eq!(of(&[100, 199, 301, 302, 308, 408, 409, 425, 500, 501, 599]), Verdict::Retry);
    }
}
