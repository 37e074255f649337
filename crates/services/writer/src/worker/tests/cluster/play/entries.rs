//! What processes and producers write to the log.

use super::{COUNTERS, Defect, KEYS, Play, Reader, VARIANTS};
use crate::conductor::{DECIDER, due, free_of, next_of};
use crate::control::{Bucket, Control};
use crate::state::{Answer, Phase, Request, is_known};
use crate::states::PublishedStates as _;
use crate::worker::tests::cluster::engines::SimLog;
use crate::worker::tests::cluster::naive::{Entry, Happened};
use crate::worker::tests::world::{FOREIGN, counter, of_json};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::event::Event;
use raingauge_ports::catalog::{Catalog, Change, Versioned};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::record;
use serde_json::{Value as Json, json};
use std::sync::Arc;

impl Play {
    /// Writes entries one after the other, like a process that may die in between.
    pub(super) fn write_some(&mut self, mut entries: Vec<(Partition, Control)>) {
        if self.random.below(6) == 0 {
            entries.truncate(self.random.below(entries.len() as u64 + 1) as usize);
        }
        self.write_all(entries);
    }

    pub(super) fn write_all(&mut self, entries: Vec<(Partition, Control)>) -> usize {
        let written = entries.len();
        entries.into_iter().for_each(|(partition, control)| self.write(partition, control));
        written
    }

    pub(super) fn write(&mut self, partition: Partition, control: Control) {
        let place = usize::from(partition);
        let mut bytes = Vec::new();
        record::push_control(&control.to_json(), &mut bytes);
        self.logs[place].push(bytes, 1);
        self.naive.push_control(place, &control, self.clock.now_s());
        // Now and then, an entry for another consumer follows.
        if self.naive.len(place).is_multiple_of(7) {
            let mut bytes = Vec::new();
            record::push_control(FOREIGN, &mut bytes);
            self.logs[place].push(bytes, 1);
            self.naive.push(place, Entry::Other);
        }
    }

