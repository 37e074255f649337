//! Which part of each award a refund takes back.

use crate::Points;
use crate::earned::{Earned, EarnedAward};
use crate::number::Number;
use crate::programme::Programme;
use crate::refused;
use raingauge_core::code::{Code, Refusal};

/// What is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Everything,
    /// What goes with an amount that is paid back.
    Amount(Number),
    Points(Points),
}

impl Extent {
    pub(super) fn of(amount: Option<Number>, points: Option<Points>) -> Result<Self, Refusal> {
        if amount.is_some_and(Number::is_negative) || points.is_some_and(|points| points <= 0) {
            return refused(Code::PointsInvalid, "what is taken back must be positive");
        }
        match (amount, points) {
            (None, None) => Ok(Self::Everything),
            (Some(amount), None) => Ok(Self::Amount(amount)),
            (None, Some(points)) => Ok(Self::Points(points)),
            (Some(_), Some(_)) => {
                refused(Code::PointsInvalid, "a reversal has an amount or points, not both")
            }
        }
    }
}

/// The part of an award that is taken back.
pub(super) struct Part {
    pub(super) award: EarnedAward,
    pub(super) points: Points,
    /// What is added to the amount that was paid back.
    pub(super) amount: Option<Number>,
}

impl Part {
    /// All that is left of an award.
    fn whole(award: &EarnedAward) -> Self {
        let amount = Some(remaining(award)).filter(|rest| !rest.is_zero());
        Self { award: award.clone(), points: left(award), amount }
    }

    /// What goes with an amount of an award that has one.
    fn paid_back(
        award: &EarnedAward,
        amount: Number,
        programme: &Programme,
    ) -> Result<Self, Refusal> {
        match award.multiplier {
            Some(multiplier) if amount < remaining(award) => {
                let points = refunded_points(award, multiplier, amount, programme)?;
                Ok(Self { award: award.clone(), points, amount: Some(amount) })
            }
            _ => Ok(Self::whole(award)),
        }
    }
}

/// What is taken back of each award. Where an amount is paid back and no award has one, that award
/// `may_come`.
pub(super) fn parts(
    earned: &Earned,
    extent: Extent,
    programme: &Programme,
    may_come: bool,
) -> Result<Vec<Part>, Refusal> {
    // Of an award that rounded to nothing, or of which no point is left, the amount still counts.
    let is_open = |award: &&EarnedAward| {
        let counts_amount = matches!(extent, Extent::Amount(_)) || award.points == 0;
        left(award) > 0 || counts_amount && remaining(award) > Number::ZERO
    };
    let open: Vec<&EarnedAward> = earned.awards.iter().filter(is_open).collect();
    if open.is_empty() {
        return refused(Code::EntryNotReversible, "all of the award was taken back before");
    }

    match extent {
        Extent::Everything => Ok(open.into_iter().map(Part::whole).collect()),
        Extent::Points(points) => by_points(&open, points, programme),
        Extent::Amount(_) if earned.awards.iter().all(|award| award.multiplier.is_none()) => {
            let detail = "the points do not follow from an amount: take back points, or all";
            let code = if may_come { Code::ReferenceUnknown } else { Code::EntryNotReversible };
            refused(code, detail)
        }
        Extent::Amount(amount) => by_amount(&open, amount, programme),
    }
}

fn by_points(
    open: &[&EarnedAward],
    points: Points,
    programme: &Programme,
) -> Result<Vec<Part>, Refusal> {
    let all: Points = open.iter().map(|award| left(award)).sum();
    if points > all {
        let detail = format!("{} points of the award are left", programme.text_of(all));
        return refused(Code::EntryNotReversible, detail);
    }

    let mut rest = points;
    let taken = open.iter().map(|award| {
        let points = left(award).min(rest);
        rest -= points;
        Part { award: (*award).clone(), points, amount: None }
    });
    Ok(taken.filter(|part| part.points > 0).collect())
}

