//! Preview: what a counter would have counted of the newest events in the log.

use crate::history::walk;
use crate::worker::Error;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::Counter;
use raingauge_core::ruleset::{Ruleset, Skip};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Newest events that a preview looks at.
pub const EVENTS_MAX: u64 = 1_000_000;
/// Keys that a preview shows.
const KEYS_SHOWN: usize = 20;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Events that were looked at, of all types.
    pub events: u64,
    /// Events of the counter's type.
    pub events_of_type: u64,
    /// Events that the counter would have counted.
    pub counted: u64,
    /// Why it would not have counted the others of its type.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Different keys.
    pub keys: usize,
    /// Cells of all three granularities for each day in which something happened, on average.
    pub cells_per_day: f64,
    /// The keys that were counted most often, with their number of events and their count.
    pub hottest: Vec<Hot>,
    /// Between which times the events happened, in seconds since 1970.
    pub from_time: Option<i64>,
    pub to_time: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hot {
    pub key: String,
    pub events: u64,
    pub count: i128,
}

/// Runs a draft over the newest events of each partition, as many of one as of another. Blocks the thread.
pub fn preview(logs: &[Arc<dyn EventLog>], draft: &Counter) -> Result<Preview, Error> {
    let ruleset = Ruleset::new([crate::state::counting(draft)]);
    let mut tally = Tally::default();
    let each_max = EVENTS_MAX / (logs.len() as u64).max(1);
    for log in logs {
        tally.walk(&**log, each_max, draft, &ruleset)?;
    }
    Ok(tally.finish())
}

#[derive(Default)]
struct Tally {
    preview: Preview,
    /// Of each key its number, its events and its count.
    keys: HashMap<Box<str>, (u32, u64, i128)>,
    /// By the key's number, its quarter hours since 1970.
    cells: HashSet<(u32, u32)>,
    days: BTreeSet<i64>,
}

impl Tally {
    fn walk(&mut self, log: &dyn EventLog, events_max: u64, draft: &Counter, ruleset: &Ruleset) -> Result<(), Error> {
        let end = log.end();
        walk(log, end.saturating_sub(events_max), end, |step, scratch| {
            let Entry::Event(event) = step.entry else { return };
            self.preview.events += 1;
            if !draft.listens_to(&event) {
                return;
            }
            self.preview.events_of_type += 1;
            let (mut skipped, time_s) = (None, event.time_s());
            ruleset.apply(
                &event,
                scratch,
                |_, key, value| self.count(key, time_s, value),
                |_, skip| skipped = Some(skip),
            );
            if let Some(skip) = skipped {
                *self.preview.skipped.entry(Skip::name(skip)).or_default() += 1;
            }
        })?;
        Ok(())
    }

    fn count(&mut self, key: &str, time_s: i64, value: i64) {
        let preview = &mut self.preview;
        preview.counted += 1;
        preview.from_time = Some(preview.from_time.map_or(time_s, |from| from.min(time_s)));
        preview.to_time = Some(preview.to_time.map_or(time_s, |to| to.max(time_s)));
        self.days.insert(time_s / DAY_S);
        let next = self.keys.len() as u32;
        let number = match self.keys.get_mut(key) {
            Some((number, events, count)) => {
                *events += 1;
                *count += i128::from(value);
                *number
            }
            None => {
                self.keys.insert(key.into(), (next, 1, value.into()));
                next
            }
        };
        self.cells.insert((number, (time_s / Granularity::Quarter.width_s()) as u32));
    }

    fn finish(mut self) -> Preview {
        let coarser =
            |width: u32| self.cells.iter().map(|(key, quarter)| (*key, quarter / width)).collect::<HashSet<_>>().len();
        let cells = self.cells.len() + coarser(4) + coarser(96);
        let mut hottest: Vec<Hot> = self
            .keys
            .iter()
            .map(|(key, (_, events, count))| Hot { key: key.to_string(), events: *events, count: *count })
            .collect();
        hottest.sort_unstable_by(|left, right| right.events.cmp(&left.events).then_with(|| left.key.cmp(&right.key)));
        hottest.truncate(KEYS_SHOWN);
        self.preview.cells_per_day = cells as f64 / self.days.len().max(1) as f64;
        self.preview.keys = self.keys.len();
        self.preview.hottest = hottest;
        self.preview
    }
}
