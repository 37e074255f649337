//! Replays of single subjects: what one campaign made of their events, in the versions that it had.
//!
//! ```text
//!   log ──▶ events of the subjects ──▶ engine of the version in effect ──▶ explanation, decisions
//!      └──▶ changes of the campaign ──────────▲
//! ```
//!
//! Counts and usage follow from the events of the subject alone. What also depends on others, such
//! as a budget, a cap or a group, is taken from the decisions that were recorded.

use crate::Error;
use crate::answers::Answers;
use crate::documents::field_of;
use crate::limits::SUBJECT_EVENTS_MAX;
use crate::machine::OwnedEvent;
use crate::memory::Memory;
use crate::source::Step;
use hashbrown::{HashMap, HashSet};
use memchr::memmem;
use raingauge_campaigns::calendar::Period;
use raingauge_campaigns::campaign::{Campaign, CampaignId, CountWindow, History, State};
use raingauge_campaigns::documents::{Document, Kind};
use raingauge_campaigns::engine::{
    At, Documents, Engine, Explanation, Outcome, Release, tally_owner,
};
use raingauge_campaigns::index::Scratch;
use raingauge_campaigns::limit::LimitPeriod;
use raingauge_campaigns::states::{BudgetKey, Budgets};
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_ports::campaigns::{Decision, DocumentStore, StoredDocument};
use raingauge_ports::record::{Entry, Identity, identity};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};

const DAY_MS: i64 = 86_400_000;
/// The kind of a campaign's document, and of control entries about documents.
const CAMPAIGN: &str = "campaign";
const DOCUMENT: &str = "document";
/// Outcomes that depend on more than the events of the subject.
const SHARED_OUTCOMES: [&str; 5] =
    ["budget_exhausted", "cap_reached", "group_lost", "lookup_failed", "render_failed"];

/// The versions of one campaign.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub campaign: CampaignId,
    versions: BTreeMap<u32, Version>,
}

#[derive(Clone, Debug)]
struct Version {
    /// `None` where it was deleted, or cannot be read any more.
    campaign: Option<Campaign>,
    changed_ms: i64,
}

impl Timeline {
    pub async fn load(store: &dyn DocumentStore, campaign: CampaignId) -> Result<Self, Error> {
        let found = store.versions(CAMPAIGN, &campaign.to_string()).await?;
        if found.is_empty() {
            return Err(Error::UnknownCampaign(campaign));
        }
        let versions = found.into_iter().map(|stored| {
            let StoredDocument { version, changed_ms, ref configuration, .. } = stored;
            let document = Document::read(Kind::Campaign, configuration);
            let read = match document {
                Ok(Document::Campaign(read)) if !stored.is_deleted => {
                    Some(Campaign { id: campaign, ..*read })
                }
                _ => None,
            };
            (version, Version { campaign: read, changed_ms })
        });
        Ok(Self { campaign, versions: versions.collect() })
    }

    /// The campaign at a version.
    pub fn at(&self, version: u32) -> Option<&Campaign> {
        self.versions.get(&version)?.campaign.as_ref()
    }

    pub fn campaigns(&self) -> impl Iterator<Item = &Campaign> {
        self.versions.values().filter_map(|version| version.campaign.as_ref())
    }

    /// The newest version that was saved by a time.
    fn before(&self, at_ms: i64) -> Option<u32> {
        let saved = self.versions.iter().filter(|(_, version)| version.changed_ms < at_ms);
        saved.map(|(number, _)| *number).next_back()
    }

    /// How long before an event the first one happened that matters for a decision on it, in
    /// milliseconds.
    pub fn memory_ms(&self) -> i64 {
        let days = |period: &Period| match period {
            Period::Day => 3,
            Period::Week => 15,
            Period::Month => 63,
        };
        let counts = self.campaigns().flat_map(|campaign| campaign.counts.values());
        let counted = counts.map(|count| match &count.window {
            CountWindow::Campaign => i64::MAX,
            CountWindow::Calendar(period) => days(period) * DAY_MS,
            CountWindow::Last(length) => length.ms(),
            CountWindow::Counter { .. } => 0,
        });
        let limits = self.campaigns().flat_map(|campaign| &campaign.limits);
        let limited = limits.map(|limit| match &limit.period {
            LimitPeriod::Campaign => i64::MAX,
            LimitPeriod::Calendar(period) => days(period) * DAY_MS,
            LimitPeriod::Last(length) => length.ms(),
        });
        counted.chain(limited).max().unwrap_or(0)
    }

