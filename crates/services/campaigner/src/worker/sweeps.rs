//! Seeing to what waits for campaigns that were resumed, archived or deleted: timers within
//! commits, and deliveries behind them.

use super::Worker;
use crate::control::Control;
use crate::error::Error;
use crate::turn::FIRST_TIMER;
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::decision::ActionId;
use raingauge_ports::campaigns::{DeliveryQuery, Selection, Status};
use std::collections::BTreeSet;

/// How often deliveries are looked at while a sweep is under way.
const EVERY_MS: i64 = 1_000;
/// For how long deliveries may still be settled by those who saw the campaign as it was.
const SETTLED_AFTER_MS: i64 = 5_000;

/// How far a sweep is.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Where the next page of timers begins.
    timers: Option<(i64, ActionId)>,
    /// By the clock's elapsed time: when the deliveries were looked at first, and last.
    outbox: Option<(i64, i64)>,
    has_begun: bool,
}

impl Sweep {
    /// Begins from the first timer, for all these campaigns.
    pub fn begin(&mut self, campaigns: &BTreeSet<CampaignId>) {
        let begins = !campaigns.is_empty();
        *self = Self { timers: begins.then_some(FIRST_TIMER), outbox: None, has_begun: begins };
    }

    /// Where the next page of timers begins, if there is one.
    pub fn from(&self) -> Option<(i64, ActionId)> {
        self.timers
    }

    /// Whether the next turn has timers to look at.
    pub fn is_busy(&self) -> bool {
        self.timers.is_some()
    }

    /// Goes on with the next page of timers, if there is one.
    pub fn go_on(&mut self, next: Option<(i64, ActionId)>) {
        self.timers = next;
    }
}

impl Worker {
    /// Releases or cancels deliveries, once the timers are seen to. Ends the sweep when nothing is
    /// left of it.
    pub(super) fn sweep_outbox(&mut self) -> Result<(), Error> {
        if !self.sweep.has_begun || self.sweep.is_busy() {
            return Ok(());
        }
        let now_ms = self.deps.clock.elapsed_ms();
        let first_ms = match self.sweep.outbox {
            Some((_, last_ms)) if now_ms - last_ms < EVERY_MS => return Ok(()),
            Some((first_ms, _)) => first_ms,
            None => now_ms,
        };
        self.sweep.outbox = Some((first_ms, now_ms));

        let mut is_clear = now_ms - first_ms >= SETTLED_AFTER_MS;
        for campaign in self.control.sweeps.clone() {
            is_clear &= self.sweep_deliveries(campaign)?;
        }
        if is_clear {
            self.end_sweep()?;
        }
        Ok(())
    }

    /// Answers whether no delivery of the campaign is left to see to.
    fn sweep_deliveries(&self, campaign: CampaignId) -> Result<bool, Error> {
        let outbox = &*self.deps.outbox;
        let runtime = &self.deps.runtime;
        let now_ms = self.deps.clock.now_ms();
        let state = self.documents.campaign(campaign).map(|campaign| campaign.state);
        if state.is_some_and(|state| state.decides()) {
            while runtime.block_on(outbox.release(campaign, now_ms))? > 0 {}
            return Ok(true);
        }
        if state.is_some_and(|state| state != State::Archived) {
            return Ok(true);
        }

        let selection = Selection::All { destination: None, campaign: Some(campaign) };
        while runtime.block_on(outbox.cancel(selection.clone(), now_ms))? > 0 {}
        for status in Status::OPEN {
            let query = DeliveryQuery {
                status,
                destination: None,
                campaign: Some(campaign),
                after: None,
                len_max: 1,
            };
            let left = runtime.block_on(outbox.list(query))?;
            if !left.records.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn end_sweep(&mut self) -> Result<(), Error> {
        let mut control = Control::clone(&self.control);
        control.sweeps.clear();
        control.endings.clear();
        self.commit_control(control)?;
        self.sweep = Sweep::default();
        Ok(())
    }
}
