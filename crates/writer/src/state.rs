//! What the worker remembers from one checkpoint to the next, and the control entries that change it.

use raingauge_core::counter::{Counter, State as Phase};
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::Ruleset;
use raingauge_ports::buckets::{Cell, GENERATIONS_PER_COUNTER, Generation, generation_of};
use raingauge_ports::log::Offset;
use raingauge_ports::published::{Timeline, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON below and of the control entries.
const FORMAT: u32 = 1;

/// Messages in the log, in order with the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Control {
    /// A counter is as it is here from this offset on, unless a newer version is known.
    Counter {
        version: u32,
        counter: Box<Counter>,
        /// The catalog was put back to an older version: that one counts. Only who alone writes changes to a log knows this;
        /// where several do, the older version may just be old news.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        put_back: bool,
    },
    /// These buckets are set to these counts.
    Buckets { buckets: Vec<Bucket> },
    /// The counts of a counter are to be made again from the log, from this second on, the start of a UTC day; without
    /// one, as far back as the partition of the log holds every event.
    Backfill {
        counter: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_s: Option<i64>,
    },
}

impl Control {
    /// A version of a counter that counts where no newer one is known.
    pub fn counter(version: u32, counter: Counter) -> Self {
        Self::Counter { version, counter: Box::new(counter), put_back: false }
    }

    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// One bucket that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub key: String,
    pub granularity: raingauge_core::bucket::Granularity,
    pub time: i64,
    pub count: i64,
}

