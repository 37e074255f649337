//! Points that members spend, reserve, and give away.

use super::check::{check_points, check_room};
use super::{Desk, Order};
use crate::Points;
use crate::account::{Account, Expiry};
use crate::calendar::HOUR_MS;
use crate::document::Rate;
use crate::draft::Draft;
use crate::entry::{BudgetUse, Entry, Explain, Hold, HoldChange, Kind};
use crate::identity::{Key, WalletId};
use crate::limits::{HOLD_HOURS_MAX, WALLET_HOLDS_MAX};
use crate::number::{Number, Rounding};
use crate::programme::{Programme, Reward, too_many_points};
use crate::refused;
use crate::settle::{BURNED_DEFAULT, give_reward_back, resolve};
use crate::wallet::Wallet;
use raingauge_core::code::{Code, Refusal};
use smallvec::SmallVec;
use std::sync::Arc;

impl Desk<'_> {
    pub(super) fn burn(
        &mut self,
        order: &Order<'_>,
        points: Points,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        check_points(points)?;
        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::Burn);
        let reason = BURNED_DEFAULT.into();
        for (expiry, part) in spend(&mut draft, &wallet, points)? {
            draft.burn(&reason, wallet.date_of(expiry), part);
        }
        Ok(vec![self.record(draft.finish(), order.programme)])
    }

    pub(super) fn hold(
        &mut self,
        order: &Order<'_>,
        points: Option<Points>,
        until_ms: Option<i64>,
        reward: Option<&Arc<str>>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let programme = order.programme;
        let reward = reward.map(|name| self.reward(order, name)).transpose()?;
        let points = match (points, reward) {
            (Some(points), None) => points,
            (None, Some(reward)) => reward.points,
            _ => return refused(Code::PointsInvalid, "a hold has either points or a reward"),
        };
        check_points(points)?;
        let expires_ms = until_ms.unwrap_or(self.now_ms.saturating_add(programme.hold_ms));
        if expires_ms <= self.now_ms {
            return refused(Code::TimeInvalid, "the hold would be over already");
        }
        let longest_ms = i64::from(HOLD_HOURS_MAX) * HOUR_MS;
        if expires_ms > self.now_ms.saturating_add(longest_ms) {
            let detail = format!("a hold is over after at most {HOLD_HOURS_MAX} hours");
            return refused(Code::TimeInvalid, detail);
        }

        let wallet = self.wallet(&order.id);
        if wallet.holds.len() >= WALLET_HOLDS_MAX {
            let detail = format!("the member has {WALLET_HOLDS_MAX} open holds already");
            return refused(Code::WalletFull, detail);
        }
        let mut draft = self.draft(order, &wallet, Kind::Hold);
        let lots = spend(&mut draft, &wallet, points)?;
        draft.entry.post(Account::Held, points);
        if let Some(reward) = reward {
            let budgets = [reward.stock_budget(), reward.member_budget(&order.id.member)];
            let uses = budgets.map(|budget| BudgetUse { budget, amount: 1 });
            draft.entry.changes.budgets.extend(uses);
        }

        draft.entry.changes.hold = Some(HoldChange::Opened(Hold {
            key: order.key,
            opened_ms: self.now_ms,
            expires_ms,
            reason: order.command.reason.clone(),
            reward: reward.map(|reward| reward.name.clone()),
            lots,
        }));
        Ok(vec![self.record(draft.finish(), programme)])
    }

    /// A reward that the member can have.
    fn reward<'o>(&self, order: &Order<'o>, name: &str) -> Result<&'o Reward, Refusal> {
        let Some(reward) = order.programme.reward(name) else {
            return refused(Code::RewardUnknown, format!("there is no reward `{name}`"));
        };
        let has_begun = reward.from_ms.is_none_or(|from_ms| from_ms <= self.now_ms);
        let has_ended = reward.until_ms.is_some_and(|until_ms| until_ms <= self.now_ms);
        if !has_begun || has_ended {
            return refused(Code::RewardUnknown, format!("the reward `{name}` is not on offer"));
        }

        let bounds = [
            (reward.stock, reward.stock_budget()),
            (reward.per_member, reward.member_budget(&order.id.member)),
        ];
        for (most, budget) in bounds {
            let used = self.used(order.programme, &budget);
            if most.is_some_and(|most| used >= i64::from(most)) {
                return refused(Code::RewardSoldOut, format!("no more `{name}` can be had"));
            }
        }
        Ok(reward)
    }

    /// The open hold with this key, of the caller's source.
    fn open_hold(&self, order: &Order<'_>, hold: &str) -> Result<Hold, Refusal> {
        let key = Key::of(&order.id.programme, &order.command.source, hold);
        let wallet = self.state.wallets.get(&order.id);
        if let Some(found) = wallet.and_then(|wallet| wallet.hold(key)) {
            return Ok(found.clone());
        }

        let is_own = |entry: &&Arc<Entry>| {
            entry.kind == Kind::Hold && entry.member.as_ref() == Some(&order.id.member)
        };
        match self.state.keys.get(&key).filter(is_own) {
            Some(_) => refused(
                Code::HoldResolved,
                format!("the hold `{hold}` was captured, released, or ran out"),
            ),
            None => refused(Code::HoldUnknown, format!("the member has no hold `{hold}`")),
        }
    }

    pub(super) fn capture(
        &mut self,
        order: &Order<'_>,
        hold: &str,
        points: Option<Points>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let hold = self.open_hold(order, hold)?;
        let points = check_points(points.unwrap_or(hold.points()))?;
        if points > hold.points() {
            let detail = format!("the hold has {} points", order.programme.text_of(hold.points()));
            return refused(Code::ExceedsHold, detail);
        }

        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::Capture);
        resolve(&mut draft, &wallet, order.programme, &hold, points, self.now_ms);
        Ok(vec![self.record(draft.finish(), order.programme)])
    }

    pub(super) fn release(
        &mut self,
        order: &Order<'_>,
        hold: &str,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let hold = self.open_hold(order, hold)?;
        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::Release);
        resolve(&mut draft, &wallet, order.programme, &hold, 0, self.now_ms);
        give_reward_back(&mut draft.entry, &hold);
        Ok(vec![self.record(draft.finish(), order.programme)])
    }

    pub(super) fn transfer(
        &mut self,
        order: &Order<'_>,
        to: &Arc<str>,
        points: Points,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        check_points(points)?;
        if *to == order.id.member {
            return refused(Code::PointsInvalid, "points are transferred to another member");
        }
        let receiver = WalletId { member: to.clone(), ..order.id.clone() };
        self.settle(&receiver);
        let receiving = self.wallet(&receiver);
        if receiving.closed {
            return refused(Code::WalletClosed, "the receiver's wallet is closed");
        }
        check_room(&receiving, i128::from(points))?;

        let giving = self.wallet(&order.id);
        let mut out = self.draft(order, &giving, Kind::TransferOut);
        let parts = spend(&mut out, &giving, points)?;
        out.entry.post(Account::Transit, points);

        let mut into =
            Draft::new(&receiver, &receiving, order.programme, Kind::TransferIn, order.occurred_ms);
        order.mark(&mut into.entry, false);
        into.entry.post(Account::Transit, -points);
        for (expiry, points) in parts {
            // Points keep their date, whatever the other member does.
            into.credit(giving.date_of(expiry).map_or(Expiry::Never, Expiry::On), points);
        }

        let into = into.finish();
        let out = self.record(out.finish(), order.programme);
        Ok(vec![out, self.record(into, order.programme)])
    }

    pub(super) fn exchange_out(
        &mut self,
        order: &Order<'_>,
        partner: &str,
        points: Points,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        check_points(points)?;
        let Some(partner) = order.programme.partner(partner) else {
            return refused(Code::PartnerUnknown, format!("there is no partner `{partner}`"));
        };
        let Some(rate) = partner.exchange else {
            let detail = format!("points cannot be exchanged with `{}`", partner.name);
            return refused(Code::PartnerLimit, detail);
        };

        let step = exchange_step(rate, order.programme.decimals());
        if points % step != 0 {
            let step = order.programme.text_of(step);
            let detail = format!("`{}` takes points in multiples of {step}", partner.name);
            return refused(Code::PointsInvalid, detail);
        }
        let amount = converted(Number::of_points(points, order.programme.decimals()), rate, 0)?;

        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::ExchangeOut);
        spend(&mut draft, &wallet, points)?;
        let day = order.programme.zone().day(self.now_ms);
        draft.entry.post(Account::Partner(partner.name.clone(), Some(day)), points);
        draft.entry.explain =
            Some(Box::new(exchanged(order.programme, Number::whole(amount), points)));
        Ok(vec![self.record(draft.finish(), order.programme)])
    }

    pub(super) fn exchange_in(
        &mut self,
        order: &Order<'_>,
        partner: &str,
        points: Option<Points>,
        amount: Option<Number>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let programme = order.programme;
        let Some(found) = programme.partner(partner) else {
            return refused(Code::PartnerUnknown, format!("there is no partner `{partner}`"));
        };
        let Some(rate) = found.exchange_in else {
            let detail = format!("points of `{partner}` cannot be exchanged");
            return refused(Code::PartnerLimit, detail);
        };
        let decimals = programme.decimals();
        let (points, amount) = match (points, amount) {
            (Some(points), None) => (points, given_for(check_points(points)?, rate, decimals)?),
            (None, Some(amount)) => (converted(amount, rate, decimals)?, amount),
            _ => return refused(Code::PointsInvalid, "an exchange has either points or an amount"),
        };
        check_points(points)?;
        let used = self.partner_use(order, partner, points)?;

        let wallet = self.wallet(&order.id);
        check_room(&wallet, i128::from(points))?;
        let mut draft = self.draft(order, &wallet, Kind::ExchangeIn);
        let day = programme.zone().day(self.now_ms);
        draft.entry.post(Account::Partner(found.name.clone(), Some(day)), -points);
        draft.credit_from(programme.expiry.lot_of(day), points, day, self.now_ms);
        draft.entry.changes.budgets.extend(used);
        draft.entry.explain = Some(Box::new(exchanged(programme, amount, points)));
        Ok(vec![self.record(draft.finish(), programme)])
    }

    /// An entry of the command, which carries its key.
    pub(super) fn draft<'w>(
        &self,
        order: &'w Order<'_>,
        wallet: &'w Wallet,
        kind: Kind,
    ) -> Draft<'w> {
        let mut draft = Draft::new(&order.id, wallet, order.programme, kind, order.occurred_ms);
        order.mark(&mut draft.entry, true);
        draft
    }
}

