//! What operators and other services decide about a member.

use super::check::{check_points, check_room};
use super::spend::spend;
use super::{Desk, Order};
use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::entry::{Entry, Kind, TierChange};
use crate::refused;
use raingauge_core::code::{Code, Refusal};
use std::sync::Arc;

impl Desk<'_> {
    pub(super) fn adjust(
        &mut self,
        order: &Order<'_>,
        points: Points,
        expires_on: Option<Day>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        let programme = order.programme;
        if points == 0 {
            return refused(Code::PointsInvalid, "an adjustment gives or takes points");
        }
        check_points(points.checked_abs().unwrap_or(0))?;
        let today = programme.zone().day(self.now_ms);
        if expires_on.is_some_and(|last| last < today || points < 0) {
            let detail = "points that are given expire today at the earliest";
            return refused(Code::PointsInvalid, detail);
        }

        let wallet = self.wallet(&order.id);
        check_room(&wallet, i128::from(points))?;
        let mut draft = self.draft(order, &wallet, Kind::Adjust);
        draft.entry.post(Account::Adjusted, -points);
        if points < 0 {
            spend(&mut draft, &wallet, -points)?;
        } else {
            let expiry = expires_on.map_or_else(|| programme.expiry.lot_of(today), Expiry::On);
            draft.credit_from(expiry, points, today, self.now_ms);
        }
        Ok(vec![self.record(draft.finish(), programme)])
    }

    pub(super) fn set_tier(
        &mut self,
        order: &Order<'_>,
        tier: &Arc<str>,
        until: Option<Day>,
    ) -> Result<Vec<Arc<Entry>>, Refusal> {
        if !order.programme.has_tier(tier) {
            return refused(Code::TierUnknown, format!("there is no tier `{tier}`"));
        }
        let today = order.programme.zone().day(self.now_ms);
        if until.is_some_and(|until| until < today) {
            return refused(Code::PointsInvalid, "the tier would have ended already");
        }

        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::Tier);
        draft.entry.changes.tier = Some(TierChange { tier: tier.clone(), until });
        Ok(vec![self.record(draft.finish(), order.programme)])
    }

    pub(super) fn close(&mut self, order: &Order<'_>) -> Result<Vec<Arc<Entry>>, Refusal> {
        let wallet = self.wallet(&order.id);
        let mut draft = self.draft(order, &wallet, Kind::Close);
        draft.entry.changes.closed = true;
        Ok(vec![self.record(draft.finish(), order.programme)])
    }
}
