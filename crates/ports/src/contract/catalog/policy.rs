//! The contract of the cache policy.

use super::{at_once, change, counter};
use crate::BoxFuture;
use crate::catalog::{Catalog, Change, Error, Policies, VersionedPolicy};
use raingauge_policy::cache::{Choice, Policy, Step, Strategy};

/// A policy that answers all counters with this strategy.
fn policy(strategy: Strategy) -> Policy {
    Policy { choice: Choice { strategy, rollout: Vec::new() }, ..Policy::default() }
}

/// A policy that sets every part.
pub fn whole_policy() -> Policy {
    let step = |strategy, below| Step { strategy, modulo: 100, below };
    let choice = Choice {
        strategy: Strategy::Result,
        rollout: vec![
            step(Strategy::Live, 5),
            step(Strategy::Phased, 100),
            step(Strategy::None, 0),
        ],
    };

    let canary = Choice { strategy: Strategy::Live, rollout: vec![step(Strategy::Result, 1)] };
    let overrides =
        [("reader-☔ \"'\\".to_owned(), canary), ("plain".to_owned(), Choice::default())];
    Policy { choice, overrides: overrides.into() }
}

pub async fn the_cache_policy_is_the_default_until_it_is_set(catalog: &dyn Policies) {
    let unset =
        VersionedPolicy { policy: Policy::default(), version: 0, ..VersionedPolicy::default() };
    assert_eq!(catalog.cache_policy().await.unwrap(), unset);
    // Choosing the default is a decision, too, and leaves a version with its author.
    let chosen =
        catalog.set_cache_policy(Policy::default(), None, change("as it is")).await.unwrap();
    assert_eq!(
        (chosen.version, &chosen.policy, &*chosen.reason),
        (1, &Policy::default(), "as it is")
    );
    assert_eq!(catalog.cache_policy().await.unwrap(), chosen);
}

pub async fn a_policy_comes_back_whole(catalog: &dyn Catalog) {
    let change = Change { by: "Zoë".to_owned(), reason: "it's \"new\"\n☔".to_owned(), at_s: -1 };
    let set = catalog.set_cache_policy(whole_policy(), Some(0), change).await.unwrap();
    let expected = VersionedPolicy {
        policy: whole_policy(),
        version: 1,
        changed_by: "Zoë".to_owned(),
        reason: "it's \"new\"\n☔".to_owned(),
        changed_at: -1,
    };
    assert_eq!(set, expected);
    assert_eq!(catalog.cache_policy().await.unwrap(), expected);
    assert_eq!(catalog.list().await.unwrap(), []);
}

pub async fn a_change_of_the_policy_names_the_version_it_is_based_on(catalog: &dyn Policies) {
    let early = catalog.set_cache_policy(policy(Strategy::Live), Some(1), change("")).await;
    assert!(matches!(early, Err(Error::PolicyMismatch { current: 0 })), "{early:?}");
    assert_eq!(
        catalog
            .set_cache_policy(policy(Strategy::Result), Some(0), change(""))
            .await
            .unwrap()
            .version,
        1
    );

    for expected in [0, 2, u32::MAX] {
        let late =
            catalog.set_cache_policy(policy(Strategy::Live), Some(expected), change("late")).await;
        assert!(matches!(late, Err(Error::PolicyMismatch { current: 1 })), "{expected}: {late:?}");
    }

    assert_eq!(catalog.cache_policy().await.unwrap().policy, policy(Strategy::Result));
    assert_eq!(
        catalog
            .set_cache_policy(policy(Strategy::Phased), Some(1), change(""))
            .await
            .unwrap()
            .version,
        2
    );
    assert_eq!(
        catalog.set_cache_policy(policy(Strategy::None), None, change("")).await.unwrap().version,
        3
    );
}

pub async fn every_version_of_the_policy_is_kept(catalog: &dyn Policies) {
    assert_eq!(catalog.cache_policies(9).await.unwrap(), []);
    let mut versions = Vec::new();
    for strategy in [Strategy::Result, Strategy::Live, Strategy::Result] {
        versions.insert(
            0,
            catalog
                .set_cache_policy(policy(strategy), None, change(strategy.name()))
                .await
                .unwrap(),
        );
    }

    assert_eq!(catalog.cache_policies(9).await.unwrap(), versions);
    assert_eq!(catalog.cache_policies(2).await.unwrap(), versions[..2]);
}

pub async fn an_equal_policy_is_no_change(catalog: &dyn Catalog) {
    let first = catalog.set_cache_policy(whole_policy(), None, change("first")).await.unwrap();
    let revision = catalog.revision().await.unwrap();
    for expected in [None, Some(1)] {
        let again =
            catalog.set_cache_policy(whole_policy(), expected, change("again")).await.unwrap();
        assert_eq!(again, first);
    }
    let late = catalog.set_cache_policy(whole_policy(), Some(2), change("again")).await;
    assert!(matches!(late, Err(Error::PolicyMismatch { current: 1 })));
    assert_eq!(catalog.cache_policy().await.unwrap(), first);
    assert_eq!(catalog.revision().await.unwrap(), revision);
}

pub async fn the_revision_grows_with_the_policy(catalog: &dyn Catalog) {
    let mut revisions = vec![catalog.revision().await.unwrap()];
    catalog.set_cache_policy(policy(Strategy::Live), None, change("")).await.unwrap();
    revisions.push(catalog.revision().await.unwrap());
    catalog.create(counter("a"), change("")).await.unwrap();
    revisions.push(catalog.revision().await.unwrap());
    catalog.set_cache_policy(policy(Strategy::Result), Some(1), change("")).await.unwrap();
    revisions.push(catalog.revision().await.unwrap());
    assert!(revisions.is_sorted_by(|earlier, later| earlier < later), "{revisions:?}");
    catalog.set_cache_policy(policy(Strategy::Live), Some(1), change("")).await.unwrap_err();
    assert_eq!(catalog.revision().await.unwrap(), revisions[3]);
}

pub async fn no_concurrent_change_of_the_policy_is_lost(catalog: &dyn Policies) {
    const EDITORS: u32 = 4;
    const CHANGES: u32 = 5;
    let editor = || -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..CHANGES {
                widen(catalog).await;
            }
        })
    };
    at_once((0..EDITORS).map(|_| editor()).collect()).await;
    let newest = catalog.cache_policy().await.unwrap();
    assert_eq!((newest.version, below(&newest.policy)), (EDITORS * CHANGES, EDITORS * CHANGES));
}

/// Widens a rollout by one percent, and repeats until its change is the next version.
async fn widen(catalog: &dyn Policies) {
    loop {
        let current = catalog.cache_policy().await.unwrap();
        let rollout =
            vec![Step { strategy: Strategy::Live, modulo: 100, below: below(&current.policy) + 1 }];
        let wider = Policy { choice: Choice { rollout, ..Choice::default() }, ..Policy::default() };
        match catalog.set_cache_policy(wider, Some(current.version), change("one more")).await {
            Ok(set) => return assert_eq!(set.version, current.version + 1),
            Err(Error::PolicyMismatch { current: newer }) => assert!(newer > current.version),
            Err(error) => panic!("{error}"),
        }
    }
}

fn below(policy: &Policy) -> u32 {
    policy.choice.rollout.first().map_or(0, |step| step.below)
}
