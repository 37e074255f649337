//! Erasing subjects: what waits for them, and the marks that keep earlier events of theirs from
//! being counted again.

use super::{FIRST_TIMER, Turn};
use crate::error::Error;
use crate::timer::{Due, HeldEvaluation, Waiting};
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::engine::subject_of;
use raingauge_ports::campaigns::Cost;
use raingauge_ports::log::Offset;

impl Turn<'_> {
    /// Ends what waits for these subjects, without a decision about it, and gives back what it
    /// reserved. Their events before `end` are not counted again.
    pub fn erase(&mut self, subjects: &[String], end: Offset) -> Result<(), Error> {
        if subjects.is_empty() {
            return Ok(());
        }
        for subject in subjects {
            self.states.note_erasure(subject, end);
        }

        let mut next = Some(FIRST_TIMER);
        while let Some(from) = next {
            let (page, behind) = self.page_of_timers(from)?;
            next = behind;
            for timer in page {
                self.erase_timer(Due::of(timer)?, subjects);
            }
        }
        Ok(())
    }

    fn erase_timer(&mut self, mut due: Due, subjects: &[String]) {
        match &mut due.waiting {
            Waiting::Action(action) if subjects.contains(&due.subject) => {
                if let Some(cost) = action.cost.take() {
                    self.budgets.give_back(&Cost::from(cost));
                }
                self.ended.insert(due.place());
            }
            Waiting::Action(_) => {}
            Waiting::Evaluation(evaluation) => {
                let before = evaluation.held.campaigns.len();
                let erased = self.campaigns_about(evaluation, subjects);
                evaluation.held.campaigns.retain(|campaign| !erased.contains(campaign));
                match evaluation.held.campaigns.len() {
                    0 => drop(self.ended.insert(due.place())),
                    left if left < before => drop(self.put_off(&due, due.due_ms + 1)),
                    _ => {}
                }
            }
        }
    }

    /// The campaigns that wait to decide about one of these subjects.
    fn campaigns_about(&self, evaluation: &HeldEvaluation, subjects: &[String]) -> Vec<CampaignId> {
        let event = evaluation.event.event();
        let is_about = |campaign: &Campaign| {
            subject_of(campaign, &event).is_some_and(|subject| subjects.contains(&subject))
        };
        let campaigns = evaluation.held.campaigns.iter().copied();
        campaigns.filter(|id| self.scene.documents.campaign(*id).is_some_and(is_about)).collect()
    }
}
