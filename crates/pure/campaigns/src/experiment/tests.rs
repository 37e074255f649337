use super::*;
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Made by `fixtures/bucketing.py` with GrowthBook's own library.
const FIXTURE: &str = include_str!("../../fixtures/bucketing.json");

#[derive(Deserialize)]
struct Fixture {
    keys: Vec<String>,
    splits: Vec<FixedSplit>,
    buckets: Vec<Fixed>,
    /// For each split, for each key.
    variants: Vec<Vec<Fixed>>,
}

#[derive(Deserialize)]
struct FixedSplit {
    weights: Vec<u16>,
    coverage: u16,
}

/// The first numbers of a list, and the hash of all: 16-bit numbers, little-endian.
#[derive(Deserialize)]
struct Fixed {
    first: Vec<u16>,
    sha256: String,
}

impl Fixed {
    fn check(&self, numbers: &[u16], of: &str) {
        assert_eq!(numbers[..self.first.len()], self.first, "{of}");
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let hash = Sha256::digest(&bytes)
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        assert_eq!(hash, self.sha256, "{of}");
    }
}

/// The ids of the fixture: short ones, long ones, and such that UTF-8 and UTF-16 tell apart.
fn id(number: u32) -> String {
    match number % 5 {
        0 => format!("u-{number}"),
        1 => format!("{:08x}-0000-4000-8000-{number:012}", number.wrapping_mul(2_654_435_761)),
        2 => format!("kundin-{number}-ü"),
        3 => format!("{number}😀客"),
        _ => number.to_string(),
    }
}

fn experiment(weights: &[u16], coverage: u16) -> Experiment {
    let variant =
        |(place, weight): (usize, &u16)| Variant { name: place.to_string(), weight: *weight };
    Experiment {
        key: "e".to_owned(),
        unit: subject(),
        hash: Hash::GrowthBook2,
        variants: weights.iter().enumerate().map(variant).collect(),
        coverage,
    }
}

#[test]
fn buckets_and_variants_equal_those_of_growthbook() {
    let fixture: Fixture = serde_json::from_str(FIXTURE).unwrap();
    let ids: Vec<String> = (0..10_000).map(id).collect();
    assert_eq!(fixture.keys.len(), 20);

    for (key, fixed) in fixture.keys.iter().zip(&fixture.buckets) {
        let buckets: Vec<u16> = ids.iter().map(|id| bucket(key, id)).collect();
        fixed.check(&buckets, key);
        for (split, fixed) in fixture.splits.iter().zip(&fixture.variants) {
            let place = fixture.keys.iter().position(|other| other == key).unwrap();
            let of = experiment(&split.weights, split.coverage).split();
            let number = |bucket: &u16| of.variant(*bucket).map_or(u16::MAX, |place| place as u16);
            let variants: Vec<u16> = buckets.iter().map(number).collect();
            fixed[place].check(&variants, &format!("{key}: {:?}", split.weights));
        }
    }
}

#[test]
fn the_vectors_of_the_contract_hold() {
    let key = "mart-3rd-order";
    let buckets = ["u-42", "u-7", "u-2", "u-3", "u-1"].map(|unit| bucket(key, unit));
    assert_eq!(buckets, [3_429, 5_464, 6_905, 7_949, 9_360]);
    let split = experiment(&[5_000, 5_000], BUCKETS).split();
    assert_eq!(buckets.map(|bucket| split.variant(bucket)), [0, 1, 1, 1, 1].map(Some));
}

#[test]
fn boundaries_are_those_of_floating_point() {
    // 0.1 + 0.2 is more than 0.3, so bucket 3,000 still sees the second variant.
    let split = experiment(&[1_000, 2_000, 7_000], BUCKETS).split();
    let variants = [999, 1_000, 2_999, 3_000, 3_001, 9_999].map(|bucket| split.variant(bucket));
    assert_eq!(variants, [0, 1, 1, 1, 2, 2].map(Some));
}