    /// Whether a version fills its counts from the log before it decides.
    pub fn warms(&self, version: u32) -> bool {
        let Some(Version { campaign: Some(campaign), changed_ms }) = self.versions.get(&version)
        else {
            return false;
        };
        let begins_before = campaign.activity_ms().0 < *changed_ms;
        campaign.counts.values().any(|count| match (&count.window, count.history) {
            (CountWindow::Counter { .. }, _) | (_, Some(History::None)) => false,
            (_, Some(History::Log)) => true,
            (_, None) => begins_before,
        })
    }
}

/// A control entry that changes a document.
#[derive(Deserialize)]
struct Control {
    #[serde(rename = "for")]
    consumer: Option<String>,
    kind: String,
    document: Option<ChangedDocument>,
}

#[derive(Deserialize)]
struct ChangedDocument {
    kind: String,
    id: String,
    version: u32,
}

/// The decisions that were recorded, by event.
pub type Recorded = HashMap<Identity, Vec<Decision>>;

/// Replays the events of some subjects.
pub struct SubjectReplay {
    timeline: Timeline,
    subjects: HashSet<String>,
    /// Finds the subject in the text of an event, where there is one subject alone.
    finder: Option<memmem::Finder<'static>>,
    /// Where the versions find the subject, and the types that concern them.
    fields: Vec<Field>,
    kinds: HashSet<String>,
    /// What the campaign shares with others; without campaigns.
    shared: Documents,
    recorded: Recorded,
    version: Option<u32>,
    is_begun: bool,
    /// Whether the first version found events that came before it.
    has_early_events: bool,
    engine: Engine,
    memory: Memory,
    kept: VecDeque<(i64, OwnedEvent)>,
    scratch: Scratch,
}

/// What the campaign made of an event.
#[derive(Debug)]
pub struct SubjectTurn {
    /// The version in effect; `None` before the first one.
    pub version: Option<u32>,
    pub state: Option<State>,
    pub is_listener: bool,
    pub explanation: Option<Explanation>,
    /// `None` where the recorded decisions depend on others.
    pub outcome: Option<Outcome>,
}

/// Budgets that are never exhausted: the recorded decisions say where one was.
struct Boundless;

impl Budgets for Boundless {
    fn free(&mut self, _key: &BudgetKey, _max: i64) -> i64 {
        i64::MAX
    }

    fn reserve(&mut self, _key: &BudgetKey, _max: i64, _amount: i64) {}
}

impl SubjectReplay {
    pub fn new(
        timeline: Timeline,
        subjects: HashSet<String>,
        in_effect: &Documents,
        recorded: Recorded,
    ) -> Self {
        let shared =
            Documents { campaigns: Vec::new(), caps: BTreeMap::new(), ..in_effect.clone() };
        let mut fields = Vec::new();
        let mut kinds = HashSet::new();
        for campaign in timeline.campaigns() {
            fields.extend(field_of(&campaign.subject));
            let release = Release { version: 0, campaign: campaign.clone(), is_warming: false };
            let documents = Documents { campaigns: vec![release], ..shared.clone() };
            kinds.extend(Engine::new(documents).event_types().map(str::to_owned));
            kinds.extend(campaign.event_types.iter().cloned());
        }
        fields.sort_by_key(Field::to_string);
        fields.dedup();

        let only = (subjects.len() == 1).then(|| subjects.iter().next()).flatten();
        let finder = only.map(|subject| memmem::Finder::new(subject.as_bytes()).into_owned());
        Self {
            finder,
            subjects,
            fields,
            kinds,
            engine: Engine::new(shared.clone()),
            shared,
            timeline,
            recorded,
            version: None,
            is_begun: false,
            has_early_events: false,
            memory: Memory::default(),
            kept: VecDeque::new(),
            scratch: Scratch::default(),
        }
    }

    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The campaign, if it has had one version alone, whose counts include all that came before.
    pub fn only_version(&self) -> Option<&Campaign> {
        let version = self.version.filter(|_| self.timeline.versions.len() == 1)?;
        let is_whole = self.timeline.warms(version) || !self.has_early_events;
        self.timeline.at(version).filter(|_| is_whole)
    }

    /// What the campaign shares with others; without campaigns and caps.
    pub fn shared(&self) -> &Documents {
        &self.shared
    }

