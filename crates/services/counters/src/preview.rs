//! Previews: what a counter would have counted of the newest events in the log.

use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::counter::Counter;
use raingauge_core::event::Event;
use raingauge_core::ruleset::{Ruleset, Scratch, Skip};
use raingauge_core::tile::TILE_CELLS;
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use raingauge_writer::history::walk;
use raingauge_writer::worker::Error;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Most events that a preview reads, the newest first.
pub const EVENTS_MAX: u64 = 1_000_000;
/// Keys that a preview shows.
const KEYS_SHOWN: usize = 20;
/// Bytes of a tile beside its cells and its key, and bytes of a cell: most counts fit into two.
const TILE_BYTES: f64 = 17.0 + 8.0;
const CELL_BYTES: f64 = 2.0;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Events read, of all types.
    pub events: u64,
    /// Events of the counter's type.
    pub events_of_type: u64,
    /// Events that the counter would have counted.
    pub counted: u64,
    /// Why it would not have counted the other events of its type.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Distinct keys.
    pub keys: usize,
    /// Cells of all three granularities per active day, on average.
    pub cells_per_day: f64,
    /// The cost of such a day, by granularity.
    pub daily: Daily,
    /// The keys with the most events, with their number of events and their count.
    pub hottest: Vec<Hot>,
    /// The times of the first and last event, in seconds since 1970.
    pub from_time: Option<i64>,
    pub to_time: Option<i64>,
}

/// What a counter adds to the bucket store on an active day, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Daily {
    /// Cells of each granularity: rows in the count tables of a cluster.
    pub quarter_cells: f64,
    pub hour_cells: f64,
    pub day_cells: f64,
    /// Approximate bytes of the tiles that quarter hours and hours share, before compression.
    pub fine_bytes: f64,
    /// Approximate bytes of the counts of days.
    pub day_bytes: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hot {
    pub key: String,
    pub events: u64,
    pub count: i128,
}

/// What two configurations would have counted of the same events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    pub before: Preview,
    pub after: Preview,
    pub keys: KeyChanges,
}

/// How the keys of two configurations differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// Keys that only the later one has, keys that only the earlier one has, keys with another
    /// count, and keys with the same count.
    pub gained: usize,
    pub lost: usize,
    pub changed: usize,
    pub same: usize,
    /// The keys whose counts differ most.
    pub largest: Vec<KeyChange>,
}

/// One key, with its count before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    pub key: String,
    pub before: Option<i128>,
    pub after: Option<i128>,
}

/// Runs a draft over the newest events, the same number from each partition. Blocks the thread.
pub fn preview(logs: &[Arc<dyn EventLog>], draft: &Counter, stop: &Stop) -> Result<Preview, Error> {
    preview_newest(logs, draft, EVENTS_MAX, stop)
}

/// Like [`preview`], with a limit on the events.
pub fn preview_newest(
    logs: &[Arc<dyn EventLog>],
    draft: &Counter,
    events_max: u64,
    stop: &Stop,
) -> Result<Preview, Error> {
    let mut tallies = [Tally::new(draft)];
    run(logs, &mut tallies, events_max, stop)?;
    let [tally] = tallies;
    Ok(tally.finish())
}

/// Runs two configurations over the same events. Blocks the thread.
pub fn compare(
    logs: &[Arc<dyn EventLog>],
    before: &Counter,
    after: &Counter,
    events_max: u64,
    stop: &Stop,
) -> Result<Comparison, Error> {
    let mut tallies = [Tally::new(before), Tally::new(after)];
    run(logs, &mut tallies, events_max, stop)?;
    let [before, after] = tallies;
    let keys = key_changes(&before.keys, &after.keys);
    Ok(Comparison { before: before.finish(), after: after.finish(), keys })
}

fn run(
    logs: &[Arc<dyn EventLog>],
    tallies: &mut [Tally],
    events_max: u64,
    stop: &Stop,
) -> Result<(), Error> {
    let each_max = events_max / (logs.len() as u64).max(1);
    for log in logs {
        let end = log.end();
        walk(&**log, end.saturating_sub(each_max), end, stop, |step, scratch| {
            let Entry::Event(event) = step.entry else {
                return;
            };
            tallies.iter_mut().for_each(|tally| tally.take(&event, scratch));
        })?;
    }
    Ok(())
}

