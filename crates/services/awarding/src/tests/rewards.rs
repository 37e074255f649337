use super::stage::{DAY_MS, PROGRAMME, Process, Stage, award};
use crate::error::Error;
use crate::rewards::{Fulfilment, Redemption};
use raingauge_core::code::Code;
use raingauge_points::Answer;
use std::sync::Arc;

fn redemption(member: &str, key: &str) -> Redemption {
    Redemption {
        programme: PROGRAMME.into(),
        member: member.into(),
        reward: "cup".into(),
        key: key.into(),
        source: "".into(),
    }
}

fn end(member: &str, redemption: &str, key: &str) -> Fulfilment {
    Fulfilment {
        programme: PROGRAMME.into(),
        member: member.into(),
        redemption: redemption.into(),
        key: key.into(),
        source: "".into(),
        reason: None,
    }
}

fn code(answer: &Result<Answer, Error>) -> Option<Code> {
    match answer {
        Ok(Answer::Refused { refusal, .. } | Answer::Invalid(refusal)) => Some(refusal.code),
        _ => None,
    }
}

/// A stock of two, and many buyers.
#[test]
fn a_stock_is_not_oversold_and_what_is_cancelled_returns_to_it() {
    let (stage, mut process) = Stage::with_programme();
    let buyers: Vec<String> = (0..20).map(|number| format!("buyer-{number}")).collect();
    let awards = buyers.iter().map(|buyer| award(buyer, &format!("a-{buyer}"), 80)).collect();
    stage.submit(&mut process, awards);

    let rewards = process.rewards.clone();
    let redeem = |process: &mut Process, buyer: &str, key: &str| {
        stage.during(process, rewards.redeem(redemption(buyer, key)))
    };
    let mut sold = Vec::new();
    for buyer in &buyers {
        let answer = redeem(&mut process, buyer, &format!("r-{buyer}"));
        match code(&answer) {
            None => sold.push(buyer.clone()),
            Some(code) => assert_eq!(code, Code::RewardSoldOut),
        }
    }
    assert_eq!(sold.len(), 2);
    assert_eq!(stage.available(&process, &sold[0]), 30);

    // The same redemption again has the same answer.
    let again = redeem(&mut process, &sold[0], &format!("r-{}", sold[0]));
    assert!(matches!(again, Ok(Answer::Replayed(_))), "{again:?}");

    let redeemed = format!("r-{}", sold[0]);
    let cancel = rewards.cancel(end(&sold[0], &redeemed, "c-1"));
    let cancelled = stage.during(&mut process, cancel);
    assert_eq!(code(&cancelled), None, "{cancelled:?}");
    assert_eq!(stage.available(&process, &sold[0]), 80);
    let redeemed = format!("r-{}", sold[1]);
    let fulfil = rewards.fulfil(end(&sold[1], &redeemed, "c-2"));
    let fulfilled = stage.during(&mut process, fulfil);
    assert_eq!(code(&fulfilled), None, "{fulfilled:?}");
    let fulfil = rewards.fulfil(end(&sold[1], &redeemed, "c-3"));
    let twice = stage.during(&mut process, fulfil);
    assert_eq!(code(&twice), Some(Code::HoldResolved), "{twice:?}");

    let next = redeem(&mut process, &buyers[19], "r-next");
    assert_eq!(code(&next), None, "{next:?}");
    let last = redeem(&mut process, &buyers[18], "r-last");
    assert_eq!(code(&last), Some(Code::RewardSoldOut));
}

#[test]
fn a_hold_that_nobody_ends_times_out() {
    let (stage, mut process) = Stage::with_programme();
    stage.submit(&mut process, vec![award("bob", "a", 80)]);
    let rewards = process.rewards.clone();
    let held = stage.during(&mut process, rewards.redeem(redemption("bob", "r-1")));
    assert_eq!(code(&held), None, "{held:?}");
    stage.clock.advance(3 * DAY_MS);
    let sweeper = Arc::clone(&process.sweeper);
    assert_eq!(stage.during(&mut process, sweeper.sweep()).unwrap().entries, 1);
    assert_eq!(stage.available(&process, "bob"), 80);
}
