//! Trying a configuration on recent events before it is saved.

use crate::Portal;
use crate::fault::Fault;
use raingauge_core::access::Role;
use raingauge_core::counter::{Counter, Problem};
use raingauge_counters::preview::{Comparison, Preview};
use raingauge_people::Principal;

/// Newest events that a configuration is tried on: enough to see what it does, few enough to see it
/// while one types.
pub const EVENTS_MAX: u64 = 100_000;

/// Whose turns previews of pages take.
pub const CALLER: &str = "the portal: previews";

/// What a configuration would do.
#[derive(Clone, Debug)]
pub struct Trial {
    pub result: Outcome,
    /// Counters that it cannot stand beside.
    pub conflicts: Vec<Problem>,
    /// Whether the keys that it would make are shown: they have values of events.
    pub shows_keys: bool,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of a new counter.
    Alone(Box<Preview>),
    /// Of a change: as it is, and as it would be.
    Beside(Box<Comparison>),
}

impl Portal {
    /// Runs a configuration over the newest events; beside `base`, where it changes one. One at a
    /// time: who looks at a preview waits for it, and must not slow down who counts.
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
