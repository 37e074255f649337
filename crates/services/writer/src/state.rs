//! The worker's state: a function of the entries of one partition of the log, up to its position.
//!
//! Two workers of a partition that are at the same position have equal states. The progress of a
//! backfill is not part of it and has a record of its own: see [`Progress`].

mod backfills;
mod erasure;
mod progress;
mod requests;
#[cfg(test)]
mod tests;

pub use backfills::{Backfill, BackfillStatus, Begin, Outgoing, next_number, used};
pub use erasure::Erasure;
pub use progress::{Phase, Progress};
pub use requests::{Answer, RefusedBucket, Request, Requests, json_len};

use raingauge_core::counter::{Counter, State as Life};
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_ports::buckets::{Generation, generation_of};
use raingauge_ports::catalog::Versioned;
use raingauge_ports::log::Offset;
use raingauge_ports::published::{Standing, Timeline, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON below and of the control entries.
const FORMAT: u32 = 1;
/// The reason shown for a backfill that was cancelled by a change of what the counter counts.
const CHANGED: &str = "the counter was changed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    format: u32,
    pub counters: BTreeMap<u32, CounterState>,
    /// Generations that neither answer nor count: the store is to remove them.
    pub retired: Vec<Generation>,
    /// Counters whose backfill is undecided, in order. The first one is filled, the others wait.
    #[serde(default)]
    pub queue: Vec<u32>,
    /// How many backfills have come to the head of the queue.
    #[serde(default)]
    pub begun: u64,
    /// Requests with a key that were obeyed.
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// The offset of the last entry that changed the state; `None` in states of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<Offset>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT,
            counters: BTreeMap::new(),
            retired: Vec::new(),
            queue: Vec::new(),
            begun: 0,
            requests: Requests::default(),
            last_change: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterState {
    pub version: u32,
    /// When the catalog accepted the version; 0 if the log does not say.
    #[serde(default)]
    pub changed_at: i64,
    pub counter: Counter,
    /// Distinguishes two configurations of one version.
    #[serde(skip)]
    pub fingerprint: u64,
    pub parts: Vec<Part>,
    /// Buckets before these horizons have expired, even if the counter's retention is longer by
    /// now.
    #[serde(default)]
    pub kept_from: Horizons,
    /// The retention was raised, and stored cells may still have the shorter lifetime.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept_longer: bool,
    /// The newest backfill.
    pub backfill: Option<Backfill>,
    /// The highest generation number that was ever begun or abandoned.
    #[serde(default)]
    pub newest: u32,
    /// Timelines that were replaced and are still counted, oldest first.
    #[serde(default)]
    pub outgoing: Vec<Outgoing>,
    /// The newest erasure of all counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erasure>,
}

/// The counts of a counter from one day on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub from_s: i64,
    pub generation: Generation,
    /// The number of the generation: 0 is counted from the beginning, and each backfill makes the
    /// next.
    #[serde(default)]
    pub number: u32,
    /// The configurations and the offsets from which they counted, oldest first.
    pub rules: Vec<RuleSince>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSince {
    pub since: Offset,
    pub counter: Counter,
}

/// A configuration that is about to enter the state.
pub struct Change {
    pub version: u32,
    pub changed_at: i64,
    pub put_back: bool,
    pub counter: Counter,
}

impl State {
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let mut state: Self = serde_json::from_slice(json)
            .map_err(|error| format!("the writer's state is malformed: {error}"))?;
        if state.format != FORMAT {
            return Err(format!(
                "the writer's state has format {}, this program reads {FORMAT}",
                state.format
            ));
        }

        state.take_up_old_members();
        Ok(state)
    }

    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the view: what this partition answers by and counts. A backfill of `filled` has
    /// caught up, so its generation is counted, too.
    pub fn view(&self, filled: Option<u32>) -> View {
        let answering = self.counters.values().filter(|state| state.counter.state.answers());
        let ruleset = Ruleset::new(answering.map(|state| state.counter.clone()));
        let states = || ruleset.rules().iter().map(|rule| &self.counters[&rule.counter.id]);
        View {
            timelines: states().map(CounterState::timeline).collect(),
            beside: states().map(|state| state.beside(filled == Some(state.counter.id))).collect(),
            versions: self.counters.iter().map(|(id, state)| (*id, state.standing())).collect(),
            ruleset,
        }
    }

    /// Applies a new or changed counter from offset `since`, which was appended at `now_s`. A
    /// version older than the known one changes nothing. `decides` tells whether this partition
    /// decides about backfills for all: there a change of what is counted cancels an undecided
    /// backfill; elsewhere it takes its place among the rules.
    pub fn set_counter(&mut self, change: Change, since: Offset, now_s: i64, decides: bool) {
        let Change { version, changed_at, put_back, counter } = change;
        let id = counter.id;
        let state =
            self.counters.entry(id).or_insert_with(|| CounterState::new(version, counter.clone()));
        let is_new = state.parts[0].rules.is_empty();
        let news = Standing { version, changed_at, fingerprint: fingerprint(&counter) };
        if !is_new && !state.standing().gives_way_to(&news, put_back) {
            return;
        }

        let counts_alike = counts_alike(&state.counter, &counter);
        let expired =
            if is_new { Horizons::default() } else { state.counter.retention_days.horizons(now_s) };
        state.is_kept_longer |=
            !is_new && counter.retention_days.keeps_longer_than(&state.counter.retention_days);
        state.put_rule(RuleSince { since, counter: counter.clone() }, expired);
        state.fingerprint = news.fingerprint;
        (state.version, state.changed_at, state.counter) = (version, changed_at, counter);

        if decides && !counts_alike {
            self.cancel_undecided(id, CHANGED, now_s);
        }
    }

    /// Returns the generations of a counter that are counted: those that answer, those that they
    /// replaced, and that of a backfill that has caught up.
    pub fn counted(&self, counter: u32, is_filled: bool) -> Vec<Generation> {
        let Some(state) = self.counters.get(&counter) else {
            return Vec::new();
        };
        let outgoing = state.outgoing.iter().flat_map(|outgoing| &outgoing.parts);
        let incoming = state.backfill.iter().filter(|backfill| is_filled && backfill.is_running());
        let counted = state.parts.iter().chain(outgoing).map(|part| part.generation);
        let mut generations: Vec<Generation> =
            counted.chain(incoming.map(|backfill| backfill.generation)).collect();
        generations.sort_unstable();
        generations.dedup();
        generations
    }

    /// Forgets what concerns only entries that the log no longer holds. The rules of an undecided
    /// backfill stay: another partition, whose log may begin earlier, still needs its first rules.
    pub fn forget_before(&mut self, start: Offset) {
        self.requests.forget_before(start);
        for state in self.counters.values_mut() {
            let outgoing = state.outgoing.iter_mut().flat_map(|outgoing| &mut outgoing.parts);
            for part in state.parts.iter_mut().chain(outgoing) {
                let old = part.rules.partition_point(|rule| rule.since <= start).saturating_sub(1);
                part.rules.drain(..old);
            }
        }
    }

    /// Converts the members of the first versions, which had no queue and no numbers.
    fn take_up_old_members(&mut self) {
        for (id, state) in &mut self.counters {
            let first = generation_of(*id, 0);
            for part in state.parts.iter_mut().filter(|part| part.number == 0) {
                part.number = part.generation.saturating_sub(first);
            }

            if let Some(backfill) = state.backfill.as_mut().filter(|backfill| backfill.number == 0)
            {
                backfill.number = backfill.generation.saturating_sub(first);
            }

            let numbers = state.parts.iter().map(|part| part.number);
            let filled = state.backfill.iter().map(|backfill| backfill.number);
            state.newest = numbers.chain(filled).max().unwrap_or(0).max(state.newest);
            state.fingerprint = fingerprint(&state.counter);

            let rule = RuleSince { since: 0, counter: counting(&state.counter) };
            if let Some(backfill) =
                state.running_backfill().filter(|backfill| backfill.rules.is_empty())
            {
                backfill.rules.push(rule);
            }
        }
        for id in self.counters.keys() {
            let runs = self.counters[id].backfill.as_ref().is_some_and(Backfill::is_running);
            if runs && !self.queue.contains(id) {
                self.begun += u64::from(self.queue.is_empty());
                self.queue.push(*id);
            }
        }
    }
}