/// Pays an amount back for one transaction after the other. Awards without an amount go when the
/// last of the others does.
fn by_amount(
    open: &[&EarnedAward],
    amount: Number,
    programme: &Programme,
) -> Result<Vec<Part>, Refusal> {
    let priced: Vec<&EarnedAward> =
        open.iter().filter(|award| award.multiplier.is_some()).copied().collect();
    if priced.is_empty() {
        return refused(Code::EntryNotReversible, "all of the amount was paid back before");
    }
    let mut origins: Vec<u64> = Vec::new();
    for award in &priced {
        if !origins.contains(&award.origin) {
            origins.push(award.origin);
        }
    }

    let too_precise = || Refusal::new(Code::TooPrecise, "the amount has too many digits");
    let mut rest = amount;
    let mut parts = Vec::with_capacity(open.len());
    let mut is_all = true;
    for origin in origins {
        if rest.is_zero() && !parts.is_empty() {
            is_all = false;
            break;
        }
        let own = priced.iter().filter(|award| award.origin == origin);
        let paid = own.clone().map(|award| remaining(award)).max().unwrap_or(Number::ZERO);
        let paid = paid.min(rest);
        for award in own {
            is_all &= paid >= remaining(award);
            parts.push(Part::paid_back(award, paid, programme)?);
        }
        rest = rest.minus(paid).ok_or_else(too_precise)?;
    }

    if is_all {
        let fixed = open.iter().filter(|award| award.multiplier.is_none());
        parts.extend(fixed.map(|award| Part::whole(award)));
    }
    Ok(parts)
}

/// The part of the last award that was refunded before it was made, with others of its transaction
/// or with everything under its reference.
pub(super) fn late_part(earned: &Earned, occurred_ms: i64, programme: &Programme) -> Option<Part> {
    let (own, others) = earned.awards.split_last()?;
    let siblings = others.iter().filter(|award| award.origin == own.origin);
    if let Some(reversed_ms) = earned.reversed_ms {
        // At the same time, it is one of those if others of its event are.
        let is_over = |award: &EarnedAward| left(award) == 0 && remaining(award).is_zero();
        let is_one = siblings.clone().next().is_some() && siblings.clone().all(is_over);
        if occurred_ms < reversed_ms || is_one {
            return some(Part::whole(own));
        }
    }

    let priced = siblings.filter(|award| award.multiplier.is_some());
    let paid = priced.clone().map(|award| award.refunded).max()?;
    if own.multiplier.is_some() {
        let is_paid = !paid.is_zero();
        return is_paid
            .then(|| Part::paid_back(own, paid, programme).ok())
            .flatten()
            .and_then(some);
    }
    let is_all = priced.clone().all(|award| remaining(award).is_zero());
    if is_all { some(Part::whole(own)) } else { None }
}

/// A part that takes something.
fn some(part: Part) -> Option<Part> {
    (part.points > 0 || part.amount.is_some()).then_some(part)
}

fn left(award: &EarnedAward) -> Points {
    award.points - award.reversed
}

/// The part of the award's amount that was not paid back yet.
fn remaining(award: &EarnedAward) -> Number {
    let amount = award.amount.unwrap_or(Number::ZERO);
    amount.minus(award.refunded).unwrap_or(Number::ZERO).max(Number::ZERO)
}

/// The points that go with an amount that is paid back, less than what is left of it.
fn refunded_points(
    award: &EarnedAward,
    multiplier: Number,
    amount: Number,
    programme: &Programme,
) -> Result<Points, Refusal> {
    let too_precise = || Refusal::new(Code::TooPrecise, "the amount has too many digits");
    // What was paid back is kept exactly.
    award.refunded.plus(amount).ok_or_else(too_precise)?;
    let rest = remaining(award).minus(amount).ok_or_else(too_precise)?;
    let kept = rest
        .times(multiplier)
        .and_then(|product| product.round(programme.decimals(), award.rounding))
        .ok_or_else(too_precise)?;
    let target = award.points - kept.min(award.points);
    Ok((target - award.reversed).max(0))
}