fn key_changes(before: &Keys, after: &Keys) -> KeyChanges {
    let mut changes = KeyChanges::default();
    let mut differing: Vec<(u128, &str, Option<i128>, Option<i128>)> = Vec::new();
    let all = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    for key in all {
        let of = |keys: &Keys| keys.get(key).map(|(_, _, count)| *count);
        let (old, new) = (of(before), of(after));
        match (old, new) {
            (Some(old), Some(new)) if old == new => changes.same += 1,
            (Some(_), Some(_)) => changes.changed += 1,
            (Some(_), None) => changes.lost += 1,
            (None, _) => changes.gained += 1,
        }

        if old != new {
            differing.push((old.unwrap_or(0).abs_diff(new.unwrap_or(0)), key, old, new));
        }
    }

    differing
        .sort_unstable_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    differing.truncate(KEYS_SHOWN);

    let named = differing.into_iter().map(|(_, key, before, after)| KeyChange {
        key: key.to_owned(),
        before,
        after,
    });

    changes.largest = named.collect();
    changes
}

/// The number, the events and the count of each key.
type Keys = HashMap<Box<str>, (u32, u64, i128)>;

struct Tally {
    draft: Counter,
    ruleset: Ruleset,
    preview: Preview,
    keys: Keys,
    /// Pairs of a key's number and a quarter hour since 1970.
    cells: HashSet<(u32, u32)>,
    days: BTreeSet<i64>,
}

impl Tally {
    fn new(draft: &Counter) -> Self {
        Self {
            draft: draft.clone(),
            ruleset: Ruleset::new([raingauge_writer::state::counting(draft)]),
            preview: Preview::default(),
            keys: Keys::new(),
            cells: HashSet::new(),
            days: BTreeSet::new(),
        }
    }

    fn take<'e>(&mut self, event: &Event<'e>, scratch: &mut Scratch<'e>) {
        self.preview.events += 1;

        if !self.draft.listens_to(event) {
            return;
        }
        self.preview.events_of_type += 1;

        let mut skipped = None;
        let time_s = event.time_s();
        let Self { ruleset, preview, keys, cells, days, .. } = self;
        let mut count = |_, key: &str, value: i64| {
            preview.counted += 1;
            preview.from_time = Some(preview.from_time.map_or(time_s, |from| from.min(time_s)));
            preview.to_time = Some(preview.to_time.map_or(time_s, |to| to.max(time_s)));
            days.insert(time_s / DAY_S);

            let number = number_of(keys, key, value);
            cells.insert((number, (time_s / Granularity::Quarter.width_s()) as u32));
        };

        ruleset.apply(event, scratch, &mut count, |_, skip| skipped = Some(skip));

        if let Some(skip) = skipped {
            *self.preview.skipped.entry(Skip::name(skip)).or_default() += 1;
        }
    }

    fn finish(mut self) -> Preview {
        let coarser = |width: u32| {
            self.cells
                .iter()
                .map(|(key, quarter)| (*key, quarter / width))
                .collect::<HashSet<_>>()
                .len()
        };

        let cells = [self.cells.len(), coarser(4), coarser(96)].map(|cells| cells as f64);
        let days = self.days.len().max(1) as f64;
        let key_bytes: usize = self.keys.keys().map(|key| key.len()).sum();
        let key_bytes = key_bytes as f64 / self.keys.len().max(1) as f64;
        let [quarters, hours, whole_days] = cells.map(|cells| cells / days);

        self.preview.daily = Daily {
            quarter_cells: quarters,
            hour_cells: hours,
            day_cells: whole_days,
            fine_bytes: whole_days * (TILE_BYTES + key_bytes) + (quarters + hours) * CELL_BYTES,
            day_bytes: whole_days * ((TILE_BYTES + key_bytes) / f64::from(TILE_CELLS) + CELL_BYTES),
        };
        let mut hottest: Vec<Hot> = self
            .keys
            .iter()
            .map(|(key, (_, events, count))| Hot {
                key: key.to_string(),
                events: *events,
                count: *count,
            })
            .collect();

        hottest.sort_unstable_by(|left, right| {
            right.events.cmp(&left.events).then_with(|| left.key.cmp(&right.key))
        });
        hottest.truncate(KEYS_SHOWN);
        self.preview.cells_per_day = cells.iter().sum::<f64>() / days;
        self.preview.keys = self.keys.len();
        self.preview.hottest = hottest;

        self.preview
    }
}

/// Adds an event to its key, and returns the key's number.
fn number_of(keys: &mut Keys, key: &str, value: i64) -> u32 {
    let next = keys.len() as u32;
    match keys.get_mut(key) {
        Some((number, events, count)) => {
            *events += 1;
            *count += i128::from(value);
            *number
        }
        None => {
            keys.insert(key.into(), (next, 1, value.into()));
            next
        }
    }
}
