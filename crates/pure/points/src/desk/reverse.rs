//! Reversals: an award is taken back, in all or in parts.
//!
//! ```text
//!   taken back so far + now = awarded − round(remaining amount × recorded factors)
//! ```
//!
//! so that refunds in any number of parts take back exactly what was given.

use super::check::WALLET_POINTS_MAX;
use super::{Desk, Order};
use crate::Points;
use crate::account::Account;
use crate::document::Negative;
use crate::draft::Draft;
use crate::earned::{Earned, EarnedAward};
use crate::entry::{BudgetUse, Entry, Kind, Qualifying, Reversal};
use crate::identity::{Key, ReferenceId};
use crate::number::Number;
use crate::refused;
use crate::snapshot::reversed_keys;
use raingauge_core::code::{Code, Refusal};
use std::sync::Arc;

/// The part of an award that is taken back.
struct TakenPart {
    award: EarnedAward,
    points: Points,
    /// What is added to the amount that was paid back.
    amount: Option<Number>,
    name: AwardName,
}

/// What the record of an award is found by.
#[derive(Clone)]
enum AwardName {
    Reference(Arc<str>),
    /// Of an award without a reference.
    Key(Key),
}

impl Desk<'_> {
    pub(super) fn reverse(
        &mut self,
        order: &Order<'_>,
        key: Option<&str>,
        amount: Option<Number>,
        points: Option<Points>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        if amount.is_some_and(Number::is_negative) || points.is_some_and(|points| points <= 0) {
            return refused(Code::PointsInvalid, "what is taken back must be positive");
        }
        if amount.is_some() && points.is_some() {
            return refused(Code::PointsInvalid, "a reversal has an amount or points, not both");
        }

        let (earned, name) = match key {
            Some(key) => self.earned_by_key(order, key)?,
            None => self.earned_by_reference(order)?,
        };
        self.check_source(order, &earned)?;
        let parts = parts(&earned, &name, amount, points, order)?;
        self.all_or_nothing(|desk| {
            let mut entries = Vec::with_capacity(parts.len());
            for part in &parts {
                entries.push(desk.take_back(order, part, entries.is_empty())?);
            }
            Ok(entries)
        })
    }

    fn earned_by_reference(&self, order: &Order<'_>) -> Result<(Earned, AwardName), Refusal> {
        let Some(reference) = &order.command.reference else {
            return refused(Code::PointsInvalid, "a reversal names an award");
        };
        let id = ReferenceId::of(&order.id.programme, &order.id.member, reference);
        match self.state.references.get(&id).filter(|earned| !earned.is_empty()) {
            Some(earned) => Ok((earned.clone(), AwardName::Reference(reference.clone()))),
            None => refused(
                Code::ReferenceUnknown,
                format!("the member has no award under the reference `{reference}`"),
            ),
        }
    }

    /// The award with a key.
    fn earned_by_key(&self, order: &Order<'_>, key: &str) -> Result<(Earned, AwardName), Refusal> {
        let keys = reversed_keys(order.command, key);
        let mut entries = keys.iter().filter_map(|key| Some((*key, self.state.keys.get(key)?)));
        let Some((hash, entry)) = entries.next() else {
            return refused(Code::ReferenceUnknown, format!("no award has the key `{key}`"));
        };
        let is_award = matches!(entry.kind, Kind::Earn | Kind::Bonus);
        if !is_award || entry.member.as_ref() != Some(&order.id.member) {
            let detail = format!("the key `{key}` is not that of an award of the member");
            return refused(Code::EntryNotReversible, detail);
        }

        let (id, name) = match (entry.reference_id(), &entry.reference) {
            (Some(id), Some(reference)) => (id, AwardName::Reference(reference.clone())),
            _ => (ReferenceId::of_key(&order.id.programme, hash), AwardName::Key(hash)),
        };
        let known = self.state.references.get(&id).filter(|earned| !earned.is_empty());
        let mut earned = match known {
            Some(earned) => earned.clone(),
            None => Earned { awards: vec![EarnedAward::of(entry)] },
        };
        let place = (entry.book, entry.sequence);
        earned.awards.retain(|award| (award.book, award.sequence) == place);
        Ok((earned, name))
    }

    /// Partners take back what they awarded themselves.
    fn check_source(&self, order: &Order<'_>, earned: &Earned) -> Result<(), Refusal> {
        let source = &order.command.source;
        let is_partner = order.programme.partner(source).is_some();
        if is_partner && earned.awards.iter().any(|award| award.source != *source) {
            return refused(Code::SourceForeign, "the award is of another source");
        }
        Ok(())
    }

    /// Takes points out of what is pending, the award's own lot, and those that expire first.
    fn take_back(
        &mut self,
        order: &Order<'_>,
        part: &TakenPart,
        carries_key: bool,
    ) -> Result<Arc<Entry>, Refusal> {
        let wallet = self.wallet(&order.id);
        let programme = order.programme;
        let award = &part.award;
        let mut draft = Draft::new(&order.id, &wallet, programme, Kind::Reverse, order.occurred_ms);
        order.mark(&mut draft.entry, carries_key);
        draft.entry.post(Account::Issued(award.budget.clone()), part.points);

        let mut missing = part.points;
        if let (Some(matures), Some(expiry)) = (award.matures, award.expiry) {
            let taken = wallet.pending_in(matures, expiry).min(missing);
            draft.entry.post(Account::Pending { matures, expiry }, -taken);
            missing -= taken;
        }
        if let Some(expiry) = award.expiry {
            missing = draft.take_from(expiry, missing);
        }
        missing = draft.take(missing);

        let owed = wallet.arrears.saturating_add(missing);
        match programme.negative {
            _ if missing == 0 => {}
            Negative::Refuse => {
                return refused(Code::InsufficientPoints, "the points of the award were spent");
            }
            Negative::Cap => draft.entry.post(Account::WrittenOff, -missing),
            Negative::Arrears if programme.arrears_floor.is_some_and(|floor| -owed < floor) => {
                return refused(Code::ArrearsFloor, "the member would owe more than is allowed");
            }
            Negative::Arrears if i128::from(owed) > WALLET_POINTS_MAX => {
                return refused(Code::Overflow, "the member owes as many points as one can owe");
            }
            Negative::Arrears => draft.entry.post(Account::Arrears, -missing),
        }

        let changes = &mut draft.entry.changes;
        if let Some(period) = award.period.filter(|_| part.points > 0) {
            changes.qualifying = Some(Qualifying { period, points: -part.points });
        }
        // A budget gets back no more than was used of it since it has a limit.
        if programme.budgets.contains_key(&award.budget) {
            let amount = self.used(programme, &award.budget).clamp(0, part.points);
            if amount > 0 {
                changes.budgets.push(BudgetUse { budget: award.budget.clone(), amount: -amount });
            }
        }
        changes.reversal = Some(Reversal {
            book: award.book,
            sequence: award.sequence,
            points: part.points,
            amount: part.amount,
            key: match &part.name {
                AwardName::Reference(_) => None,
                AwardName::Key(key) => Some(*key),
            },
        });
        if let AwardName::Reference(reference) = &part.name {
            draft.entry.reference = Some(reference.clone());
        }
        Ok(self.record(draft.finish(), programme))
    }
}

