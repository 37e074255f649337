//! Points as other products of the process award them.
//!
//! The worth of an award is rounded here, once, as the programme rounds. What becomes of it is up
//! to the ledger.

use crate::error::Error;
use crate::handle::Handle;
use crate::publisher::id_of;
use crate::snapshot::Snapshot;
use raingauge_core::code::{Code, Refusal};
use raingauge_points::{self as points, Answer, Basis, Body, Command, Entry, Number, Programme};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{Award, Awarded, NotAwarded, Points, Worth};
use std::sync::Arc;
use std::time::Duration;

/// When an award is repeated that the ledger could not take.
const LATER: Duration = Duration::from_secs(2);
/// When an award is repeated for which a programme has to change first.
const MUCH_LATER: Duration = Duration::from_secs(60);

impl Points for Handle {
    fn award(&self, awards: Vec<Award>) -> BoxFuture<'_, Vec<Result<Awarded, NotAwarded>>> {
        Box::pin(async move {
            let snapshot = self.snapshot();
            let mut commands = Vec::new();
            let mut results = Vec::new();
            for award in awards {
                results.push(match command(award, &snapshot) {
                    Ok(command) => {
                        commands.push(command);
                        None
                    }
                    Err(refusal) => Some(Err(not_awarded(refusal))),
                });
            }

            let answers = self.submit(commands.clone()).await;
            let mut answered = commands.iter().zip(answers);
            let mut awards = Vec::with_capacity(results.len());
            for result in results {
                awards.push(match result {
                    Some(result) => result,
                    None => {
                        let (command, answer) = answered.next().expect("each is answered");
                        self.outcome(command, answer).await
                    }
                });
            }
            awards
        })
    }
}

impl Handle {
    /// What became of an award. The key says which one it is: an award that was made before its
    /// programme began to round otherwise would have other points by now, and was made nonetheless.
    async fn outcome(
        &self,
        command: &Command,
        answer: Result<Answer, Error>,
    ) -> Result<Awarded, NotAwarded> {
        let is_reused = |refusal: &Refusal| refusal.code == Code::KeyReused;
        if !matches!(&answer, Ok(Answer::Invalid(refusal)) if is_reused(refusal)) {
            return awarded(answer);
        }

        let Command { programme, source, key, member, .. } = command;
        let found = match self.members().by_key(programme, source, key).await {
            Ok(found) => found.into_iter().find(|entry| entry.member.as_ref() == Some(member)),
            Err(error) => return awarded(Err(error)),
        };
        match found {
            Some(entry) => match entry.refusal.clone() {
                Some(refusal) => Err(NotAwarded::Refused(refusal)),
                None => Ok(of_entry(&entry, true)),
            },
            None => awarded(answer),
        }
    }
}

fn command(award: Award, snapshot: &Snapshot) -> Result<Command, Refusal> {
    let Award { programme, member, key, source, worth, occurred_ms, reason, budget } = award;
    let Some(known) = snapshot.programme(&programme) else {
        let detail = format!("there is no programme {programme}");
        return Err(Refusal::new(Code::ProgrammeUnknown, detail));
    };
    let worth = points_of(&worth, known)?;
    let award = points::Award {
        basis: Basis::Points(worth),
        budget: budget.map(Arc::from),
        pending_days: None,
        expires_on: None,
        extends: None,
    };
    Ok(Command {
        programme: programme.into(),
        member: member.into(),
        key: key.into(),
        source: source.into(),
        occurred_ms: Some(occurred_ms),
        accepted_ms: None,
        reference: None,
        reason: reason.map(Arc::from),
        body: Body::Award(award),
    })
}

/// What an award is worth, in units of 10^-decimals of the programme.
fn points_of(worth: &Worth, programme: &Programme) -> Result<points::Points, Refusal> {
    let number = |text: &str| {
        let detail = || format!("`{text}` is not a decimal number");
        Number::parse(text).ok_or_else(|| Refusal::new(Code::PointsInvalid, detail()))
    };
    let too_precise = || {
        let detail = "the product has more digits than can be computed exactly";
        Refusal::new(Code::TooPrecise, detail)
    };
    match worth {
        Worth::Points(points) => programme.points_of(&number(&points.to_string())?),
        Worth::Product { amount, factors } => {
            let mut product = number(amount)?;
            for (_, factor) in factors {
                product = product.times(number(factor)?).ok_or_else(too_precise)?;
            }
            product.round(programme.decimals(), programme.rounding()).ok_or_else(too_precise)
        }
    }
}

fn awarded(answer: Result<Answer, Error>) -> Result<Awarded, NotAwarded> {
    match answer {
        Ok(Answer::Done(entries)) => {
            let first = entries.first().expect("what is done has an entry");
            Ok(of_entry(first, false))
        }
        Ok(Answer::Replayed(entry)) => Ok(of_entry(&entry, true)),
        Ok(Answer::Refused { refusal, .. }) => Err(NotAwarded::Refused(refusal)),
        Ok(Answer::Invalid(refusal)) => Err(not_awarded(refusal)),
        Err(error) => {
            let retry_after = match &error {
                Error::Busy { retry_after } => *retry_after,
                _ => LATER,
            };
            Err(NotAwarded::Later { retry_after, detail: error.to_string() })
        }
    }
}

/// A refusal that left nothing. It may be another one when the programme has changed.
fn not_awarded(refusal: Refusal) -> NotAwarded {
    match refusal.code {
        Code::ProgrammeUnknown | Code::FactorMissing => {
            NotAwarded::Later { retry_after: MUCH_LATER, detail: refusal.detail }
        }
        _ => NotAwarded::Refused(refusal),
    }
}

fn of_entry(entry: &Entry, is_replayed: bool) -> Awarded {
    Awarded {
        entry: id_of(entry),
        points: entry.awarded(),
        balance: entry.balance_after,
        is_replayed,
    }
}
