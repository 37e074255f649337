//! Awards: points by a rule, by an amount, or as a number.

use super::check::check_room;
use super::{Desk, Order};
use crate::Points;
use crate::account::{Account, Expiry};
use crate::command::{Award, Basis};
use crate::day::Day;
use crate::draft::Draft;
use crate::entry::{BudgetUse, Entry, Explain, Kind, LastExpiry, Qualifying};
use crate::limits::{ENTRY_POINTS_MAX, PENDING_DAYS_MAX, POINTS_NAME_LEN_MAX, WALLET_PENDING_MAX};
use crate::number::Number;
use crate::pricing::{Facts, Priced};
use crate::programme::{Programme, Programmes};
use crate::refused;
use crate::wallet::Wallet;
use raingauge_core::code::{Code, Refusal};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// An award whose points are known.
struct Terms {
    kind: Kind,
    points: Points,
    explain: Option<Explain>,
    budget: Arc<str>,
    extends: bool,
    qualifies: bool,
    pending_days: u16,
}

/// Where the points of an award go.
struct Destination {
    expiry: Expiry,
    /// The day on which they can be spent, where that is not today.
    matures: Option<Day>,
    /// The local day of the transaction.
    day: Day,
    today: Day,
    /// Whether they would have expired with others of the same time.
    is_gone: bool,
    /// What comes back, because this transaction was late.
    reinstates: Option<LastExpiry>,
}

impl Desk<'_> {
    pub(super) fn award(
        &mut self,
        order: &Order<'_>,
        award: &Award,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let known = Wallet::default();
        let wallet = self.state.wallets.get(&order.id).unwrap_or(&known);
        let terms = terms(self.programmes, order, award, wallet)?;
        let destination = self.destination(order, award, &terms, wallet)?;
        let reinstated = destination.reinstates.map_or(0, |last| i128::from(last.points));
        check_room(wallet, i128::from(terms.points) + reinstated)?;
        let budgets = self.check_award(order, &terms)?;

        let mut entry = earned(order, terms, &destination, budgets, wallet);
        let points = entry.awarded();
        entry.changes.expires_at_once = points > 0 && self.is_over(&entry, order, &destination);
        let mut entries = vec![self.record(entry, order.programme)];
        if destination.is_gone && points > 0 {
            entries.extend(self.expire_at_once(order, points));
        }
        if let Some(expired) = destination.reinstates {
            entries.push(self.reinstate(order, expired));
        }
        entries.extend(self.refund_late(order, &entries[0].clone()));
        Ok(entries)
    }

    /// Whether what an award brings expires at once: with what expired in its time, or because the
    /// date of the rolling lot has passed.
    fn is_over(&self, entry: &Entry, order: &Order<'_>, to: &Destination) -> bool {
        let last = entry.changes.rolling.and_then(|rolling| rolling.after);
        let is_past = last.is_some_and(|last| order.programme.expiry.cut_ms(last) <= self.now_ms);
        let is_rolling = to.expiry == Expiry::Rolling && to.matures.is_none();
        is_rolling && (to.is_gone || is_past)
    }

    /// Checks bounds, and returns what is added to budgets that have one.
    fn check_award(
        &self,
        order: &Order<'_>,
        terms: &Terms,
    ) -> Result<SmallVec<[BudgetUse; 1]>, Refusal> {
        let programme = order.programme;
        let mut budgets: SmallVec<[BudgetUse; 1]> = SmallVec::new();
        if let Some(limit) = programme.budgets.get(&terms.budget) {
            let used = self.used(programme, &terms.budget);
            if i128::from(used) + i128::from(terms.points) > i128::from(*limit) {
                let detail = format!("the budget `{}` is spent", terms.budget);
                return refused(Code::BudgetSpent, detail);
            }
            budgets.push(BudgetUse { budget: terms.budget.clone(), amount: terms.points });
        }
        budgets.extend(self.partner_use(order, &order.command.source, terms.points)?);
        budgets.retain(|used| used.amount != 0);
        Ok(budgets)
    }

    /// What an award adds to the day of a partner, which must be within its bounds.
    pub(super) fn partner_use(
        &self,
        order: &Order<'_>,
        partner: &str,
        points: Points,
    ) -> Result<Option<BudgetUse>, Refusal> {
        let Some(partner) = order.programme.partner(partner) else { return Ok(None) };
        if partner.per_award_max.is_some_and(|most| points > most) {
            let detail = format!("more points than `{}` may award at a time", partner.name);
            return refused(Code::PartnerLimit, detail);
        }
        let Some(most) = partner.per_day_max else { return Ok(None) };

        let budget = partner.day_budget(order.programme.zone().day(self.now_ms));
        let used = self.used(order.programme, &budget);
        if i128::from(used) + i128::from(points) > i128::from(most) {
            let detail = format!("more points than `{}` may award in a day", partner.name);
            return refused(Code::PartnerLimit, detail);
        }
        Ok(Some(BudgetUse { budget, amount: points }))
    }

    fn destination(
        &self,
        order: &Order<'_>,
        award: &Award,
        terms: &Terms,
        wallet: &Wallet,
    ) -> Result<Destination, Refusal> {
        let policy = &order.programme.expiry;
        let zone = order.programme.zone();
        let today = zone.day(self.now_ms);
        let day = zone.day(order.occurred_ms);
        if award.expires_on.is_some_and(|last| last < today) {
            return refused(Code::PointsInvalid, "the points would have expired already");
        }

        let spendable = day.plus(i32::from(terms.pending_days));
        if award.expires_on.is_some_and(|last| last < spendable) {
            let detail = "the points would expire before they can be spent";
            return refused(Code::PointsInvalid, detail);
        }
        let matures = (spendable > today).then_some(spendable);
        let expiry = award.expires_on.map_or_else(|| policy.lot_from(day, spendable), Expiry::On);
        let is_known = |matures: Day| {
            wallet.pending.iter().any(|lot| lot.matures == matures && lot.expiry == expiry)
        };
        if wallet.pending.len() >= WALLET_PENDING_MAX && matures.is_some_and(|day| !is_known(day)) {
            let detail = format!("points mature on {WALLET_PENDING_MAX} days already");
            return refused(Code::WalletFull, detail);
        }

        // A transaction from before the last expiry: had it come in time, either all points would
        // have lived on, or these would have gone with the others.
        let late = wallet.last_expiry.filter(|_| expiry == Expiry::Rolling);
        let keeps_alive = |last: &LastExpiry| {
            terms.extends && policy.extended_to(day).is_some_and(|extended| extended > last.day)
        };
        let reinstates = late.filter(|last| {
            let is_in_time = self.now_ms < policy.reinstate_end_ms(last.cut_ms);
            order.occurred_ms < last.cut_ms && keeps_alive(last) && is_in_time
        });
        let effective_ms = match terms.pending_days {
            0 => order.occurred_ms,
            _ => zone.midnight_ms(spendable),
        };
        let is_gone = matures.is_none()
            && late.is_some_and(|last| effective_ms < last.cut_ms && !keeps_alive(&last));
        Ok(Destination { expiry, matures, day, today, is_gone, reinstates })
    }

    /// Expires what an award brought too late, together with what expired in its time.
    fn expire_at_once(&mut self, order: &Order<'_>, points: Points) -> Option<Arc<Entry>> {
        let wallet = self.wallet(&order.id);
        let last = wallet.last_expiry?;
        let mut draft = Draft::new(&order.id, &wallet, order.programme, Kind::Expire, last.cut_ms);
        let points = points - draft.take_from(Expiry::Rolling, points);
        if points == 0 {
            return None;
        }
        draft.expire(last.day, points);
        let points = last.points.saturating_add(points);
        draft.entry.changes.last_expiry = Some(Some(LastExpiry { points, ..last }));
        Some(self.record(draft.finish(), order.programme))
    }

    /// Gives back what had expired.
    fn reinstate(&mut self, order: &Order<'_>, expired: LastExpiry) -> Arc<Entry> {
        let wallet = self.wallet(&order.id);
        let mut draft =
            Draft::new(&order.id, &wallet, order.programme, Kind::Reinstate, order.occurred_ms);
        draft.expire(expired.day, -expired.points);
        draft.credit(Expiry::Rolling, expired.points);
        draft.entry.changes.last_expiry = Some(None);
        self.record(draft.finish(), order.programme)
    }
}