impl CounterState {
    fn new(version: u32, counter: Counter) -> Self {
        let first = Part {
            from_s: 0,
            generation: generation_of(counter.id, 0),
            number: 0,
            rules: Vec::new(),
        };
        Self {
            version,
            changed_at: 0,
            fingerprint: fingerprint(&counter),
            counter,
            parts: vec![first],
            kept_from: Horizons::default(),
            is_kept_longer: false,
            backfill: None,
            newest: 0,
            outgoing: Vec::new(),
            erased: None,
        }
    }

    /// Returns the configuration's place among those of the catalog.
    pub fn standing(&self) -> Standing {
        Standing {
            version: self.version,
            changed_at: self.changed_at,
            fingerprint: self.fingerprint,
        }
    }

    /// Adds a configuration that counts from an offset on. Buckets that had expired under the
    /// previous one stay refused.
    fn put_rule(&mut self, rule: RuleSince, expired: Horizons) {
        self.each_rules(|rules| rules.push(rule.clone()));
        self.kept_from = self.kept_from.max(expired);
        for outgoing in &mut self.outgoing {
            outgoing.kept_from = outgoing.kept_from.max(expired);
        }
        if let Some(backfill) = self.running_backfill() {
            backfill.kept_from = backfill.kept_from.max(expired);
        }
    }

