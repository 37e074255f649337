//! Conducts backfills, and erasures of whole counters, over the partitions of a log.
//!
//! ```text
//!   states of all partitions ──▶ due ──▶ control entries that are missing ──▶ log
//! ```
//!
//! The entries that are due follow from the states that the writers publish, so any process may
//! conduct, and several may at once: an entry that is written twice changes nothing. Partition 0
//! decides. The others get the entry that begins a backfill when partition 0 has it at the head of
//! its queue. When all have filled the generation, partition 0 gets the entry to switch, and the
//! others follow when its state shows the outcome. The decisions about a backfill are thus the
//! content of one log, and a conductor with an outdated view only repeats entries that are already
//! decided. The others switch and erase in the order in which partition 0 did.

use crate::control::Control;
use crate::state::{Backfill, BackfillStatus, CounterState, Phase, next_number, used};
use crate::states::{PublishedState, PublishedStates};
use parking_lot::Mutex;
use raingauge_ports::log::{self, EventSink, Offset, Partition};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between checks whether something is due.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a written entry may take to show in the states before it is written again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long replaced counts stay after every partition has switched: longer than a reader answers
/// by states that it can no longer refresh.
pub const RETIRE_AFTER: Duration = Duration::from_secs(120);
/// The partition that decides.
pub const DECIDER: Partition = 0;

pub struct Conductor {
    sink: Arc<dyn EventSink>,
    states: Arc<dyn PublishedStates>,
    retire_after: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// When an entry was written, by its partition and its bytes.
    written: HashMap<(Partition, Vec<u8>), Instant>,
    /// Since when every partition has answered by at least this generation number, by counter.
    switched: HashMap<(u32, u32), Instant>,
}

/// The entries to write now, and those to write when every reader has had the time to switch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub now: Vec<(Partition, Control)>,
    /// By counter and number of the generation that answers.
    pub retire: BTreeMap<(u32, u32), Vec<Partition>>,
}

impl Conductor {
    pub fn new(sink: Arc<dyn EventSink>, states: Arc<dyn PublishedStates>) -> Self {
        Self { sink, states, retire_after: RETIRE_AFTER, inner: Mutex::default() }
    }

    /// Retires replaced counts this long after every partition has switched.
    pub fn retire_after(self, retire_after: Duration) -> Self {
        Self { retire_after, ..self }
    }

