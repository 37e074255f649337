//! Reversals: an award is taken back, in all or in parts.
//!
//! ```text
//!   taken back so far + now = awarded − round(remaining amount × recorded factors)
//! ```
//!
//! so that refunds in any number of parts take back exactly what was given.
//!
//! A reference may stand for several transactions, such as the parts of an order. An amount is paid
//! back for one after the other, from the oldest; the awards of an event are one transaction, and
//! each of them loses its part of the same amount.

mod parts;

use super::check::WALLET_POINTS_MAX;
use super::{Desk, Order};
use crate::Points;
use crate::account::{Account, Expiry};
use crate::document::Negative;
use crate::draft::Draft;
use crate::earned::{Earned, EarnedAward};
use crate::entry::{BudgetUse, Entry, Kind, LastExpiry, Qualifying, Reversal};
use crate::identity::{Key, ReferenceId};
use crate::number::Number;
use crate::programme::Programme;
use crate::refused;
use crate::snapshot::reversed_keys;
use crate::wallet::{PendingLot, Wallet};
use parts::{Extent, Part};
use raingauge_core::code::{Code, Refusal};
use std::sync::Arc;

/// What the record of an award is found by.
#[derive(Clone)]
enum AwardName {
    Reference(Arc<str>),
    /// Of an award without a reference.
    Key(Key),
}

/// What a reversal names.
struct Named {
    earned: Earned,
    name: AwardName,
    /// Whether the reference is meant, with all of its awards.
    is_reference: bool,
}

