//! Deciding again what a budget refused.

use super::Turn;
use super::events::LogPlace;
use crate::error::Error;
use crate::timer::StoredEvent;
use raingauge_campaigns::campaign::CampaignId;

/// A step that its budget refused, with the event.
#[derive(Clone, Debug)]
pub struct RefusedEvent {
    pub campaign: CampaignId,
    pub step: String,
    pub event: StoredEvent,
}

impl<'t> Turn<'t> {
    /// Decides steps again, in their order.
    pub fn redrive(&mut self, refused: &'t [RefusedEvent], log_ms: i64) -> Result<(), Error> {
        if refused.is_empty() {
            return Ok(());
        }
        let engine = self.engine();
        for RefusedEvent { campaign, step, event: stored } in refused {
            let event = stored.event();
            let step = (*campaign, step.as_str());
            let outcome =
                engine.decide_again(&event, step, log_ms, &mut self.states, &mut self.budgets);
            self.note(outcome, &event, LogPlace { offset: stored.offset, log_ms })?;
        }
        Ok(())
    }
}
