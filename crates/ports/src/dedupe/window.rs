//! The identities of recent messages, which reveal repetitions.
//!
//! Time here is the *log's*: the time of a message is the latest append time of all messages up to
//! and including it. It never goes back, even where the clocks of two brokers differ. It is cut
//! into slices, aligned to 1970. A message is a repetition when an earlier one with the same
//! identity lies in a slice that is at most [`SLICES`] older than its own, whether that one was a
//! repetition itself or not.
//!
//! The verdict on a message is therefore a function of the messages before it whose slice is at
//! most [`SLICES`] older. A reader that begins with the *first message that was appended at or
//! after the start of such a slice* reaches the same verdicts as one that reads from the beginning:
//!
//! - the latest append time since then is the latest of all, because everything before was appended
//!   earlier;
//! - only the latest slice of an identity matters;
//! - when there are more than `ids_max` identities, whole slices are forgotten, the oldest first,
//!   so what is remembered of a slice does not depend on older ones. Only when the current slice
//!   alone has too many is it forgotten as well, and starts empty.

use crate::record::Identity;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Slices of a window, besides the current one.
pub const SLICES: i64 = 24;

/// The part of an identity that is compared: its upper 96 bits. The other bits choose the partition
/// and hardly differ within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    high: u64,
    low: u32,
}

impl Fingerprint {
    pub const BYTES: usize = 12;

    pub fn of(identity: Identity) -> Self {
        Self { high: (identity >> 64) as u64, low: (identity >> 32) as u32 }
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.high.to_le_bytes());
        bytes[8..].copy_from_slice(&self.low.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self {
            high: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            low: u32::from_le_bytes([i, j, k, l]),
        }
    }
}

/// An identity and the slice in which it was last seen, in 16 bytes.
#[derive(Clone, Copy)]
struct Sighting {
    high: u64,
    low: u32,
    /// The number of the slice, modulo 2^32. The slices in memory lie close to each other.
    slice: u32,
}

impl Sighting {
    fn new(Fingerprint { high, low }: Fingerprint, slice: i64) -> Self {
        Self { high, low, slice: slice as u32 }
    }
}

/// The verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    New,
    Repetition,
}

pub struct Window {
    width_ms: i64,
    ids_max: usize,
    /// The latest append time so far.
    newest_ms: i64,
    seen: HashTable<Sighting>,
    /// The number of identities last seen in each slice, the oldest slice first.
    slices: VecDeque<(i64, usize)>,
    forgotten: u64,
}

impl Window {
    pub fn new(window_ms: i64, ids_max: usize) -> Self {
        Self {
            width_ms: width_ms(window_ms),
            ids_max: ids_max.max(1),
            newest_ms: i64::MIN,
            seen: HashTable::new(),
            slices: VecDeque::new(),
            forgotten: 0,
        }
    }

    /// Notes a message without an identity. It only advances the time.
    pub fn pass(&mut self, appended_ms: i64) {
        self.newest_ms = self.newest_ms.max(appended_ms);
        let slice = self.newest_ms.div_euclid(self.width_ms);
        if self.slices.back().is_none_or(|(newest, _)| *newest < slice) {
            self.slices.push_back((slice, 0));
            self.forget_before(slice - SLICES);
        }
    }

    /// Notes a message and returns whether it is a repetition.
    pub fn see(&mut self, appended_ms: i64, identity: Identity) -> Verdict {
        self.see_fingerprint(appended_ms, Fingerprint::of(identity))
    }

    /// The same, for an identity of which only the fingerprint is left.
    pub fn see_fingerprint(&mut self, appended_ms: i64, fingerprint: Fingerprint) -> Verdict {
        self.pass(appended_ms);
        let slice = self.newest_ms.div_euclid(self.width_ms);
        let new = Sighting::new(fingerprint, slice);
        let same = |seen: &Sighting| seen.high == new.high && seen.low == new.low;
        let verdict = match self.seen.find_mut(new.high, same) {
            Some(seen) => {
                let before = std::mem::replace(&mut seen.slice, new.slice);
                let known = self.slices.iter_mut().find(|(slice, _)| *slice as u32 == before);
                known.expect("what is remembered lies in a slice of the window").1 -= 1;
                Verdict::Repetition
            }
            None => {
                self.seen.insert_unique(new.high, new, |seen| seen.high);
                Verdict::New
            }
        };

        self.slices.back_mut().expect("the slice at hand").1 += 1;
        self.make_room(slice);
        verdict
    }

    fn make_room(&mut self, slice: i64) {
        while self.seen.len() > self.ids_max {
            let (oldest, count) = self.slices[0];
            self.forgotten += count as u64;
            self.forget_before(oldest + 1);
            if oldest == slice {
                self.slices.push_back((slice, 0));
            }
        }
    }

