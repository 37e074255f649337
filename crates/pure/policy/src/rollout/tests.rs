//! A rollout from its beginning to each of its ends, by a clock that the test moves.

use super::*;
use crate::cache::Strategy;

const BEAT_MS: i64 = 5_000;

/// What readers did within a beat: this number of batches, each of this duration.
fn batches(number: f64, milliseconds: f64) -> Tally {
    let bounds = [0.005, 0.01, 0.05, 0.1, 0.5];
    let within = bounds
        .map(|bound| (bound, if milliseconds / 1e3 <= bound { number } else { 0.0 }))
        .to_vec();
    let batch_seconds = number * milliseconds / 1e3;
    let counts = number * 10.0;
    let store_requests = number * 20.0;
    Tally { batches: number, batch_seconds, counts, store_requests, within, ..Tally::default() }
}

struct Service {
    rollout: Rollout,
    now_ms: i64,
    version: u32,
}

impl Service {
    fn new(shares: &[u32]) -> Self {
        let shares = shares.to_vec();
        let canary_s = 10.0;
        let hold_s = 20.0;
        let plan = Plan { to: Strategy::Live, shares, canary_s, hold_s, limits: Limits::DEFAULT };
        let rollout = Rollout::new(plan, Policy::default(), 7, 0);
        Self { rollout, now_ms: 0, version: 7 }
    }

    /// Carries out what is ordered, and answers how many policies that was.
    fn obey(&mut self) -> usize {
        let mut set = 0;
        while self.rollout.order().is_some() {
            (set, self.version) = (set + 1, self.version + 1);
            self.rollout.ordered(self.version, self.now_ms);
        }
        set
    }

    fn beat(&mut self, grown: &Tally) {
        self.now_ms += BEAT_MS;
        self.rollout.beat(self.now_ms, grown, Vec::new());
        self.obey();
    }

    /// Beats until the stage is another one.
    fn pass_stage(&mut self, grown: &Tally) {
        let over = self.rollout.watched.len();
        while self.rollout.watched.len() == over && self.rollout.end().is_none() {
            self.beat(grown);
        }
    }

    fn share(&self) -> Option<u32> {
        self.rollout.stage().map(|stage| stage.share)
    }