/// Takes points that must be there, the earliest to expire first, and returns their lots.
pub(super) fn spend(
    draft: &mut Draft<'_>,
    wallet: &Wallet,
    points: Points,
) -> Result<SmallVec<[(Expiry, Points); 2]>, Refusal> {
    let (parts, missing) = wallet.take(points);
    if missing > 0 {
        return refused(Code::InsufficientPoints, "the member has too few points");
    }
    for (expiry, part) in &parts {
        draft.debit(*expiry, *part);
    }
    Ok(parts)
}

/// The fewest points that come to a whole number of the partner's. Nothing is left over of their
/// multiples.
fn exchange_step(rate: Rate, decimals: u8) -> Points {
    let give = i64::from(rate.give) * 10_i64.pow(decimals.into());
    // Euclid's algorithm.
    let mut divisor = give;
    let mut rest = i64::from(rate.get);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    give / divisor
}

/// What a partner, or a member, gets for an amount: whole units, rounded down.
fn converted(amount: Number, rate: Rate, decimals: u8) -> Result<i64, Refusal> {
    if amount.is_negative() {
        return refused(Code::PointsInvalid, format!("the amount {amount} is negative"));
    }
    let units = amount
        .times(Number::whole(i64::from(rate.get)))
        .and_then(|product| product.round(decimals + 4, Rounding::Down))
        .ok_or_else(too_many_points)?;
    // Rounded down twice is rounded down once.
    Ok(units / i64::from(rate.give) / 10_000)
}

/// What a partner gives for points, where it does not come out even rounded up to four more digits
/// than the points have.
fn given_for(points: Points, rate: Rate, decimals: u8) -> Result<Number, Refusal> {
    let product = i128::from(points) * i128::from(rate.give) * 10_000;
    let get = i128::from(rate.get);
    let units = (product + get - 1) / get;
    Number::new(units, i32::from(decimals) + 4).ok_or_else(too_many_points)
}

/// What the other side of an exchange was, in units of the partner.
fn exchanged(programme: &Programme, amount: Number, points: Points) -> Explain {
    Explain {
        version: programme.version,
        rule: None,
        rule_name: None,
        amount: Some(amount),
        factors: Vec::new(),
        exact: None,
        rounding: Rounding::Down,
        limit: None,
        points,
    }
}