/// The points of an award, and what comes with them.
fn terms(
    programmes: &Programmes,
    order: &Order<'_>,
    award: &Award,
    wallet: &Wallet,
) -> Result<Terms, Refusal> {
    let programme = order.programme;
    if award.pending_days.is_some_and(|days| days > PENDING_DAYS_MAX) {
        let detail = format!("points are pending for at most {PENDING_DAYS_MAX} days");
        return refused(Code::PointsInvalid, detail);
    }
    if award.budget.as_ref().is_some_and(|name| !crate::check::is_name(name, POINTS_NAME_LEN_MAX)) {
        return refused(Code::PointsInvalid, "the budget's name is malformed");
    }

    let priced = match &award.basis {
        Basis::Points(points) => return bonus(programme, award, *points),
        Basis::Priced(priced) => Cow::Borrowed(priced),
        Basis::Amount { amount, rule, event_type, facts, factors } => {
            check_own_factors(order, factors)?;
            let data = facts.as_ref().map(|facts| facts.to_string());
            let event_type = event_type.as_deref();
            let facts = data.as_deref().map(|data| Facts { event_type, data });
            let at_ms = Some(order.occurred_ms);
            let priced = programme.price_facts(at_ms, *rule, *amount, facts.as_ref(), factors)?;
            check_own_tables(order, &priced, factors)?;
            Cow::Owned(priced)
        }
    };

    let tier = programme.tier_of(wallet.tier.as_ref());
    let priced: &Priced = &priced;
    let pricing = pricing_version(programmes, programme.name(), priced)?;
    let explain = pricing.product(priced, tier.map(|tier| &**tier))?;
    let budget = priced.budget.as_ref().filter(|budget| **budget != programme.budget_default);
    Ok(Terms {
        kind: Kind::Earn,
        points: explain.points,
        explain: Some(explain),
        budget: budget.unwrap_or(programme.budget_named(award.budget.as_ref())).clone(),
        extends: award.extends.unwrap_or(priced.extends),
        qualifies: priced.qualifies,
        pending_days: award.pending_days.unwrap_or(priced.pending_days),
    })
}