    fn ended(&self) -> (End, &str) {
        match &self.rollout.phase {
            Phase::Ended { end, why } => (*end, why),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_stage_is_set_followed_watched_and_passed() {
    let mut service = Service::new(&[5, 100]);
    let mut shares = Vec::new();
    while let Some(share) = service.share() {
        shares.push(share);
        service.pass_stage(&batches(100.0, 4.0));
    }

    assert_eq!(shares, [0, 1, 5, 6, 100]);
    assert_eq!(service.ended(), (End::Finished, ""));
    assert_eq!(
        (service.version, service.rollout.version),
        (11, 11),
        "one policy for each stage but the first"
    );
    assert!(
        service
            .rollout
            .watched
            .iter()
            .skip(1)
            .all(|watched| watched.verdicts.iter().all(Verdict::holds))
    );
    assert!(
        service.rollout.markdown().contains("| 6 %, canary | 200 |"),
        "{}",
        service.rollout.markdown()
    );
    assert!(service.rollout.markdown().ends_with("`live` is in force.\n"));

    let json = serde_json::to_string(&service.rollout).unwrap();
    assert_eq!(serde_json::from_str::<Rollout>(&json).unwrap(), service.rollout);
}

#[test]
fn a_broken_limit_brings_the_previous_policy_back_when_the_window_is_settled() {
    let mut service = Service::new(&[5, 100]);
    service.pass_stage(&batches(100.0, 4.0));
    service.beat(&Tally::default());
    // A fifth of the canary's ten seconds is over with the first beat, and enough was asked.
    service.beat(&batches(200.0, 90.0));
    let (end, why) = service.ended();
    assert!(end == End::Broken && why.contains("the 99th percentile is"), "{why}");
    assert_eq!(service.version, 9, "the canary, and back");
    assert!(!service.rollout.watched[1].verdicts[0].holds());
    assert!(service.rollout.markdown().contains("Rolled back: the 99th percentile"));
}

#[test]
fn a_slow_beginning_is_averaged_and_a_breaker_is_not() {
    let mut service = Service::new(&[50, 100]);
    service.pass_stage(&batches(100.0, 4.0));
    service.beat(&Tally::default());
    // Too few to say anything, however slow they were.
    service.beat(&batches(50.0, 90.0));
    assert_eq!(service.share(), Some(1));
    service.beat(&batches(20_000.0, 4.0));
    assert_eq!(service.share(), Some(50), "one in 400 was slow");
    service.beat(&Tally::default());
    service.beat(&Tally { breakers_opened: 1.0, ..Tally::default() });
    assert_eq!(service.ended(), (End::Broken, "1 circuit breakers opened, above 0"));
}

#[test]
fn too_little_to_judge_by_is_waited_for_and_then_it_goes_back() {
    let mut service = Service::new(&[100]);
    for _ in 0..39 {
        service.beat(&batches(1.0, 4.0));
        assert_eq!(service.share(), Some(0));
    }
    service.beat(&batches(1.0, 4.0));
    assert_eq!(service.ended().0, End::Inconclusive);
    assert_eq!(service.version, 7, "nothing was set, so nothing is set back");
}

#[test]
fn processes_that_do_not_follow_are_waited_for_and_named() {
    let mut service = Service::new(&[50]);
    service.pass_stage(&batches(100.0, 4.0));

    let lagging = vec!["reader-2".to_owned()];
    for _ in 0..12 {
        service.now_ms += BEAT_MS;
        service.rollout.beat(service.now_ms, &batches(100.0, 4.0), lagging.clone());
        assert!(matches!(
            &service.rollout.phase,
            Phase::Following { lagging: known, .. } if *known == lagging
        ));
    }

    service.now_ms += BEAT_MS;
    service.rollout.beat(service.now_ms, &Tally::default(), lagging);
    assert_eq!(service.obey(), 1);

    assert_eq!(
        service.ended(),
        (End::Failed, "version 8 of the policy is not followed by reader-2")
    );
}

#[test]
fn a_person_goes_on_or_stops() {
    let mut service = Service::new(&[50, 100]);
    assert_eq!(service.rollout.go_on("zoe"), Err(Rejection::TooLittle));
    service.beat(&batches(100.0, 4.0));
    service.rollout.go_on("zoe").unwrap();
    assert_eq!(service.rollout.go_on("zoe"), Err(Rejection::BetweenSteps));
    service.obey();
    assert_eq!(service.rollout.watched[0].cut_by.as_deref(), Some("zoe"));
    service.beat(&Tally::default());
    service.rollout.go_on("zoe").unwrap();
    service.rollout.stop("max").unwrap();
    assert_eq!(
        (service.rollout.stop("max"), service.rollout.go_on("zoe")),
        (Err(Rejection::Returning), Err(Rejection::Returning))
    );
    assert_eq!(service.rollout.order().map(|order| order.policy), Some(Policy::default()));
    service.obey();
    assert_eq!(service.ended(), (End::Stopped, "max stopped it"));
    assert_eq!(
        (service.rollout.stop("max"), service.rollout.go_on("zoe")),
        (Err(Rejection::Ended), Err(Rejection::Ended))
    );

    let mut early = Service::new(&[50]);
    early.rollout.stop("max").unwrap();
    assert_eq!((early.ended().0, early.version), (End::Stopped, 7));
}

#[test]
fn a_policy_of_another_person_is_distinguished_from_ones_own() {
    let mut service = Service::new(&[50, 100]);
    for _ in 0..4 {
        service.rollout.beat(service.now_ms, &batches(100.0, 4.0), Vec::new());
        service.now_ms += BEAT_MS;
    }

    service.rollout.beat(service.now_ms, &Tally::default(), Vec::new());
    assert_eq!((&service.rollout.phase, service.share()), (&Phase::Setting, Some(1)));

    let rollout = &mut service.rollout;
    let [before, canary, step] =
        [0, 1, 50].map(|share| rollout.plan.policy(&rollout.before, share));
    assert!(!rollout.is_overruled(7, &before), "the version that it began from");
    assert!(
        !rollout.is_overruled(8, &canary),
        "set by a conductor that died before it could note that"
    );
    assert!(
        rollout.is_overruled(8, &step)
            && rollout.is_overruled(8, &before)
            && rollout.is_overruled(9, &canary)
    );

    let mut stopped = rollout.clone();
    stopped.stop("max").unwrap();
    assert!(
        !stopped.is_overruled(8, &canary)
            && !stopped.is_overruled(8, &before)
            && stopped.is_overruled(8, &step)
    );

    // Once it is noted, another person may well set what the rollout itself would set.
    rollout.ordered(8, service.now_ms);
    assert!(
        !rollout.is_overruled(8, &canary)
            && rollout.is_overruled(9, &canary)
            && rollout.is_overruled(9, &before)
    );
    rollout.overrule(9, "max");
    assert_eq!(service.ended(), (End::Overruled, "max set version 9 of the policy"));
}

#[test]
fn a_window_that_nobody_watched_begins_again() {
    let mut service = Service::new(&[100]);
    service.beat(&batches(10_000.0, 400.0));
    service.now_ms += 3_600_000;
    service.rollout.resume(service.now_ms);
    service.beat(&batches(100.0, 4.0));
    let window = service.rollout.window().expect("it is open");
    assert_eq!((window.seconds, window.batches, service.rollout.interruptions), (5.0, 100.0, 1));
}
