//! The expected counts, computed as plainly as possible.

use crate::control::Bucket;
use crate::state::Backfill;
use raingauge_core::bucket::Granularity;
use raingauge_core::counter::{Counter, State};
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;

/// An event as the model keeps it.
#[derive(Clone, Debug)]
pub struct Happened {
    pub id: u16,
    pub time_s: i64,
    pub kind: &'static str,
    pub data: String,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Event(Happened),
    Counter(Box<Counter>),
    Buckets(Vec<Bucket>),
    Backfill,
    Erase(u32, String),
    EraseAll(u32),
    Void,
}

/// Counts that are not 0, by key and bucket.
pub type Cells = BTreeMap<(String, Granularity, i64), i64>;

/// The whole history, and the backfills that ended.
#[derive(Default)]
pub struct Model {
    /// What was appended, at its offset.
    pub log: Vec<Entry>,
    pub finished: Vec<(u32, Backfill)>,
}

impl Model {
    /// All counts of a counter: of each entry, only what lies in the times of the part that counts
    /// it.
    pub fn cells(&self, id: u32) -> Cells {
        let mut cells = Cells::new();
        let erased_before = self.erased_before(id);
        for (time_from_s, time_to_s, backfill) in self.parts(id, erased_before) {
            let within = |time_s: &i64| (time_from_s..time_to_s).contains(time_s);
            let mut part = Cells::new();
            for (offset, entry) in (0..).zip(&self.log) {
                if offset < erased_before || backfill.is_some_and(|backfill| offset < backfill.from)
                {
                    continue;
                }

                if let Entry::Erase(of, key) = entry
                    && *of == id
                {
                    part.retain(|(counted, ..), _| counted != key);
                }

                let Some(rule) = self.rule(id, offset, backfill) else {
                    continue;
                };
                match entry {
                    Entry::Event(event) if within(&event.time_s) => count(&rule, event, &mut part),
                    Entry::Buckets(buckets) => {
                        let ruleset = Ruleset::new([rule]);
                        let mine = buckets
                            .iter()
                            .filter(|bucket| ruleset.index_of_key(&bucket.key).is_some());
                        for bucket in mine.filter(|bucket| within(&bucket.time)) {
                            part.insert(
                                (bucket.key.clone(), bucket.granularity, bucket.time),
                                bucket.count,
                            );
                        }
                    }
                    _ => {}
                }
            }

            cells.extend(part);
        }

        cells.retain(|_, count| *count != 0);
        cells
    }

    /// Returns the time ranges and the backfill that holds each; `None` is what was counted live.
    fn parts(&self, id: u32, erased_before: Offset) -> Vec<(i64, i64, Option<&Backfill>)> {
        let mut parts: Vec<(i64, Option<&Backfill>)> = vec![(0, None)];
        let begun_since =
            |(of, backfill): &&(u32, Backfill)| *of == id && backfill.begun >= erased_before;
        for (_, backfill) in self.finished.iter().filter(begun_since) {
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

    /// The offset before which everything of a counter is erased.
    fn erased_before(&self, id: u32) -> Offset {
        let is_erasure = |entry: &Entry| matches!(entry, Entry::EraseAll(of) if *of == id);
        self.log.iter().rposition(is_erasure).unwrap_or(0) as Offset
    }

    /// The configuration that an entry is counted by: the one in force there, or, before the entry
    /// that began a backfill, the one that it began with.
    fn rule(&self, id: u32, offset: Offset, backfill: Option<&Backfill>) -> Option<Counter> {
        let last_before = |offset: Offset| {
            let newest = self.log[..offset as usize].iter().rev();
            newest
                .filter_map(|entry| match entry {
                    Entry::Counter(counter) if counter.id == id => Some(Counter::clone(counter)),
                    _ => None,
                })
                .next()
        };
        match backfill {
            Some(backfill) if offset < backfill.begun => last_before(backfill.begun)
                .map(|counter| Counter { state: State::Active, ..counter }),
            _ => last_before(offset),
        }
    }
}

fn count(rule: &Counter, event: &Happened, cells: &mut Cells) {
    let event =
        raingauge_core::event::Event::of_data(event.kind, event.time_s * 1_000, &event.data);
    let add = |_, key: &str, value: i64| {
        for granularity in Granularity::ALL {
            *cells
                .entry((key.to_owned(), granularity, granularity.floor(event.time_s())))
                .or_default() += value;
        }
    };
    Ruleset::new([rule.clone()]).apply(&event, &mut Scratch::default(), add, |_, _| {});
}