    /// The decisions that were recorded for an event.
    pub fn recorded(&self, event: &Event<'_>) -> &[Decision] {
        let name = identity(&event.source, &event.id);
        self.recorded.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Applies an entry of the log. `None` for one that does not concern the subjects.
    pub fn take(
        &mut self,
        step: &Step<'_>,
        answers: &mut Answers,
    ) -> Result<Option<SubjectTurn>, Error> {
        if !self.is_begun {
            self.is_begun = true;
            // Where the log begins later than the campaign, the entry that brought it is gone.
            self.turn_to(self.timeline.before(step.appended_ms));
        }
        match &step.entry {
            Entry::Event(event) if self.concerns(event) => {
                self.keep(event, step.appended_ms);
                let turn = self.decide(event, step.appended_ms, answers);
                self.memory.check()?;
                Ok(Some(turn))
            }
            Entry::Control(payload) => {
                if let Some(version) = self.changed(payload) {
                    self.turn_to(Some(version));
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Whether an event is about one of the subjects.
    fn concerns(&self, event: &Event<'_>) -> bool {
        if !self.kinds.contains(&*event.kind) {
            return false;
        }
        // A text with escapes may have the subject in another spelling.
        let may_have = self.finder.as_ref().is_none_or(|finder| {
            finder.find(event.data.as_bytes()).is_some()
                || event.data.contains('\\')
                || [Some(&event.id), Some(&event.source), event.subject.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|text| finder.find(text.as_bytes()).is_some())
        });
        may_have && self.subject_of(event).is_some_and(|found| self.subjects.contains(&found))
    }

    /// Whom an event is about.
    pub fn subject_of(&self, event: &Event<'_>) -> Option<String> {
        let mut found = Vec::new();
        extract(event, &self.fields, &mut found);
        let mut texts = found.iter().flatten().map(Scalar::as_text);
        let known = texts.clone().find(|text| self.subjects.contains(*text));
        known.or_else(|| texts.next()).map(str::to_owned)
    }

    /// The version that a control entry brings into effect, if it is one of this campaign.
    fn changed(&self, payload: &[u8]) -> Option<u32> {
        let control: Control = serde_json::from_slice(payload).ok()?;
        let document = control.document?;
        let is_mine = control.consumer.as_deref() == Some("campaigns")
            && control.kind == DOCUMENT
            && document.kind == CAMPAIGN
            && document.id == self.timeline.campaign.to_string();
        is_mine.then_some(document.version)
    }

    fn keep(&mut self, event: &Event<'_>, appended_ms: i64) {
        if self.kept.len() >= SUBJECT_EVENTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((appended_ms, OwnedEvent::of(event)));
    }

    /// Goes on with a version. Counts that are new begin with the events that were kept.
    fn turn_to(&mut self, version: Option<u32>) {
        if self.version == version {
            return;
        }
        if self.version.is_none() {
            self.has_early_events = !self.kept.is_empty();
        }
        self.version = version;
        let campaign = version.and_then(|version| self.timeline.at(version)).cloned();
        let documents = |is_warming| {
            let number = version.unwrap_or_default();
            let release =
                campaign.clone().map(|campaign| Release { version: number, campaign, is_warming });
            Documents { campaigns: release.into_iter().collect(), ..self.shared.clone() }
        };
        self.engine = Engine::new(documents(false));

        let mut memory = Memory::default();
        if version.is_some_and(|version| self.timeline.warms(version)) {
            let counting = Engine::new(documents(true));
            for (appended_ms, event) in &self.kept {
                let at = At { appended_ms: *appended_ms };
                counting.begin(&event.event(), at, &mut memory, &mut self.scratch);
            }
        }
        // A tally that a version gives up begins again when a later one counts it.
        let counted = campaign.as_ref().filter(|campaign| campaign.state.counts());
        let tallies: HashSet<u128> = counted
            .into_iter()
            .flat_map(|campaign| campaign.counts.values().map(|count| tally_owner(campaign, count)))
            .flatten()
            .collect();
        memory.adopt(&self.memory, &tallies);
        self.memory = memory;
    }

    fn decide(
        &mut self,
        event: &Event<'_>,
        appended_ms: i64,
        answers: &mut Answers,
    ) -> SubjectTurn {
        let campaign = self.version.and_then(|version| self.timeline.at(version));
        let state = campaign.map(|campaign| campaign.state);
        let is_listener = campaign
            .is_some_and(|campaign| campaign.event_types.iter().any(|kind| **kind == *event.kind));
        let engine = &self.engine;
        let at = At { appended_ms };
        let mut pending = engine.begin(event, at, &mut self.memory, &mut self.scratch);
        answers.feed(engine, event, &mut pending);
        let id = self.timeline.campaign;
        let explanation = engine.explain(&mut pending, id, &mut self.memory);

        let name = identity(&event.source, &event.id);
        let depends = self.recorded.get(&name).is_some_and(|decisions| {
            decisions.iter().any(|one| SHARED_OUTCOMES.contains(&one.outcome.as_str()))
        });
        let outcome = (!depends).then(|| {
            let outcome = engine.decide(pending, &mut self.memory, &mut Boundless);
            self.memory.note(&outcome.decisions);
            outcome
        });
        SubjectTurn { version: self.version, state, is_listener, explanation, outcome }
    }
}
