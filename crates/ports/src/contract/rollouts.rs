//! The contract of rollouts.

use crate::rollouts::{Error, Rollouts, Run};
use raingauge_policy::cache::{Policy, Strategy};
use raingauge_policy::rollout::{Limits, Plan, Rollout, Tally};

const NOW_S: i64 = 1_727_215_200;

/// Runs the whole suite. `fresh` returns a store without rollouts each time.
pub async fn suite<R: Rollouts>(fresh: impl AsyncFn() -> R) {
    a_place_without_rollouts_has_nothing(&fresh().await).await;
    a_rollout_comes_back_whole(&fresh().await).await;
    one_runs_at_a_time(&fresh().await).await;
    a_change_names_the_revision_it_is_based_on(&fresh().await).await;
}

/// A rollout that begins now.
pub fn run() -> Run {
    let shares = vec![5, 100];
    let limits = Limits::DEFAULT;
    let plan = Plan { to: Strategy::Live, shares, canary_s: 0.0, hold_s: 10.0, limits };

    Run {
        id: 0,
        revision: 0,
        started_at: NOW_S,
        started_by: "zoe".to_owned(),
        reason: "try it".to_owned(),
        ended_at: None,
        conductor: "a1b2".to_owned(),
        rollout: Rollout::new(plan, Policy::default(), 3, NOW_S * 1_000),
    }
}

pub async fn a_place_without_rollouts_has_nothing(rollouts: &dyn Rollouts) {
    assert_eq!(rollouts.list(10).await.unwrap(), []);
    assert_eq!(rollouts.running().await.unwrap(), None);
    for id in [0, 1, u64::from(u32::MAX)] {
        assert!(matches!(rollouts.get(id).await, Err(Error::NotFound(found)) if found == id));
    }
    assert!(matches!(
        rollouts.replace(Run { id: 1, revision: 1, ..run() }).await,
        Err(Error::NotFound(1))
    ));
}

pub async fn a_rollout_comes_back_whole(rollouts: &dyn Rollouts) {
    let mut whole =
        Run {
            reason: "it's \"new\"\n☔ '; --".to_owned(), started_by: "Zoë".to_owned(), ..run()
        };
    let grown = Tally {
        batches: 1_000.0,
        batch_seconds: 0.5,
        counts: 10_000.0,
        within: vec![(0.5, 1_000.0)],
        ..Tally::default()
    };

    whole.rollout.beat(NOW_S * 1_000 + 10_000, &grown, Vec::new());
    assert_eq!(whole.rollout.watched.len(), 1);

    let kept = rollouts.begin(whole.clone()).await.unwrap();
    assert_eq!(kept, Run { id: kept.id, revision: 1, ..whole });
    assert!(kept.id > 0);
    assert_eq!(rollouts.get(kept.id).await.unwrap(), kept);
    assert_eq!(rollouts.list(10).await.unwrap(), [kept]);
}

pub async fn one_runs_at_a_time(rollouts: &dyn Rollouts) {
    let first = rollouts.begin(run()).await.unwrap();
    assert!(matches!(rollouts.begin(run()).await, Err(Error::Running(id)) if id == first.id));
    assert_eq!(rollouts.running().await.unwrap(), Some(first.clone()));
    let ended = rollouts.replace(Run { ended_at: Some(NOW_S + 60), ..first }).await.unwrap();
    assert_eq!(rollouts.running().await.unwrap(), None);
    let second = rollouts.begin(run()).await.unwrap();
    assert!(second.id > ended.id);
    assert_eq!(rollouts.list(10).await.unwrap(), [second.clone(), ended]);
    assert_eq!(rollouts.list(1).await.unwrap(), [second]);
}

pub async fn a_change_names_the_revision_it_is_based_on(rollouts: &dyn Rollouts) {
    let first = rollouts.begin(run()).await.unwrap();
    let second =
        rollouts.replace(Run { conductor: "c3d4".to_owned(), ..first.clone() }).await.unwrap();
    assert_eq!((second.revision, second.conductor.as_str()), (2, "c3d4"));
    let late = rollouts.replace(first.clone()).await;
    assert!(matches!(late, Err(Error::RevisionMismatch { id, current: 2 }) if id == first.id));
    assert_eq!(rollouts.get(first.id).await.unwrap(), second);
}
