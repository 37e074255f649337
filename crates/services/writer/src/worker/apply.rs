//! Turns entries of the log into changes of buckets.

use super::error::Error;
use crate::control::Bucket;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::event::key_hash;
use raingauge_core::retention::Horizons;
use raingauge_core::ruleset::{Scratch, Skip};
use raingauge_ports::buckets::{self, Addition, BucketWriter};
use raingauge_ports::key_counts::Sketch;
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::published::{Published, View};
use raingauge_ports::record::Entry;
use std::sync::Arc;

/// Applies events, and records what was not counted.
#[derive(Default)]
pub struct Applier {
    view: Option<Arc<View>>,
    /// The day for which `horizons` hold.
    day: i64,
    /// The horizons of each rule of the view.
    horizons: Vec<Horizons>,
    /// For each rule, the horizons of the timelines beside the one that answers.
    beside: Vec<Vec<Horizons>>,
    /// For each rule, an estimate of its keys.
    keys: Vec<Arc<Sketch>>,
    /// For each rule, how often each reason kept it from counting.
    skips: Vec<[u64; Skip::ALL.len()]>,
    /// For each rule and granularity, how many events came too late.
    late: Vec<[u64; Granularity::ALL.len()]>,
    /// For each rule, how many events of the block it counted.
    counted: Vec<u64>,
    /// The rules that counted any events.
    touched: Vec<usize>,
}

impl Applier {
    /// Applies the events of a block from `from` up to its end, to the next control entry, or until
    /// the store wants a commit. Returns where it stopped. The first error of the store ends it.
    pub fn apply_events(
        &mut self,
        store: &dyn BucketWriter,
        published: &Published,
        block: &Block,
        from: Offset,
    ) -> Result<Offset, Error> {
        let view = self.prepare(published, block.appended_ms);
        let Self { horizons, beside, keys, skips, late, counted, touched, .. } = self;
        let mut scratch = Scratch::default();
        let mut newest_s = 0;
        let mut failure = None;

        let mut next = from;

        for entry in block.entries(from) {
            let (offset, entry) = entry?;
            let event = match entry {
                Entry::Event(event) => event,
                Entry::Void => {
                    next = offset + 1;
                    continue;
                }
                Entry::Control(_) => break,
            };

            next = offset + 1;
            let time_s = event.time_s();
            if time_s > newest_s {
                newest_s = time_s;
                // Published before it is counted, so that a reader that sees its count knows of the
                // event.
                published.saw_event(time_s);
            }

            let count = |index: usize, key: &str, value| {
                note_late(&horizons[index], time_s, &mut late[index]);
                keys[index].note(key_hash(key));

                if counted[index] == 0 {
                    touched.push(index);
                }
                counted[index] += u64::from(horizons[index].keeps(Granularity::Day, time_s));

                let mut add = |generation, horizons: &Horizons| {
                    let added = Addition { offset, time_s, value };
                    if failure.is_none() {
                        failure = store.add(generation, key, added, horizons).err();
                    }
                };

                add(view.timelines[index].generation_at(time_s), &horizons[index]);

                for (place, generation) in view.beside_at(index, time_s) {
                    add(generation, &beside[index][place]);
                }
            };

            view.ruleset
                .apply(&event, &mut scratch, count, |index, skip| skips[index][skip as usize] += 1);

            if failure.is_some() || store.wants_commit() {
                break;
            }
        }

        for index in touched.drain(..) {
            let id = view.ruleset.rules()[index].counter.id;
            let events = std::mem::take(&mut counted[index]);
            published.activity().counted(id, block.appended_ms.div_euclid(1_000), events);
        }

        failure.map_or(Ok(next), |error: buckets::Error| Err(error.into()))
    }

    /// Sets buckets. Skips those whose counter has been removed since the request was accepted.
    pub fn set_buckets(
        &mut self,
        store: &dyn BucketWriter,
        published: &Published,
        offset: Offset,
        buckets: &[Bucket],
    ) -> Result<(), Error> {
        let view = published.view();
        for bucket in buckets {
            if let Some(index) = view.ruleset.index_of_key(&bucket.key) {
                for generation in view.generations_at(index, bucket.time) {
                    store.set(generation, &bucket.key, offset, bucket.cell())?;
                }
            }
        }
        Ok(())
    }

    /// Adopts the published view, and the horizons of the day in which a block was appended, so
    /// that a block is applied in the same way at any time.
    fn prepare(&mut self, published: &Published, appended_ms: i64) -> Arc<View> {
        let view = Arc::clone(&published.view());
        let now_s = appended_ms.div_euclid(1_000);
        let same_view = self.view.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view));
        if !same_view || self.day != now_s / DAY_S {
            self.day = now_s / DAY_S;
            let rules = 0..view.timelines.len();
            self.horizons = rules.clone().map(|index| view.horizons(index, now_s)).collect();

            let beside = |index: usize| {
                (0..view.beside[index].len())
                    .map(|place| view.horizons_beside(index, place, now_s))
                    .collect()
            };
            self.beside = rules.map(beside).collect();
        }

        if !same_view {
            self.report(published);
            self.skips = vec![Default::default(); view.ruleset.rules().len()];
            self.late = vec![Default::default(); view.ruleset.rules().len()];
            self.counted = vec![0; view.ruleset.rules().len()];
            self.keys = view
                .timelines
                .iter()
                .map(|timeline| published.keys().of(timeline.newest()))
                .collect();
            self.view = Some(Arc::clone(&view));
        }

        view
    }

    /// Moves what was not counted here into the metrics and the activity.
    pub fn report(&mut self, published: &Published) {
        let activity = published.activity();
        let Some(view) = &self.view else { return };
        for (index, rule) in view.ruleset.rules().iter().enumerate() {
            let id = rule.counter.id;
            for (reason, count) in
                Skip::ALL.iter().zip(&mut self.skips[index]).filter(|(_, count)| **count > 0)
            {
                let labels = [("counter", id.to_string()), ("reason", reason.name().to_owned())];
                activity.skipped(id, reason.name(), *count);
                metrics::counter!("raingauge_events_skipped_total", &labels)
                    .increment(std::mem::take(count));
            }

            let late = Granularity::ALL.into_iter().zip(&mut self.late[index]);
            for (granularity, count) in late.filter(|(_, count)| **count > 0) {
                let labels =
                    [("counter", id.to_string()), ("granularity", granularity.name().to_owned())];
                activity.late(id, granularity, *count);
                metrics::counter!("raingauge_late_refused_total", &labels)
                    .increment(std::mem::take(count));
            }
        }
    }
}

fn note_late(horizons: &Horizons, time_s: i64, late: &mut [u64; Granularity::ALL.len()]) {
    for (granularity, count) in Granularity::ALL.into_iter().zip(late) {
        *count += u64::from(!horizons.keeps(granularity, time_s));
    }
}
