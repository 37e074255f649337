//! Trials: a configuration is run on recent events before it is saved.

use crate::Portal;
use crate::fault::Fault;
use raingauge_core::access::Role;
use raingauge_core::counter::{Counter, Problem};
use raingauge_counters::preview::{Comparison, Preview};
use raingauge_people::Principal;

/// Number of the newest events in a trial: enough to show the effect, few enough to run while the
/// person types.
pub const EVENTS_MAX: u64 = 100_000;

/// The caller name under which the portal's previews take their turns.
pub const CALLER: &str = "the portal: previews";

/// What a configuration would do.
#[derive(Clone, Debug)]
pub struct Trial {
    pub result: Outcome,
    /// Counters that conflict with it.
    pub conflicts: Vec<Problem>,
    /// Whether the keys are shown: they contain values of events.
    pub shows_keys: bool,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// For a new counter.
    Alone(Box<Preview>),
    /// For a change: the results before and after.
    Beside(Box<Comparison>),
}

impl Portal {
    /// Runs a configuration over the newest events, and `base` beside it if the configuration
    /// changes one. One trial at a time: people wait for a preview, and it must not slow down
    /// counting.
    pub async fn try_out(
        &self,
        person: &Principal,
        draft: Counter,
        base: Option<Counter>,
    ) -> Result<Trial, Fault> {
        let conflicts = self.counters.conflicts(&draft).await?;
        let may_show = |counter: &Counter| self.limits.samples.may_show_keys_of(&counter.template);
        let shows_keys =
            person.may(Role::Editor) && may_show(&draft) && base.as_ref().is_none_or(may_show);

        let result = match base {
            None => {
                let found = self.counted.recent.preview(CALLER, draft, EVENTS_MAX).await?;
                Outcome::Alone(Box::new(found))
            }
            Some(base) => {
                let found = self.counted.recent.compare(CALLER, base, draft, EVENTS_MAX).await?;
                Outcome::Beside(Box::new(found))
            }
        };
        Ok(Trial { result, conflicts, shows_keys })
    }
}