impl Bucket {
    pub fn cell(&self) -> Cell {
        Cell { granularity: self.granularity, time_s: self.time, count: self.count }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    format: u32,
    pub counters: BTreeMap<u32, CounterState>,
    /// Generations that answer nothing any more and are being removed.
    pub retired: Vec<Generation>,
    /// Those among them that are being removed now, and are no longer counted.
    #[serde(skip)]
    pub removing: Vec<Generation>,
}

impl Default for State {
    fn default() -> Self {
        Self { format: FORMAT, counters: BTreeMap::new(), retired: Vec::new(), removing: Vec::new() }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CounterState {
    pub version: u32,
    pub counter: Counter,
    pub parts: Vec<Part>,
    /// Buckets before these horizons have expired, even if the counter is to be kept longer by now.
    #[serde(default)]
    pub kept_from: Horizons,
    /// The retention was raised, and what is stored may not live as long yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept_longer: bool,
    pub backfill: Option<Backfill>,
}

/// The counts of a counter from one day on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub from_s: i64,
    pub generation: Generation,
    /// Which configuration counted the events from which offset on, oldest first.
    pub rules: Vec<RuleSince>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSince {
    pub since: Offset,
    pub counter: Counter,
}

/// A backfill, running or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    pub status: BackfillStatus,
    /// The generation that is being filled.
    pub generation: Generation,
    /// The log is read from here.
    pub from: Offset,
    /// The log has been read up to here.
    pub position: Offset,
    /// Only buckets from this second on are made again: the log holds all their events. 0 is everything.
    pub after_s: i64,
    /// Events counted so far.
    pub counted: u64,
    /// What is counted has this and its offset for a stamp: no later than what is counted live into the same buckets when
    /// the backfill has ended.
    #[serde(default)]
    pub stamp_base_us: i64,
    /// When it finished or was cancelled, in seconds since 1970; 0 while it runs.
    #[serde(default)]
    pub ended_at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackfillStatus {
    Running,
    Finished,
    /// The counter was changed while the backfill ran, or the log dropped what it was to count.
    Cancelled,
}

impl State {
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let state: Self =
            serde_json::from_slice(json).map_err(|error| format!("the writer's state is malformed: {error}"))?;
        if state.format != FORMAT {
            return Err(format!("the writer's state has format {}, this program reads {FORMAT}", state.format));
        }
        Ok(state)
    }

    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn view(&self) -> View {
        let answering = self.counters.values().filter(|state| state.counter.state.answers());
        let ruleset = Ruleset::new(answering.map(|state| state.counter.clone()));
        View {
            timelines: ruleset.rules().iter().map(|rule| self.counters[&rule.counter.id].timeline()).collect(),
            outgoing: ruleset.rules().iter().map(|rule| self.outgoing(rule.counter.id)).collect(),
            ruleset,
            versions: self.counters.iter().map(|(id, state)| (*id, state.version)).collect(),
        }
    }

    /// Generations of a counter that were replaced and are not removed yet.
    fn outgoing(&self, counter: u32) -> Vec<Generation> {
        let first = generation_of(counter, 0);
        let own = |generation: &&Generation| {
            (first..first + GENERATIONS_PER_COUNTER).contains(*generation) && !self.removing.contains(*generation)
        };
        self.retired.iter().filter(own).copied().collect()
    }

    /// A counter is new, or changed, from `since` on, which was appended at `now_s`. A version that is not newer than the known
    /// one changes nothing, unless the catalog was put back to an older one.
    /// A backfill that was running is of no use any more.
    pub fn set_counter(&mut self, version: u32, counter: Counter, put_back: bool, since: Offset, now_s: i64) {
        let state = self.counters.entry(counter.id).or_insert_with(|| {
            let parts = vec![Part { from_s: 0, generation: generation_of(counter.id, 0), rules: Vec::new() }];
            CounterState {
                version,
                counter: counter.clone(),
                parts,
                kept_from: Horizons::default(),
                is_kept_longer: false,
                backfill: None,
            }
        });
        let is_new = state.parts[0].rules.is_empty();
        if !is_new && (version == state.version || version < state.version && !put_back) {
            return;
        }
        if !is_new {
            state.kept_from = state.kept_from.max(state.counter.retention_days.horizons(now_s));
            state.is_kept_longer |= counter.retention_days.keeps_longer_than(&state.counter.retention_days);
        }
        (state.version, state.counter) = (version, counter.clone());
        for part in &mut state.parts {
            part.rules.push(RuleSince { since, counter: counter.clone() });
        }
        self.cancel_backfill(counter.id, now_s);
    }

    /// A backfill that is running is of no use any more.
    pub fn cancel_backfill(&mut self, counter: u32, now_s: i64) {
        let running = self.counters.get_mut(&counter).and_then(CounterState::running_backfill);
        if let Some(backfill) = running {
            (backfill.status, backfill.ended_at) = (BackfillStatus::Cancelled, now_s);
            let generation = backfill.generation;
            self.retired.push(generation);
        }
    }

    /// Begins a backfill that reads the log from `from` on, unless one is running.
    pub fn start_backfill(&mut self, counter: u32, from: Offset, after_s: i64, stamp_base_us: i64) {
        let Some(state) = self.counters.get_mut(&counter) else { return };
        if state.running_backfill().is_none() {
            let (status, generation) = (BackfillStatus::Running, state.next_generation());
            let (position, counted, ended_at) = (from, 0, 0);
            let begun = Backfill { status, generation, from, position, after_s, counted, stamp_base_us, ended_at };
            state.backfill = Some(begun);
        }
    }

    /// The backfill of a counter has read all that was applied: its generation answers from now on.
    pub fn finish_backfill(&mut self, counter: u32, now_s: i64) {
        let Some(state) = self.counters.get_mut(&counter) else { return };
        let current = state.counter.clone();
        let kept_from = state.kept_from;
        let Some(backfill) = state.running_backfill() else { return };
        (backfill.status, backfill.ended_at) = (BackfillStatus::Finished, now_s);
        let mut rules = vec![RuleSince { since: backfill.from, counter: counting(&current) }];
        if !current.state.counts() {
            rules.push(RuleSince { since: backfill.position, counter: current });
        }
        let part = Part { from_s: backfill.after_s, generation: backfill.generation, rules };
        let kept = state.parts.partition_point(|old| old.from_s < part.from_s);
        self.retired.extend(state.parts.drain(kept..).map(|old| old.generation));
        // What the new part holds was made by the retention of now.
        state.kept_from = Horizons {
            quarter_s: kept_from.quarter_s.min(part.from_s),
            hour_s: kept_from.hour_s.min(part.from_s),
            day_s: kept_from.day_s.min(part.from_s),
        };
        state.parts.push(part);
    }

    /// The backfills that are running, by counter.
    pub fn running(&self) -> Vec<u32> {
        let running = |state: &CounterState| {
            state.backfill.as_ref().is_some_and(|backfill| backfill.status == BackfillStatus::Running)
        };
        self.counters.iter().filter(|(_, state)| running(state)).map(|(id, _)| *id).collect()
    }

    /// The log is still needed from here on.
    pub fn needs_log_from(&self, position: Offset) -> Offset {
        let backfills = self.counters.values().filter_map(|state| state.backfill.as_ref());
        let running = backfills.filter(|backfill| backfill.status == BackfillStatus::Running);
        running.map(|backfill| backfill.position).fold(position, Offset::min)
    }

    /// Forgets rules that counted only what the log no longer holds.
    pub fn forget_rules_before(&mut self, start: Offset) {
        for part in self.counters.values_mut().flat_map(|state| &mut state.parts) {
            let old = part.rules.partition_point(|rule| rule.since <= start).saturating_sub(1);
            part.rules.drain(..old);
        }
    }
}

impl CounterState {
    pub fn timeline(&self) -> Timeline {
        timeline_of(&self.parts).kept_from(self.kept_from)
    }