impl Desk<'_> {
    pub(super) fn reverse(
        &mut self,
        order: &Order<'_>,
        key: Option<&str>,
        amount: Option<Number>,
        points: Option<Points>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let extent = Extent::of(amount, points)?;
        let Named { earned, name, is_reference } = self.named(order, key)?;
        self.check_source(order, &earned)?;
        // A rule that prices the same event may still wait for its row.
        let may_come = order.command.is_of_event();
        let parts = parts::parts(&earned, extent, order.programme, may_come)?;
        let is_whole = extent == Extent::Everything && is_reference;

        self.all_or_nothing(|desk| {
            let mut entries = Vec::with_capacity(parts.len());
            for part in &parts {
                let is_first = entries.is_empty();
                let taken = desk.taken_back(order, part, &name, is_first)?;
                entries.push(desk.record_reversal(order, taken, is_whole));
            }
            Ok(entries)
        })
    }

    /// Takes back of a new award what was refunded of its transaction before: it was late, because
    /// its price was missing. An award that cannot be taken back stays.
    pub(super) fn refund_late(
        &mut self,
        order: &Order<'_>,
        award: &Arc<Entry>,
    ) -> Option<Arc<Entry>> {
        let reference = order.command.reference.as_ref()?;
        let id = ReferenceId::of(&order.id.programme, &order.id.member, reference);
        let earned = self.state.references.get(&id)?;
        // Beyond the most awards of a reference, none is added to it.
        let is_linked =
            |known: &&EarnedAward| (known.book, known.sequence) == (award.book, award.sequence);
        earned.awards.last().filter(is_linked)?;
        let part = parts::late_part(earned, order.occurred_ms, order.programme)?;

        let name = AwardName::Reference(reference.clone());
        let taken = self.taken_back(order, &part, &name, false).ok()?;
        Some(self.record_reversal(order, taken, false))
    }

    fn named(&self, order: &Order<'_>, key: Option<&str>) -> Result<Named, Refusal> {
        if let Some(key) = key {
            return self.earned_by_key(order, key);
        }
        self.earned_by_reference(order).or_else(|refusal| {
            let key = order.command.reference_as_key();
            let by_key = key.map(|key| self.earned_by_key(order, key));
            by_key.and_then(Result::ok).ok_or(refusal)
        })
    }

    fn earned_by_reference(&self, order: &Order<'_>) -> Result<Named, Refusal> {
        let Some(reference) = &order.command.reference else {
            return refused(Code::PointsInvalid, "a reversal names an award");
        };
        let id = ReferenceId::of(&order.id.programme, &order.id.member, reference);
        match self.state.references.get(&id).filter(|earned| !earned.is_empty()) {
            Some(earned) => Ok(Named {
                earned: earned.clone(),
                name: AwardName::Reference(reference.clone()),
                is_reference: true,
            }),
            None => refused(
                Code::ReferenceUnknown,
                format!("the member has no award under the reference `{reference}`"),
            ),
        }
    }

    /// The award with a key.
    fn earned_by_key(&self, order: &Order<'_>, key: &str) -> Result<Named, Refusal> {
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
        let place = (entry.book, entry.sequence);
        let own = |id: &ReferenceId| {
            let mut earned = self.state.references.get(id)?.clone();
            earned.awards.retain(|award| (award.book, award.sequence) == place);
            (!earned.is_empty()).then_some(earned)
        };
        if let Some(earned) = own(&id) {
            return Ok(Named { earned, name, is_reference: false });
        }

        // One that stands for itself: without a reference, or beyond the most awards of one.
        let id = ReferenceId::of_key(&order.id.programme, hash);
        let alone = || Earned { awards: vec![EarnedAward::of(entry)], reversed_ms: None };
        let earned = own(&id).unwrap_or_else(alone);
        Ok(Named { earned, name: AwardName::Key(hash), is_reference: false })
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

    /// The entry that takes points out of the award's own, pending, expired or in their lot, then
    /// those that expire first, and then what else is pending.
    fn taken_back(
        &self,
        order: &Order<'_>,
        part: &Part,
        name: &AwardName,
        carries_key: bool,
    ) -> Result<Entry, Refusal> {
        let wallet = self.wallet(&order.id);
        let programme = order.programme;
        let award = &part.award;
        let mut draft = Draft::new(&order.id, &wallet, programme, Kind::Reverse, order.occurred_ms);
        order.mark(&mut draft.entry, carries_key);
        draft.entry.post(Account::Issued(award.budget.clone()), part.points);

        let mut missing = part.points;
        let own = award.matures.zip(award.expiry);
        let (pending, others): (Vec<&PendingLot>, Vec<_>) =
            wallet.pending.iter().partition(|lot| own == Some((lot.matures, lot.expiry)));
        missing = draft.take_pending(&pending, missing);
        if has_expired(award, &wallet, programme) {
            missing = draft.take_expired(missing);
        }
        if let Some(expiry) = award.expiry {
            missing = draft.take_from(expiry, missing);
        }
        missing = draft.take(missing);
        missing = draft.take_pending(&others, missing);

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
            key: match name {
                AwardName::Reference(_) => None,
                AwardName::Key(key) => Some(*key),
            },
            is_whole: false,
        });
        if let AwardName::Reference(reference) = name {
            draft.entry.reference = Some(reference.clone());
        }
        Ok(draft.finish())
    }

    fn record_reversal(
        &mut self,
        order: &Order<'_>,
        mut entry: Entry,
        is_whole: bool,
    ) -> Arc<Entry> {
        if let Some(reversal) = &mut entry.changes.reversal {
            reversal.is_whole = is_whole;
        }
        self.record(entry, order.programme)
    }
}

/// Whether what is left of an award expired with the rolling lot. Points that came after the last
/// expiry did not. Points of an earlier one are alike: of it, nothing else is known any more.
fn has_expired(award: &EarnedAward, wallet: &Wallet, programme: &Programme) -> bool {
    let matured_ms = award.matures.map(|day| programme.zone().midnight_ms(day));
    let came_before = |last: LastExpiry| {
        matured_ms.or(award.since_ms).is_some_and(|since_ms| since_ms < last.cut_ms)
    };
    award.expiry == Some(Expiry::Rolling) && wallet.last_expiry.is_some_and(came_before)
}
