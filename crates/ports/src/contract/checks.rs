//! The contract of the checks.

use crate::checks::{CHECKS_KEPT, Check, Checks, Difference, Outcome, Selection};
use raingauge_core::bucket::Granularity;

const ALL: Selection = Selection { outcome: None, before: None, len_max: 100 };

/// Runs the whole suite. `fresh` returns a store without checks each time.
pub async fn suite<C: Checks>(fresh: impl AsyncFn() -> C) {
    a_check_comes_back_whole(&fresh().await).await;
    checks_are_listed_newest_first_page_by_page(&fresh().await).await;
    the_oldest_are_dropped(&fresh().await).await;
    the_newest_check_of_a_key_decides_what_differs(&fresh().await).await;
}

/// A check of a key with this outcome.
pub fn check(key: &str, outcome: Outcome) -> Check {
    Check {
        id: 0,
        at_s: 1_727_215_200,
        by: "raingauge".to_owned(),
        counter: 34,
        key: key.to_owned(),
        from_s: 1_727_100_000,
        to_s: 1_727_200_800,
        compared_from_s: 1_727_136_000,
        outcome,
        stored: 487,
        recounted: 487,
        detail: String::new(),
        differences: Vec::new(),
    }
}

/// The keys of checks, in order.
fn keys(found: &[Check]) -> Vec<&str> {
    found.iter().map(|check| check.key.as_str()).collect()
}

async fn a_check_comes_back_whole(checks: &dyn Checks) {
    assert_eq!(checks.list(ALL).await.expect("listed"), []);
    let differences = vec![
        Difference {
            granularity: Granularity::Quarter,
            time: 900,
            stored: Some(i64::MIN),
            recounted: None,
        },
        Difference {
            granularity: Granularity::Day,
            time: 86_400,
            stored: None,
            recounted: Some(i64::MAX),
        },
    ];

    let whole = Check {
        by: "zoe'; --".to_owned(),
        key: "rain:city:<script>☔'\"\\".to_owned(),
        stored: i128::from(i64::MAX) * 5,
        recounted: i128::from(i64::MIN) * 5,
        detail: "the log begins later".to_owned(),
        differences,
        ..check("", Outcome::Differs)
    };

    checks.add(vec![whole.clone()], CHECKS_KEPT).await.expect("kept");
    checks.add(Vec::new(), CHECKS_KEPT).await.expect("kept");

    let found = checks.list(ALL).await.expect("listed");
    assert!(found[0].id > 0);
    assert_eq!(found, [Check { id: found[0].id, ..whole }]);

    for outcome in Outcome::ALL {
        assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
    }
}

async fn checks_are_listed_newest_first_page_by_page(checks: &dyn Checks) {
    let made = [
        ("a", Outcome::Equal),
        ("b", Outcome::Differs),
        ("c", Outcome::Failed),
        ("d", Outcome::Equal),
    ];

    for pair in made.chunks(2) {
        let batch = pair.iter().map(|(key, outcome)| check(key, *outcome)).collect();
        checks.add(batch, CHECKS_KEPT).await.expect("kept");
    }

    assert_eq!(keys(&checks.list(ALL).await.expect("listed")), ["d", "c", "b", "a"]);
    let equal = Selection { outcome: Some(Outcome::Equal), ..ALL };
    assert_eq!(keys(&checks.list(equal).await.expect("listed")), ["d", "a"]);

    let first = checks.list(Selection { len_max: 3, ..ALL }).await.expect("listed");
    assert_eq!(keys(&first), ["d", "c", "b"]);

    let rest = Selection { before: first.last().map(|check| check.id), ..ALL };
    assert_eq!(keys(&checks.list(rest).await.expect("listed")), ["a"]);
}

async fn the_oldest_are_dropped(checks: &dyn Checks) {
    for key in ["a", "b", "c", "d"] {
        checks.add(vec![check(key, Outcome::Equal)], 2).await.expect("kept");
    }
    assert_eq!(keys(&checks.list(ALL).await.expect("listed")), ["d", "c"]);
    // More at once than the store keeps.
    let many = ["e", "f", "g"].map(|key| check(key, Outcome::Equal));
    checks.add(many.to_vec(), 2).await.expect("kept");
    assert_eq!(keys(&checks.list(ALL).await.expect("listed")), ["g", "f"]);
}

async fn the_newest_check_of_a_key_decides_what_differs(checks: &dyn Checks) {
    let made = [
        ("repaired", Outcome::Differs),
        ("wrong", Outcome::Equal),
        ("Wrong", Outcome::Equal),
        ("unknown", Outcome::Failed),
        ("repaired", Outcome::Equal),
        ("wrong", Outcome::Differs),
        // A range that could not be compared changes nothing.
        ("wrong", Outcome::Uncovered),
        ("later", Outcome::Differs),
    ];

    for (key, outcome) in made {
        checks.add(vec![check(key, outcome)], CHECKS_KEPT).await.expect("kept");
    }
    assert_eq!(keys(&checks.differing(9).await.expect("listed")), ["later", "wrong"]);
    assert_eq!(keys(&checks.differing(1).await.expect("listed")), ["later"]);
}