    /// Conducts while it is polled.
    pub async fn run(&self) {
        let mut is_away = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.conduct().await {
                Ok(()) => is_away = false,
                Err(error) if !is_away => {
                    tracing::warn!(%error, "backfills wait for the log");
                    is_away = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Writes what is due now.
    pub async fn conduct(&self) -> Result<(), log::Error> {
        let due = due(&self.states.shown(), self.sink.partitions());
        for (partition, payload) in self.unwritten(due) {
            self.sink.append_control(partition, payload.clone()).await?;
            self.inner.lock().written.insert((partition, payload), Instant::now());
        }
        Ok(())
    }

    /// Returns the entries that were not written recently.
    fn unwritten(&self, due: Due) -> Vec<(Partition, Vec<u8>)> {
        let mut inner = self.inner.lock();
        inner.written.retain(|_, at| at.elapsed() < AGAIN);
        inner.switched.retain(|key, _| due.retire.contains_key(key));

        let mut entries = due.now;
        for ((counter, number), partitions) in due.retire {
            let since = *inner.switched.entry((counter, number)).or_insert_with(Instant::now);
            if since.elapsed() >= self.retire_after {
                let retire = |partition| (partition, Control::Retire { counter, number });
                entries.extend(partitions.into_iter().map(retire));
            }
        }

        let payloads =
            entries.into_iter().map(|(partition, control)| (partition, control.to_json()));
        payloads.filter(|entry| !inner.written.contains_key(entry)).collect()
    }

    /// Returns the number of a counter's next generation; `None` while one of its backfills is
    /// undecided.
    pub fn next_number(&self, counter: u32) -> Option<u32> {
        next_of(&self.states.shown(), counter)
    }

    /// Returns the number of a counter's next generation, even while a backfill is undecided.
    pub fn free_number(&self, counter: u32) -> u32 {
        free_of(&self.states.shown(), counter)
    }

    /// Whether partition 0 has erased what a counter had counted before an offset.
    pub fn has_erased(&self, counter: u32, before: Offset) -> bool {
        let shown = self.states.shown();
        let decider = shown.get(&DECIDER).and_then(|shown| shown.counter(counter));
        decider.is_some_and(|state| state.erased.is_some_and(|erased| erased.offset >= before))
    }

    /// Whether every partition answers by the same generation as partition 0.
    pub fn is_followed(&self, counter: u32) -> bool {
        let shown = self.states.shown();
        let state = |partition| shown.get(&partition).and_then(|shown| shown.counter(counter));
        let decided = state(DECIDER).map(CounterState::answers_by);
        (0..self.sink.partitions())
            .all(|partition| state(partition).map(CounterState::answers_by) == decided)
    }
}

/// Returns the number for a new backfill of a counter: newer than any that a partition knows, and
/// of a generation that none of them still uses. `None` while a backfill is undecided in partition
/// 0.
pub fn next_of(shown: &BTreeMap<Partition, PublishedState>, counter: u32) -> Option<u32> {
    let decider = shown.get(&DECIDER).and_then(|shown| shown.counter(counter));
    if decider.is_some_and(|state| state.backfill.as_ref().is_some_and(Backfill::is_running)) {
        return None;
    }
    Some(free_of(shown, counter))
}

/// Returns a number newer than any that a partition knows, of a generation that none of them still
/// uses.
pub fn free_of(shown: &BTreeMap<Partition, PublishedState>, counter: u32) -> u32 {
    let newest =
        shown.values().filter_map(|shown| shown.counter(counter)).map(|state| state.newest).max();
    let used: BTreeSet<_> = shown.values().flat_map(|shown| used(&shown.state, counter)).collect();
    next_number(counter, newest.unwrap_or(0), |generation| used.contains(&generation))
}

/// Returns what is due by the states of the partitions.
pub fn due(shown: &BTreeMap<Partition, PublishedState>, partitions: Partition) -> Due {
    let mut due = Due::default();
    for (partition, shown) in shown {
        let removed =
            shown.removed.iter().map(|generation| Control::Removed { generation: *generation });
        due.now.extend(removed.map(|control| (*partition, control)));
    }

    let Some(decider) = shown.get(&DECIDER) else {
        return due;
    };
    let open: BTreeSet<u32> = shown.values().flat_map(|shown| shown.open.iter().copied()).collect();
    for counter in open {
        let Some(decides) = decider.counter(counter) else {
            continue;
        };
        let at_front = decides
            .backfill
            .as_ref()
            .filter(|backfill| decider.state.is_front(counter, backfill.number));
        if let Some(backfill) = at_front {
            fill(shown, partitions, (counter, decides, backfill), &mut due);
        }

        for partition in 1..partitions {
            let state = shown.get(&partition).and_then(|shown| shown.counter(counter));
            let undecided = state
                .and_then(|state| state.backfill.as_ref())
                .filter(|backfill| backfill.is_running());

            if let Some(control) =
                undecided.and_then(|undecided| decided(counter, decides, undecided.number))
            {
                due.now.push((partition, control));
            }

            if let Some(control) = state.and_then(|state| erasure(counter, decides, state)) {
                due.now.push((partition, control));
            }
        }

        retire(shown, partitions, counter, &mut due);
    }

    due
}

/// A backfill that every partition has to fill: begins it where it is unknown, and decides it when
/// all have ended.
fn fill(
    shown: &BTreeMap<Partition, PublishedState>,
    partitions: Partition,
    (counter, decides, backfill): (u32, &CounterState, &Backfill),
    due: &mut Due,
) {
    let number = backfill.number;
    let mut filled = 0;
    let mut hindrance = None;

    for partition in 0..partitions {
        let state = shown.get(&partition).and_then(|shown| shown.counter(counter));
        if state.is_none_or(|state| state.version < decides.version) {
            let known =
                Control::counter(decides.version, decides.changed_at, decides.counter.clone());
            due.now.push((partition, known));
        }

        let own =
            state.and_then(|state| state.backfill.as_ref()).filter(|own| own.number == number);
        let Some(own) = own else {
            let is_behind = state.map_or(0, CounterState::answers_by) != decides.answers_by();
            match state {
                // An older backfill is undecided here; it is decided first.
                Some(state) if state.backfill.as_ref().is_some_and(Backfill::is_running) => {}
                // Earlier switches and erasures of partition 0 come first.
                _ if is_behind => {}
                Some(state) if state.newest >= number => {
                    hindrance =
                        hindrance.or(Some(format!("partition {partition} has begun a newer one")));
                }
                _ => due.now.push((partition, begin(counter, backfill))),
            }

            continue;
        };

        let progress = shown.get(&partition).and_then(|shown| shown.progress_of(counter, number));
        match (own.status, progress.map(|progress| progress.phase)) {
            (BackfillStatus::Running, Some(Phase::Filled)) => filled += 1,
            (BackfillStatus::Running, Some(Phase::Failed)) => {
                let reason = progress.map_or("", |progress| progress.reason.as_str());
                hindrance = hindrance.or(Some(format!("partition {partition}: {reason}")));
            }
            (BackfillStatus::Cancelled, _) => hindrance = hindrance.or(Some(own.reason.clone())),
            _ => {}
        }
    }

    if let Some(reason) = hindrance {
        due.now.push((DECIDER, Control::Cancel { counter, number, reason }));
    } else if filled == partitions {
        due.now.push((DECIDER, Control::Switch { counter, number }));
    }
}

/// Returns the entry that begins a backfill as partition 0 has it.
fn begin(counter: u32, backfill: &Backfill) -> Control {
    let configuration = backfill.rules.first().map(|rule| Box::new(rule.counter.clone()));
    Control::Backfill {
        counter,
        after_s: Some(backfill.after_s),
        number: Some(backfill.number),
        configuration,
    }
}

/// Returns the decision about a backfill that another partition does not know yet; `None` while it
/// is undecided.
fn decided(counter: u32, decides: &CounterState, number: u32) -> Option<Control> {
    let newest = decides.backfill.as_ref().filter(|backfill| backfill.number == number);
    if newest.is_some_and(Backfill::is_running) || number > decides.newest {
        return None;
    }
    let outgoing = decides.outgoing.iter().flat_map(|outgoing| &outgoing.parts);
    let switched = decides.parts.iter().chain(outgoing).any(|part| part.number == number);
    if switched {
        return Some(Control::Switch { counter, number });
    }
    let reason = newest.map_or_else(String::new, |backfill| backfill.reason.clone());
    Some(Control::Cancel { counter, number, reason })
}

/// Returns the erasure that partition 0 has made and a partition has not: it still answers by what
/// was erased.
fn erasure(counter: u32, decides: &CounterState, state: &CounterState) -> Option<Control> {
    let replaces = state.answers_by();
    let replaced = decides.outgoing.iter().find(|outgoing| outgoing.answered_by() == replaces)?;
    let number = replaced.replaced_by;
    replaced.is_erased.then_some(Control::EraseAll { counter, number, replaces: Some(replaces) })
}

/// Retires what every partition has replaced, for when readers have had the time to see the switch.
fn retire(
    shown: &BTreeMap<Partition, PublishedState>,
    partitions: Partition,
    counter: u32,
    due: &mut Due,
) {
    let states = || shown.values().filter_map(|shown| shown.counter(counter));
    if states().count() < usize::from(partitions) {
        return;
    }

    let Some(number) = states().map(CounterState::answers_by).min() else {
        return;
    };
    let has_replaced = |shown: &PublishedState| {
        let state = shown.counter(counter);
        state.is_some_and(|state| {
            state.outgoing.iter().any(|outgoing| outgoing.replaced_by <= number)
        })
    };

    let replaced: Vec<Partition> = shown
        .iter()
        .filter(|(_, shown)| has_replaced(shown))
        .map(|(partition, _)| *partition)
        .collect();

    if !replaced.is_empty() {
        due.retire.insert((counter, number), replaced);
    }
}
