//! Seeing to what waits for campaigns that were resumed, archived or deleted.

use super::{Life, Turn};
use crate::error::Error;
use crate::timer::{Due, PARKED_MS, Waiting};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::decision::{ActionId, Reason};
use raingauge_ports::campaigns::Timer;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use serde_json::json;
use std::collections::BTreeSet;

/// The first place of all timers.
pub const FIRST_TIMER: (i64, ActionId) = (i64::MIN, ActionId([0; 16]));

/// Timers, and the place behind them.
type TimerPage = (Vec<Timer>, Option<(i64, ActionId)>);

impl Turn<'_> {
    /// Goes through one page of timers: those of campaigns that rested are due again, and those of
    /// campaigns that are over are cancelled. Returns where the next page begins, if there is one.
    pub fn sweep(
        &mut self,
        campaigns: &BTreeSet<CampaignId>,
        from: (i64, ActionId),
        log_ms: i64,
    ) -> Result<Option<(i64, ActionId)>, Error> {
        let (page, next) = self.page_of_timers(from)?;
        for timer in page {
            let place = (timer.due_ms, timer.action);
            if !campaigns.contains(&timer.campaign) || self.ended.contains(&place) {
                continue;
            }
            let due = Due::of(timer)?;
            let is_ended = match &due.waiting {
                Waiting::Action(action) => {
                    self.life(due.campaign) == Life::IsOver
                        || self.is_of_an_ended_version(due.campaign, action.version)
                }
                Waiting::Evaluation(_) => false,
            };
            match self.life(due.campaign) {
                _ if is_ended => {
                    let evidence = json!({"by": "the end of the campaign"}).to_string();
                    self.end(&due, Reason::Cancelled, evidence, log_ms);
                }
                Life::Acts if due.is_parked() => {
                    self.put_off(&due, due.due_ms - PARKED_MS);
                }
                _ => {}
            }
        }
        Ok(next)
    }

    /// A page of timers, and where the next one begins, if there is one.
    pub(super) fn page_of_timers(&self, from: (i64, ActionId)) -> Result<TimerPage, Error> {
        let page = self.scene.ledger.timers_from(from, LEDGER_PAGE_LEN_MAX)?;
        let last = page.last().filter(|_| page.len() == LEDGER_PAGE_LEN_MAX);
        let next = last.and_then(|timer| following((timer.due_ms, timer.action)));
        Ok((page, next))
    }
}

/// The place behind a timer.
fn following((due_ms, action): (i64, ActionId)) -> Option<(i64, ActionId)> {
    match u128::from_be_bytes(action.0).checked_add(1) {
        Some(next) => Some((due_ms, ActionId(next.to_be_bytes()))),
        None => Some((due_ms.checked_add(1)?, ActionId([0; 16]))),
    }
}
