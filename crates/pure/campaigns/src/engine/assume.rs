//! Assuming what a campaign remembers of a subject, to try it out.

use super::evaluate::tally_key;
use super::{Engine, Program, Source};
use crate::calendar::Zone;
use crate::campaign::{CampaignId, State};
use crate::limits::KEPT_TIMES_MAX;
use crate::rule::Lhs;
use crate::states::{BudgetKey, StateKey, StateKind, States};
use crate::window::Window;

impl Engine {
    /// Sets a count of a subject, as of a time. Returns whether a rule of the campaign reads a
    /// tally with this name.
    pub fn assume_count(
        &self,
        (campaign, count): (CampaignId, &str),
        subject: &str,
        value: i64,
        at_ms: i64,
        states: &mut dyn States,
    ) -> bool {
        let entries = self.buckets.values().flat_map(|bucket| &bucket.entries);
        let tally = entries
            .filter(|entry| self.programs[entry.program].id() == campaign)
            .flat_map(|entry| entry.tree.leaves().iter().zip(&entry.sources))
            .find_map(|(leaf, source)| match (&leaf.lhs, source) {
                (Lhs::Count(name), Source::Tally(tally)) if **name == *count => Some(*tally),
                _ => None,
            });
        let Some(tally) = tally else { return false };

        let definition = &self.tallies[tally];
        let key = tally_key(definition, subject);
        states.put(key, counted(&definition.window, value, at_ms));
        true
    }

    /// Sets how often a subject got a step, as of a time, for conditions and for limits. Returns
    /// whether the campaign has such a step.
    pub fn assume_usage(
        &self,
        (campaign, step): (CampaignId, &str),
        subject: &str,
        value: i64,
        at_ms: i64,
        states: &mut dyn States,
    ) -> bool {
        let Some(program) = self.program(campaign) else { return false };
        let steps = &program.campaign.steps;
        let Some(place) = steps.iter().position(|known| known.name == step) else { return false };

        let key = |owner| StateKey { kind: StateKind::Usage, owner, subject: subject.to_owned() };
        if let Some(owner) = program.usage_owners[place] {
            states.put(key(owner), value.to_le_bytes().to_vec());
        }
        for limit in &program.limits {
            let concerns = limit.step.is_none_or(|of_step| of_step == place);
            if concerns && limit.per == program.subject {
                states.put(key(limit.owner), counted(&limit.window, value, at_ms));
            }
        }
        true
    }

    /// The account of a budget that a campaign pays from, at a time, and its maximum.
    pub fn budget_of(
        &self,
        campaign: CampaignId,
        name: &str,
        at_ms: i64,
    ) -> Option<(BudgetKey, i64)> {
        self.budget(self.program(campaign)?, name, at_ms)
    }

    /// The budget that a cost is taken from, in its period at a time, and its maximum.
    pub(super) fn budget(
        &self,
        program: &Program,
        name: &str,
        at_ms: i64,
    ) -> Option<(BudgetKey, i64)> {
        let (campaign, budget) = match program.campaign.budgets.get(name) {
            Some(budget) => (program.id(), budget),
            None => (0, self.budgets.get(name)?),
        };
        let own = budget.zone.as_deref().and_then(Zone::of_name);
        let zone = own.as_ref().unwrap_or(&program.zone);
        let period = budget.period_number(at_ms, zone);
        let is_shadow = program.campaign.state == State::Shadow;
        let name = if is_shadow { format!("shadow/{name}") } else { name.to_owned() };
        Some((BudgetKey { campaign, name, period }, budget.max))
    }

    fn program(&self, campaign: CampaignId) -> Option<&Program> {
        self.programs.iter().find(|program| program.id() == campaign)
    }
}

/// The state of a window in which this much was counted at one time.
fn counted(window: &Window, value: i64, at_ms: i64) -> Vec<u8> {
    let mut tally = window.empty();
    if let Window::Last { .. } = window {
        let times = usize::try_from(value).unwrap_or_default().min(KEPT_TIMES_MAX);
        for _ in 0..times {
            window.count(&mut tally, at_ms, 1);
        }
    } else {
        window.count(&mut tally, at_ms, value);
    }
    tally.encode()
}