/// The version of the programme that priced an award: what is left to look up is of it as well.
fn pricing_version<'a>(
    programmes: &'a Programmes,
    name: &str,
    priced: &Priced,
) -> Result<&'a Programme, Refusal> {
    match programmes.version(name, priced.version) {
        Some(version) => Ok(version),
        None => {
            let detail =
                format!("version {} of the programme, which priced it, is unknown", priced.version);
            refused(Code::FactorMissing, detail)
        }
    }
}

fn bonus(programme: &Programme, award: &Award, points: Points) -> Result<Terms, Refusal> {
    if !(0..=ENTRY_POINTS_MAX).contains(&points) {
        let detail = format!("points must be 0 to {ENTRY_POINTS_MAX} units");
        return refused(Code::PointsInvalid, detail);
    }
    Ok(Terms {
        kind: Kind::Bonus,
        points,
        explain: None,
        budget: programme.budget_named(award.budget.as_ref()).clone(),
        extends: award.extends.unwrap_or(false),
        qualifies: false,
        pending_days: award.pending_days.unwrap_or(programme.pending_days),
    })
}

/// The product of a partner's own factors is within its bound.
fn check_own_factors(order: &Order<'_>, factors: &[(Arc<str>, Number)]) -> Result<(), Refusal> {
    let Some(partner) = order.programme.partner(&order.command.source) else { return Ok(()) };
    if factors.is_empty() {
        return Ok(());
    }
    let Some(own) = partner.own_factors else {
        let detail = format!("`{}` may not bring factors of its own", partner.name);
        return refused(Code::PartnerLimit, detail);
    };

    let product = factors.iter().try_fold(Number::ONE, |product, (_, value)| product.times(*value));
    match product {
        Some(product) if product <= own.max => Ok(()),
        Some(product) => {
            let name = &partner.name;
            let detail = format!("the factors of `{name}` come to {product}, above {}", own.max);
            refused(Code::PartnerLimit, detail)
        }
        None => refused(Code::TooPrecise, "the factors have more digits than are exact"),
    }
}

/// A partner's own factors stand in for tables of the rule. Without a rule, there are no tables.
fn check_own_tables(
    order: &Order<'_>,
    priced: &Priced,
    factors: &[(Arc<str>, Number)],
) -> Result<(), Refusal> {
    let programme = order.programme;
    let (Some(partner), Some(rule)) = (programme.partner(&order.command.source), priced.rule)
    else {
        return Ok(());
    };
    match factors.iter().find(|(name, _)| !programme.has_factor(rule, name)) {
        Some((name, _)) => {
            let detail = format!(
                "the rule {rule} has no factor `{name}` that `{}` could bring one in place of",
                partner.name
            );
            refused(Code::PointsInvalid, detail)
        }
        None => Ok(()),
    }
}

/// The entry of an award.
fn earned(
    order: &Order<'_>,
    terms: Terms,
    to: &Destination,
    budgets: SmallVec<[BudgetUse; 1]>,
    wallet: &Wallet,
) -> Entry {
    let programme = order.programme;
    let mut draft = Draft::new(&order.id, wallet, programme, terms.kind, order.occurred_ms);
    order.mark(&mut draft.entry, true);
    if terms.extends {
        let activity = wallet.activity.max(Some(to.day));
        draft.entry.changes.activity = activity.filter(|_| activity != wallet.activity);
        if let Some(extended) = programme.expiry.extended_to(to.day) {
            let last = wallet.rolling_expires.map_or(extended, |last| last.max(extended));
            draft.set_rolling(last);
        }
    }

    let points = terms.points;
    draft.entry.post(Account::Issued(terms.budget), -points);
    match to.matures {
        Some(matures) => {
            let account = Account::Pending { matures, expiry: to.expiry };
            draft.entry.post(account, points);
        }
        // What is gone already goes through the rolling lot, and leaves its date alone.
        None if to.is_gone => draft.credit(to.expiry, points),
        None => {
            // The rolling lot of a transaction that extends has its date by now.
            let at_ms = if terms.extends { i64::MIN } else { order.occurred_ms };
            draft.credit_from(to.expiry, points, to.day, at_ms);
        }
    }

    if terms.qualifies
        && points > 0
        && let Some(tiers) = &programme.tiers
    {
        let period = tiers.period(to.day);
        draft.entry.changes.qualifying = Some(Qualifying { period, points });
        let reached = wallet.qualifying_in(period).saturating_add(points);
        draft.entry.changes.tier = tiers.up(wallet, period, reached, to.today);
    }
    draft.entry.changes.budgets = budgets;
    draft.entry.explain = terms.explain.map(Box::new);
    draft.finish()
}
