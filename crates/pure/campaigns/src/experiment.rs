//! Experiments: which variant a subject sees, and which subjects see no campaign at all.
//!
//! Subjects are placed into 10,000 buckets by GrowthBook's hash of version 2, and buckets into
//! variants as its libraries do it, so that exposures of both can be joined:
//!
//! ```text
//!   bucket = fnv1a32(decimal(fnv1a32(key + unit))) mod 10,000        over UTF-16 code units
//!
//!   weights 5,000 and 5,000, coverage 6,000:
//!   0           3,000         5,000         8,000         10,000
//!   ├─ control ─┤  (not in)   ├──── b ──────┤  (not in)   ┤
//! ```

use crate::limits::{EXPERIMENT_KEY_LEN_MAX, VARIANTS_MAX};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Buckets, and parts that weights, coverages and shares are counted in.
pub const BUCKETS: u16 = 10_000;

/// The bucket of a unit, such as a subject, under the key of an experiment.
pub fn bucket(key: &str, unit: &str) -> u16 {
    let first = fnv1a32(key.encode_utf16().chain(unit.encode_utf16()));
    let second = fnv1a32(first.to_string().encode_utf16());
    u16::try_from(second % u32::from(BUCKETS)).expect("it is less than 10,000")
}

/// FNV-1a of 32 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>), with a UTF-16 code unit where
/// the original has a byte, as in libraries whose strings consist of those.
fn fnv1a32(units: impl Iterator<Item = u16>) -> u32 {
    units.fold(0x811c_9dc5, |hash, unit| (hash ^ u32::from(unit)).wrapping_mul(0x0100_0193))
}

/// The `experiment` of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub key: String,
    /// What is placed into a variant: `subject`, or a field of the event.
    #[serde(default = "subject")]
    pub unit: String,
    #[serde(default)]
    pub hash: Hash,
    /// The first one is the control.
    pub variants: Vec<Variant>,
    /// How many of 10,000 units take part.
    #[serde(default = "all")]
    pub coverage: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    #[default]
    GrowthBook2,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    /// How many of 10,000 participants see this variant.
    pub weight: u16,
}

fn subject() -> String {
    "subject".to_owned()
}

fn all() -> u16 {
    BUCKETS
}

impl Experiment {
    /// The problems that keep this experiment from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.key.is_empty() || self.key.len() > EXPERIMENT_KEY_LEN_MAX {
            problems.push(format!(
                "experiment.key must have between 1 and {EXPERIMENT_KEY_LEN_MAX} bytes"
            ));
        }

        if !(2..=VARIANTS_MAX).contains(&self.variants.len()) {
            problems.push(format!("an experiment has between 2 and {VARIANTS_MAX} variants"));
        }
        for (place, variant) in self.variants.iter().enumerate() {
            let is_name = |other: &Variant| other.name == variant.name;
            if variant.name.is_empty() || self.variants[..place].iter().any(is_name) {
                problems.push(format!("variant {} needs a name of its own", place + 1));
            }
        }

        let sum: u64 = self.variants.iter().map(|variant| u64::from(variant.weight)).sum();
        if sum != u64::from(BUCKETS) {
            problems.push(format!("the weights of variants must add up to {BUCKETS}, not {sum}"));
        }
        if self.coverage > BUCKETS {
            problems.push(format!("coverage must not exceed {BUCKETS}"));
        }
        problems
    }

    /// Why this experiment cannot take the place of a running one. Coverage may change; anything
    /// else would move subjects between variants.
    pub fn problem_of_change(&self, running: &Self) -> Option<String> {
        let moves_nobody = self.key != running.key
            || self.unit == running.unit && self.variants == running.variants;
        (!moves_nobody).then(|| {
            format!("experiment `{}` is running: change its variants under a new key", self.key)
        })
    }

    /// Buckets of each variant.
    pub fn split(&self) -> Split {
        let coverage = f64::from(self.coverage) / f64::from(BUCKETS);
        let mut start = 0.0;
        let ranges = self.variants.iter().map(|variant| {
            let weight = f64::from(variant.weight) / f64::from(BUCKETS);
            let range = first_bucket(start)..first_bucket(start + coverage * weight);
            start += weight;
            range
        });
        Split { ranges: ranges.collect() }
    }
}

/// The first bucket at or beyond a point between 0 and 1.
///
/// GrowthBook compares numbers of floating point, so a sum such as 0.1 + 0.2 moves a boundary by
/// one bucket. This is the same comparison, made once.
fn first_bucket(point: f64) -> u16 {
    let is_before = |bucket: &u16| f64::from(*bucket) / f64::from(BUCKETS) < point;
    let near = (point * f64::from(BUCKETS)) as u16;
    let mut candidates = near.saturating_sub(1)..=near + 1;
    candidates.find(|bucket| !is_before(bucket)).unwrap_or(near + 1)
}

/// Which buckets see which variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    ranges: Box<[Range<u16>]>,
}

impl Split {
    /// The place of the variant that a bucket sees; `None` if it takes no part.
    pub fn variant(&self, bucket: u16) -> Option<usize> {
        self.ranges.iter().position(|range| range.contains(&bucket))
    }
}

/// Units that stay outside of all campaigns of a set, whose results they are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holdout {
    /// Decides who is held out. Seeds are no keys of experiments, or their groups would overlap.
    pub seed: String,
    /// How many of 10,000 units are held out.
    pub share: u16,
}

impl Holdout {
    /// The problems that keep this holdout from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.seed.is_empty() || self.seed.len() > EXPERIMENT_KEY_LEN_MAX {
            problems.push(format!("seed must have between 1 and {EXPERIMENT_KEY_LEN_MAX} bytes"));
        }
        if self.share > BUCKETS {
            problems.push(format!("share must not exceed {BUCKETS}"));
        }
        problems
    }

    pub fn holds(&self, unit: &str) -> bool {
        bucket(&self.seed, unit) < self.share
    }
}

#[cfg(test)]
mod tests;