    /// Forgets slices older than this one.
    fn forget_before(&mut self, oldest: i64) {
        let mut any = false;
        while let Some((_, count)) = self.slices.pop_front_if(|(slice, _)| *slice < oldest) {
            any |= count > 0;
        }

        if !any {
            return;
        }

        if self.slices.iter().all(|(_, count)| *count == 0) {
            self.seen.clear();
        } else {
            // Everything that goes was in memory together with what stays, so their slices are near
            // each other.
            self.seen.retain(|seen| seen.slice.wrapping_sub(oldest as u32) as i32 >= 0);
        }

        if self.seen.capacity() > 4 * self.seen.len() {
            self.seen.shrink_to(2 * self.seen.len(), |seen| seen.high);
        }
    }

    /// Whether the window holds no identity.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Number of identities in the window.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns the number of identities that were forgotten early, for lack of room, since the
    /// previous call.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }
}

fn width_ms(window_ms: i64) -> i64 {
    (window_ms.max(0) as u64).div_ceil(SLICES as u64).max(1) as i64
}

/// A reader that continues behind a message appended at `appended_ms` begins with the first message
/// that was appended at this time or later.
pub fn begin_ms(window_ms: i64, appended_ms: i64) -> i64 {
    let width_ms = width_ms(window_ms);
    (appended_ms.div_euclid(width_ms) - SLICES) * width_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap};

    const WINDOW_MS: i64 = 240;

    /// Append times mostly grow, and sometimes go back.
    fn logs() -> impl Strategy<Value = Vec<(i64, Identity)>> {
        let step = prop_oneof![
            6 => 0..4_i64,
            3 => Just(10),
            2 => 0..60_i64,
            1 => 200..400_i64,
            2 => -80..0_i64,
        ];
        proptest::collection::vec((step, 0..40_u128), 1..120).prop_map(|steps| {
            let mut now_ms = 10_000;
            let spread = |id: u128| id.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834);
            let at = |(step, id)| {
                now_ms += step;
                (now_ms, spread(id))
            };
            steps.into_iter().map(at).collect()
        })
    }

    fn verdicts(window: &mut Window, log: &[(i64, Identity)]) -> Vec<Verdict> {
        log.iter().map(|(appended_ms, identity)| window.see(*appended_ms, *identity)).collect()
    }

    /// The definition, taken literally.
    fn by_definition(log: &[(i64, Identity)]) -> Vec<Verdict> {
        let mut newest_ms = i64::MIN;
        let mut last = HashMap::new();
        let judge = |(appended_ms, identity): &(i64, Identity)| {
            newest_ms = newest_ms.max(*appended_ms);
            let slice = newest_ms.div_euclid(10);
            match last.insert(*identity, slice) {
                Some(before) if before >= slice - SLICES => Verdict::Repetition,
                _ => Verdict::New,
            }
        };
        log.iter().map(judge).collect()
    }

    proptest! {
        #[test]
        fn repetitions_are_recognized_as_defined(log in logs()) {
            prop_assert_eq!(
                verdicts(&mut Window::new(WINDOW_MS, 1_000), &log),
                by_definition(&log)
            );
        }

        /// The verdicts do not depend on where reading begins, even when identities are forgotten
        /// early.
        #[test]
        fn a_rebuilt_window_decides_as_one_that_read_everything(
            log in logs(),
            back in 0..20_usize,
            ids_max in prop_oneof![1..40_usize, Just(1_000)],
        ) {
            let whole = verdicts(&mut Window::new(WINDOW_MS, ids_max), &log);
            for cut in 0..log.len() {
                // Any message before the cut can serve to find the start; the last one leaves the
                // least margin.
                for reference in [cut.saturating_sub(1), cut.saturating_sub(back)] {
                    let begin_ms = begin_ms(WINDOW_MS, log[reference].0);
                    let begin =
                        log.iter().position(|(appended_ms, _)| *appended_ms >= begin_ms).unwrap();
                    prop_assert!(begin <= reference);
                    let mut rebuilt = Window::new(WINDOW_MS, ids_max);
                    verdicts(&mut rebuilt, &log[begin..cut]);
                    prop_assert_eq!(
                        verdicts(&mut rebuilt, &log[cut..]),
                        whole[cut..].to_vec(),
                        "from {}",
                        cut
                    );
                }
            }
        }

        #[test]
        fn no_more_is_remembered_than_allowed(log in logs(), ids_max in 1..40_usize) {
            let mut window = Window::new(WINDOW_MS, ids_max);
            for (appended_ms, identity) in &log {
                window.see(*appended_ms, *identity);
                prop_assert!(window.len() <= ids_max);
                let counted: BTreeMap<i64, usize> = window.slices.iter().copied().collect();
                prop_assert_eq!(counted.values().sum::<usize>(), window.len());
                prop_assert!(window.slices.len() <= SLICES as usize + 1);
            }
        }
    }

    #[test]
    fn what_is_forgotten_early_is_counted() {
        let mut window = Window::new(WINDOW_MS, 2);
        assert_eq!(
            verdicts(&mut window, &[(5, 1 << 64), (15, 2 << 64), (25, 3 << 64)]),
            [Verdict::New; 3]
        );
        assert_eq!((window.take_forgotten(), window.take_forgotten()), (1, 0));
        assert_eq!(
            verdicts(&mut window, &[(25, 1 << 64), (25, 3 << 64)]),
            [Verdict::New, Verdict::Repetition]
        );
    }
}
