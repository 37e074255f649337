//! The engine: what all campaigns together decide on an event.
//!
//! ```text
//!   begin    tallies of the subject ──▶ index ──▶ rules, as far as values are at hand
//!   wants    lookups that can still change a result, for the service to carry out
//!   feed     their answers
//!   decide   holdout ▶ variant ▶ limits ▶ caps ▶ budgets ▶ group ──▶ decisions
//! ```
//!
//! It has no clock, and asks nobody: the same documents, events and answers make the same
//! decisions. Events are decided in the order of their stream: `decide` of one comes before `begin`
//! of the next, so that usage and budgets are those before the event. A service that wants to look
//! up values for many events together begins them on a copy of the states first, to learn the keys.

mod assume;
mod build;
mod evaluate;
mod explain;
mod gates;
mod lookup;
mod waiting;

pub use build::tally_owner;
pub use evaluate::{At, Pending, subject_of};
pub use explain::{Change, Explanation, Nearest};
pub use gates::{Exposure, Outcome};
pub(crate) use lookup::field_of;
pub use lookup::{Held, LookupClass, LookupKey, scalar_at};
pub use waiting::{forget_waiting, waiting_key};

use crate::budget::Budget;
use crate::calendar::Zone;
use crate::campaign::{Campaign, CampaignId};
use crate::experiment::{Holdout, Split};
use crate::index::Index;
use crate::rule::TimePart;
use crate::tree::Tree;
use crate::window::Window;
use hashbrown::HashMap;
use raingauge_core::field::Field;
use raingauge_core::template::Template;
use raingauge_core::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All documents that decide, as of one place in the stream.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    pub campaigns: Vec<Release>,
    /// Budgets that several campaigns share, by name.
    pub budgets: BTreeMap<String, Budget>,
    pub holdouts: BTreeMap<String, Holdout>,
    pub caps: BTreeMap<String, Cap>,
    /// Lookups that differ from what their class does, as `table.users` or `http.risk`.
    pub lookups: BTreeMap<String, LookupRule>,
    /// Events that arrive later than this after they happened decide nothing.
    pub late_after_ms: i64,
}

/// A version of a campaign.
#[derive(Clone, Debug)]
pub struct Release {
    pub version: u32,
    pub campaign: Campaign,
    /// Its tallies are still filled from the log, so that it counts and does not decide.
    pub is_warming: bool,
}

/// Bounds the actions to a set of destinations for each subject and local day, over all campaigns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    pub destinations: Vec<String>,
    pub max: i64,
    #[serde(default = "utc")]
    pub zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// How the engine treats a lookup.
#[derive(Clone, Debug, Default)]
pub struct LookupRule {
    /// Overrides the weight of the class.
    pub weight: Option<u32>,
    /// The field whose value is looked up; the subject, if there is none.
    pub key: Option<String>,
    pub on_error: OnError,
}

/// What a condition on a lookup is when the lookup fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// It is not known, and the evaluation waits.
    #[default]
    Hold,
    /// It does not hold.
    False,
}

/// Documents as they are executed.
#[derive(Clone, Debug)]
pub struct Engine {
    /// In the order in which they are decided: by priority, then by id.
    programs: Vec<Program>,
    buckets: HashMap<Box<str>, Bucket>,
    tallies: Vec<TallyDefinition>,
    budgets: BTreeMap<String, Budget>,
    holdouts: BTreeMap<String, Holdout>,
    caps: Vec<CompiledCap>,
    late_after_ms: i64,
}

/// A campaign that has been compiled.
#[derive(Clone, Debug)]
struct Program {
    version: u32,
    campaign: Campaign,
    /// Otherwise it only counts.
    decides: bool,
    /// Of periods and delays that name none.
    zone: Zone,
    subject: Field,
    limits: Vec<CompiledLimit>,
    /// The field of the unit, and the buckets of variants.
    experiment: Option<(Field, Split)>,
    /// The fields that costs follow from, by step and action.
    cost_fields: Vec<Vec<Option<Field>>>,
    /// Whose grants a condition counts, by step.
    usage_owners: Vec<Option<u128>>,
}

impl Program {
    fn id(&self) -> CampaignId {
        self.campaign.id
    }
}

#[derive(Clone, Debug)]
struct CompiledLimit {
    step: Option<usize>,
    per: Field,
    owner: u128,
    window: Window,
}

#[derive(Clone, Debug)]
struct CompiledCap {
    cap: Cap,
    owner: u128,
    window: Window,
}

/// A tally that campaigns with equal definitions share.
#[derive(Clone, Debug)]
struct TallyDefinition {
    owner: u128,
    window: Window,
    subject: Field,
    value: Value,
}

/// What listens to one type of events.
#[derive(Clone, Debug, Default)]
struct Bucket {
    /// Values that are read from every event: fields, then local times.
    fields: Vec<Field>,
    locals: Vec<(Zone, TimePart)>,
    /// Tallies that may count the event, and the index over their filters.
    counting: Vec<Counting>,
    counting_index: Index,
    /// Steps of campaigns, in the order of programs. Those behind the index are rechecks.
    entries: Vec<Entry>,
    entry_index: Index,
    cancels: Vec<Cancelling>,
    cancel_index: Index,
    rechecks: HashMap<(usize, usize, usize), usize>,
}

#[derive(Clone, Debug)]
struct Counting {
    tally: usize,
    filter: Entry,
}

/// An action that waits, and that events of a type may cancel.
#[derive(Clone, Debug)]
struct Cancelling {
    owner: u128,
    rule: Entry,
}

/// A rule and where the values of its leaves come from.
#[derive(Clone, Debug)]
struct Entry {
    program: usize,
    step: usize,
    tree: Tree,
    sources: Box<[Source]>,
}

#[derive(Clone, Debug)]
enum Source {
    Slot(usize),
    Tally(usize),
    Usage(u128),
    Counter {
        template: Template,
        length_ms: i64,
    },
    Lookup {
        lookup: Lookup,
        path: Box<[Box<str>]>,
    },
    /// A part of the time in a zone that is looked up.
    LocalTime {
        lookup: Lookup,
        column: Box<str>,
        part: TimePart,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    class: LookupClass,
    name: Box<str>,
    key: Field,
    on_error: OnError,
}

impl Bucket {
    /// Where the value of a field is, once all fields are known.
    fn slot_of(&self, field: &Field) -> usize {
        self.fields.iter().position(|known| known == field).expect("all fields were collected")
    }
}

impl Engine {
    /// Types of events that any campaign listens to.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.buckets.keys().map(|kind| &**kind)
    }

    /// Whether any campaign listens to a type of events. Others change nothing.
    pub fn listens_to(&self, event_type: &str) -> bool {
        self.buckets.contains_key(event_type)
    }

    /// Whether no campaign listens to any event.
    pub fn listens_to_nothing(&self) -> bool {
        self.buckets.is_empty()
    }

    /// How many tallies are kept.
    pub fn tallies(&self) -> usize {
        self.tallies.len()
    }

    /// Whether deciding any event may take a lookup.
    pub fn looks_up(&self) -> bool {
        let looks_up = |source: &Source| {
            matches!(
                source,
                Source::Counter { .. } | Source::Lookup { .. } | Source::LocalTime { .. }
            )
        };
        let mut entries = self.buckets.values().flat_map(|bucket| &bucket.entries);
        entries.any(|entry| entry.sources.iter().any(looks_up))
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