    /// Applies a change to the rules of everything that is counted, or will be.
    pub fn each_rules(&mut self, mut change: impl FnMut(&mut Vec<RuleSince>)) {
        let outgoing = self.outgoing.iter_mut().flat_map(|outgoing| &mut outgoing.parts);
        self.parts.iter_mut().chain(outgoing).for_each(|part| change(&mut part.rules));
        if let Some(backfill) = self.backfill.as_mut().filter(|backfill| backfill.is_running()) {
            change(&mut backfill.rules);
        }
    }

    pub fn timeline(&self) -> Timeline {
        timeline_of(&self.parts).kept_from(self.kept_from)
    }
}

/// Returns a number that distinguishes two configurations of one version.
pub fn fingerprint(counter: &Counter) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&serde_json::to_vec(counter).unwrap_or_default())
}

/// Returns the standing of a configuration of the catalog.
pub fn standing_of(found: &Versioned) -> Standing {
    let Versioned { counter, version, changed_at, .. } = found;
    Standing { version: *version, changed_at: *changed_at, fingerprint: fingerprint(counter) }
}

/// Whether a partition counts by the catalog's configuration, or by a newer one.
pub fn is_known(view: &View, found: &Versioned) -> bool {
    view.versions
        .get(&found.counter.id)
        .is_some_and(|known| !known.gives_way_to(&standing_of(found), false))
}

pub fn timeline_of(parts: &[Part]) -> Timeline {
    Timeline::new(parts.iter().map(|part| (part.from_s, part.generation)).collect())
}

/// Returns the counter as if it were active: a paused counter can be backfilled too.
pub fn counting(counter: &Counter) -> Counter {
    Counter { state: Life::Active, ..counter.clone() }
}

/// Whether two configurations of a counter count the same, and differ at most in their wording.
fn counts_alike(left: &Counter, right: &Counter) -> bool {
    let wordless = |counter: &Counter| Counter {
        name: String::new(),
        owner: String::new(),
        description: String::new(),
        ..counter.clone()
    };
    wordless(left) == wordless(right)
}
