//! What a cluster should have counted, by walking through the whole log of each partition.

use super::play::COUNTERS;
use crate::conductor::DECIDER;
use crate::control::{Bucket, Control};
use crate::state::Erasure;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::{Counter, State as Life};
use raingauge_core::event::Event;
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::log::{Offset, Partition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An event as the model keeps it.
#[derive(Clone, Debug)]
pub struct Happened {
    pub time_s: i64,
    pub data: String,
}

/// What the model keeps of an entry of the log.
pub enum Entry {
    Event(Happened),
    /// A version of a counter.
    Rule(u32, Arc<Rule>),
    Erase(u32, String),
    EraseAll(u32),
    Buckets(Vec<Bucket>),
    /// An entry that counts nothing.
    Other,
}

impl Entry {
    fn of(control: &Control) -> Self {
        match control {
            Control::Counter { version, counter, .. } => {
                Self::Rule(*version, Arc::new(Rule::new(counter)))
            }
            Control::Erase { counter, key } => Self::Erase(*counter, key.clone()),
            Control::EraseAll { counter, .. } => Self::EraseAll(*counter),
            Control::Buckets { buckets, .. } => Self::Buckets(buckets.clone()),
            _ => Self::Other,
        }
    }
}

/// A configuration, compiled once.
pub struct Rule {
    counter: Counter,
    ruleset: Ruleset,
}

impl Rule {
    pub fn new(counter: &Counter) -> Self {
        Self { counter: counter.clone(), ruleset: Ruleset::new([counter.clone()]) }
    }

    fn count(&self, event: &Happened, cells: &mut Cells) {
        if self.counter.state != Life::Active {
            return;
        }
        let event = Event::of_data("t", event.time_s * 1_000, &event.data);
        let add = |_, key: &str, value: i64| {
            for granularity in Granularity::ALL {
                *cells
                    .entry((key.to_owned(), granularity, granularity.floor(event.time_s())))
                    .or_default() += value;
            }
        };
        self.ruleset.apply(&event, &mut Scratch::default(), add, |_, _| {});
    }

    fn set(&self, bucket: &Bucket, cells: &mut Cells) {
        if self.counter.state.answers() && self.ruleset.index_of_key(&bucket.key).is_some() {
            cells.insert((bucket.key.clone(), bucket.granularity, bucket.time), bucket.count);
        }
    }
}

/// A backfill whose generation answers.
pub struct Switched {
    pub number: u32,
    pub after_s: i64,
    pub counts_before: Rule,
    /// The offset in each partition from which on the configurations in force counted.
    pub begun: BTreeMap<Partition, Offset>,
}

/// Counts that are not 0, by key and bucket.
pub type Cells = BTreeMap<(String, Granularity, i64), i64>;

#[derive(Default)]
pub struct Naive {
    /// What was appended to each partition, at its offset.
    logs: Vec<Vec<Entry>>,
    /// For each partition and offset, the number of events before it, and of those that the first
    /// counter counts.
    events: Vec<Vec<(i64, i64)>>,
    pub switched: BTreeMap<u32, Vec<Switched>>,
    /// The newest erasure of each counter, by partition.
    pub erased: BTreeMap<u32, BTreeMap<Partition, Erasure>>,
    /// When a request of each id was obeyed last, by partition.
    requests: BTreeMap<(usize, String), i64>,
}

impl Naive {
    pub fn new(partitions: usize) -> Self {
        let logs = (0..partitions).map(|_| Vec::new()).collect();
        Self { logs, events: vec![vec![(0, 0)]; partitions], ..Self::default() }
    }

    /// A control entry that was appended now. A request whose key was used within a day counts
    /// nothing.
    pub fn push_control(&mut self, place: usize, control: &Control, now_s: i64) {
        let mut entry = Entry::of(control);
        if let Control::Buckets { request: Some(request), .. } = control {
            let obeyed_s = self.requests.entry((place, request.id.clone())).or_insert(i64::MIN / 2);
            if now_s - *obeyed_s <= DAY_S {
                entry = Entry::Other;
            } else {
                *obeyed_s = now_s;
            }
        }
        self.push(place, entry);
    }

    pub fn push(&mut self, place: usize, entry: Entry) {
        let log = &mut self.logs[place];
        let events = &mut self.events[place];
        let (all, counted) = events.last().copied().unwrap_or_default();
        let is_event = i64::from(matches!(entry, Entry::Event(_)));

        // The log alone does not tell whether an erasure takes effect, so nothing before one has to
        // be counted.
        let counted =
            if matches!(entry, Entry::EraseAll(id) if id == COUNTERS[0]) { 0 } else { counted };
        log.push(entry);

        let is_first =
            |entry: &Entry| matches!(entry, Entry::Rule(_, rule) if rule.counter.id == COUNTERS[0]);
        let is_counted = counted > 0 || (is_event > 0 && log.iter().any(is_first));
        events.push((all + is_event, counted + i64::from(is_counted) * is_event));
    }

    pub fn len(&self, place: usize) -> usize {
        self.logs[place].len()
    }

    /// Returns the least and the most that the first counter, whose configuration always counts the
    /// same, can have counted in a partition that is applied up to an offset, over all keys.
    pub fn bounds(&self, place: usize, applied: Offset) -> (i64, i64) {
        let events = &self.events[place];
        (events[applied as usize].1, events.last().map_or(0, |(all, _)| *all))
    }

    /// Returns all counts of a counter.
    pub fn cells(&self, counter: u32) -> Cells {
        let mut cells = Cells::new();
        let erased = self.erased.get(&counter);
        for (partition, log) in (0..).zip(&self.logs) {
            let erased_before =
                erased.and_then(|erased| erased.get(&partition)).map_or(0, |erased| erased.offset);
            for (from_s, to_s, backfill) in self.parts(counter) {
                let mut part = Cells::new();
                let backfill = backfill.map(|of| (of, of.begun[&partition]));
                self.walk(log, counter, (from_s, to_s), backfill, erased_before, &mut part);

                for (at, count) in part {
                    *cells.entry(at).or_default() += count;
                }
            }
        }

        cells.retain(|_, count| *count != 0);
        cells
    }

    /// Counts one partition for the days of one part of the timeline.
    fn walk(
        &self,
        log: &[Entry],
        counter: u32,
        (from_s, to_s): (i64, i64),
        backfill: Option<(&Switched, Offset)>,
        erased_before: Offset,
        cells: &mut Cells,
    ) {
        let mut in_force = None::<(u32, &Rule)>;
        for (offset, entry) in (0..).zip(log) {
            let before = backfill
                .filter(|(_, begun)| offset < *begun)
                .map(|(backfill, _)| &backfill.counts_before);
            let rule = before.or(in_force.map(|(_, rule)| rule));

            match entry {
                Entry::Event(_) | Entry::Buckets(_) if offset < erased_before => {}
                Entry::Event(event) if (from_s..to_s).contains(&event.time_s) => {
                    rule.into_iter().for_each(|rule| rule.count(event, cells));
                }
                Entry::Buckets(buckets) => {
                    let own = buckets.iter().filter(|bucket| (from_s..to_s).contains(&bucket.time));
                    own.for_each(|bucket| {
                        rule.into_iter().for_each(|rule| rule.set(bucket, cells))
                    });
                }
                Entry::Erase(of, key) if *of == counter => {
                    cells.retain(|(erased, ..), _| erased != key)
                }
                // Versions are applied in order, each once.
                Entry::Rule(version, rule)
                    if rule.counter.id == counter
                        && in_force.is_none_or(|(known, _)| known < *version) =>
                {
                    in_force = Some((*version, &**rule));
                }
                _ => {}
            }
        }
    }

    /// Returns the time ranges and the backfill that holds each; `None` is what was counted live.
    fn parts(&self, counter: u32) -> Vec<(i64, i64, Option<&Switched>)> {
        let mut parts: Vec<(i64, Option<&Switched>)> = vec![(0, None)];
        let erased = self
            .erased
            .get(&counter)
            .and_then(|erased| erased.get(&DECIDER))
            .map_or(0, |erased| erased.number);

        let switched = self.switched.get(&counter).into_iter().flatten();
        for backfill in switched.filter(|backfill| backfill.number > erased) {
            parts.retain(|(from_s, _)| *from_s < backfill.after_s);
            parts.push((backfill.after_s, Some(backfill)));
        }

        let ends: Vec<i64> =
            parts.iter().skip(1).map(|(from_s, _)| *from_s).chain([i64::MAX]).collect();
        parts
            .into_iter()
            .zip(ends)
            .map(|((from_s, backfill), to_s)| (from_s, to_s, backfill))
            .collect()
    }
}