    /// The one behind the newest that was ever filled. The first folders numbered generations from 1 for all counters
    /// together, below those of any counter.
    fn next_generation(&self) -> Generation {
        let filled = self.backfill.iter().map(|backfill| backfill.generation);
        let newest = self.parts.iter().map(|part| part.generation).chain(filled).max().unwrap_or(0);
        let first = generation_of(self.counter.id, 0);
        if newest < first { first + 1 } else { generation_of(self.counter.id, newest - first + 1) }
    }

    pub fn running_backfill(&mut self) -> Option<&mut Backfill> {
        self.backfill.as_mut().filter(|backfill| backfill.status == BackfillStatus::Running)
    }
}

pub fn timeline_of(parts: &[Part]) -> Timeline {
    Timeline::new(parts.iter().map(|part| (part.from_s, part.generation)).collect())
}

/// The counter as if it counted now: a paused one may be backfilled too.
pub fn counting(counter: &Counter) -> Counter {
    Counter { state: Phase::Active, ..counter.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counter(description: &str) -> Counter {
        let json = json!({"id": 1, "name": "n", "template": "k", "eventType": "t", "description": description});
        Counter::from_json(&json).unwrap()
    }

    #[test]
    fn a_backfill_replaces_what_it_covers_and_keeps_the_rest() {
        let mut state = State::default();
        state.set_counter(1, counter(""), false, 0, 0);
        state.start_backfill(1, 10, 86_400, 0);
        state.start_backfill(1, 99, 0, 0);
        assert_eq!((state.running(), state.needs_log_from(50)), (vec![1], 10));
        state.finish_backfill(1, 7);
        assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_096), (86_400, 4_097)]);
        state.start_backfill(1, 20, 86_400, 0);
        state.finish_backfill(1, 7);
        assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_096), (86_400, 4_098)]);
        state.start_backfill(1, 20, 0, 0);
        state.finish_backfill(1, 7);
        assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_099)]);
        assert_eq!(state.retired, [4_097, 4_096, 4_098]);
        assert_eq!(State::from_json(&state.to_json()).unwrap().to_json(), state.to_json());
    }

    #[test]
    fn a_change_cancels_the_backfill_and_keeps_the_rules_that_counted() {
        let mut state = State::default();
        state.set_counter(1, counter(""), false, 5, 0);
        state.start_backfill(1, 0, 0, 0);
        state.set_counter(1, counter("again"), false, 6, 0);
        assert_eq!(state.running(), [1], "the same version again changes nothing");
        state.set_counter(2, counter("b"), false, 7, 0);
        assert!(state.running().is_empty() && state.retired == [4_097]);
        let since: Vec<Offset> = state.counters[&1].parts[0].rules.iter().map(|rule| rule.since).collect();
        assert_eq!(since, [5, 7]);
        state.forget_rules_before(7);
        assert_eq!(state.counters[&1].parts[0].rules.len(), 1);
    }

    #[test]
    fn an_older_version_counts_only_where_the_catalog_was_put_back() {
        let mut state = State::default();
        state.set_counter(3, counter("new"), false, 5, 0);
        state.start_backfill(1, 0, 0, 0);
        let before = state.to_json();
        state.set_counter(2, counter("old news of another process"), false, 6, 0);
        assert_eq!(state.to_json(), before, "neither the counter nor its backfill");
        state.set_counter(2, counter("restored"), true, 7, 0);
        assert_eq!((state.counters[&1].version, state.counters[&1].counter.description.as_str()), (2, "restored"));
        state.set_counter(3, counter("again"), false, 8, 0);
        let since: Vec<Offset> = state.counters[&1].parts[0].rules.iter().map(|rule| rule.since).collect();
        assert_eq!(since, [5, 7, 8]);
    }

    #[test]
    fn a_change_in_the_log_looks_as_it_always_did() {
        let change = Control::counter(2, counter(""));
        let json: serde_json::Value = serde_json::from_slice(&change.to_json()).unwrap();
        assert!(json.get("put_back").is_none() && json.get("putBack").is_none(), "{json}");
        assert_eq!(serde_json::from_value::<Control>(json).unwrap(), change);
    }

    #[test]
    fn a_state_of_another_format_is_refused() {
        assert!(State::from_json(br#"{"format":2,"counters":{},"retired":[]}"#).unwrap_err().contains("format 2"));
        assert!(State::from_json(b"{").is_err());
    }
}
