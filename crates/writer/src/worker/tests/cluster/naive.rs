//! What a cluster should have counted, by walking through the whole log of each partition.

use super::play::COUNTERS;
use crate::control::Control;
use raingauge_core::bucket::Granularity;
use raingauge_core::counter::{Counter, State as Life};
use raingauge_core::event::Event;
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::log::{Offset, Partition};
use std::collections::BTreeMap;

/// An event as the model keeps it.
#[derive(Clone, Debug)]
pub struct Happened {
    pub time_s: i64,
    pub data: String,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Event(Happened),
    Control(Box<Control>),
}

/// A backfill that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    pub number: u32,
    pub after_s: i64,
    pub counts_before: Counter,
    /// The offset in each partition from which on the configurations in force counted.
    pub begun: BTreeMap<Partition, Offset>,
}

/// Counts that are not 0, by key and bucket.
pub type Cells = BTreeMap<(String, Granularity, i64), i64>;

#[derive(Default)]
pub struct Naive {
    /// What was appended to each partition, at its offset.
    pub logs: Vec<Vec<Entry>>,
    pub switched: BTreeMap<u32, Vec<Switched>>,
}

impl Naive {
    /// All counts of a counter.
    pub fn cells(&self, counter: u32) -> Cells {
        let mut cells = Cells::new();
        for (partition, log) in (0..).zip(&self.logs) {
            for (from_s, to_s, backfill) in self.parts(counter) {
                let mut in_force = None::<Counter>;
                for (offset, entry) in (0..).zip(log) {
                    match entry {
                        Entry::Control(control) => take_up(&mut in_force, control, counter),
                        Entry::Event(event) if (from_s..to_s).contains(&event.time_s) => {
                            let before = backfill.filter(|backfill| offset < backfill.begun[&partition]);
                            let rule = before.map(|backfill| &backfill.counts_before).or(in_force.as_ref());
                            rule.into_iter().for_each(|rule| count(rule, event, &mut cells));
                        }
                        Entry::Event(_) => {}
                    }
                }
            }
        }
        cells.retain(|_, count| *count != 0);
        cells
    }

    /// From which time to which other which backfill holds; `None` is what was counted in passing.
    fn parts(&self, counter: u32) -> Vec<(i64, i64, Option<&Switched>)> {
        let mut parts: Vec<(i64, Option<&Switched>)> = vec![(0, None)];
        for backfill in self.switched.get(&counter).into_iter().flatten() {
            parts.retain(|(from_s, _)| *from_s < backfill.after_s);
            parts.push((backfill.after_s, Some(backfill)));
        }
        let ends: Vec<i64> = parts.iter().skip(1).map(|(from_s, _)| *from_s).chain([i64::MAX]).collect();
        parts.into_iter().zip(ends).map(|((from_s, backfill), to_s)| (from_s, to_s, backfill)).collect()
    }

    /// How often the events of a partition before an offset counted, for a counter whose configuration always counted
    /// the same, over all keys.
    pub fn events_before(&self, partition: Partition, end: Offset) -> i64 {
        let mut in_force = None::<Counter>;
        let mut events = 0;
        for entry in &self.logs[usize::from(partition)][..end as usize] {
            match entry {
                Entry::Control(control) => take_up(&mut in_force, control, COUNTERS[0]),
                Entry::Event(_) => events += i64::from(in_force.is_some()),
            }
        }
        events
    }
}

/// Versions are applied in order, each once.
fn take_up(in_force: &mut Option<Counter>, control: &Control, counter: u32) {
    if let Control::Counter { counter: changed, version, .. } = control {
        // The version stands in the owner, so that what is told a second time, or late, is known.
        let known = in_force.as_ref().map_or(0, |known| known.owner.parse().unwrap_or(0));
        if changed.id == counter && *version > known {
            *in_force = Some(Counter { owner: version.to_string(), ..Counter::clone(changed) });
        }
    }
}

fn count(rule: &Counter, event: &Happened, cells: &mut Cells) {
    if rule.state != Life::Active {
        return;
    }
    let event = Event::of_data("t", event.time_s * 1_000, &event.data);
    let add = |_, key: &str, value: i64| {
        for granularity in Granularity::ALL {
            *cells.entry((key.to_owned(), granularity, granularity.floor(event.time_s()))).or_default() += value;
        }
    };
    Ruleset::new([rule.clone()]).apply(&event, &mut Scratch::default(), add, |_, _| {});
}