/// What is taken back of each award.
fn parts(
    earned: &Earned,
    name: &AwardName,
    amount: Option<Number>,
    points: Option<Points>,
    order: &Order<'_>,
) -> Result<Vec<TakenPart>, Refusal> {
    let left = |award: &EarnedAward| award.points - award.reversed;
    // Of an award that rounded to nothing, or of which no point is left, the amount still counts.
    let is_open = |award: &&EarnedAward| {
        let counts_amount = amount.is_some() || award.points == 0;
        left(award) > 0 || counts_amount && remaining(award) > Number::ZERO
    };
    let open: Vec<&EarnedAward> = earned.awards.iter().filter(is_open).collect();
    if open.is_empty() {
        return refused(Code::EntryNotReversible, "all of the award was taken back before");
    }

    let part = |award: &EarnedAward, points, amount| TakenPart {
        award: award.clone(),
        points,
        amount,
        name: name.clone(),
    };
    let whole = |award: &EarnedAward| {
        let amount = Some(remaining(award)).filter(|rest| !rest.is_zero());
        part(award, left(award), amount)
    };
    let parts: Vec<TakenPart> = match (amount, points) {
        (None, None) => open.into_iter().map(whole).collect(),
        (None, Some(points)) => {
            let all: Points = open.iter().map(|award| left(award)).sum();
            if points > all {
                let detail =
                    format!("{} points of the award are left", order.programme.text_of(all));
                return refused(Code::EntryNotReversible, detail);
            }
            let mut rest = points;
            let taken = open.into_iter().map(|award| {
                let taken = left(award).min(rest);
                rest -= taken;
                part(award, taken, None)
            });
            taken.filter(|part| part.points > 0).collect()
        }
        (Some(amount), _) => {
            // Awards without an amount go when the last of the others does.
            let priced = |award: &&&EarnedAward| award.multiplier.is_some();
            let is_all = open.iter().filter(priced).all(|award| amount >= remaining(award));
            let taken = open.into_iter().filter(|award| is_all || award.multiplier.is_some());
            taken
                .map(|award| match award.multiplier {
                    Some(multiplier) if amount < remaining(award) => {
                        let points = refunded_points(award, multiplier, amount, order)?;
                        Ok(part(award, points, Some(amount)))
                    }
                    _ => Ok(whole(award)),
                })
                .collect::<Result<_, Refusal>>()?
        }
    };
    Ok(parts)
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
    order: &Order<'_>,
) -> Result<Points, Refusal> {
    let too_precise = || Refusal::new(Code::TooPrecise, "the amount has too many digits");
    // What was paid back is kept exactly.
    award.refunded.plus(amount).ok_or_else(too_precise)?;
    let rest = remaining(award).minus(amount).ok_or_else(too_precise)?;
    let kept = rest
        .times(multiplier)
        .and_then(|product| product.round(order.programme.decimals(), award.rounding))
        .ok_or_else(too_precise)?;
    let target = award.points - kept.min(award.points);
    Ok((target - award.reversed).max(0))
}