    /// Some events, as one block or several.
    pub(super) fn append(&mut self, place: usize) {
        let is_one_block = self.random.below(2) == 0;
        let mut bytes = Vec::new();
        let mut len = 0;

        for _ in 0..=self.random.below(6) {
            let days = if self.random.below(8) == 0 { 30 } else { 2 };
            let time_s = self.clock.now_s() - self.random.below(days * DAY_S as u64) as i64;
            let data =
                format!(r#"{{"k":"k{}","v":{}}}"#, self.random.below(KEYS), self.random.below(9));
            let offset = self.naive.len(place) as Offset;
            let repeated = (self.random.below(5) == 0).then(|| self.random.next());

            let start = self.logs[place].start();
            let now_ms = self.clock.now_ms();
            let (id, is_new) = self.repetitions[place].next(offset, start, now_ms, repeated);
            let id = format!("{place}-{id}");
            let event =
                Event { id: id.as_str().into(), ..Event::of_data("t", time_s * 1_000, &data) };

            record::push_event(&event, &mut bytes);
            len += 1;

            if !is_one_block {
                self.logs[place].push(std::mem::take(&mut bytes), std::mem::take(&mut len));
            }
            self.naive.push(
                place,
                if is_new { Entry::Event(Happened { time_s, data }) } else { Entry::Other },
            );
        }

        if len > 0 {
            self.logs[place].push(bytes, len);
        }
    }

    /// A key of a counter that may change.
    pub(super) fn some_key(&mut self) -> (u32, String) {
        let id = COUNTERS[1 + self.random.below(COUNTERS.len() as u64 - 1) as usize];
        (id, format!("c{id}:k{}", self.random.below(KEYS)))
    }

    pub(super) fn erase(&mut self) {
        let (counter, key) = self.some_key();
        let erase =
            |partition| (partition as Partition, Control::Erase { counter, key: key.clone() });
        let entries = (0..self.logs.len()).map(erase).collect();
        self.write_some(entries);
    }

    /// Requests the erasure of a counter, by the view of one process. Returns the number of the
    /// erasure, which takes effect unless partition 0 knows a newer one.
    pub(super) fn erase_all(&mut self, reader: usize, counter: u32) -> u32 {
        let number = free_of(&self.readers[reader].follower.shown(), counter);
        let partitions = if self.defect == Some(Defect::ErasesInAnyOrder) {
            self.logs.len() as Partition
        } else {
            1
        };
        for partition in 0..partitions {
            self.write(partition, Control::EraseAll { counter, number, replaces: None });
        }
        number
    }

    pub(super) fn set_buckets(&mut self, place: usize) {
        let bucket = |play: &mut Self| {
            let granularity = Granularity::ALL[play.random.below(3) as usize];
            let time =
                granularity.floor(play.clock.now_s() - play.random.below(3 * DAY_S as u64) as i64);
            let (_, key) = play.some_key();

            Bucket { key, granularity, time, count: play.random.below(100) as i64 }
        };

        let buckets = (0..2).map(|_| bucket(self)).collect();
        let keyed = self.random.below(2) == 0;
        let id = self.random.below(3).to_string();
        let request = keyed
            .then(|| Request { id, digest: String::new(), answer: Answer::default() })
            .map(Box::new);

        self.write(place as Partition, Control::Buckets { buckets, request });
    }

    pub(super) fn edit(&mut self) {
        let id = COUNTERS[self.random.below(COUNTERS.len() as u64) as usize];
        let variant = if id == COUNTERS[0] { VARIANTS } else { self.random.below(VARIANTS + 1) };
        let mut members = variant_of(variant);
        members["description"] = json!(format!("edit {}", self.random.below(1_000)));
        let changed = of_json(&counter(id, members));
        let change = Change { by: String::new(), reason: String::new(), at_s: self.clock.now_s() };
        self.runtime.block_on(self.catalog.replace(changed, None, change)).expect("replaced");
    }

    /// Returns what the catalog has and a partition does not know, for the process that counts it.
    pub(super) fn unknown_to(&self, place: usize) -> Vec<(Partition, Control)> {
        let Some(node) = &self.owners[place] else {
            return Vec::new();
        };
        let found = self.runtime.block_on(self.catalog.list()).expect("a list");
        let view = Arc::clone(&node.published.view());
        let unknown = found.into_iter().filter(|found| !is_known(&view, found));
        let control =
            |found: Versioned| Control::counter(found.version, found.changed_at, found.counter);
        unknown.map(|found| (place as Partition, control(found))).collect()
    }

    pub(super) fn ask_for_backfill(&mut self, reader: usize) {
        let counter = COUNTERS[self.random.below(COUNTERS.len() as u64) as usize];
        let Some(number) = next_of(&self.readers[reader].follower.shown(), counter) else {
            return;
        };
        let covered = |log: &Arc<SimLog>| crate::history::covered_from_s(&**log, 0);
        let after_s = self.logs.iter().map(covered).max();

        if self.defect == Some(Defect::CountsGenerationsAlone) {
            for partition in 0..=self.random.below(self.logs.len() as u64) as Partition {
                let begun =
                    Control::Backfill { counter, after_s, number: None, configuration: None };
                self.write(partition.min(self.logs.len() as Partition - 1), begun);
            }
            return;
        }

        self.write(
            DECIDER,
            Control::Backfill { counter, after_s, number: Some(number), configuration: None },
        );
    }

    /// Returns what is due by the view of one process, which may be outdated. Replaced counts are
    /// retired when every reader has seen the switch.
    pub(super) fn due(&mut self, reader: usize) -> Vec<(Partition, Control)> {
        if matches!(self.defect, Some(Defect::SwitchesAlone | Defect::CountsGenerationsAlone)) {
            self.switch_alone(reader);
        }
        let due = due(&self.readers[reader].follower.shown(), self.logs.len() as Partition);
        let mut entries = due.now;

        for ((counter, number), partitions) in due.retire {
            let has_switched = |reader: &Reader| {
                let shown = reader.follower.shown();
                let by = |place: usize| {
                    shown.get(&(place as Partition)).and_then(|shown| shown.counter(counter))
                };
                (0..self.logs.len())
                    .all(|place| by(place).is_some_and(|state| state.answers_by() >= number))
            };
            if self.readers.iter().all(has_switched) {
                entries.extend(
                    partitions.into_iter().map(|of| (of, Control::Retire { counter, number })),
                );
            }
        }

        if self.random.below(8) == 0 {
            self.stale.extend(entries.iter().cloned());
        }
        entries
    }

    /// Switches each partition by its own progress alone.
    pub(super) fn switch_alone(&mut self, reader: usize) {
        for (partition, shown) in self.readers[reader].follower.shown() {
            let filled = shown.progress.as_ref().filter(|fill| fill.phase == Phase::Filled);
            let front = shown.state.front().map(|(counter, backfill)| (counter, backfill.number));
            if let Some((counter, number)) =
                front.filter(|front| filled.is_some_and(|fill| fill.is_of(front.0, front.1)))
            {
                self.write(partition, Control::Switch { counter, number });
                self.write(partition, Control::Retire { counter, number });
            }
        }
    }

    pub(super) fn write_old_news(&mut self) {
        if !self.stale.is_empty() {
            let which = self.random.below(self.stale.len() as u64) as usize;
            let (partition, control) = self.stale.swap_remove(which);
            // A conductor that retires has waited longer than any process sleeps without being
            // declared dead.
            if !matches!(control, Control::Retire { .. }) {
                self.write(partition, control);
            }
        }
    }
}

/// A configuration of a counter; the last one differs only in its wording.
fn variant_of(variant: u64) -> Json {
    match variant {
        0 => json!({"value": {"field": "data.v"}}),
        1 => json!({"filter": {"operator": "gte", "lhs": "data.v", "rhs": 4}}),
        2 => json!({"state": "paused"}),
        3 => json!({"retentionDays": {"quarter": 1, "hour": 2, "day": 20}}),
        4 => json!({"retentionDays": {"quarter": 5, "hour": 9, "day": null}}),
        5 => json!({"value": 3}),
        6 => json!({"state": "archived"}),
        _ => json!({}),
    }
}
