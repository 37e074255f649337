//! One commit, as it is made.
//!
//! ```text
//!   events ──▶ lookups of all of them ──▶ decided one by one ─┐
//!   timers ──▶ lookups of all of them ──▶ fired one by one ───┼──▶ texts ──▶ commit
//!   history ──▶ tallies that are filled from the log ─────────┘
//! ```

mod erasure;
mod events;
mod history;
mod redrive;
mod rendering;
mod sweep;
mod timers;

use crate::answers::{Answers, Asking};
use crate::compiled::Compiled;
use crate::control::Control;
use crate::documents::Documents;
use crate::known::{KnownBudgets, KnownStates};
pub use events::OFFSET;
use hashbrown::HashSet;
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::decision::ActionId;
use raingauge_campaigns::engine::Engine;
use raingauge_campaigns::index::Scratch;
use raingauge_ports::campaigns::{self, BudgetChange, Commit, Decision, Delivery, Ledger, Timer};
use raingauge_ports::log::Offset;
pub use redrive::RefusedEvent;
use rendering::Granted;
pub use sweep::FIRST_TIMER;

/// What a commit is made with.
#[derive(Clone, Copy)]
pub struct Scene<'t> {
    pub documents: &'t Documents,
    pub compiled: &'t Compiled,
    pub ledger: &'t dyn Ledger,
    pub asking: Asking<'t>,
}

/// A commit in the making.
pub struct Turn<'t> {
    scene: Scene<'t>,
    control: &'t Control,
    states: KnownStates<'t>,
    budgets: KnownBudgets<'t>,
    answers: Answers<'t>,
    scratch: Scratch,
    /// What the events of the batch were granted, and is still to be rendered.
    granted: Vec<Granted<'t>>,
    decisions: Vec<Decision>,
    timers: Vec<Timer>,
    /// Timers that are gone.
    ended: HashSet<(i64, ActionId)>,
    deliveries: Vec<Delivery>,
}

/// What a campaign does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Acts,
    /// What it does is put off.
    Rests,
    /// What it was to do is cancelled.
    IsOver,
}

impl<'t> Turn<'t> {
    /// `after` is the end of the batch.
    pub fn new(scene: Scene<'t>, control: &'t Control, after: Offset) -> Self {
        Self {
            control,
            states: KnownStates::new(scene.ledger, control),
            budgets: KnownBudgets::new(scene.ledger),
            answers: Answers::new(scene.asking, after),
            scratch: Scratch::default(),
            granted: Vec::new(),
            decisions: Vec::new(),
            timers: Vec::new(),
            ended: HashSet::new(),
            deliveries: Vec::new(),
            scene,
        }
    }

    /// What decides. It is made when the first event or timer needs it.
    fn engine(&self) -> &'t Engine {
        self.scene.compiled.engine()
    }

    /// How many records the commit has so far, about.
    fn len(&self) -> usize {
        self.decisions.len() + self.timers.len() + self.ended.len() + self.deliveries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.states.is_unchanged()
    }

    fn life(&self, campaign: CampaignId) -> Life {
        match self.scene.documents.campaign(campaign).map(|campaign| campaign.state) {
            Some(State::Active | State::Shadow) => Life::Acts,
            Some(State::Paused | State::Draft) => Life::Rests,
            Some(State::Archived) | None => Life::IsOver,
        }
    }

    /// Whether the campaign of an action has ended since it was decided, and acts again.
    fn is_of_an_ended_version(&self, campaign: CampaignId, version: u32) -> bool {
        self.control.endings.get(&campaign).is_some_and(|ended| version < *ended)
    }

    /// The commit, still without its place in the log; or the error of the ledger that was met on
    /// the way.
    pub fn into_commit(mut self) -> Result<Commit, campaigns::Error> {
        self.states.check()?;
        self.budgets.check()?;
        // What is set and ended in one commit never was.
        let timers = self
            .timers
            .into_iter()
            .filter(|timer| !self.ended.contains(&(timer.due_ms, timer.action)));
        let mut budgets: Vec<BudgetChange> = self.budgets.into_changes();
        budgets.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Commit {
            timers: timers.collect(),
            states: self.states.into_changes(),
            budgets,
            decisions: self.decisions,
            fired: self.ended.into_iter().collect(),
            deliveries: self.deliveries,
            ..Commit::default()
        })
    }
}
