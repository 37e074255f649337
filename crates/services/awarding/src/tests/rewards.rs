use super::stage::{DAY_MS, Process, Stage, award, command};
use crate::error::Error;
use raingauge_core::code::Code;
use raingauge_points::{Answer, Body};
use std::sync::Arc;

/// Reserves the points of a reward, and takes one of its stock.
fn redemption() -> Body {
    Body::Hold { points: None, until_ms: None, reward: Some("cup".into()) }
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

    let decide = |process: &mut Process, buyer: &str, key: &str, body: Body| {
        stage.submit(process, vec![command(buyer, key, body)]).remove(0)
    };
    let redeem =
        |process: &mut Process, buyer: &str, key: &str| decide(process, buyer, key, redemption());
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

    let hold = |buyer: &str| Arc::from(format!("r-{buyer}"));
    let cancel = Body::Release { hold: hold(&sold[0]) };
    let cancelled = decide(&mut process, &sold[0], "c-1", cancel);
    assert_eq!(code(&cancelled), None, "{cancelled:?}");
    assert_eq!(stage.available(&process, &sold[0]), 80);
    let fulfil = || Body::Capture { hold: hold(&sold[1]), points: None };
    let fulfilled = decide(&mut process, &sold[1], "c-2", fulfil());
    assert_eq!(code(&fulfilled), None, "{fulfilled:?}");
    let twice = decide(&mut process, &sold[1], "c-3", fulfil());
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
    let held = stage.submit(&mut process, vec![command("bob", "r-1", redemption())]).remove(0);
    assert_eq!(code(&held), None, "{held:?}");
    stage.clock.advance(3 * DAY_MS);
    let sweeper = Arc::clone(&process.sweeper);
    assert_eq!(stage.during(&mut process, sweeper.sweep()).unwrap().entries, 1);
    assert_eq!(stage.available(&process, "bob"), 80);
}
