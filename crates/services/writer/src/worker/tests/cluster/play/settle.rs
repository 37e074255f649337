//! Quiet moments: every process does what is due, and then every count is compared with the model.

use super::{COUNTERS, Node, Play, READERS};
use crate::control::Control;
use crate::state::State;
use crate::worker::Worker;
use raingauge_core::bucket::Granularity;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::Partition;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Play {
    /// Every process does what is due until nothing is, and then every count is compared.
    pub fn settle(&mut self) {
        self.zombies.clear();

        for _ in 0..200 {
            let mut busy = 0;
            for place in 0..self.logs.len() {
                busy += self.run_owner(place);
                let unknown = self.unknown_to(place);
                busy += self.write_all(unknown);
            }

            self.refresh(0);
            let due = self.due(0);
            busy += self.write_all(due);

            if busy == 0 {
                (0..READERS).for_each(|reader| self.refresh(reader));
                let due = self.due(0);
                if self.write_all(due) == 0 {
                    return self.check();
                }
            }
        }

        panic!("the cluster does not come to rest");
    }

    fn run_owner(&mut self, place: usize) -> usize {
        let mut node = match self.owners[place].take() {
            Some(node) => node,
            None => self.open(place).expect("a sound partition opens"),
        };
        let mut worked = match drain(&mut node.worker) {
            Ok(worked) => worked,
            // Another worker has stored more than this one has read, and the log has dropped it.
            Err(_) => {
                node = self.open(place).expect("a sound partition opens");
                1 + drain(&mut node.worker).expect("a worker that begins where the store is")
            }
        };

        let worker = &mut node.worker;
        worker.commit().expect("committed");
        while worker.removals.step(&*worker.store).expect("removed") {}
        worker.commit().expect("committed");

        let removed = std::mem::take(&mut worker.shown.lock().removed);
        self.note(place, &mut node);
        self.owners[place] = Some(node);
        worked += removed.len();

        for generation in removed {
            self.write(place as Partition, Control::Removed { generation });
        }
        worked
    }

    fn check(&mut self) {
        for (id, switched) in &mut self.naive.switched {
            for backfill in switched {
                backfill.begun = self.begun[&(*id, backfill.number)].clone();
            }
        }

        let now_s = self.clock.now_s();
        let servers = self.servers.lock();

        for counter in COUNTERS {
            let expected = self.naive.cells(counter);
            for reader in &self.readers {
                let view = Arc::clone(&reader.published.view());
                let Some(index) = view.ruleset.index_of(counter) else {
                    continue;
                };
                let horizons = view.horizons(index, now_s);
                let timeline = &view.timelines[index];
                let answers = |granularity: Granularity, time_s| time_s >= horizons.of(granularity);

                let mut stored = BTreeMap::<(&str, Granularity, i64), i64>::new();
                for ((generation, _, key, granularity, time_s), cell) in &servers.cells {
                    if timeline.generation_at(*time_s) == *generation
                        && answers(*granularity, *time_s)
                    {
                        *stored.entry((key.as_str(), *granularity, *time_s)).or_default() +=
                            cell.value();
                    }
                }

                stored.retain(|_, count| *count != 0);
                let expected = expected.iter().map(|((key, granularity, time_s), count)| {
                    ((key.as_str(), *granularity, *time_s), *count)
                });
                let expected: BTreeMap<_, _> = expected
                    .filter(|((_, granularity, time_s), _)| answers(*granularity, *time_s))
                    .collect();
                let wrong: Vec<_> =
                    stored.iter().filter(|(at, count)| expected.get(*at) != Some(*count)).collect();
                let right: Vec<_> =
                    expected.iter().filter(|(at, count)| stored.get(*at) != Some(*count)).collect();

                assert_eq!(wrong, right, "counter {counter} of {timeline:?}");
            }
        }
    }

    /// Settles once more, after every process has started again from what is stored.
    pub fn step_all_away(&mut self) {
        self.owners.iter_mut().for_each(|owner| *owner = None);

        if self.random.below(4) == 0 {
            // Uses the newest view of all, so that it takes effect.
            let counter = COUNTERS[0];
            let number = self.erase_all(0, COUNTERS[0]);
            self.settle();

            let erased = |node: &Node| {
                node.worker.state.counters[&counter].erased.map(|erased| erased.number)
            };
            assert!(
                self.owners.iter().flatten().all(|node| erased(node) == Some(number)),
                "every partition has erased"
            );
        }

        self.settle();
        let states = self.owners.iter().flatten().map(|node| &node.worker.state);
        let answering = |state: &State| {
            let parts = |of: &crate::state::CounterState| of.timeline().parts().to_vec();
            COUNTERS.map(|id| state.counters.get(&id).map(parts))
        };
        let mut answering = states.map(|state| {
            assert!(
                state.queue.is_empty() && state.retired.is_empty(),
                "every backfill is decided and cleared away"
            );
            answering(state)
        });

        let first = answering.next();
        assert!(answering.all(|other| Some(other) == first), "all partitions answer alike");
    }
}

/// Applies and fills everything there is. Returns how often there was anything.
fn drain(worker: &mut Worker) -> Result<usize, crate::worker::Error> {
    let mut worked = 0;
    while worker.apply_some()? || worker.backfill_some()? {
        worked += 1;
    }
    Ok(worked)
}