#[test]
fn an_experiment_says_what_is_wrong_with_it() {
    let json = json!({"key": "k", "variants": [
        {"name": "control", "weight": 5_000}, {"name": "b", "weight": 5_000},
    ]});
    let running: Experiment = serde_json::from_value(json).unwrap();
    assert_eq!(running.problems(), Vec::<String>::new());
    assert_eq!((running.unit.as_str(), running.coverage), ("subject", BUCKETS));

    let problem = |change: &dyn Fn(&mut Experiment)| {
        let mut changed = running.clone();
        change(&mut changed);
        changed.problems().join("; ")
    };
    assert!(problem(&|e| e.key.clear()).contains("experiment.key"));
    assert!(
        problem(&|e| e.key = "k".repeat(EXPERIMENT_KEY_LEN_MAX + 1)).contains("experiment.key")
    );
    assert!(problem(&|e| e.variants[0].weight = 4_999).contains("not 9999"));
    assert!(problem(&|e| e.variants[1].name = "control".into()).contains("variant 2"));
    assert!(problem(&|e| e.variants[0].name.clear()).contains("variant 1"));
    assert!(problem(&|e| e.coverage = BUCKETS + 1).contains("coverage"));
    let one = Variant { name: "a".into(), weight: BUCKETS };
    assert!(problem(&|e| e.variants = vec![one.clone()]).contains("between 2"));
    let many = VARIANTS_MAX + 1;
    assert!(problem(&|e| e.variants = vec![one.clone(); many]).contains("between 2"));
    assert!(serde_json::from_value::<Hash>(json!("growthbook1")).is_err());
    assert_eq!(serde_json::to_value(Hash::GrowthBook2).unwrap(), "growthbook2");
}

#[test]
fn a_running_experiment_changes_its_coverage_alone() {
    let running = experiment(&[5_000, 5_000], 1_000);
    assert_eq!(experiment(&[5_000, 5_000], 2_000).problem_of_change(&running), None);
    let moved = experiment(&[6_000, 4_000], 1_000);
    assert!(moved.problem_of_change(&running).unwrap().contains("new key"));
    let renamed = Experiment { key: "e2".to_owned(), ..moved };
    assert_eq!(renamed.problem_of_change(&running), None);
    let other_unit = Experiment { unit: "data.driver".to_owned(), ..running.clone() };
    assert!(other_unit.problem_of_change(&running).is_some());
}

#[test]
fn a_holdout_holds_its_share() {
    let holdout = |share| Holdout { seed: "2026-q4".to_owned(), share };
    let held = |share| (0..10_000).filter(|number| holdout(share).holds(&id(*number))).count();
    assert_eq!((held(0), held(BUCKETS)), (0, 10_000));
    // Within four standard deviations.
    assert!(held(1_000).abs_diff(1_000) < 120, "{}", held(1_000));

    assert_eq!(holdout(BUCKETS).problems().len(), 0);
    assert_eq!(holdout(BUCKETS + 1).problems().len(), 1);
    assert_eq!(Holdout { seed: String::new(), share: 1 }.problems().len(), 1);
}

/// Weights that add up to 10,000.
fn weights() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(0..=BUCKETS, 1..VARIANTS_MAX).prop_map(|mut cuts| {
        cuts.extend([0, BUCKETS]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn raising_the_coverage_moves_nobody(
        weights in weights(), coverage in 0..=BUCKETS, more in 0..=BUCKETS,
    ) {
        let raised = coverage.saturating_add(more).min(BUCKETS);
        let before = experiment(&weights, coverage).split();
        let after = experiment(&weights, raised).split();
        for bucket in 0..BUCKETS {
            let variant = before.variant(bucket);
            prop_assert!(variant.is_none() || variant == after.variant(bucket), "{}", bucket);
        }
    }

    #[test]
    fn full_coverage_leaves_nobody_out(weights in weights()) {
        let split = experiment(&weights, BUCKETS).split();
        let mut seen = vec![0_i32; weights.len()];
        for bucket in 0..BUCKETS {
            seen[split.variant(bucket).unwrap()] += 1;
        }
        for (seen, weight) in seen.iter().zip(&weights) {
            prop_assert!((seen - i32::from(*weight)).abs() <= 2, "{} of {}", seen, weight);
        }
    }
}
